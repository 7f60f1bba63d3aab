//! `\shell` and `\setshell`: the command line, and what its output means.
//!
//! Running it is the engine's.

use crate::names::{VariableNames, VariableSlot};
use crate::variables::Variables;

/// Longest command line, in bytes.
const MAX_LENGTH: usize = 254;
/// Longest line that `\setshell` reads, in bytes.
const MAX_RESULT: usize = 63;

/// The words of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// The first word as written: pgbench's messages begin with it.
    program: Box<str>,
    words: Box<[Word]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Text(Box<[u8]>),
    /// `:name`, and how it was written.
    Variable(VariableSlot, Box<str>),
}

/// Reason why a shell command cannot be run or gave nothing, in pgbench's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ShellError {
    #[error("{program}: undefined variable \"{name}\"")]
    Undefined {
        /// The first word of the command.
        program: Box<str>,
        /// As written, colon included.
        name: Box<str>,
    },
    #[error("{0}: shell command is too long")]
    TooLong(
        /// The first word of the command.
        Box<str>,
    ),
    #[error("{0}: could not launch shell command")]
    NotLaunched(
        /// The first word of the command.
        Box<str>,
    ),
    #[error("{0}: could not read result of shell command")]
    NoResult(
        /// The first word of the command.
        Box<str>,
    ),
    #[error("{program}: shell command must return an integer (not \"{output}\")")]
    NotAnInteger {
        /// The first word of the command.
        program: Box<str>,
        output: String,
    },
}

impl ShellCommand {
    pub(crate) fn new<'a>(
        words: impl Iterator<Item = &'a [u8]>,
        names: &mut VariableNames,
    ) -> ShellCommand {
        let mut words = words.peekable();
        let program = words.peek().map(|word| String::from_utf8_lossy(word).into());
        let words = words.map(|word| match word {
            // Two colons stand for one that is no variable.
            [b':', b':', ..] => Word::Text(word[1..].into()),
            [b':', name @ ..] => {
                Word::Variable(names.intern(name), String::from_utf8_lossy(word).into())
            }
            text => Word::Text(text.into()),
        });
        ShellCommand {
            words: words.collect(),
            program: program.expect("a command has a first word"),
        }
    }

    /// The variables among its words.
    pub(crate) fn variables(&self) -> impl Iterator<Item = VariableSlot> {
        self.words.iter().filter_map(|word| match word {
            Word::Variable(slot, _) => Some(*slot),
            Word::Text(_) => None,
        })
    }

    /// The line to give to `sh -c`: the words with one space between.
    pub fn line(&self, variables: &Variables) -> Result<Vec<u8>, ShellError> {
        let mut line = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                line.push(b' ');
            }
            match word {
                Word::Text(text) => line.extend_from_slice(text),
                Word::Variable(slot, written) => {
                    if !variables.write(*slot, &mut line) {
                        let name = written.clone();
                        return Err(ShellError::Undefined { program: self.program.clone(), name });
                    }
                }
            }
            if line.len() > MAX_LENGTH {
                return Err(ShellError::TooLong(self.program.clone()));
            }
        }
        Ok(line)
    }

    /// Error of a `\shell` command that did not succeed.
    pub fn not_launched(&self) -> ShellError {
        ShellError::NotLaunched(self.program.clone())
    }

    /// The integer that `\setshell` takes from the first line of the command's output. Like
    /// pgbench, it does not ask whether the command succeeded, and keeps the low 32 bits of a
    /// number of up to 64, which larger ones are cut to.
    pub fn result(&self, output: &[u8]) -> Result<i64, ShellError> {
        let Some(line) = output.split_inclusive(|byte| *byte == b'\n').next() else {
            return Err(ShellError::NoResult(self.program.clone()));
        };
        let line = &line[..line.len().min(MAX_RESULT)];
        let text = String::from_utf8_lossy(line);
        integer(text.trim()).map(|number| i64::from(number as i32)).ok_or_else(|| {
            ShellError::NotAnInteger { program: self.program.clone(), output: text.into_owned() }
        })
    }

    /// Message of `--debug` about a value that `\setshell` has taken from `output`.
    pub fn debug(&self, output: &[u8]) -> String {
        let line = output.split_inclusive(|byte| *byte == b'\n').next();
        // A program that wrote nothing has no first line.
        let line = line.unwrap_or_default();
        let second = self.words.get(1).map_or("(null)".into(), Word::written);
        let (program, value) = (&self.program, String::from_utf8_lossy(line));
        format!("{program}: shell parameter name: \"{second}\", value: \"{value}\"")
    }
}

impl Word {
    fn written(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Word::Text(text) => String::from_utf8_lossy(text),
            Word::Variable(_, written) => (&**written).into(),
        }
    }
}

/// As C's `strtol`: digits with a sign, cut to the range of the type; an empty text is 0.
fn integer(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    is_number.then(|| text.parse().unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn joins_words_and_variables() {
        let mut names = VariableNames::new();
        let words = ["echo", ":x", "::x", "a:x"];
        let command = ShellCommand::new(words.iter().map(|w| w.as_bytes()), &mut names);
        let mut variables = Variables::new(&names);
        let undefined = command.line(&variables).unwrap_err();
        assert_eq!(undefined.to_string(), "echo: undefined variable \":x\"");
        variables.set(names.slot("x").unwrap(), Value::Int(7));
        assert_eq!(command.line(&variables).unwrap(), b"echo 7 :x a:x");
        variables.set_text(names.slot("x").unwrap(), "y".repeat(250));
        assert_eq!(command.line(&variables), Err(ShellError::TooLong("echo".into())));
    }

    #[test]
    fn takes_the_integer_of_the_first_line() {
        let command =
            ShellCommand::new([b"date".as_slice()].into_iter(), &mut VariableNames::new());
        assert_eq!(command.result(b"42\nmore"), Ok(42));
        assert_eq!(command.result(b"  -7  \n"), Ok(-7));
        assert_eq!(command.result(b"4294967301"), Ok(5), "the low 32 bits");
        assert_eq!(command.result(b"99999999999999999999"), Ok(-1), "cut, then the low 32 bits");
        assert_eq!(command.result(b""), Err(ShellError::NoResult("date".into())));
        assert_eq!(command.result(b"\n"), Ok(0));
        for bad in ["x\n", "1 2\n", "+\n", "5\u{e9}\n"] {
            let error = command.result(bad.as_bytes()).expect_err(bad);
            assert!(error.to_string().starts_with("date: "), "{error}");
        }
    }
}
