//! pgbench's script language: parse, check, evaluate.
//!
//! Shape: [`ParsedScript::parse`] turns a file into [`ScriptCommand`]s. Every variable name becomes a [`VariableSlot`]
//! of one [`VariableNames`] while parsing, so a session carries only its [`Variables`] (values by slot) and
//! its [`Xoroshiro128`]; scripts are shared and never written to. Expressions are compiled to a flat list
//! of operations that runs without allocation.
//!
//! Limits: no clock, socket, thread, file or environment. The language is pgbench 19's, plus
//! `\setrow` and `:'name'` except behind [`ScriptSyntax::Pgbench`], `\setrandom` and, behind [`ScriptSyntax::NineX`], SQL commands that end at the newline, as up to
//! pgbench 9.5; and functions of our own, `bucket` and `random_bucket`. Text is bytes: like
//! pgbench, nothing here assumes an encoding beyond "ASCII compatible".

mod builtin;
mod command;
mod csv;
mod define;
mod distribution;
mod error;
mod expect;
mod expr;
mod hash;
mod hint;
mod history_note;
mod meta;
mod names;
mod number;
mod pipeline;
mod prng;
mod row_table;
mod script;
mod seeds;
mod set_row;
mod setrandom;
mod shell;
mod sleep;
mod sql;
mod template;
mod value;
mod variables;
mod weight;
mod words;

pub use builtin::{BuiltinError, BuiltinScript};
pub use command::{CommandKind, ResultUse, ScriptCommand, SetVariable};
pub use csv::CsvError;
pub use define::{DefineError, DefinedVariable};
pub use error::ParseError;
pub use expect::{ExpectedResult, ExpectedWord};
pub use expr::{EvalError, Expr, MAX_ARGUMENTS, MAX_NESTING};
pub use history_note::{HistoryNote, NoteOperand};
pub use names::{VariableNames, VariableSlot, is_variable_name};
pub use pipeline::{Pipeline, PipelineFault, Protocol};
pub use prng::Xoroshiro128;
pub use row_table::{ROW_BYTES_MAX, ROWS_MAX, RowTable, RowTableError};
pub use script::{ParsedScript, ScriptSyntax};
pub use seeds::{RandomSeed, RandomSeedError, RandomSeeds, ThreadStates};
pub use set_row::{
    RowDraw, RowPicker, RowQueryError, RowSource, RowSourceKind, SetRow, SetRowError, row_query,
};
pub use shell::{ShellCommand, ShellError};
pub use sleep::{SleepError, SleepTime};
pub use template::{
    MAX_PARAMETERS, ParameterizedSql, SqlTemplate, TemplateParameter, TooManyParameters,
};
pub use value::Value;
pub use variables::{Variable, Variables};
pub use weight::{ScriptWeight, WeightError, WeightTable};
