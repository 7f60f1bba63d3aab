//! The host's end: a lab that does what the rig asks.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::answer::Answer;
use crate::error::Error;
use crate::find;
use crate::inner::{Lab, Objects};
use crate::lab_config::LabConfig;
use crate::remote::line::json;
use crate::remote::message::{Ask, Opening, Reply};
use crate::verb::Verb;

/// Serves the rig over `input` and `output` until the input ends; everything of the lab is removed
/// then. `program` is the rig's own program, of which relays, guards and disks are commands.
///
/// # Errors
/// A line that is no question of the same version.
pub fn serve(
    program: &Path,
    input: impl BufRead,
    output: impl Write + Send + 'static,
) -> Result<(), String> {
    let output = Arc::new(Mutex::new(output));
    let (_alive, end) = channel();
    let signs = Arc::clone(&output);
    thread::spawn(move || host::signs_of_life(&signs, &end));
    let mut lines = input.lines();
    let Some(Ok(line)) = lines.next() else { return Ok(()) };
    let opening = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
    let (objects, opened) = match open(opening) {
        Ok(lab) => {
            let mut opened = lab.opened();
            opened.installation = opened.installation.listed();
            let objects = Objects::new(lab, Some(program.to_owned()));
            (Some(Arc::new(objects)), Ok(Answer::Opened(Box::new(opened))))
        }
        Err(error) => (None, Err(error)),
    };
    reply(&output, 0, opened);
    let Some(objects) = objects else { return Ok(()) };
    let mut at_work = Vec::new();
    for line in lines {
        let Ok(line) = line else { break };
        let Ask { number, object, verb } =
            serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        at_work.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
        if is_in_order(&verb) {
            reply(&output, number, objects.obey(object, verb));
            continue;
        }
        let (objects, output) = (Arc::clone(&objects), Arc::clone(&output));
        at_work.push(thread::spawn(move || reply(&output, number, objects.obey(object, verb))));
    }
    // What is still at work holds its object; dropping the lab kills its servers, which ends it.
    objects.end();
    Ok(())
}

fn open(opening: Opening) -> Result<Lab, Error> {
    let installation = find::find(opening.pg_bin.as_deref())?;
    Lab::open(LabConfig { password: Some(opening.password), ..LabConfig::new(installation) })
}

/// True if it changes which objects there are, so that the next line has to wait.
fn is_in_order(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::MakeNode { .. }
            | Verb::MakePooler { .. }
            | Verb::MakeProcess { .. }
            | Verb::MakeLink { .. }
            | Verb::Drop
    )
}

fn reply(output: &Mutex<impl Write>, number: u64, result: Result<Answer, Error>) {
    let result = match result {
        Ok(Answer::Text(text)) => Ok(Answer::Text(end_of(text))),
        Ok(answer) => Ok(answer),
        Err(error) => Err(error.into()),
    };
    let line = json(&Reply { number, result });
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    // A rig that is gone is noticed by the end of the input.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// The end of a log, which a line has room for even where every character is escaped.
fn end_of(text: String) -> String {
    const BYTES_MAX: usize = 2 << 20;
    let start = text.len().saturating_sub(BYTES_MAX);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].to_owned()
}
