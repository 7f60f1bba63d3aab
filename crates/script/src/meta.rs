//! Meta-commands: a backslash, a word and what belongs to it, up to the end of the line.

use std::ops::Range;

use crate::command::{CommandKind, ResultUse, SetVariable};
use crate::error::{Location, ParseError};
use crate::expect::ExpectedResult;
use crate::expr::{self, Source};
use crate::hint::{did_you_mean, of_psql};
use crate::names::{VariableNames, is_variable_name};
use crate::script::ScriptSyntax;
use crate::set_row::{SetRow, SetRowMistake};
use crate::setrandom;
use crate::shell::ShellCommand;
use crate::sleep::{self, SleepTime};
use crate::words::Words;

/// Most words behind the command.
const MAX_WORDS: usize = 255;

/// pgrig's own command.
const SETROW: &str = "setrow";

const COMMANDS: [&str; 16] = [
    SETROW,
    "set",
    "setrandom",
    "setshell",
    "shell",
    "sleep",
    "gset",
    "aset",
    "expect",
    "if",
    "elif",
    "else",
    "endif",
    "startpipeline",
    "syncpipeline",
    "endpipeline",
];

/// The kind of a meta-command line.
#[derive(Debug)]
pub(crate) enum Meta {
    /// A command of its own. The jumps of `\if` and its like are filled in afterwards.
    Command(CommandKind),
    /// `\gset`, `\aset` or an `\expect` of a result: belongs to the SQL before it.
    Capture(ResultUse),
}

/// A meta-command's line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetaLine<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a [u8],
    /// Position of the backslash.
    pub(crate) backslash: usize,
    /// The line that it stands in, counted from 1.
    pub(crate) line: u32,
    pub(crate) syntax: ScriptSyntax,
}

impl<'a> MetaLine<'a> {
    /// The command (none behind a lone backslash) and where the next line begins.
    pub(crate) fn parse(
        self,
        names: &mut VariableNames,
    ) -> Result<(Option<Meta>, usize), ParseError> {
        let mut words = Words::new(self.text, self.backslash + 1);
        let Some(command) = words.next() else {
            return Ok((None, words.at));
        };
        let written = String::from_utf8_lossy(&self.text[command]);
        let place = Location { file: self.file, line: self.line, command: Some(&written) };
        let line = MetaCommand { meta: self, place };
        let known = self.commands().find(|known| known.eq_ignore_ascii_case(&written));
        let (meta, next) = match known {
            Some("set") => line.set(words, names)?,
            Some("if") => {
                let (condition, next) = line.expression(words.at, names)?;
                (Meta::Command(CommandKind::If { condition, otherwise: 0 }), next)
            }
            Some("elif") => {
                let (condition, next) = line.expression(words.at, names)?;
                (Meta::Command(CommandKind::Elif { condition, otherwise: 0, end: 0 }), next)
            }
            Some("expect") if !line.expects_result(words.clone()) => {
                let (condition, next) = line.expression(words.at, names)?;
                (Meta::Command(CommandKind::Expect { condition }), next)
            }
            _ => {
                let arguments: Vec<Range<usize>> = words.by_ref().collect();
                (line.worded(known, &arguments, words.at, names)?, words.at)
            }
        };
        Ok((Some(meta), next))
    }

    /// The commands of the syntax.
    fn commands(self) -> impl Iterator<Item = &'static str> {
        let is_pgbenchs = self.syntax == ScriptSyntax::Pgbench;
        COMMANDS.into_iter().filter(move |known| !is_pgbenchs || *known != SETROW)
    }

    /// The command's words, as [`crate::ScriptCommand::words`] has them.
    pub(crate) fn words(&self, kind: &CommandKind) -> String {
        let counted = match kind {
            CommandKind::If { .. } | CommandKind::Elif { .. } | CommandKind::Expect { .. } => 1,
            CommandKind::Set { .. } => 2,
            _ => usize::MAX,
        };
        let words = Words::new(self.text, self.backslash + 1).take(counted);
        let mut words: Vec<_> =
            words.map(|range| String::from_utf8_lossy(&self.text[range])).collect();
        // pgbench notes the unit that is glued to the amount as a word of its own.
        if let (CommandKind::Sleep(_), [_, amount]) = (kind, &words[..]) {
            let unit = amount.trim_start_matches(['+', '-']);
            let unit = unit.trim_start_matches(|c: char| c.is_ascii_digit());
            if !amount.starts_with(':') && !unit.is_empty() {
                words.push(unit.to_owned().into());
            }
        }
        words.join(" ")
    }

    /// The command's text from the backslash up to `end`, without the newline.
    pub(crate) fn source(&self, end: usize) -> &'a [u8] {
        let mut source = &self.text[self.backslash..end];
        while let [rest @ .., b'\n' | b'\r'] = source {
            source = rest;
        }
        source
    }
}

struct MetaCommand<'a> {
    meta: MetaLine<'a>,
    place: Location<'a>,
}

impl<'a> MetaCommand<'a> {
    fn set(
        &self,
        mut words: Words<'a>,
        names: &mut VariableNames,
    ) -> Result<(Meta, usize), ParseError> {
        let Some(variable) = words.next() else {
            return Err(self.place.error("missing argument", None, None, None));
        };
        let (expr, next) = self.expression(words.at, names)?;
        let target = self.target(&variable, names);
        Ok((Meta::Command(CommandKind::Set { target, expr }), next))
    }

    /// True if `\expect` is about the result of the SQL before it; else an expression follows.
    fn expects_result(&self, mut words: Words<'a>) -> bool {
        let first = words.next().map(|word| &self.meta.text[word]);
        matches!(first, None | Some(b"rows" | b"value"))
    }

    fn expression(
        &self,
        at: usize,
        names: &mut VariableNames,
    ) -> Result<(expr::Expr, usize), ParseError> {
        let source = Source { text: self.meta.text, start: self.meta.backslash, place: self.place };
        expr::parse(source, at, names)
    }

    /// All commands that take words, `end` being where the next line begins.
    fn worded(
        &self,
        known: Option<&str>,
        arguments: &[Range<usize>],
        end: usize,
        names: &mut VariableNames,
    ) -> Result<Meta, ParseError> {
        let word = |index: usize| &self.meta.text[arguments[index].clone()];
        let count = arguments.len();
        if count > MAX_WORDS {
            return Err(self.place.error("too many arguments", None, None, None));
        }
        let bare = |kind: CommandKind| match count {
            0 => Ok(Meta::Command(kind)),
            _ => Err(self.error("unexpected argument", end)),
        };
        match known {
            Some("sleep") => self.sleep(arguments, end, names),
            Some("setshell") if count < 2 => Err(self.error("missing argument", end)),
            Some("setshell") => {
                let target = self.target(&arguments[0], names);
                let words = (1..count).map(word);
                let command = ShellCommand::new(words, names);
                Ok(Meta::Command(CommandKind::SetShell { target, command }))
            }
            Some("shell") if count < 1 => Err(self.error("missing command", end)),
            Some("shell") => {
                let command = ShellCommand::new((0..count).map(word), names);
                Ok(Meta::Command(CommandKind::Shell(command)))
            }
            Some(SETROW) => {
                let words: Vec<&[u8]> = (0..count).map(word).collect();
                let row = SetRow::parse(&words, self.meta.file, names).map_err(|mistake| {
                    let excerpt = Some(self.meta.source(end));
                    let SetRowMistake { message, detail, hint } = mistake;
                    self.place.error(message, detail.as_deref(), excerpt, None).with_hint(hint)
                })?;
                Ok(Meta::Command(CommandKind::SetRow(row)))
            }
            Some("setrandom") if count < 3 => Err(self.error("missing argument", end)),
            Some("setrandom") => {
                let words: Vec<&[u8]> = (1..count).map(word).collect();
                let expr = setrandom::parse(&words, self.place, self.meta.source(end), names)?;
                let target = self.target(&arguments[0], names);
                Ok(Meta::Command(CommandKind::Set { target, expr }))
            }
            Some(capture @ ("gset" | "aset")) => {
                if count > 1 {
                    return Err(self.error("too many arguments", end));
                }
                let prefix = if count == 1 { word(0) } else { b"" };
                let prefix = String::from_utf8_lossy(prefix).into_owned();
                Ok(Meta::Capture(match capture {
                    "gset" => ResultUse::Gset { prefix },
                    _ => ResultUse::Aset { prefix },
                }))
            }
            Some("expect") => {
                let words: Vec<_> =
                    (0..count).map(|at| String::from_utf8_lossy(word(at))).collect();
                let words: Vec<&str> = words.iter().map(|word| &**word).collect();
                let expected = ExpectedResult::parse(&words, names);
                expected
                    .map(ResultUse::Expect)
                    .map(Meta::Capture)
                    .map_err(|why| self.error(why, end))
            }
            Some("else") => bare(CommandKind::Else { end: 0 }),
            Some("endif") => bare(CommandKind::EndIf),
            Some("startpipeline") => bare(CommandKind::StartPipeline),
            Some("syncpipeline") => bare(CommandKind::SyncPipeline),
            Some("endpipeline") => bare(CommandKind::EndPipeline),
            _ => {
                let written = self
                    .place
                    .command
                    .expect("a backslash has a command behind it, if an empty one");
                let hint = of_psql(written)
                    .or_else(|| did_you_mean(written, self.meta.commands()))
                    .or_else(|| Some("a line of SQL cannot begin with a backslash".to_owned()));
                Err(self.error("invalid command", end).with_hint(hint))
            }
        }
    }

    /// `\sleep amount [unit]`, the unit possibly glued to the amount.
    fn sleep(
        &self,
        arguments: &[Range<usize>],
        end: usize,
        names: &mut VariableNames,
    ) -> Result<Meta, ParseError> {
        let text = self.meta.text;
        let (amount, mut unit) = match arguments {
            [] => return Err(self.error("missing argument", end)),
            [amount] => (amount.clone(), None),
            [amount, unit] => (amount.clone(), Some(unit.clone())),
            [_, _, surplus, ..] => {
                let caret = surplus.start - self.meta.backslash;
                return Err(self.error_at("too many arguments", None, end, caret));
            }
        };
        let word = &text[amount.clone()];
        if word[0] != b':' {
            let sign = usize::from(matches!(word[0], b'+' | b'-'));
            let digits = word[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if sign + digits < word.len() {
                if digits == 0 || unit.is_some() {
                    let caret = amount.start - self.meta.backslash;
                    let message = "invalid sleep time, must be an integer";
                    return Err(self.error_at(message, Some(word), end, caret));
                }
                unit = Some(amount.start + sign + digits..amount.end);
            }
        }
        let unit_us = match unit {
            None => 1_000_000,
            Some(unit) => sleep::unit_us(&text[unit.clone()]).ok_or_else(|| {
                let caret = unit.start - self.meta.backslash;
                let message = "unrecognized time unit, must be us, ms or s";
                self.error_at(message, Some(&text[unit]), end, caret)
            })?,
        };
        Ok(Meta::Command(CommandKind::Sleep(SleepTime::new(word, unit_us, names))))
    }

    /// The variable that is to be set. A wrong name is refused when the command runs.
    fn target(&self, range: &Range<usize>, names: &mut VariableNames) -> SetVariable {
        let name = &self.meta.text[range.clone()];
        if is_variable_name(name) {
            SetVariable::Slot(names.intern(name))
        } else {
            SetVariable::Invalid(String::from_utf8_lossy(name).into())
        }
    }

    fn error(&self, message: &str, end: usize) -> ParseError {
        self.place.error(message, None, Some(self.meta.source(end)), None)
    }

    fn error_at(
        &self,
        message: &str,
        detail: Option<&[u8]>,
        end: usize,
        caret: usize,
    ) -> ParseError {
        let detail = detail.map(String::from_utf8_lossy);
        let source = self.meta.source(end);
        self.place.error(message, detail.as_deref(), Some(source), Some(caret))
    }
}
