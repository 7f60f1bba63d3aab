//! The lines between the rig and a host.
//!
//! Every line begins with a number and a space. 0: the rest is a message, in JSON. Any other
//! number: the rest is a line to or from the standard streams of the process that the rig gave this
//! number. The first line that counts is the host's greeting (see [`crate::Hello`]).

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

/// Role of a process of the rig on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It is a generator of a load.
    Generator,
    /// It has servers: a lab.
    Lab,
    /// It samples servers and the host.
    Probe,
}

impl Role {
    /// The program's argument that makes a process of this role.
    pub fn argument(self) -> &'static str {
        match self {
            Role::Generator => "generator",
            Role::Lab => "lab",
            Role::Probe => "probe",
        }
    }

    /// The longest line that a process of this role says: a lab hands over whole logs.
    pub(crate) fn line_bytes_max(self) -> usize {
        match self {
            Role::Generator => 8 << 20,
            Role::Probe | Role::Lab => 16 << 20,
        }
    }

    /// True if a process of this role removes what it made when its input ends, and needs time for
    /// that. It is not the first of a PID namespace then, because what it leaves to an init of its
    /// own would be killed with it.
    pub(crate) fn cleans_up(self) -> bool {
        self == Role::Lab
    }
}

/// Request of the rig to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RigRequest {
    /// Answer with your clock. Also the sign that the rig is there.
    Ping(u64),
    /// Start a process with this number.
    Start { process: u32, role: Role },
    /// Close the standard input of a process.
    Close(u32),
    /// Listen on this address, at a free port, for a few seconds.
    Listen { ask: u32, address: String },
    /// Connect to this address.
    Reach { ask: u32, address: String },
    /// Answer every byte at a free port of this address, from now on.
    Echo { ask: u32, address: String },
    /// Ask what is answered at this address (`host:port`), from now on, and tell when nothing came back. The
    /// watch has the number of the question.
    Watch { ask: u32, address: String },
    /// Look at the disk of the temporary directory, from now on, and tell when it was full. The watch has the number of
    /// the question.
    WatchDisk { ask: u32 },
}

/// The number of the watch by which a host tells that it stood still itself. Other watches have the numbers of questions,
/// which begin later.
pub(crate) const OWN_CLOCK: u32 = 0;

/// Message of a host to the rig.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostMessage {
    /// The number of the ping, and the host's monotonic clock when it arrived, in nanoseconds.
    Pong(u64, u64),
    /// A process runs; its id on the host.
    Started { process: u32, pid: u32 },
    /// A process could not be started.
    NotStarted { process: u32, why: String },
    /// A process has ended, and said all that it had to say.
    Ended { process: u32, how: String },
    /// Nothing came back in a watch, its disk was full, or the host stood still, between two moments of the host's
    /// monotonic clock, in nanoseconds.
    Gap { watch: u32, from: u64, to: u64 },
    /// The result of [`RigRequest::Listen`] and [`RigRequest::Echo`] (the port), or of [`RigRequest::Reach`] and [`RigRequest::Watch`]
    /// and [`RigRequest::WatchDisk`] (0).
    Answer { ask: u32, result: Result<u16, String> },
}

/// A line, without its newline.
pub(crate) fn line(process: u32, text: &str) -> String {
    format!("{process} {text}")
}

/// A message as a line.
pub(crate) fn message(message: &impl Serialize) -> String {
    // Messages are plain data: they always have a JSON form.
    line(0, &serde_json::to_string(message).unwrap_or_default())
}

/// The number and the rest of a line.
pub(crate) fn split(line: &str) -> Option<(u32, &str)> {
    let (process, rest) = line.split_once(' ')?;
    Some((process.parse().ok()?, rest))
}

/// The longest line that the rig writes: an order with all its scripts is far below.
pub(crate) const RIG_LINE_BYTES_MAX: usize = 256 << 20;
/// The longest line of a host's own: a greeting, a message.
pub(crate) const OWN_LINE_BYTES_MAX: usize = 64 << 10;

/// The next line; none at the end. What is not UTF-8 is replaced. `bytes_max` gets the beginning of
/// a line that is longer than [`OWN_LINE_BYTES_MAX`].
///
/// # Errors
/// The pipe's; [`io::ErrorKind::InvalidData`] for a line that is too long.
pub(crate) fn read_line(
    input: &mut impl BufRead,
    bytes_max: impl FnOnce(&[u8]) -> usize,
) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.take(OWN_LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() == OWN_LINE_BYTES_MAX && !bytes.ends_with(b"\n") {
        let bytes_max = bytes_max(&bytes);
        let more = bytes_max.saturating_sub(bytes.len());
        input.take(more as u64).read_until(b'\n', &mut bytes)?;
        if bytes.len() >= bytes_max && !bytes.ends_with(b"\n") {
            let why = format!("a line of more than {} KiB", bytes_max >> 10);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
    }
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    Ok(Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let check = |ask: RigRequest| {
            let line = message(&ask);
            let (process, rest) = split(&line).unwrap();
            assert_eq!((process, serde_json::from_str::<RigRequest>(rest).unwrap()), (0, ask));
        };
        check(RigRequest::Ping(7));
        check(RigRequest::Start { process: 1, role: Role::Generator });
        check(RigRequest::Reach { ask: 3, address: "[::1]:5432".to_owned() });
        let mut input: &[u8] = b"a\r\n\xff\n\nlast";
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input, |_| 0).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["a", "\u{fffd}", "", "last"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_not_kept() {
        let check = |length: usize, bytes_max: usize, is_read: bool| {
            let text = format!("7 {}\n", "x".repeat(length));
            let line = read_line(&mut text.as_bytes(), |start| {
                assert!(start.starts_with(b"7 x"));
                bytes_max
            });
            assert_eq!(line.is_ok(), is_read, "{length} of {bytes_max}: {line:?}");
        };
        check(10, 0, true);
        check(OWN_LINE_BYTES_MAX, OWN_LINE_BYTES_MAX, false);
        check(OWN_LINE_BYTES_MAX, 2 * OWN_LINE_BYTES_MAX, true);
        check(2 * OWN_LINE_BYTES_MAX, 2 * OWN_LINE_BYTES_MAX, false);
        let endless = std::io::repeat(b'x');
        assert!(read_line(&mut std::io::BufReader::new(endless), |_| 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn what_is_no_line_of_ours_is_seen(text in "\\PC*") {
            match split(&text) {
                Some((process, rest)) => prop_assert!(text.ends_with(rest) && text.contains(&process.to_string())),
                None => prop_assert!(text.split(' ').next().unwrap().parse::<u32>().is_err() || !text.contains(' ')),
            }
        }
    }
}
