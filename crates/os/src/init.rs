//! The init of a lab: a small single-threaded process that starts the lab's processes, reaps
//! them, and takes them with it when the rig is gone, however the rig ended.
//!
//! [`Init::start`] forks it. It closes every descriptor but its socket to the rig, enters its
//! [`ProcessIsolation`], and serves requests. When the rig asks it to end, or the socket closes (the rig
//! ended, be it by `kill -9`), it kills everything that descends from it, removes the directory
//! that it was given, and ends.
//! In namespaces it is process 1, so that its own death, too, makes the kernel kill all of them
//! and drop their mounts and shared memory; as a keeper it is a child subreaper, so that nothing
//! that it started escapes from the tree below it.
//!
//! It is forked and not executed anew so that it works in every program that links this crate,
//! tests included, without a hidden entry point in each. `signals::fork` says what that asks of
//! the code in `init/server.rs`.

mod message;
mod server;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::command::ProcessCommand;
use crate::processes;
use message::{MESSAGE_BYTES_MAX, Report, Request};
use serde::{Deserialize, Serialize};

/// The means that separate the processes of a lab from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessIsolation {
    /// Mount, PID and IPC namespaces of their own, made with root's rights.
    Namespaces,
    /// The same inside a user namespace, as a plain user.
    UserNamespace,
    /// Nothing but the init that watches over them.
    Keeper,
}

/// The way a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessExit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl ProcessExit {
    /// True if it ended by itself with code 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// A network namespace that an init holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkNamespace(i32);

/// A step that the init could not take.
#[derive(Debug)]
pub struct InitFailure {
    /// The action that failed, as in "failed to …", but in the form "mounting /proc".
    pub step: String,
    /// The system's error.
    pub error: io::Error,
}

impl InitFailure {
    pub(crate) fn new(step: impl Into<String>, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self { step: step.into(), error: io::Error::from_raw_os_error(errno) }
    }

    pub(crate) fn at(step: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { step: step.to_owned(), error: errno.into() }
    }
}

impl fmt::Display for InitFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}

impl std::error::Error for InitFailure {}

/// The rig's side of a running init. Dropping it ends the init and all its processes.
#[derive(Debug)]
pub struct Init {
    isolation: ProcessIsolation,
    /// The forked process: the init itself as a keeper, else its parent outside the PID namespace.
    forked: Pid,
    /// The init's process id as this process counts, where it can be found out.
    host_pid: Option<i32>,
    /// The root directory in the init's mount namespace.
    root: Option<OwnedFd>,
    /// Locked for the whole of a request and its answer, so that answers find their requests.
    line: Mutex<InitSocket>,
    /// The same socket, which can tell the init to end while a request waits for its answer.
    ender: OwnedFd,
}

/// The socket and what came over it unasked.
#[derive(Debug)]
struct InitSocket {
    socket: Option<OwnedFd>,
    exits: HashMap<i32, ProcessExit>,
}

impl Init {
    /// Starts an init in the given isolation. It removes the directory `removed` when it ends.
    /// `inherited` are the only descriptors that it keeps (a lock, say); the processes that it
    /// starts get none of them.
    ///
    /// # Errors
    /// The step that the system does not allow; nothing is left behind then.
    pub fn start(
        isolation: ProcessIsolation,
        removed: Option<&Path>,
        inherited: &[BorrowedFd<'_>],
    ) -> Result<Self, InitFailure> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(InitFailure::at("making a socket pair"))?;
        let forked = server::fork(&theirs, isolation, removed, inherited)
            .map_err(|error| InitFailure::new("forking the init", &error))?;
        drop(theirs);
        let ender = rustix::io::fcntl_dupfd_cloexec(&ours, 0)
            .map_err(InitFailure::at("copying a descriptor"));
        let ender = match ender {
            Ok(ender) => ender,
            Err(failure) => {
                // The init ends with its socket.
                drop(ours);
                let _ = rustix::process::waitpid(Some(forked), WaitOptions::empty());
                return Err(failure);
            }
        };
        let line = InitSocket { socket: Some(ours), exits: HashMap::new() };
        let mut init =
            Self { isolation, forked, host_pid: None, root: None, line: Mutex::new(line), ender };
        let said = init.line().receive(START_TIMEOUT);
        let failure = match said {
            Ok(Report::Ready) => None,
            Ok(Report::Failed { step, errno }) => {
                Some(InitFailure { step, error: io::Error::from_raw_os_error(errno) })
            }
            Ok(_) => Some(InitFailure::new("starting the init", &Errno::PROTO.into())),
            Err(error) => Some(InitFailure::new("starting the init", &error)),
        };
        if let Some(failure) = failure {
            // It may hang, so it is not asked; it has no children yet. Dropping it reaps it.
            let _ = rustix::process::kill_process(forked, Signal::KILL);
            return Err(failure);
        }
        let forked = forked.as_raw_nonzero().get();
        init.host_pid = match isolation {
            ProcessIsolation::Keeper => Some(forked),
            ProcessIsolation::Namespaces | ProcessIsolation::UserNamespace => {
                processes::outer_pid(forked, 1)
            }
        };
        init.root = init.host_pid.and_then(|pid| root_of(pid).ok());
        Ok(init)
    }

    /// The isolation that is in force.
    pub fn isolation(&self) -> ProcessIsolation {
        self.isolation
    }

    /// Starts a process and returns its id *in the init's namespace*.
    ///
    /// # Errors
    /// As [`ProcessCommand::spawn`]; `Unsupported` for output to anything but files.
    pub fn spawn(&self, command: &ProcessCommand) -> io::Result<i32> {
        self.spawn_in(command, None)
    }

    /// Starts a process in a network namespace of this init, or in the init's own.
    ///
    /// # Errors
    /// As [`Init::spawn`]; `NotFound` for a namespace that was let go.
    pub fn spawn_in(
        &self,
        command: &ProcessCommand,
        network: Option<NetworkNamespace>,
    ) -> io::Result<i32> {
        let network = network.map(|network| network.0);
        let mut line = self.line();
        let pid = line.ask(&Request::Spawn { command: command.clone(), network })?;
        // Whatever is known of that id concerns an earlier process: answers come in order.
        line.exits.remove(&pid);
        Ok(pid)
    }

    /// Makes a network namespace, which has only a loopback interface that is down. It lasts until
    /// it is let go and no process is left in it, or until the init ends.
    ///
    /// # Errors
    /// The system's error of `unshare`: only root may, or who is root in a user namespace.
    pub fn make_network(&self) -> io::Result<NetworkNamespace> {
        self.line().ask(&Request::MakeNetwork).map(NetworkNamespace)
    }

    /// Lets go of a network namespace.
    ///
    /// # Errors
    /// `BrokenPipe` if the init itself has ended.
    pub fn drop_network(&self, network: NetworkNamespace) -> io::Result<()> {
        self.line().ask(&Request::DropNetwork { network: network.0 }).map(drop)
    }

    /// Path of a network namespace as a file, for the processes that this init starts.
    pub fn network_path(&self, network: NetworkNamespace) -> PathBuf {
        let init = match self.isolation {
            ProcessIsolation::Keeper => self.forked.as_raw_nonzero().get(),
            ProcessIsolation::Namespaces | ProcessIsolation::UserNamespace => 1,
        };
        format!("/proc/{init}/fd/{}", network.0).into()
    }

    /// Sends a signal to one process. One that has ended already is no error.
    pub fn signal(&self, pid: i32, signal: Signal) -> io::Result<()> {
        self.line().ask(&Request::Signal { pid, signal: signal.as_raw() }).map(drop)
    }

    /// Sends a signal to every process that was started in `directory` or works there, and to all
    /// that descend from those; for SIGKILL, SIGSTOP and SIGCONT until it has taken effect on
    /// every one. Those that work in `except`, and their descendants, are left alone. Returns how
    /// many it reached.
    ///
    /// # Errors
    /// `TimedOut` if some process is still unaffected after ten seconds.
    pub fn signal_under(
        &self,
        directory: &Path,
        except: Option<&Path>,
        signal: Signal,
    ) -> io::Result<usize> {
        let (directory, except) = (directory.to_owned(), except.map(Path::to_owned));
        let request = Request::SignalUnder { directory, except, signal: signal.as_raw() };
        let reached = self.line().ask(&request)?;
        usize::try_from(reached).map_err(io::Error::other)
    }

    /// Mounts `device` on `directory` as a file system of this `kind`, in the init's namespace
    /// only, so that the mount ends with the init.
    ///
    /// # Errors
    /// The system's error of `mount`; `Unsupported` in other isolation than root's namespaces.
    pub fn mount(
        &self,
        device: &Path,
        directory: &Path,
        kind: &str,
        options: &str,
    ) -> io::Result<()> {
        if self.isolation != ProcessIsolation::Namespaces {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (device, directory) = (device.to_owned(), directory.to_owned());
        let (kind, options) = (kind.to_owned(), options.to_owned());
        self.line().ask(&Request::Mount { device, directory, kind, options }).map(drop)
    }

    /// Unmounts what was mounted on `directory`; with `detach` it goes away now, even if a process
    /// uses it, and ends when none does any more.
    ///
    /// # Errors
    /// The system's error of `umount`, with `ResourceBusy` among them.
    pub fn unmount(&self, directory: &Path, detach: bool) -> io::Result<()> {
        let directory = directory.to_owned();
        self.line().ask(&Request::Unmount { directory, detach }).map(drop)
    }

    /// A path inside the init's mount namespace, as this process can open it, also with the rights
    /// of another user; `None` where the init's process id is not known.
    pub fn path_inside(&self, path: &Path) -> Option<PathBuf> {
        let root = format!("/proc/self/fd/{}", self.root.as_ref()?.as_raw_fd());
        Some(below(root, path))
    }

    /// A path in the mount namespace of one of its processes, as root can open it; `None` for a
    /// process that is not there.
    pub fn path_of(&self, pid: i32, path: &Path) -> Option<PathBuf> {
        Some(below(format!("/proc/{}/root", self.host_pid(pid)?), path))
    }

    /// The way the process that [`Init::spawn`] returned has ended, `None` while it runs.
    ///
    /// # Errors
    /// `BrokenPipe` if the init itself has ended.
    pub fn exit(&self, pid: i32) -> io::Result<Option<ProcessExit>> {
        let mut line = self.line();
        line.drain()?;
        Ok(line.exits.get(&pid).copied())
    }

    /// True if the init itself still answers for its processes.
    pub fn is_alive(&self) -> bool {
        self.line().drain().is_ok()
    }

    /// Waits for the end of a process, at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut` after that; `BrokenPipe` if the init itself has ended.
    pub fn wait(&self, pid: i32, timeout: Duration) -> io::Result<ProcessExit> {
        let deadline = Instant::now() + timeout;
        loop {
            // The line is free between two looks, so that other threads can use the init.
            if let Some(exit) = self.exit(pid)? {
                return Ok(exit);
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(WAIT_PAUSE);
        }
    }

    /// The id that `/proc` outside the init's namespaces has for one of its processes.
    pub fn host_pid(&self, pid: i32) -> Option<i32> {
        match self.isolation {
            ProcessIsolation::Keeper => Some(pid),
            ProcessIsolation::Namespaces | ProcessIsolation::UserNamespace => {
                processes::outer_pid(self.host_pid?, pid)
            }
        }
    }

    /// Has the init kill everything that it started, remove its directory and end, without waiting
    /// for that. Every wait for one of its processes or answers ends with `BrokenPipe`.
    pub fn end_soon(&self) {
        if let Ok(packet) = Request::End.encode() {
            // An init that is dead already cannot be told, and need not be.
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let _ = rustix::net::send(&self.ender, &packet, flags);
        }
    }

    /// Kills everything that the init started, and waits until the init has removed its directory
    /// and has ended.
    pub fn end(mut self) -> io::Result<()> {
        self.end_and_reap()
    }

    fn end_and_reap(&mut self) -> io::Result<()> {
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        // It was ended before.
        let Some(socket) = line.socket.take() else { return Ok(()) };
        if let Ok(packet) = Request::End.encode() {
            // An init that is dead already cannot be told, and need not be.
            let _ = rustix::net::send(&socket, &packet, SendFlags::NOSIGNAL);
        }
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            match rustix::process::waitpid(Some(self.forked), WaitOptions::NOHANG) {
                Ok(None) if Instant::now() >= deadline => {
                    // What still lives is stuck in the kernel; process 1 takes it along.
                    let _ = rustix::process::kill_process(self.forked, Signal::KILL);
                    rustix::process::waitpid(Some(self.forked), WaitOptions::empty())?;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(Some(_)) | Err(Errno::CHILD) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn line(&self) -> MutexGuard<'_, InitSocket> {
        // A panic between two messages leaves nothing half done in here.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        // The owner that wants to know calls end().
        let _ = self.end_and_reap();
    }
}

impl InitSocket {
    fn ask(&mut self, request: &Request) -> io::Result<i32> {
        let packet = request.encode()?;
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::net::send(socket, &packet, SendFlags::NOSIGNAL)?;
        loop {
            match self.receive(ANSWER_TIMEOUT)? {
                Report::Done(value) => return Ok(value),
                Report::Failed { errno, .. } => return Err(io::Error::from_raw_os_error(errno)),
                Report::Exited { pid, exit } => {
                    self.exits.insert(pid, exit);
                }
                Report::Ready => return Err(Errno::PROTO.into()),
            }
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        loop {
            match self.receive(Duration::ZERO) {
                Ok(Report::Exited { pid, exit }) => self.exits.insert(pid, exit),
                Ok(_) => return Err(Errno::PROTO.into()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
                Err(error) => return Err(error),
            };
        }
    }

    fn receive(&mut self, timeout: Duration) -> io::Result<Report> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
        let ready = retry(|| {
            rustix::event::poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout))
        })?;
        if ready == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut packet = vec![0; MESSAGE_BYTES_MAX];
        let (length, _) = retry(|| rustix::net::recv(socket, &mut packet[..], RecvFlags::empty()))?;
        match length {
            0 => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the lab's init has ended")),
            length => Report::decode(&packet[..length]),
        }
    }
}

/// The root directory of a process, wherever it is mounted.
fn root_of(pid: i32) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())
}

fn below(root: String, path: &Path) -> PathBuf {
    Path::new(&root).join(path.strip_prefix("/").unwrap_or(path))
}

/// Repeats a system call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Setting up takes milliseconds, but the machine may be thrashing.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer takes microseconds, except that of a signal that has to take effect on many
/// processes ([`Init::signal_under`]), which the init itself bounds to ten seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Between two looks at whether a process has ended.
const WAIT_PAUSE: Duration = Duration::from_millis(5);

/// Ending kills processes that may have gigabytes to give back.
const END_TIMEOUT: Duration = Duration::from_secs(60);
