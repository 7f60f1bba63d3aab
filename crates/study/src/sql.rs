//! SQL that the rig itself runs: the data's script, and the steps before a trial.

pub(crate) use lab::guest::{send as send_outside, set_path};
pub(crate) use server::quote::{identifier, literal};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use lab::Server;
use lab::guest::Outlet;
use load::{Control, Urgency};
use postgres::Client;
use script::{CommandKind, Names, Script, Syntax, Variables};
use spec::{ScriptText, Settings};

use crate::error::server_words;

/// Runs a script command by command, each in a transaction of its own unless the script says
/// otherwise; variables are written `:name` in it. Somebody's interruption cancels the command
/// under way.
///
/// # Errors
/// In one line: the place in the script, and the server's words.
pub(crate) fn run_script(
    server: &Server,
    client: &mut Client,
    text: &ScriptText,
    variables: &Settings,
    control: &Control,
) -> Result<(), String> {
    let commands = commands(text, variables)?;
    let is_outside = matches!(server, Server::Target(_));
    cancel_when_interrupted(server, client, control, |client| {
        for Command { line, sql } in commands {
            let failed = |why: String| format!("{}:{line}: {why}", text.name);
            match is_outside {
                true => send_outside(&sql, &mut Outlet::Server(client)).map_err(failed)?,
                false => {
                    client.batch_execute(&sql).map_err(|error| failed(server_words(&error)))?
                }
            }
        }
        Ok(())
    })
}

/// A command of a script with its variables filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: u32,
    pub(crate) sql: String,
}

/// The commands of a script of SQL.
///
/// # Errors
/// What is wrong with it, with its place.
pub(crate) fn commands(text: &ScriptText, variables: &Settings) -> Result<Vec<Command>, String> {
    let mut names = Names::default();
    let parsed = Script::parse(&text.name, &text.text, Syntax::Current, &mut names);
    let script = parsed.map_err(|error| error.to_string())?;
    let mut values = Variables::new(&names);
    for (name, value) in variables {
        if let Some(slot) = names.slot(name) {
            values.set_text(slot, value);
        }
    }
    let commands = script.commands.iter().map(|command| {
        let CommandKind::Sql { template, .. } = &command.kind else {
            let (name, line, word) = (&text.name, command.line, command.kind.word());
            return Err(format!("{name}:{line}: \\{word} has no place in a script of data"));
        };
        let mut sql = Vec::new();
        template.write_simple(&values, &mut sql);
        let sql = String::from_utf8_lossy(&sql).into_owned();
        Ok(Command { line: command.line, sql })
    });
    commands.collect()
}

/// The commands of a script with their lines, variables as they are written; meta-commands are left
/// out.
///
/// # Errors
/// What is wrong with it, with its place.
pub(crate) fn statements(text: &ScriptText) -> Result<Vec<(u32, String)>, String> {
    let mut names = Names::default();
    let parsed = Script::parse(&text.name, &text.text, Syntax::Current, &mut names);
    let script = parsed.map_err(|error| error.to_string())?;
    let values = Variables::new(&names);
    let commands = script.commands.iter().filter_map(|command| {
        let CommandKind::Sql { template, .. } = &command.kind else { return None };
        let mut sql = Vec::new();
        template.write_simple(&values, &mut sql);
        Some((command.line, String::from_utf8_lossy(&sql).into_owned()))
    });
    Ok(commands.collect())
}

/// Runs one command or a script without variables.
///
/// # Errors
/// In one line.
pub(crate) fn run_step(
    server: &Server,
    client: &mut Client,
    sql: &str,
    control: &Control,
) -> Result<(), String> {
    let text = ScriptText { name: "step".to_owned(), text: sql.to_owned() };
    run_script(server, client, &text, &Settings::new(), control)
}

/// Does something with a client of a server, and cancels the statement under way once somebody
/// interrupts.
fn cancel_when_interrupted<T>(
    server: &Server,
    client: &mut Client,
    control: &Control,
    work: impl FnOnce(&mut Client) -> T,
) -> T {
    let token = client.cancel_token();
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(GLANCE) {
                if control.urgency() != Urgency::None {
                    // A cancel that cannot be sent leaves the statement to end by itself.
                    let _ = server.cancel(&token);
                }
            }
        });
        let result = work(client);
        drop(done);
        result
    })
}

/// How often it is looked whether somebody interrupts.
const GLANCE: Duration = Duration::from_millis(50);
