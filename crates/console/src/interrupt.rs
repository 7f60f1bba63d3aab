//! SIGINT, SIGTERM and SIGHUP: the first one ends what runs cleanly, the second one at once.
//!
//! The work hears a signal by itself and is given a while to end. Then the parts that it may wait for are ended: the
//! servers of a rig's labs. What has not ended after that is ended by force: a record on the disk is whole at any
//! moment, and the labs' inits remove what the labs have made.

use std::thread;
use std::time::{Duration, Instant};

use server::{LoadControl, StopUrgency};

use crate::exit::ProgramExit;
use crate::terminal;

/// A handle that the user's signals reach; the first one is answered. `end_parts` ends what could keep the work from
/// ending, such as servers that it waits for.
pub fn interrupted(end_parts: fn()) -> LoadControl {
    handle("\ninterrupted: finishing what runs (once more to stop at once)", end_parts)
}

/// The same for a command that says itself what an interruption does; the second signal or the limit of
/// time ends it by force all the same.
pub fn quietly_interrupted(end_parts: fn()) -> LoadControl {
    handle("", end_parts)
}

fn handle(words: &'static str, end_parts: fn()) -> LoadControl {
    let control = LoadControl::new();
    let heard = control.clone();
    // Without a handler an interruption ends the program at once; servers and data are removed
    // all the same, by the lab's init.
    let _ = ctrlc::set_handler(move || {
        let is_first = heard.urgency() == StopUrgency::None;
        heard.interrupt();
        if is_first {
            if !words.is_empty() {
                terminal::narrate(words);
            }
            let control = heard.clone();
            thread::spawn(move || see_to_the_end(&control, end_parts));
        }
    });
    control
}

/// Ends the program if it does not end by itself.
fn see_to_the_end(control: &LoadControl, end_parts: fn()) {
    let began = Instant::now();
    wait(control, began + PARTS_END_AFTER);
    end_parts();
    wait(control, began + FORCE_AFTER);
    // The second signal may have come just now.
    thread::sleep(PARTS_TAKE);
    terminal::narrate("interrupted: ended by force, because something did not end in time");
    std::process::exit(i32::from(ProgramExit::Interrupted.number()));
}

/// Waits until then, or until the end is asked for at once.
fn wait(control: &LoadControl, until: Instant) {
    while control.urgency() != StopUrgency::AtOnce && Instant::now() < until {
        thread::sleep(GLANCE);
    }
}

/// Time that the work may take to end by itself: the load cancels what runs and disconnects.
const PARTS_END_AFTER: Duration = Duration::from_secs(3);

/// Time that it may take in all after the first signal, without the time that the parts take.
const FORCE_AFTER: Duration = Duration::from_secs(7);

/// Time that the end of the parts may take: servers are killed and their files are removed.
const PARTS_TAKE: Duration = Duration::from_secs(2);

const GLANCE: Duration = Duration::from_millis(20);
