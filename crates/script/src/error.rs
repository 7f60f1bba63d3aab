//! Errors in a script, in pgbench's words.
//!
//! [`ParseError`] displays the block that pgbench prints after its `pgbench: error: `: the
//! message, then, where there is one, the line and a caret. Wrappers match that text, so it stays
//! as it is; what helps a person goes into `hint`.

use std::fmt;

/// Reason why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The script, as it was named to [`crate::ParsedScript::parse`].
    pub file: String,
    /// Line of the command, counted from 1; 0 where the script as a whole is wrong.
    pub line: u32,
    /// Column of the caret in `excerpt`, counted from 1: the last character of the offending word,
    /// which is where pgbench points.
    pub column: Option<u32>,
    /// The whole first line of the message, file and line included.
    pub message: String,
    /// The command as it stands in the file.
    pub excerpt: Option<String>,
    /// Next step for the user.
    pub hint: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let Some(excerpt) = &self.excerpt else {
            // The message stands for itself.
            return Ok(());
        };
        write!(f, "\n{excerpt}")?;
        match self.column {
            Some(column) => {
                write!(f, "\n{:>width$} error found here", '^', width = column as usize)
            }
            None => Ok(()),
        }
    }
}

/// Place in a script where something is being parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: u32,
    /// The meta-command, as written.
    pub(crate) command: Option<&'a str>,
}

impl Location<'_> {
    /// `file:line: message (detail) in command "command"`, then the excerpt with a caret under its
    /// byte `caret`.
    pub(crate) fn error(
        &self,
        message: &str,
        detail: Option<&str>,
        excerpt: Option<&[u8]>,
        caret: Option<usize>,
    ) -> ParseError {
        let mut text = format!("{}:{}: {message}", self.file, self.line);
        if let Some(detail) = detail {
            text += &format!(" ({detail})");
        }
        if let Some(command) = self.command {
            text += &format!(" in command \"{command}\"");
        }
        ParseError {
            file: self.file.to_owned(),
            line: self.line,
            column: caret.map(|byte| byte as u32 + 1),
            message: text,
            excerpt: excerpt.map(|excerpt| String::from_utf8_lossy(excerpt).into_owned()),
            hint: None,
        }
    }
}

impl ParseError {
    /// An error of the script as a whole.
    pub(crate) fn of_script(file: &str, message: String) -> ParseError {
        ParseError {
            file: file.to_owned(),
            line: 0,
            column: None,
            message,
            excerpt: None,
            hint: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: Option<String>) -> ParseError {
        self.hint = hint;
        self
    }
}
