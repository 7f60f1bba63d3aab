//! SIGINT, SIGTERM and SIGHUP: the first one ends what runs cleanly, the second one at once.

use load::Control;

use crate::terminal;

/// A handle that the user's signals reach.
pub(crate) fn control() -> Control {
    let control = Control::new();
    let heard = control.clone();
    // Without a handler an interruption ends the program at once; servers and data are removed
    // all the same, by the lab's init.
    let _ = ctrlc::set_handler(move || {
        if heard.urgency() == load::Urgency::None {
            terminal::narrate("\ninterrupted: finishing what runs (once more to stop at once)");
        }
        heard.interrupt();
    });
    control
}
