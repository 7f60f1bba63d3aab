//! A shell command that a script runs: beside the lane, so that no other session waits for it.
//!
//! It has ended when its shell has, as with `system()`: what that left in the background goes on.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    process::{self, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, TryRecvError, channel},
    },
    thread,
    time::Duration,
};

use os::{
    command::{ChildProcess, ProcessCommand, ProcessOutput},
    user::SystemUser,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio, ioctl_fionread},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::ShellUser;

/// Pause between two looks of a session at whether its command has ended.
pub(crate) const GLANCE_NS: u64 = 1_000_000;

/// A command that runs. Dropping it kills one that somebody else has written.
pub(crate) struct Shell {
    ran: Receiver<Ran>,
    stranger: Arc<Stranger>,
}

/// The process of a command that somebody else has written.
#[derive(Default)]
struct Stranger(Mutex<StrangerState>);

#[derive(Default)]
struct StrangerState {
    child: Option<ChildProcess>,
    /// The session does not wait for it any more.
    is_given_up: bool,
}

/// The part of its output that a command is run for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    All,
    /// The pipe is closed when this has come.
    FirstLine,
}

/// A command that has ended.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) output: Vec<u8>,
    /// What one that somebody else has written said on its standard error.
    pub(crate) complaint: Vec<u8>,
    pub(crate) is_started: bool,
    /// It could be started, and ended with the exit code 0.
    pub(crate) succeeded: bool,
}

impl Shell {
    /// Runs `line` by `sh -c`.
    pub(crate) fn start(line: Vec<u8>, printed: Printed, user: ShellUser) -> Self {
        let (done, ran) = channel();
        let stranger = Arc::new(Stranger::default());
        let its_stranger = Arc::clone(&stranger);
        let work = move || {
            let ran = match user {
                // Why it failed, the shell has said on its standard error.
                ShellUser::Own => run(&line, printed),
                ShellUser::Unprivileged => its_stranger.run(&line, printed),
            };
            // A command that could not be started has printed nothing; the session tells so.
            let (ran, left) = ran.unwrap_or_default();
            // A session that has given up no longer listens; its answer is not needed then.
            let _ = done.send(ran);
            // What is in the background may still print. With its pipes closed it would be killed.
            drain(left);
        };
        // Without a thread nobody sends: the command is one that could not be started.
        let _ = thread::Builder::new().spawn(work);
        Shell { ran, stranger }
    }

    /// The result; none while it runs.
    pub(crate) fn ran(&mut self) -> Option<Ran> {
        match self.ran.try_recv() {
            Ok(ran) => Some(ran),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Ran::default()),
        }
    }
}

/// A Ctrl-C at the terminal does not reach what is in another session.
impl Drop for Shell {
    fn drop(&mut self) {
        let mut state = self.stranger.lock();
        state.is_given_up = true;
        // A child that is dropped is killed with its group.
        state.child = None;
    }
}

/// A command that has ended, and its pipes where something in the background may hold them.
type Ended = (Ran, Vec<Pipe>);

fn run(line: &[u8], printed: Printed) -> io::Result<Ended> {
    let mut child = process::Command::new(SHELL)
        .arg0("sh")
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let stdout = Pipe::new(child.stdout.take(), printed, usize::MAX)?;
    let ([output], left) = listen(child.id(), [stdout])?;
    let succeeded = child.wait()?.success();
    Ok((Ran { is_started: true, succeeded, output, complaint: Vec::new() }, left))
}

impl Stranger {
    /// Runs a line that somebody else has written: as a user without rights, in the root directory,
    /// without a terminal, with nothing of this process's environment. It ends with its session and with
    /// this process; as root, with all that it has started.
    fn run(&self, line: &[u8], printed: Printed) -> io::Result<Ended> {
        let user = SystemUser::unprivileged().ok_or(io::ErrorKind::PermissionDenied)?;
        let command = ProcessCommand::new(SHELL)
            .arg("-c")
            .arg(OsStr::from_bytes(line))
            .env("PATH", PATH)
            .directory("/")
            .user(user)
            .stdout(ProcessOutput::Pipe)
            .stderr(ProcessOutput::Pipe);
        let (pid, pipes) = {
            let mut state = self.lock();
            if state.is_given_up {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let child = state.child.insert(command.spawn_confined()?);
            let stdout = Pipe::new(child.stdout(), printed, OUTPUT_BYTES_MAX)?;
            let stderr = Pipe::new(child.stderr(), Printed::All, COMPLAINT_BYTES_MAX)?;
            (child.id(), [stdout, stderr])
        };
        let ([output, complaint], left) = listen(pid, pipes)?;
        // It may have closed its pipes and go on: whoever gives it up meanwhile still finds it.
        let succeeded = loop {
            match self.lock().child.as_mut().map(ChildProcess::try_wait).transpose()? {
                None => return Err(io::ErrorKind::Interrupted.into()),
                Some(Some(status)) => break status.success(),
                Some(None) => thread::sleep(Duration::from_nanos(GLANCE_NS)),
            }
        };
        Ok((Ran { is_started: true, succeeded, output, complaint }, left))
    }

    fn lock(&self) -> MutexGuard<'_, StrangerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pipe of a command, and what has come out of it so far.
struct Pipe {
    file: File,
    printed: Printed,
    bytes_max: usize,
    text: Vec<u8>,
    is_open: bool,
}

impl Pipe {
    fn new(
        pipe: Option<impl Into<OwnedFd>>,
        printed: Printed,
        bytes_max: usize,
    ) -> io::Result<Pipe> {
        let file = File::from(pipe.ok_or(io::ErrorKind::BrokenPipe)?.into());
        ioctl_fionbio(&file, true)?;
        Ok(Pipe { file, printed, bytes_max, text: Vec::new(), is_open: true })
    }

    /// Reads what is there, up to `bytes`, and keeps what there is room for; true where all that is
    /// wanted has come.
    fn read(&mut self, mut bytes: u64) -> io::Result<bool> {
        let mut piece = [0; 8192];
        while bytes > 0 && self.is_open {
            match self.file.read(&mut piece) {
                Ok(0) => self.is_open = false,
                Ok(length) => {
                    self.text.extend_from_slice(&piece[..length]);
                    bytes = bytes.saturating_sub(length as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            let end = self.text.iter().position(|byte| *byte == b'\n');
            let end = end.filter(|_| self.printed == Printed::FirstLine).map(|end| end + 1);
            let end = end.or((self.text.len() >= self.bytes_max).then_some(self.bytes_max));
            if let Some(end) = end {
                self.text.truncate(end);
                return Ok(true);
            }
        }
        Ok(!self.is_open)
    }
}

/// Listens to a shell's pipes until it has ended, or until all that is wanted of the first has come;
/// returns what each gave, with the pipes that something in the background may hold.
fn listen<const N: usize>(pid: u32, mut pipes: [Pipe; N]) -> io::Result<([Vec<u8>; N], Vec<Pipe>)> {
    let shell = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
    // Older kernels cannot wait for both. There the first pipe's end is the shell's.
    let ended = pidfd_open(shell, PidfdFlags::empty()).ok();
    loop {
        wait_for(&pipes, ended.as_ref())?;
        let has_ended = match &ended {
            Some(ended) => {
                let mut event = [PollFd::new(ended, PollFlags::IN)];
                poll(&mut event, Some(&Timespec::default()))? > 0
            }
            None => false,
        };
        let mut is_over = false;
        for (number, pipe) in pipes.iter_mut().enumerate() {
            // What comes later is not the shell's own.
            let bytes = if has_ended { ioctl_fionread(&pipe.file)? } else { PIECE_BYTES };
            is_over |= pipe.read(bytes)? && number == 0;
        }
        if is_over || has_ended {
            let texts = pipes.each_mut().map(|pipe| std::mem::take(&mut pipe.text));
            return Ok((texts, if is_over { Vec::new() } else { pipes.into() }));
        }
    }
}

/// Reads pipes to their ends, and drops what comes.
fn drain(mut pipes: Vec<Pipe>) {
    while pipes.iter().any(|pipe| pipe.is_open) && wait_for(&pipes, None).is_ok() {
        for pipe in &mut pipes {
            pipe.text.clear();
            pipe.is_open &= pipe.read(PIECE_BYTES).is_ok();
        }
    }
}

/// Waits until something can be read from a pipe, or until the process has ended.
fn wait_for(pipes: &[Pipe], ended: Option<&OwnedFd>) -> io::Result<()> {
    let open = pipes.iter().filter(|pipe| pipe.is_open);
    let mut events: Vec<_> = open.map(|pipe| PollFd::new(&pipe.file, PollFlags::IN)).collect();
    events.extend(ended.map(|ended| PollFd::new(ended, PollFlags::IN)));
    match poll(&mut events, None) {
        Err(error) if error != Errno::INTR => Err(error.into()),
        _ => Ok(()),
    }
}

const SHELL: &str = "/bin/sh";

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that prints more finds its pipe closed.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// The first bytes of a complaint that are kept.
const COMPLAINT_BYTES_MAX: usize = 4 << 10;

/// Read from a pipe before another one has its turn.
const PIECE_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn run_to_end(line: &str, printed: Printed, user: ShellUser) -> Ran {
        let mut shell = Shell::start(line.as_bytes().to_vec(), printed, user);
        let mut ran = None;
        testing::until("the end of a command", || {
            ran = shell.ran();
            ran.is_some()
        });
        ran.unwrap()
    }

    fn output(line: &str, printed: Printed, user: ShellUser) -> String {
        String::from_utf8(run_to_end(line, printed, user).output).expect("text")
    }

    #[test]
    fn a_strangers_command_has_no_rights_and_none_of_the_environment() {
        let user = SystemUser::unprivileged().expect("a user");
        let expected = format!("{} {}\n/\n\n", user.uid, user.gid);
        let look = "echo $(id -u) $(id -G); pwd; echo $HOME";
        assert_eq!(output(look, Printed::All, ShellUser::Unprivileged), expected);
        let own = format!("{}\n", SystemUser::current().uid);
        assert_eq!(output("id -u", Printed::All, ShellUser::Own), own);
    }

    #[test]
    fn a_strangers_command_cannot_type_at_the_terminal_nor_write_to_it() {
        let test = "shell::tests::a_strangers_command_cannot_type_at_the_terminal_nor_write_to_it";
        let shown = testing::terminal::at_a_terminal(test, || {
            let line = format!(
                "perl -e '{}'; echo $?; printf '\\033]0;owned\\007' >&2",
                testing::terminal::TYPING
            );
            let ran = run_to_end(&line, Printed::All, ShellUser::Unprivileged);
            let code = String::from_utf8(ran.output).unwrap();
            assert_eq!(code.trim(), testing::terminal::NO_TERMINAL.to_string());
            assert!(ran.complaint.starts_with(b"\x1b]0;owned"));
        });
        assert!(shown.is_none_or(|shown| !shown.contains("\x1b]0;owned")));
    }

    #[test]
    fn a_strangers_command_ends_with_its_session_and_much_complaint_does_not_stop_it() {
        let noise = "head -c 1000000 /dev/zero >&2; echo done";
        let ran = run_to_end(noise, Printed::All, ShellUser::Unprivileged);
        assert_eq!((ran.output, ran.complaint.len()), (b"done\n".into(), COMPLAINT_BYTES_MAX));
        // With its child, and even if it has closed its pipes.
        for line in ["sleep 7654 & wait", "exec >&- 2>&-; sleep 7654; :"] {
            let user = ShellUser::Unprivileged;
            let shell = Shell::start(line.as_bytes().to_vec(), Printed::All, user);
            let children = || {
                let pid = shell.stranger.lock().child.as_ref().map(ChildProcess::id)?;
                let all = os::processes::all().ok()?;
                let tree = os::processes::tree(&all, pid.cast_signed());
                (tree.len() == 2).then_some(tree)
            };
            let mut seen = None;
            testing::until("a child of the command", || {
                seen = children();
                seen.is_some()
            });
            drop(shell);
            let is_gone =
                |pid: &i32| os::processes::of(*pid).is_none_or(|process| process.is_zombie());
            testing::until("the end of both", || seen.iter().flatten().all(is_gone));
        }
    }

    #[test]
    fn endless_output_is_cut_off() {
        let got = output("yes", Printed::All, ShellUser::Unprivileged);
        assert_eq!(got.len(), OUTPUT_BYTES_MAX);
    }

    #[test]
    fn a_command_has_ended_when_its_shell_has() {
        for user in [ShellUser::Own, ShellUser::Unprivileged] {
            let check = |line: &str, printed, expected: &str| {
                let began = std::time::Instant::now();
                assert_eq!(output(line, printed, user), expected, "{line}");
                assert!(began.elapsed() < std::time::Duration::from_secs(20), "{line}");
            };
            check("sleep 30 & echo $((6 * 7))", Printed::All, "42\n");
            check("sleep 30 & echo 1; echo 2", Printed::FirstLine, "1\n");
            check("sleep 30 & exit 3", Printed::All, "");
            check("echo 1; sleep 0.05; echo 2", Printed::All, "1\n2\n");
        }
    }

    #[test]
    fn what_is_left_in_the_background_may_print() {
        let directory = tempfile::tempdir().expect("a directory");
        let done = directory.path().join("done");
        let line = format!("(sleep 0.1; echo late; echo > {}) &", done.display());
        assert_eq!(output(&line, Printed::All, ShellUser::Own), "");
        testing::until("the end of what it left", || done.exists());
    }

    #[test]
    fn endless_output_ends_with_the_line_that_is_wanted() {
        let got = output("yes", Printed::FirstLine, ShellUser::Own);
        assert_eq!(got, "y\n");
    }
}
