//! One command of a script.

use crate::expect::ExpectedResult;
use crate::expr::Expr;
use crate::names::{VariableNames, VariableSlot};
use crate::set_row::SetRow;
use crate::shell::ShellCommand;
use crate::sleep::SleepTime;
use crate::template::SqlTemplate;

/// A command and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptCommand {
    /// The line in the file, counted from 1.
    pub line: u32,
    /// The text as `-r` lists it: the first line of SQL (up to 127 bytes), all of a meta-command.
    pub source: String,
    /// A meta-command's words as pgbench's `--debug` shows them, without the backslash: of `\set`
    /// the command and the variable, of `\if` the command alone. Empty for SQL.
    pub words: String,
    /// The notes on a history in the comments before SQL: [`crate::HistoryNote`] reads them.
    pub notes: Vec<String>,
    /// The kind.
    pub kind: CommandKind,
}

impl ScriptCommand {
    /// The first of the command's words, as it is written: `set` or `SET`.
    pub fn written(&self) -> &str {
        self.words.split(' ').next().expect("a split has a first part")
    }
}

/// The variable that a command sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetVariable {
    /// The slot that keeps its value.
    Slot(VariableSlot),
    /// A text that is not a variable's name. pgbench refuses it when the command runs.
    Invalid(Box<str>),
}

/// The kind of a command. Indices are those of [`crate::ParsedScript::commands`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum CommandKind {
    /// Send SQL.
    Sql {
        /// The SQL to send.
        template: SqlTemplate,
        /// The variables that keep the result, where `\gset` or `\aset` asks for it, or the check of it.
        capture: Option<ResultUse>,
    },
    /// `\set`, and `\setrandom`, which is a form of it.
    Set { target: SetVariable, expr: Expr },
    /// `\setrow`: draw a row, and set variables to its columns.
    SetRow(SetRow),
    /// `\setshell`: run a command and keep the integer that it prints.
    SetShell {
        target: SetVariable,
        /// The command to run.
        command: ShellCommand,
    },
    /// `\shell`: run a command.
    Shell(ShellCommand),
    /// `\sleep`.
    Sleep(SleepTime),
    /// `\if`: go on if the condition is true, else at `otherwise`.
    If {
        condition: Expr,
        /// An `Elif` to test, or the command behind `Else` or behind `EndIf`.
        otherwise: usize,
    },
    /// `\elif`, reached only from a false condition above: see [`crate::ParsedScript::next`].
    Elif {
        condition: Expr,
        /// As for `If`.
        otherwise: usize,
        /// Behind the `EndIf`, where the branch above goes on.
        end: usize,
    },
    /// `\else`, never reached: the branch above goes on at `end`, a false condition behind it.
    Else {
        /// Behind the `EndIf`.
        end: usize,
    },
    /// `\endif`: nothing to do.
    EndIf,
    /// `\expect` of an expression: it must be true.
    Expect { condition: Expr },
    /// `\startpipeline`.
    StartPipeline,
    /// `\syncpipeline`.
    SyncPipeline,
    /// `\endpipeline`.
    EndPipeline,
}

impl CommandKind {
    /// The variables that the command reads; of SQL each as often as it stands there.
    pub fn reads(&self) -> Vec<VariableSlot> {
        match self {
            CommandKind::Sql { template, .. } => template.slots().to_vec(),
            CommandKind::Set { expr, .. } => expr.variables().collect(),
            CommandKind::If { condition, .. }
            | CommandKind::Elif { condition, .. }
            | CommandKind::Expect { condition } => condition.variables().collect(),
            CommandKind::SetShell { command, .. } | CommandKind::Shell(command) => {
                command.variables().collect()
            }
            CommandKind::Sleep(SleepTime::Variable { slot, .. }) => vec![*slot],
            _ => Vec::new(),
        }
    }
}

impl CommandKind {
    /// The word for it in pgbench's messages: `SQL`, `set`, `sleep`, ….
    pub fn word(&self) -> &'static str {
        match self {
            CommandKind::Sql { .. } => "SQL",
            CommandKind::Set { .. } => "set",
            CommandKind::SetRow(_) => "setrow",
            CommandKind::SetShell { .. } => "setshell",
            CommandKind::Shell(_) => "shell",
            CommandKind::Sleep(_) => "sleep",
            CommandKind::If { .. } => "if",
            CommandKind::Elif { .. } => "elif",
            CommandKind::Else { .. } => "else",
            CommandKind::EndIf => "endif",
            CommandKind::Expect { .. } => "expect",
            CommandKind::StartPipeline => "startpipeline",
            CommandKind::SyncPipeline => "syncpipeline",
            CommandKind::EndPipeline => "endpipeline",
        }
    }
}

/// The use of a result: its columns go into variables named `prefix` + column, or it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultUse {
    /// `\gset`: the last statement's one row; another count of rows is an error.
    Gset {
        /// Put before the column's name.
        prefix: String,
    },
    /// `\aset`: the last row of every statement that has one.
    Aset {
        /// Put before the column's name.
        prefix: String,
    },
    /// `\expect rows` and `\expect value`: the last statement's result must be so.
    Expect(ExpectedResult),
}

impl ResultUse {
    /// The text that is put before the column's name.
    pub fn prefix(&self) -> &str {
        match self {
            ResultUse::Gset { prefix } | ResultUse::Aset { prefix } => prefix,
            ResultUse::Expect(_) => "",
        }
    }

    /// The command's word in messages.
    pub fn word(&self) -> &'static str {
        match self {
            ResultUse::Gset { .. } => "gset",
            ResultUse::Aset { .. } => "aset",
            ResultUse::Expect(_) => "expect",
        }
    }

    /// The name of the variable for `column`; the engine checks it with
    /// [`crate::is_variable_name`], as pgbench does for each row.
    pub fn variable(&self, column: &[u8]) -> Vec<u8> {
        [self.prefix().as_bytes(), column].concat()
    }

    /// The slot for `column`; `None` if no script reads that variable, so that it can be dropped.
    pub fn slot(&self, column: &[u8], names: &VariableNames) -> Option<VariableSlot> {
        names.slot(self.variable(column))
    }
}
