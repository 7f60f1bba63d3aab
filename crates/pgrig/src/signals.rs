//! SIGINT, SIGTERM and SIGHUP: the first one ends what runs cleanly, the second one at once.
//!
//! The work hears a signal by itself and is given a while to end. Then all labs are ended, so that
//! nothing can wait for a server any longer. What has not ended after that is ended by force: the
//! record on the disk is whole at any moment, and the labs' inits remove what the labs have made.

use std::thread;
use std::time::{Duration, Instant};

use load::{Control, Urgency};

use crate::exit::Exit;
use crate::terminal;

/// A handle that the user's signals reach.
pub(crate) fn control() -> Control {
    handle("\ninterrupted: finishing what runs (once more to stop at once)")
}

/// The same for a command that says itself what an interruption does; the second signal or the limit of
/// time ends it by force all the same.
pub(crate) fn quiet_control() -> Control {
    handle("")
}

fn handle(words: &'static str) -> Control {
    let control = Control::new();
    let heard = control.clone();
    // Without a handler an interruption ends the program at once; servers and data are removed
    // all the same, by the lab's init.
    let _ = ctrlc::set_handler(move || {
        let is_first = heard.urgency() == Urgency::None;
        heard.interrupt();
        if is_first {
            if !words.is_empty() {
                terminal::narrate(words);
            }
            let control = heard.clone();
            thread::spawn(move || see_to_the_end(&control));
        }
    });
    control
}

/// Ends the program if it does not end by itself.
fn see_to_the_end(control: &Control) {
    let began = Instant::now();
    wait(control, began + LABS_END_AFTER);
    lab::end_labs();
    wait(control, began + FORCE_AFTER);
    // The second signal may have come just now.
    thread::sleep(LABS_TAKE);
    terminal::narrate("interrupted: ended by force, because something did not end in time");
    std::process::exit(i32::from(Exit::Interrupted.number()));
}

/// Waits until then, or until the end is asked for at once.
fn wait(control: &Control, until: Instant) {
    while control.urgency() != Urgency::AtOnce && Instant::now() < until {
        thread::sleep(GLANCE);
    }
}

/// Time that the work may take to end by itself: the load cancels what runs and disconnects.
const LABS_END_AFTER: Duration = Duration::from_secs(3);

/// Time that it may take in all after the first signal, without the time that labs take.
const FORCE_AFTER: Duration = Duration::from_secs(7);

/// Time that the end of labs may take: servers are killed and their files are removed.
const LABS_TAKE: Duration = Duration::from_secs(2);

const GLANCE: Duration = Duration::from_millis(20);
