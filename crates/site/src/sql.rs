//! SQL that the rig itself runs: the data's script, and the steps before a trial.

use lab::Server;
use lab::guest::{self, StatementTarget};
use load::LoadControl;
use postgres::error::SqlState;
use script::{CommandKind, ParsedScript, ScriptSyntax, VariableNames, Variables};
use server::Client;
use server::message::with_detail;
use spec::{ScriptText, VariableValues};

/// Reason why a script of SQL could not be run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ScriptError {
    #[error(transparent)]
    Parse(#[from] script::ParseError),
    #[error("{place}: \\{word} has no place in a script of data")]
    NotSql { place: String, word: &'static str },
    #[error("{place}: {}", with_detail(.source))]
    Failed { place: String, source: postgres::Error },
}

impl ScriptError {
    /// Says what to do next, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ScriptError::Failed { source, .. }
                if source.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) =>
            {
                Some(
                    "on a server of yours a study reaches its own schema only, unless you give \
                     --may-change-database",
                )
            }
            _ => None,
        }
    }
}

/// Runs a script command by command, each in a transaction of its own unless the script says
/// otherwise; variables are written `:name` in it. An interruption cancels the command under way.
pub fn run_script(
    server: &Server,
    client: &mut Client,
    text: &ScriptText,
    variables: &VariableValues,
    control: &LoadControl,
) -> Result<(), ScriptError> {
    let commands = commands(text, variables)?;
    let is_outside = matches!(server, Server::Target(_));
    client.heard_by(control, |client| {
        for Command { line, sql } in commands {
            let sent = match is_outside {
                true => guest::send(&sql, &mut StatementTarget::Server(client)).map(drop),
                false => client.batch_execute(&sql),
            };
            let place = || format!("{}:{line}", text.name);
            sent.map_err(|source| ScriptError::Failed { place: place(), source })?;
        }
        Ok(())
    })
}

/// A command of a script with its variables filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The line on which it begins.
    pub line: u32,
    /// The command.
    pub sql: String,
}

/// The commands of a script of SQL.
pub fn commands(
    text: &ScriptText,
    variables: &VariableValues,
) -> Result<Vec<Command>, ScriptError> {
    let mut names = VariableNames::default();
    let script = ParsedScript::parse(&text.name, &text.text, ScriptSyntax::Current, &mut names)?;
    let values = values(variables, &names);
    let commands = script.commands.iter().map(|command| {
        let CommandKind::Sql { template, .. } = &command.kind else {
            let place = format!("{}:{}", text.name, command.line);
            return Err(ScriptError::NotSql { place, word: command.kind.word() });
        };
        let mut sql = Vec::new();
        template.write_simple(&values, &mut sql);
        let sql = String::from_utf8_lossy(&sql).into_owned();
        Ok(Command { line: command.line, sql })
    });
    commands.collect()
}

/// The commands of a script with their lines. Variables that have no value here stay as they are
/// written; meta-commands are left out.
pub fn statements(
    text: &ScriptText,
    syntax: ScriptSyntax,
    variables: &VariableValues,
) -> Result<Vec<(u32, String)>, ScriptError> {
    let mut names = VariableNames::default();
    let script = ParsedScript::parse(&text.name, &text.text, syntax, &mut names)?;
    let values = values(variables, &names);
    let commands = script.commands.iter().filter_map(|command| {
        let CommandKind::Sql { template, .. } = &command.kind else { return None };
        let mut sql = Vec::new();
        template.write_simple(&values, &mut sql);
        Some((command.line, String::from_utf8_lossy(&sql).into_owned()))
    });
    Ok(commands.collect())
}

fn values(variables: &VariableValues, names: &VariableNames) -> Variables {
    let mut values = Variables::new(names);
    for (name, value) in variables {
        if let Some(slot) = names.slot(name) {
            values.set_text(slot, value);
        }
    }
    values
}

/// Runs one command or a script without variables.
pub fn run_step(
    server: &Server,
    client: &mut Client,
    sql: &str,
    control: &LoadControl,
) -> Result<(), ScriptError> {
    let text = ScriptText { name: "step".to_owned(), text: sql.to_owned() };
    run_script(server, client, &text, &VariableValues::new(), control)
}
