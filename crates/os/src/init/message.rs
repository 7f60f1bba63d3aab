//! Messages between a rig and its init: one message is one packet of a `SOCK_SEQPACKET` socket, in JSON.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::command::{ProcessCommand, ProcessInput, ProcessOutput};
use crate::init::ProcessExit;

/// The largest packet that either side sends; below the kernel's default socket buffer (208 KiB).
pub(crate) const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// Request of the rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Start this process, in one of the network namespaces that the init holds.
    Spawn { command: ProcessCommand, network: Option<i32> },
    /// Make a network namespace; the answer is what it is called from then on.
    MakeNetwork,
    /// Let go of a network namespace, which ends with the last process in it.
    DropNetwork { network: i32 },
    /// Send a signal to one process.
    Signal { pid: i32, signal: i32 },
    /// Send a signal to every process that works in or below a directory, or is descended from
    /// one that does, until it has taken effect on all of them; not to those below `except`, for
    /// which the same is true.
    SignalUnder { directory: PathBuf, except: Option<PathBuf>, signal: i32 },
    /// Mount a device, or whatever the file system's type has in its place, on a directory.
    Mount { device: PathBuf, directory: PathBuf, kind: String, options: String },
    /// Unmount a directory; `detach` it at once if a process still uses it.
    Unmount { directory: PathBuf, detach: bool },
    /// Kill everything and end.
    End,
}

/// Report of the init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It is set up.
    Ready,
    /// A request was done: how many processes it reached, or the process id that it made.
    Done(i32),
    /// A request, or the setting up, failed at this step.
    Failed { step: String, errno: i32 },
    /// A process that it started has ended.
    Exited { pid: i32, exit: ProcessExit },
}

impl Request {
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        if let Self::Spawn { command, .. } = self {
            // The init could not say which text it was.
            let env = command.env.iter().flat_map(|(name, value)| [name, value]);
            let mut texts = command.args.iter().chain(env).map(OsString::as_os_str);
            let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
            if has_nul(command.program.as_os_str()) || texts.any(has_nul) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // The init has no terminal, and a pipe's other end would be in the wrong process.
            let outputs = [&command.stdout, &command.stderr];
            let is_open = |output: &&ProcessOutput| {
                matches!(output, ProcessOutput::Inherited | ProcessOutput::Pipe)
            };
            if command.stdin != ProcessInput::Null || outputs.iter().any(is_open) {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }
        encode(self)
    }

    pub(crate) fn decode(packet: &[u8]) -> io::Result<Self> {
        Ok(serde_json::from_slice(packet)?)
    }
}

impl Report {
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        encode(self)
    }

    pub(crate) fn decode(packet: &[u8]) -> io::Result<Self> {
        Ok(serde_json::from_slice(packet)?)
    }
}

fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let packet = serde_json::to_vec(message)?;
    match packet.len() <= MESSAGE_BYTES_MAX {
        true => Ok(packet),
        false => Err(io::ErrorKind::ArgumentListTooLong.into()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::*;
    use crate::user::SystemUser;

    #[test]
    fn messages_survive_the_way() {
        let command = ProcessCommand::new("/bin/postgres")
            .args(["-D", "", "a\nb"])
            .env("PATH", "/bin")
            .env("EMPTY", "")
            .directory("/somewhere else")
            .user(SystemUser { uid: u32::MAX - 1, gid: 7 })
            .stdout(ProcessOutput::File("/log".into()))
            .parent_death_signal(Signal::QUIT);
        for request in [
            Request::Spawn { command, network: None },
            Request::Spawn { command: ProcessCommand::new("x"), network: Some(7) },
            Request::MakeNetwork,
            Request::DropNetwork { network: 7 },
            Request::Signal { pid: 12, signal: 9 },
            Request::SignalUnder {
                directory: "/d".into(),
                except: Some("/d/e".into()),
                signal: 19,
            },
            Request::Mount {
                device: "/dev/loop0".into(),
                directory: "/d e".into(),
                kind: "ext4".into(),
                options: String::new(),
            },
            Request::Unmount { directory: "/d".into(), detach: true },
            Request::End,
        ] {
            let packet = request.encode().unwrap();
            assert_eq!(Request::decode(&packet).unwrap(), request);
            for cut in 0..packet.len() {
                assert!(Request::decode(&packet[..cut]).is_err(), "{request:?} cut at {cut}");
            }
        }
        for report in [
            Report::Ready,
            Report::Done(-3),
            Report::Failed { step: "mounting /proc".into(), errno: 1 },
            Report::Exited { pid: 3, exit: ProcessExit::Code(1) },
            Report::Exited { pid: 3, exit: ProcessExit::Signal(9) },
        ] {
            assert_eq!(Report::decode(&report.encode().unwrap()).unwrap(), report);
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        let refused = |command: ProcessCommand| {
            Request::Spawn { command, network: None }.encode().unwrap_err().kind()
        };
        assert_eq!(refused(ProcessCommand::new("a\0b")), io::ErrorKind::InvalidInput);
        assert_eq!(
            refused(ProcessCommand::new("a").stdout(ProcessOutput::Pipe)),
            io::ErrorKind::Unsupported
        );
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(refused(ProcessCommand::new("a").arg(long)), io::ErrorKind::ArgumentListTooLong);
    }
}
