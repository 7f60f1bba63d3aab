//! Messages between a rig and its init: one message is one packet of a `SOCK_SEQPACKET` socket, a
//! list of strings that each end in a zero byte (no path, argument or variable can hold one). The
//! first string is the message's name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::command::{Command, Group, Input, Output};
use crate::init::Exit;
use crate::user::User;

/// The largest packet that either side sends; below the kernel's default socket buffer (208 KiB).
pub(crate) const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// In the place of a descriptor where a process stays in the init's own network.
const NO_NETWORK: i32 = -1;

/// Request of the rig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Start this process, in one of the network namespaces that the init holds.
    Spawn { command: Command, network: Option<i32> },
    /// Make a network namespace; the answer is what it is called from then on.
    MakeNetwork,
    /// Let go of a network namespace, which ends with the last process in it.
    DropNetwork { network: i32 },
    /// Send a signal to one process.
    Signal { pid: i32, signal: i32 },
    /// Send a signal to every process that works in or below a directory, or is descended from
    /// one that does, until it has taken effect on all of them.
    SignalUnder { directory: PathBuf, signal: i32 },
    /// Mount a device, or whatever the file system's type has in its place, on a directory.
    Mount { device: PathBuf, directory: PathBuf, kind: String, options: String },
    /// Unmount a directory; `detach` it at once if a process still uses it.
    Unmount { directory: PathBuf, detach: bool },
    /// Kill everything and end.
    End,
}

/// Report of the init.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// It is set up.
    Ready,
    /// A request was done: how many processes it reached, or the process id that it made.
    Done(i32),
    /// A request, or the setting up, failed at this step.
    Failed { step: String, errno: i32 },
    /// A process that it started has ended.
    Exited { pid: i32, exit: Exit },
}

impl Request {
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut packet = Packet::default();
        match self {
            Self::Spawn { command, network } => {
                packet.text("spawn")?.number(network.unwrap_or(NO_NETWORK))?;
                encode_command(&mut packet, command)?;
            }
            Self::MakeNetwork => {
                packet.text("make-network")?;
            }
            Self::DropNetwork { network } => {
                packet.text("drop-network")?.number(*network)?;
            }
            Self::Signal { pid, signal } => {
                packet.text("signal")?.number(*pid)?.number(*signal)?;
            }
            Self::SignalUnder { directory, signal } => {
                packet.text("signal-under")?.text(directory)?.number(*signal)?;
            }
            Self::Mount { device, directory, kind, options } => {
                packet.text("mount")?.text(device)?.text(directory)?.text(kind)?.text(options)?;
            }
            Self::Unmount { directory, detach } => {
                packet.text("unmount")?.text(directory)?.number(i32::from(*detach))?;
            }
            Self::End => {
                packet.text("end")?;
            }
        }
        packet.finish()
    }

    pub(crate) fn decode(packet: &[u8]) -> io::Result<Self> {
        let mut strings = Strings::of(packet)?;
        let request = match strings.text()?.as_bytes() {
            b"spawn" => {
                let network = Some(strings.number()?).filter(|network| *network != NO_NETWORK);
                Self::Spawn { network, command: decode_command(&mut strings)? }
            }
            b"make-network" => Self::MakeNetwork,
            b"drop-network" => Self::DropNetwork { network: strings.number()? },
            b"signal" => Self::Signal { pid: strings.number()?, signal: strings.number()? },
            b"signal-under" => {
                Self::SignalUnder { directory: strings.text()?.into(), signal: strings.number()? }
            }
            b"mount" => Self::Mount {
                device: strings.text()?.into(),
                directory: strings.text()?.into(),
                kind: strings.text()?.into_string().map_err(|_| malformed())?,
                options: strings.text()?.into_string().map_err(|_| malformed())?,
            },
            b"unmount" => {
                Self::Unmount { directory: strings.text()?.into(), detach: strings.number()? != 0 }
            }
            b"end" => Self::End,
            _ => return Err(malformed()),
        };
        strings.end(request)
    }
}

impl Report {
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut packet = Packet::default();
        match self {
            Self::Ready => packet.text("ready")?,
            Self::Done(value) => packet.text("done")?.number(*value)?,
            Self::Failed { step, errno } => packet.text("failed")?.text(step)?.number(*errno)?,
            Self::Exited { pid, exit } => {
                let (kind, value) = match exit {
                    Exit::Code(code) => ("code", *code),
                    Exit::Signal(signal) => ("signal", *signal),
                };
                packet.text("exited")?.number(*pid)?.text(kind)?.number(value)?
            }
        };
        packet.finish()
    }

    pub(crate) fn decode(packet: &[u8]) -> io::Result<Self> {
        let mut strings = Strings::of(packet)?;
        let report = match strings.text()?.as_bytes() {
            b"ready" => Self::Ready,
            b"done" => Self::Done(strings.number()?),
            b"failed" => Self::Failed {
                step: strings.text()?.to_string_lossy().into_owned(),
                errno: strings.number()?,
            },
            b"exited" => {
                let pid = strings.number()?;
                let kind = strings.text()?;
                let value = strings.number()?;
                let exit = match kind.as_bytes() {
                    b"code" => Exit::Code(value),
                    b"signal" => Exit::Signal(value),
                    _ => return Err(malformed()),
                };
                Self::Exited { pid, exit }
            }
            _ => return Err(malformed()),
        };
        strings.end(report)
    }
}

fn encode_command(packet: &mut Packet, command: &Command) -> io::Result<()> {
    packet.text(&command.program)?;
    packet.list(&command.args)?;
    packet.number(length(command.env.len())?)?;
    for (name, value) in &command.env {
        packet.text(name)?.text(value)?;
    }
    packet.list(command.directory.as_slice())?;
    match command.user {
        Some(User { uid, gid }) => {
            packet.text("user")?.number(uid.cast_signed())?.number(gid.cast_signed())?
        }
        None => packet.text("")?,
    };
    for output in [&command.stdout, &command.stderr] {
        match output {
            Output::Null => packet.text("")?,
            Output::File(path) => packet.text(path)?,
            // The init has no terminal, and a pipe's other end would be in the wrong process.
            Output::Inherited | Output::Pipe => return Err(io::ErrorKind::Unsupported.into()),
        };
    }
    packet.number(command.parent_death_signal.unwrap_or(0))?;
    Ok(())
}

fn decode_command(strings: &mut Strings<'_>) -> io::Result<Command> {
    let program = strings.text()?.into();
    let args = strings.list()?;
    let env = (0..strings.number()?)
        .map(|_| Ok((strings.text()?, strings.text()?)))
        .collect::<io::Result<_>>()?;
    let directory = strings.list()?.into_iter().next().map(PathBuf::from);
    let user = match strings.text()?.as_bytes() {
        b"user" => Some(User {
            uid: strings.number()?.cast_unsigned(),
            gid: strings.number()?.cast_unsigned(),
        }),
        _ => None,
    };
    let output = |path: OsString| match path.is_empty() {
        true => Output::Null,
        false => Output::File(path.into()),
    };
    let (stdout, stderr) = (output(strings.text()?), output(strings.text()?));
    let parent_death_signal = Some(strings.number()?).filter(|signal| *signal != 0);
    Ok(Command {
        program,
        args,
        env,
        directory,
        user,
        stdin: Input::Null,
        stdout,
        stderr,
        group: Group::Own,
        parent_death_signal,
    })
}

#[derive(Default)]
struct Packet(Vec<u8>);

impl Packet {
    fn text(&mut self, text: impl AsRef<OsStr>) -> io::Result<&mut Self> {
        let bytes = text.as_ref().as_bytes();
        if bytes.contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.0.extend_from_slice(bytes);
        self.0.push(0);
        Ok(self)
    }

    fn number(&mut self, number: i32) -> io::Result<&mut Self> {
        self.text(number.to_string())
    }

    fn list<T: AsRef<OsStr>>(&mut self, items: &[T]) -> io::Result<&mut Self> {
        self.number(length(items.len())?)?;
        for item in items {
            self.text(item)?;
        }
        Ok(self)
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self.0.len() <= MESSAGE_BYTES_MAX {
            true => Ok(self.0),
            false => Err(io::ErrorKind::ArgumentListTooLong.into()),
        }
    }
}

struct Strings<'a>(std::slice::Split<'a, u8, fn(&u8) -> bool>);

impl<'a> Strings<'a> {
    fn of(packet: &'a [u8]) -> io::Result<Self> {
        let packet = packet.strip_suffix(&[0]).ok_or_else(malformed)?;
        Ok(Self(packet.split(|byte| *byte == 0)))
    }

    fn text(&mut self) -> io::Result<OsString> {
        self.0.next().map(|bytes| OsString::from_vec(bytes.to_vec())).ok_or_else(malformed)
    }

    fn number(&mut self) -> io::Result<i32> {
        let text = self.text()?;
        text.to_str().and_then(|text| text.parse().ok()).ok_or_else(malformed)
    }

    fn list(&mut self) -> io::Result<Vec<OsString>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }

    fn end<T>(mut self, value: T) -> io::Result<T> {
        match self.0.next() {
            None => Ok(value),
            Some(_) => Err(malformed()),
        }
    }
}

fn length(count: usize) -> io::Result<i32> {
    i32::try_from(count).map_err(|_| io::ErrorKind::ArgumentListTooLong.into())
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed message between rig and init")
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::*;

    #[test]
    fn messages_survive_the_way() {
        let command = Command::new("/bin/postgres")
            .args(["-D", "", "a\nb"])
            .env("PATH", "/bin")
            .env("EMPTY", "")
            .directory("/somewhere else")
            .user(User { uid: u32::MAX - 1, gid: 7 })
            .stdout(Output::File("/log".into()))
            .parent_death_signal(Signal::QUIT);
        for request in [
            Request::Spawn { command, network: None },
            Request::Spawn { command: Command::new("x"), network: Some(7) },
            Request::MakeNetwork,
            Request::DropNetwork { network: 7 },
            Request::Signal { pid: 12, signal: 9 },
            Request::SignalUnder { directory: "/d".into(), signal: 19 },
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
            Report::Exited { pid: 3, exit: Exit::Code(1) },
            Report::Exited { pid: 3, exit: Exit::Signal(9) },
        ] {
            assert_eq!(Report::decode(&report.encode().unwrap()).unwrap(), report);
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        let refused = |command: Command| {
            Request::Spawn { command, network: None }.encode().unwrap_err().kind()
        };
        assert_eq!(refused(Command::new("a\0b")), io::ErrorKind::InvalidInput);
        assert_eq!(refused(Command::new("a").stdout(Output::Pipe)), io::ErrorKind::Unsupported);
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(refused(Command::new("a").arg(long)), io::ErrorKind::ArgumentListTooLong);
    }
}
