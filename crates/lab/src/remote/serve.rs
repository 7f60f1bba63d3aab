//! The host's end: a lab that does what the rig asks.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::error::Error;
use crate::remote::Failure;
use crate::remote::line::json;
use crate::remote::objects::Objects;
use crate::remote::verb::{Answer, Ask, Verb};

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
    let objects = Arc::new(Objects::new(program));
    let (_alive, end) = channel();
    let signs = Arc::clone(&output);
    thread::spawn(move || host::signs_of_life(&signs, &end));
    let mut at_work = Vec::new();
    for line in input.lines() {
        let Ok(line) = line else { break };
        let Ask { number, object, verb } =
            serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        at_work.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
        if is_in_order(&verb) {
            answer(&objects, &output, number, object, verb);
            continue;
        }
        let (objects, output) = (Arc::clone(&objects), Arc::clone(&output));
        at_work.push(thread::spawn(move || answer(&objects, &output, number, object, verb)));
    }
    // What is still at work holds its object; dropping the lab kills its servers, which ends it.
    objects.end();
    Ok(())
}

/// Whether it changes which objects there are, so that the next line has to wait.
fn is_in_order(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Open(_)
            | Verb::MakeNode { .. }
            | Verb::MakePooler { .. }
            | Verb::MakeProcess { .. }
            | Verb::MakeRelay { .. }
            | Verb::Drop
    )
}

fn answer(objects: &Objects, output: &Mutex<impl Write>, number: u64, object: u32, verb: Verb) {
    let result = objects.obey(object, verb).map_err(|error: Error| Failure::from(error));
    let line = json(&Answer { number, result });
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    // A rig that is gone is noticed by the end of the input.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}
