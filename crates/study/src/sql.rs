//! SQL that the rig itself runs: the data's script, and the steps before a trial.

pub(crate) use server::quote::{identifier, literal};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use lab::Server;
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
    let mut names = Names::default();
    let parsed = Script::parse(&text.name, &text.text, Syntax::Current, &mut names);
    let script = parsed.map_err(|error| error.to_string())?;
    let mut values = Variables::new(&names);
    for (name, value) in variables {
        if let Some(slot) = names.slot(name) {
            values.set_text(slot, value);
        }
    }
    cancel_when_interrupted(server, client, control, |client| {
        for command in &script.commands {
            let CommandKind::Sql { template, .. } = &command.kind else {
                let word = command.kind.word();
                let (name, line) = (&text.name, command.line);
                return Err(format!("{name}:{line}: \\{word} has no place in a script of data"));
            };
            let mut sql = Vec::new();
            template.write_simple(&values, &mut sql);
            let sql = String::from_utf8_lossy(&sql);
            client.batch_execute(&sql).map_err(|error| {
                format!("{}:{}: {}", text.name, command.line, server_words(&error))
            })?;
        }
        Ok(())
    })
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
