//! A script: commands in order, with the jumps of `\if` resolved.

use std::ops::Range;

use crate::command::{CommandKind, ScriptCommand};
use crate::error::{Location, ParseError};
use crate::history_note::HistoryNote;
use crate::meta::{Meta, MetaLine};
use crate::names::VariableNames;
use crate::pipeline::Protocol;
use crate::sql::{self, Scanner, Stop};
use crate::template::{SqlTemplate, TooManyParameters, Uses};

/// Longest line of SQL that `-r` shows, in bytes.
const MAX_SOURCE: usize = 127;

/// Longest line of SQL that an error shows, in bytes.
const MAX_SHOWN: usize = 500;

const PARAMETER_HINT: &str = "write a variable, :name or :'name', and set it by \\set or \\setrow \
                              (docs/pgbench.md, \"Rows as values\")";

/// The form of the language in which a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScriptSyntax {
    /// pgrig's: that of pgbench since 9.6, where SQL ends at a semicolon, with `\setrow` and `:'name'`, and without
    /// `$n`.
    #[default]
    Current,
    /// pgbench's since 9.6.
    Pgbench,
    /// Up to pgbench 9.5: every line is a command; with what is pgrig's own.
    NineX,
}

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedScript {
    /// The name that it was parsed under.
    pub name: String,
    /// The commands; never empty.
    pub commands: Vec<ScriptCommand>,
    /// Lines of what reads as a note of a history and stands before no SQL.
    pub strays: Vec<u32>,
}

impl ParsedScript {
    /// Parse `text`, calling it `file_name` in messages. Names get their slots in `names`.
    pub fn parse(
        file_name: &str,
        text: impl AsRef<[u8]>,
        syntax: ScriptSyntax,
        names: &mut VariableNames,
    ) -> Result<ParsedScript, ParseError> {
        let text = text.as_ref();
        let mut parser = Parser {
            file: file_name,
            text,
            syntax,
            names,
            commands: Vec::new(),
            strays: Vec::new(),
            counted: 0,
            line: 1,
        };
        match syntax {
            ScriptSyntax::Current | ScriptSyntax::Pgbench => parser.current()?,
            ScriptSyntax::NineX => parser.nine_x()?,
        }
        let (mut commands, strays) = (parser.commands, parser.strays);
        if commands.is_empty() {
            let message = format!("empty command list for script \"{file_name}\"");
            let hint = "the file has neither SQL nor meta-commands".to_owned();
            return Err(ParseError::of_script(file_name, message).with_hint(Some(hint)));
        }
        resolve_jumps(file_name, &mut commands)?;
        Ok(ParsedScript { name: file_name.to_owned(), commands, strays })
    }

    /// The command that follows the one at `at` once it is done: the next one, or behind a branch
    /// that ran, the one behind the `\endif`. As long as the length of `commands` if the script is at its end.
    ///
    /// An `If` or `Elif` whose condition is true goes on here too; if it is false, the engine goes
    /// on at its `otherwise`.
    pub fn next(&self, at: usize) -> usize {
        match self.commands.get(at + 1).map(|command| &command.kind) {
            Some(CommandKind::Elif { end, .. } | CommandKind::Else { end }) => *end,
            _ => at + 1,
        }
    }

    /// True if it looks like a script of pgbench 9.5 or older, where SQL ended at the newline: a statement
    /// has a line that begins another one.
    pub fn reads_as_nine_x(&self) -> bool {
        self.commands.iter().any(|command| match &command.kind {
            CommandKind::Sql { template, .. } => {
                let lines = template.text().split(|byte| *byte == b'\n').skip(1);
                lines.map(<[u8]>::trim_ascii_start).any(begins_statement)
            }
            _ => false,
        })
    }

    /// Checks that every statement can be sent by `protocol`.
    pub fn check(&self, protocol: Protocol) -> Result<(), TooManyParameters> {
        if protocol == Protocol::Simple {
            return Ok(());
        }
        for command in &self.commands {
            if let CommandKind::Sql { template, .. } = &command.kind {
                template.parameterized()?;
            }
        }
        Ok(())
    }
}

/// True if a line begins with a word that begins a statement. Within another one it may stand, too, which only a syntax error makes suspicious.
fn begins_statement(line: &[u8]) -> bool {
    let mut words = line.split(|byte| !byte.is_ascii_alphabetic());
    let word = words.next().expect("a split has a first part");
    let words: [&[u8]; 8] =
        [b"BEGIN", b"COMMIT", b"END", b"SELECT", b"UPDATE", b"INSERT", b"DELETE", b"ROLLBACK"];
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

struct Parser<'a> {
    file: &'a str,
    text: &'a [u8],
    syntax: ScriptSyntax,
    names: &'a mut VariableNames,
    commands: Vec<ScriptCommand>,
    strays: Vec<u32>,
    /// Up to where newlines are counted in `line`.
    counted: usize,
    line: u32,
}

impl Parser<'_> {
    fn current(&mut self) -> Result<(), ParseError> {
        let mut scanner = Scanner::default();
        let mut at = 0;
        loop {
            let scanned = scanner.read(self.text, at);
            self.sql(at, scanned.next, &scanned.sql, scanned.statements)?;
            at = scanned.next;
            match scanned.stop {
                Stop::End => return Ok(()),
                Stop::Semicolon => {}
                Stop::Backslash => at = self.meta(at - 1)?,
            }
        }
    }

    fn nine_x(&mut self) -> Result<(), ParseError> {
        let mut at = 0;
        while at < self.text.len() {
            let line = &self.text[at..];
            let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
            let line = &line[..end];
            let blanks = line.len() - line.trim_ascii_start().len();
            let line = line.trim_ascii();
            if line.first() == Some(&b'\\') {
                at = self.meta(at + blanks)?;
                continue;
            }
            if !line.starts_with(b"--") {
                self.sql(at, at + end, line, sql::statements(line))?;
            }
            at += end + 1;
        }
        Ok(())
    }

    /// Add an SQL command unless there is only white space and comments.
    fn sql(
        &mut self,
        start: usize,
        end: usize,
        sql: &[u8],
        statements: u32,
    ) -> Result<(), ParseError> {
        let range = &self.text[start..end];
        let Some(sql) = sql::without_leading_comments(sql) else {
            if !HistoryNote::texts(range).is_empty() {
                let line = self.line_at(start + range.len() - range.trim_ascii_start().len());
                self.strays.push(line);
            }
            return Ok(());
        };
        // A text of comments alone has no statement behind them.
        let behind = sql::without_leading_comments(range).map_or(0, <[u8]>::len);
        let notes = HistoryNote::texts(&range[..range.len() - behind]);
        let line = self.line_of_sql(start, end);
        let uses = match self.syntax {
            ScriptSyntax::Pgbench => Uses::Plain,
            ScriptSyntax::Current | ScriptSyntax::NineX => {
                sql::parameter(sql)
                    .map_or(Ok(()), |place| Err(self.parameter(sql, line, place)))?;
                Uses::PlainAndQuoted
            }
        };
        let mut lines = sql.split(|byte| matches!(byte, b'\n' | b'\r'));
        let first = lines.next().expect("a split has a first part");
        let shown = &first[..first.len().min(MAX_SOURCE)];
        self.commands.push(ScriptCommand {
            line,
            source: String::from_utf8_lossy(shown).into_owned(),
            words: String::new(),
            notes,
            kind: CommandKind::Sql {
                template: SqlTemplate::new(sql, statements, uses, self.names),
                capture: None,
            },
        });
        Ok(())
    }

    /// Error of a `$n` in SQL that begins on this line: no script has a value for it.
    fn parameter(&self, sql: &[u8], line: u32, place: Range<usize>) -> ParseError {
        let before = &sql[..place.start];
        let newlines = before.iter().filter(|byte| **byte == b'\n').count() as u32;
        // Without a newline before it, the line is the first.
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = sql[begin..].iter().position(|byte| *byte == b'\n');
        let excerpt = &sql[begin..end.map_or(sql.len(), |length| begin + length)];
        let what = String::from_utf8_lossy(&sql[place.clone()]);
        let location = Location { file: self.file, line: line + newlines, command: None };
        let message = format!("no script has a value for parameter {what}");
        let characters = String::from_utf8_lossy(&sql[begin..place.end]).chars().count();
        let caret = Some(characters - 1).filter(|_| excerpt.len() <= MAX_SHOWN);
        let excerpt = Some(excerpt).filter(|excerpt| excerpt.len() <= MAX_SHOWN);
        location.error(&message, None, excerpt, caret).with_hint(Some(PARAMETER_HINT.to_owned()))
    }

    /// Add the meta-command whose backslash is at `backslash`; returns where the next line begins.
    fn meta(&mut self, backslash: usize) -> Result<usize, ParseError> {
        let line = self.line_at(backslash);
        let meta_line =
            MetaLine { file: self.file, text: self.text, backslash, line, syntax: self.syntax };
        let (meta, next) = meta_line.parse(self.names)?;
        match meta {
            None => {}
            Some(Meta::Command(kind)) => {
                let source = String::from_utf8_lossy(meta_line.source(next)).into_owned();
                let words = meta_line.words(&kind);
                let notes = Vec::new();
                self.commands.push(ScriptCommand { line, source, words, notes, kind });
            }
            Some(Meta::Capture(captured)) => {
                let place = Location { file: self.file, line, command: None };
                match self.commands.last_mut() {
                    Some(ScriptCommand {
                        kind: CommandKind::Sql { capture: capture @ None, .. },
                        ..
                    }) => *capture = Some(captured),
                    last => {
                        // pgbench shows what stands before only where that is no SQL.
                        let before = last
                            .filter(|before| !matches!(before.kind, CommandKind::Sql { .. }))
                            .map(|before| before.source.as_str());
                        let message = "\\gset must follow an SQL command";
                        return Err(place.error(message, before, None, None));
                    }
                }
            }
        }
        Ok(next)
    }

    /// The line of the first SQL between `start` and `end`.
    fn line_of_sql(&mut self, start: usize, end: usize) -> u32 {
        let range = &self.text[start..end];
        // In a text of comments alone no comment is skipped.
        let skipped = sql::without_leading_comments(range).map_or(0, |sql| range.len() - sql.len());
        self.line_at(start + skipped)
    }

    /// The line of a place that lies behind all that were asked for before.
    fn line_at(&mut self, at: usize) -> u32 {
        // A place that was passed already is on the line that was counted.
        let passed = self.text.get(self.counted..at).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        self.counted = self.counted.max(at);
        self.line
    }
}

/// An `\if` whose `\endif` has not been seen.
struct Open {
    /// The `If` or `Elif` whose `otherwise` is still to be found.
    condition: Option<usize>,
    /// The `Elif`s and the `Else`, which need the `\endif`.
    branches: Vec<usize>,
}

/// Check the nesting of `\if` and fill in where its parts go on.
fn resolve_jumps(file: &str, commands: &mut [ScriptCommand]) -> Result<(), ParseError> {
    let wrong = |at: usize, line: u32, what: &str| {
        let message = format!("condition error in script \"{file}\" command {}: {what}", at + 1);
        let mut error = ParseError::of_script(file, message);
        error.line = line;
        error
    };
    let mut open: Vec<Open> = Vec::new();
    for at in 0..commands.len() {
        let line = commands[at].line;
        match commands[at].kind {
            CommandKind::If { .. } => {
                open.push(Open { condition: Some(at), branches: Vec::new() });
            }
            CommandKind::Elif { .. } => {
                let Some(branch) = open.last_mut() else {
                    return Err(wrong(at, line, "\\elif without matching \\if"));
                };
                let Some(condition) = branch.condition.replace(at) else {
                    return Err(wrong(at, line, "\\elif after \\else"));
                };
                set_otherwise(&mut commands[condition], at);
                branch.branches.push(at);
            }
            CommandKind::Else { .. } => {
                let Some(branch) = open.last_mut() else {
                    return Err(wrong(at, line, "\\else without matching \\if"));
                };
                let Some(condition) = branch.condition.take() else {
                    return Err(wrong(at, line, "\\else after \\else"));
                };
                set_otherwise(&mut commands[condition], at + 1);
                branch.branches.push(at);
            }
            CommandKind::EndIf => {
                let Some(branch) = open.pop() else {
                    return Err(wrong(at, line, "\\endif without matching \\if"));
                };
                // As in pgbench, an \endif is not executed where a branch was skipped.
                if let Some(condition) = branch.condition {
                    set_otherwise(&mut commands[condition], at + 1);
                }
                for index in branch.branches {
                    set_end(&mut commands[index], at + 1);
                }
            }
            _ => {}
        }
    }
    match open.last() {
        None => Ok(()),
        Some(_) => {
            let last = commands.last().expect("an \\if is a command").line;
            Err(wrong(commands.len(), last, "\\if without matching \\endif"))
        }
    }
}

fn set_otherwise(command: &mut ScriptCommand, target: usize) {
    if let CommandKind::If { otherwise, .. } | CommandKind::Elif { otherwise, .. } =
        &mut command.kind
    {
        *otherwise = target;
    }
}

fn set_end(command: &mut ScriptCommand, target: usize) {
    if let CommandKind::Elif { end, .. } | CommandKind::Else { end } = &mut command.kind {
        *end = target;
    }
}
