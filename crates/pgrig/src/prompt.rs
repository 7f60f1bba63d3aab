//! Asking for a password at the terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Pause between two looks for an interruption, in milliseconds.
const GLANCE_MS: i64 = 50;

/// No password is longer.
const LONGEST: usize = 64 * 1024;

/// Asks at the controlling terminal, without echo. None without a terminal, at the end of its input,
/// and after an interruption.
pub(crate) fn password(prompt: &str, is_interrupted: &dyn Fn() -> bool) -> Option<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    // Who answers the prompt at once must not be faster than this.
    let quiet = Quiet::begin(&terminal)?;
    let shown = terminal.write_all(prompt.as_bytes());
    let line = shown.ok().and_then(|()| line(&mut terminal, is_interrupted));
    drop(quiet);
    // The answer's own newline was not shown.
    let _ = terminal.write_all(b"\n");
    line
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    /// Drops what was typed so far: nobody had asked for it.
    fn begin(terminal: &File) -> Option<Quiet> {
        let terminal = terminal.try_clone().ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
        tcsetattr(&terminal, OptionalActions::Flush, &quiet).ok()?;
        Some(Quiet { terminal, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

fn line(terminal: &mut File, is_interrupted: &dyn Fn() -> bool) -> Option<String> {
    let glance = Timespec { tv_sec: 0, tv_nsec: GLANCE_MS * 1_000_000 };
    let (mut line, mut piece) = (Vec::new(), [0; 256]);
    while line.len() < LONGEST {
        if is_interrupted() {
            return None;
        }
        match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&glance)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        let length = terminal.read(&mut piece).ok()?;
        if length == 0 && line.is_empty() {
            return None;
        }
        line.extend_from_slice(&piece[..length]);
        if length == 0 || line.ends_with(b"\n") {
            let end = line.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            line.truncate(end.unwrap_or(line.len()));
            return String::from_utf8(line).ok();
        }
    }
    None
}
