//! The init's own side: what the forked process does. Everything in this file runs in a copy of
//! the rig with one thread, so it takes no lock that another thread of the rig may have held
//! (see `signals::fork`) and reports failures over its socket only.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::cgroup;
use crate::command::ProcessCommand;
use crate::init::message::{MESSAGE_BYTES_MAX, Report, Request};
use crate::init::{InitFailure, ProcessExit, ProcessIsolation, retry};
use crate::namespaces::{self, UnshareMode};
use crate::processes::{self, ProcessRow};
use crate::shared_memory::Segments;
use crate::signals;

/// Forks the init; it talks over `socket`.
pub(crate) fn fork(
    socket: &OwnedFd,
    isolation: ProcessIsolation,
    removed: Option<&Path>,
    inherited: &[BorrowedFd<'_>],
) -> io::Result<Pid> {
    let mut kept: Vec<RawFd> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
    kept.push(socket.as_raw_fd());
    let rig = std::process::id();
    signals::fork(|| {
        let born = leave_the_rig(&kept).and_then(|()| match isolation {
            ProcessIsolation::Keeper => Ok(()),
            ProcessIsolation::Namespaces => namespaces::unshare(UnshareMode::AsRoot),
            ProcessIsolation::UserNamespace => {
                namespaces::unshare(UnshareMode::ThroughUserNamespace)
            }
        });
        match (born, isolation) {
            (Err(failure), _) => give_up(socket, &failure),
            (Ok(()), ProcessIsolation::Keeper) => serve(socket.as_fd(), isolation, removed, rig),
            (Ok(()), ProcessIsolation::Namespaces | ProcessIsolation::UserNamespace) => {
                match signals::fork(|| serve(socket.as_fd(), isolation, removed, rig)) {
                    Ok(inner) => stand_by(inner, &kept),
                    Err(error) => give_up(socket, &InitFailure::new("forking process 1", &error)),
                }
            }
        }
    })
}

/// Keeps nothing of the rig: no terminal, no descriptor, no directory, no signal.
fn leave_the_rig(kept: &[RawFd]) -> Result<(), InitFailure> {
    let failed = |step: &'static str| move |error: io::Error| InitFailure::new(step, &error);
    rustix::process::setsid().map_err(InitFailure::at("starting a session"))?;
    rustix::process::chdir("/").map_err(InitFailure::at("changing to /"))?;
    rustix::thread::set_name(c"pgrig lab init").map_err(InitFailure::at("naming the process"))?;
    close_all_but(kept).map_err(failed("closing inherited descriptors"))
}

/// Closes what it must not hold (another lab's socket, say, would keep that lab's init alive) and
/// puts `/dev/null` in the place of the standard streams.
fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for descriptor in open {
        if descriptor > 2 && !kept.contains(&descriptor) && descriptor != null.as_raw_fd() {
            // SAFETY: nothing in this copy of the rig uses the descriptors that it came with,
            // except those kept; one that is closed already (the directory's) just fails.
            unsafe { libc::close(descriptor) };
        }
    }
    for stream in 0..=2 {
        // SAFETY: the standard streams are owned by nobody, and dup2 replaces them whole.
        if unsafe { libc::dup2(null.as_raw_fd(), stream) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn give_up(socket: &OwnedFd, failure: &InitFailure) -> i32 {
    let errno = failure.error.raw_os_error().unwrap_or(libc::EIO);
    // A rig that is gone does not need to know.
    let _ = say(socket.as_fd(), &Report::Failed { step: failure.step.clone(), errno });
    1
}

/// The process between the rig and process 1: it only waits, so that the rig has a child to reap.
/// The socket closes and the lock ends with process 1, not with this.
fn stand_by(inner: Pid, kept: &[RawFd]) -> i32 {
    for descriptor in kept {
        // SAFETY: no descriptor is used again in this process, which ends without drops.
        unsafe { libc::close(*descriptor) };
    }
    match retry(|| rustix::process::waitpid(Some(inner), WaitOptions::empty())) {
        Ok(Some((_, status))) => status.exit_status().unwrap_or(1),
        Ok(None) | Err(_) => 1,
    }
}

fn serve(
    socket: BorrowedFd<'_>,
    isolation: ProcessIsolation,
    removed: Option<&Path>,
    rig: u32,
) -> i32 {
    let prepared = prepare(isolation);
    let children = match prepared {
        Ok(children) => children,
        Err(failure) => {
            let errno = failure.error.raw_os_error().unwrap_or(libc::EIO);
            let _ = say(socket, &Report::Failed { step: failure.step, errno });
            return 1;
        }
    };
    // After the mounts: it is the directory of this namespace.
    let left = Segments::new();
    let (spawned, networks) = (HashMap::new(), HashMap::new());
    let mut server = Server { socket, children, spawned, networks, left };
    let is_rig_gone = !server.run();
    server.kill_everything();
    if is_rig_gone {
        cgroup::remove_of(rig);
    }
    if let Some(directory) = removed {
        if isolation != ProcessIsolation::Keeper {
            // What is mounted in it goes away as a whole, and not file by file.
            let _ = namespaces::unmount_below(directory);
        }
        // What cannot be removed (a full or failing disk) is left to `pgrig clean`.
        let _ = fs::remove_dir_all(directory);
    }
    0
}

fn prepare(isolation: ProcessIsolation) -> Result<OwnedFd, InitFailure> {
    match isolation {
        ProcessIsolation::Keeper => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .map_err(InitFailure::at("becoming a subreaper"))?
        }
        ProcessIsolation::Namespaces | ProcessIsolation::UserNamespace => {
            // The parent only waits and has one thread, so this fires when it is killed, and then.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(InitFailure::at("following the parent's death"))?;
            namespaces::mount_private()?;
        }
    }
    signals::block_all_and_watch_children()
        .map_err(|error| InitFailure::new("watching for ended children", &error))
}

struct Server<'a> {
    socket: BorrowedFd<'a>,
    /// Readable when a child has ended.
    children: OwnedFd,
    /// The processes that the rig asked for, and where they were started.
    spawned: HashMap<i32, Option<PathBuf>>,
    /// The network namespaces that it keeps alive, by their descriptors.
    networks: HashMap<i32, OwnedFd>,
    /// Shared memory that killed processes leave.
    left: Segments,
}

impl Server<'_> {
    /// Serves requests until the rig says that the init shall end (true), or is gone.
    fn run(&mut self) -> bool {
        if say(self.socket, &Report::Ready).is_err() {
            return false;
        }
        let mut packet = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let mut events = [
                PollFd::from_borrowed_fd(self.socket, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            if retry(|| rustix::event::poll(&mut events, None)).is_err() {
                return false;
            }
            let (spoken, ended) =
                (!events[0].revents().is_empty(), !events[1].revents().is_empty());
            if ended && self.reap().is_err() {
                return false;
            }
            if !spoken {
                continue;
            }
            let length =
                retry(|| rustix::net::recv(self.socket, &mut packet[..], RecvFlags::empty()));
            let answer = match length {
                Ok((0, _)) | Err(_) => return false,
                Ok((length, _)) => match Request::decode(&packet[..length]) {
                    Ok(Request::End) => return true,
                    Ok(request) => self.answer(request),
                    Err(_) => {
                        Report::Failed { step: "reading a request".into(), errno: libc::EPROTO }
                    }
                },
            };
            if say(self.socket, &answer).is_err() {
                return false;
            }
        }
    }

    fn answer(&mut self, request: Request) -> Report {
        let (step, result) = match request {
            Request::Spawn { command, network } => {
                ("starting a process", self.spawn(&command, network))
            }
            Request::MakeNetwork => ("making a network namespace", self.make_network()),
            Request::DropNetwork { network } => {
                self.networks.remove(&network);
                ("letting go of a network namespace", Ok(0))
            }
            Request::Signal { pid, signal } => ("sending a signal", self.signal(pid, signal)),
            Request::SignalUnder { directory, except, signal } => {
                ("sending signals", self.signal_under(&directory, except.as_deref(), signal))
            }
            Request::Mount { device, directory, kind, options } => {
                ("mounting", namespaces::mount_device(&device, &directory, &kind, &options))
            }
            Request::Unmount { directory, detach } => {
                ("unmounting", namespaces::unmount(&directory, detach))
            }
            Request::End => ("ending", Ok(0)),
        };
        result.map_or_else(
            |error| Report::Failed {
                step: step.to_owned(),
                errno: error.raw_os_error().unwrap_or(libc::EIO),
            },
            Report::Done,
        )
    }

    fn make_network(&mut self) -> io::Result<i32> {
        let network = namespaces::make_network()?;
        let name = network.as_raw_fd();
        self.networks.insert(name, network);
        Ok(name)
    }

    fn spawn(&mut self, command: &ProcessCommand, network: Option<i32>) -> io::Result<i32> {
        let pid = match network {
            None => command.spawn_detached()?,
            Some(name) => {
                let network = self.networks.get(&name).ok_or(Errno::NOENT)?;
                namespaces::within(network.as_fd(), || command.spawn_detached())?
            }
        };
        let pid = pid.as_raw_nonzero().get();
        self.spawned.insert(pid, command.directory.clone());
        Ok(pid)
    }

    /// A pid that has been reaped may belong to another process by now and is left alone.
    fn signal(&self, pid: i32, signal: i32) -> io::Result<i32> {
        match self.spawned.contains_key(&pid) {
            true => kill(pid, signal).map(|()| 1),
            false => Ok(0),
        }
    }

    fn signal_under(
        &mut self,
        directory: &Path,
        except: Option<&Path>,
        signal: i32,
    ) -> io::Result<i32> {
        let deadline = Instant::now() + EFFECT_TIMEOUT;
        let mut reached = HashSet::new();
        loop {
            self.reap()?;
            let processes = processes::all()?;
            let will_stop = |process: &ProcessRow| {
                let was_told = signal == libc::SIGSTOP && reached.contains(&process.pid);
                was_told && is_in_vfork(process, &processes)
            };
            let affected: Vec<i32> = self
                .under(directory, except, &processes)
                .filter(|process| !has_effect(process, signal) && !will_stop(process))
                .map(|process| process.pid)
                .collect();
            for pid in &affected {
                if signal == libc::SIGKILL {
                    self.left.note(*pid);
                }
                kill(*pid, signal)?;
                reached.insert(*pid);
            }
            let lasting = [libc::SIGKILL, libc::SIGSTOP, libc::SIGCONT].contains(&signal);
            if affected.is_empty() || !lasting {
                self.left.remove();
                return Ok(i32::try_from(reached.len()).unwrap_or(i32::MAX));
            }
            if Instant::now() >= deadline {
                return Err(Errno::TIMEDOUT.into());
            }
            std::thread::sleep(SCAN_PAUSE);
        }
    }

    /// The descendants that were started in `directory` or below, or work there, and all that
    /// descend from those, but for those that work in `except` and theirs; parents before children,
    /// so that a stopped parent forks no more.
    fn under<'p>(
        &self,
        directory: &Path,
        except: Option<&Path>,
        processes: &'p [ProcessRow],
    ) -> impl Iterator<Item = &'p ProcessRow> {
        let by_pid: HashMap<i32, &ProcessRow> =
            processes.iter().map(|row| (row.pid, row)).collect();
        let was_started_under = move |pid| {
            let started_in = self.spawned.get(&pid).and_then(Option::as_ref);
            started_in.is_some_and(|path| path.starts_with(directory))
        };
        let (mut under, mut left_alone) = (HashSet::new(), HashSet::new());
        processes::tree(processes, own_pid()).into_iter().skip(1).filter_map(move |pid| {
            let process = *by_pid.get(&pid)?;
            let is_left = except.is_some_and(|except| process.is_under(except));
            if is_left || left_alone.contains(&process.parent) {
                left_alone.insert(pid);
                return None;
            }
            let is_under = under.contains(&process.parent)
                || was_started_under(pid)
                || process.is_under(directory);
            is_under.then(|| {
                under.insert(pid);
                process
            })
        })
    }

    /// Reaps all that has ended and tells the rig of those that it asked for.
    fn reap(&mut self) -> io::Result<()> {
        let mut signals = [0; 1024];
        while rustix::io::read(&self.children, &mut signals).is_ok_and(|length| length > 0) {}
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            let exit = match status.terminating_signal() {
                Some(signal) => ProcessExit::Signal(signal),
                None => match status.exit_status() {
                    Some(code) => ProcessExit::Code(code),
                    // It has not ended: a debugger has stopped it, or lets it go on.
                    None => continue,
                },
            };
            if self.spawned.remove(&pid).is_some() {
                say(self.socket, &Report::Exited { pid, exit })?;
            }
        }
        Ok(())
    }

    /// Until no descendant is left: one that forked while it was killed is found again, because
    /// orphans become children of this process.
    fn kill_everything(&mut self) {
        loop {
            if let Ok(processes) = processes::all() {
                for pid in processes::tree(&processes, own_pid()).into_iter().skip(1) {
                    self.left.note(pid);
                    let _ = kill(pid, libc::SIGKILL);
                }
            }
            loop {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return self.left.remove(),
                }
            }
            std::thread::sleep(SCAN_PAUSE);
        }
    }
}

fn has_effect(process: &ProcessRow, signal: i32) -> bool {
    match signal {
        libc::SIGSTOP => process.is_zombie() || process.is_stopped(),
        libc::SIGCONT => !process.is_stopped(),
        _ => process.is_zombie(),
    }
}

/// True if it sleeps in vfork(2) until a stopped child goes on. It cannot be stopped there; a
/// SIGSTOP that was sent to it takes effect when it wakes up.
fn is_in_vfork(process: &ProcessRow, processes: &[ProcessRow]) -> bool {
    let mut children = processes.iter().filter(|child| child.parent == process.pid);
    process.is_uninterruptible() && children.any(ProcessRow::is_stopped)
}

/// Sends a signal; a process that has ended is no error.
fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill touches no memory of this process.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            error => Err(error),
        },
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn say(socket: BorrowedFd<'_>, report: &Report) -> io::Result<()> {
    let packet = report.encode()?;
    retry(|| rustix::net::send(socket, &packet, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Longest time that a signal may take until every process shows its effect: one that waits for a
/// disk dies or stops only afterwards.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two looks at the process table; long enough for a killed process to be gone.
const SCAN_PAUSE: Duration = Duration::from_millis(2);
