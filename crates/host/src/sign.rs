//! Signs of life of a process of the rig: empty lines.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};

use crate::queue::SIGN_OF_LIFE;

/// Writes an empty line a second to `output` until the sender of `end` is dropped, so that the rig
/// sees that the process is there although it has nothing to say.
pub fn signs_of_life(output: &Mutex<impl Write>, end: &Receiver<()>) {
    while end.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        // A rig that is gone is noticed by the end of the input.
        let _ = output.write_all(b"\n").and_then(|()| output.flush());
    }
}
