//! A command that is run to its end, within limits.

use std::io::{self, Read};
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::command::{ChildProcess, ProcessCommand, ProcessInput, ProcessOutput};

/// Limits of a command that is run to its end.
pub struct CommandLimits<'l> {
    /// Bytes that are kept of each of its outputs. The rest is read and dropped.
    pub bytes_max: u64,
    /// Longest time that it may take; none where only its user's patience ends it.
    pub timeout: Option<Duration>,
    /// Tells if its end is wanted now.
    pub is_interrupted: &'l dyn Fn() -> bool,
}

/// Result of a command that has ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// The way it ended.
    pub status: ExitStatus,
    /// Beginning of its standard output.
    pub stdout: Vec<u8>,
    /// Beginning of its standard error.
    pub stderr: Vec<u8>,
}

impl ProcessCommand {
    /// Runs it as [`ProcessCommand::spawn_confined`] does, until it has ended. What is left of its process group
    /// then is killed. `fed` is what it reads from its standard input.
    ///
    /// # Errors
    /// As [`ProcessCommand::spawn`]; `TimedOut` and `Interrupted` where a limit has ended it.
    pub fn run(
        self,
        fed: Option<Box<dyn Read + Send>>,
        limits: &CommandLimits<'_>,
    ) -> io::Result<CommandOutput> {
        let input = if fed.is_some() { ProcessInput::Pipe } else { ProcessInput::Null };
        let command = self.stdin(input).stdout(ProcessOutput::Pipe).stderr(ProcessOutput::Pipe);
        let mut child = command.spawn_confined()?;
        if let (Some(mut fed), Some(mut stdin)) = (fed, child.stdin()) {
            // A program that stops at an error reads no further: the pipe breaks, and this ends.
            thread::spawn(move || io::copy(&mut fed, &mut stdin));
        }
        let stdout = child.stdout().map(|pipe| Beginning::of(pipe, limits.bytes_max));
        let stderr = child.stderr().map(|pipe| Beginning::of(pipe, limits.bytes_max));
        let deadline = limits.timeout.map(|timeout| Instant::now() + timeout);
        let mut pause = Duration::from_millis(1);
        while !child.has_ended()? {
            // Where it is left early, the child is killed with its group.
            if (limits.is_interrupted)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        // It is not reaped yet, so that its number is still its own.
        let _ = child.signal(Signal::KILL);
        let status = child.wait()?;
        let text = |one: Option<Beginning>| one.map_or_else(Vec::new, Beginning::take);
        Ok(CommandOutput { status, stdout: text(stdout), stderr: text(stderr) })
    }
}

impl ChildProcess {
    /// True if it has ended; it is not reaped for that.
    fn has_ended(&self) -> io::Result<bool> {
        let pid = Pid::from_raw(self.id().cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(pid), options)?.is_some())
    }
}

/// The beginning of what a pipe gives, which a thread reads.
struct Beginning {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Beginning {
    fn of(mut pipe: impl Read + Send + 'static, bytes_max: u64) -> Beginning {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel();
        let kept = Arc::clone(&bytes);
        thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(count @ 1..) = pipe.read(&mut piece) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = bytes_max.saturating_sub(kept.len() as u64);
                let count = count.min(usize::try_from(room).unwrap_or(usize::MAX));
                kept.extend_from_slice(&piece[..count]);
            }
            // Nobody may listen any more.
            let _ = end.send(());
        });
        Beginning { bytes, ended }
    }

    /// All of it, but for what a process in another session may still write.
    fn take(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(LAST_WORDS);
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Time in which a pipe ends after its processes have.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Longest pause between two looks at whether it has ended.
const PAUSE_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn run(script: &str, fed: Option<&'static str>) -> io::Result<(Option<i32>, String, String)> {
        let limits = CommandLimits {
            bytes_max: 10,
            timeout: Some(Duration::from_secs(60)),
            is_interrupted: &|| false,
        };
        let fed = fed.map(|text| Box::new(text.as_bytes()) as Box<dyn Read + Send>);
        let command =
            ProcessCommand::new("/bin/sh").args(["-c", script]).env("PATH", "/usr/bin:/bin");
        let ended = command.run(fed, &limits)?;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ok((ended.status.code(), text(ended.stdout), text(ended.stderr)))
    }

    #[test]
    fn a_command_is_run_to_its_end_and_its_words_are_kept_as_far_as_there_is_room() {
        let check = |script: &str, fed, expected: (i32, &str, &str)| {
            let began = Instant::now();
            let (code, stdout, stderr) = run(script, fed).unwrap();
            assert_eq!((code.unwrap(), &*stdout, &*stderr), expected, "{script}");
            assert!(began.elapsed() < Duration::from_secs(30), "{script}");
        };
        check("echo out; echo err >&2; exit 3", None, (3, "out\n", "err\n"));
        check("cat", Some("given"), (0, "given", ""));
        check("exit 0", Some("not read"), (0, "", ""));
        check("head -c 1000000 /dev/zero | tr '\\0' x; exit 4", None, (4, "xxxxxxxxxx", ""));
        check("sleep 600 & echo $((6 * 7))", None, (0, "42\n", ""));
    }

    #[test]
    fn limits_end_a_command() {
        let looks = Cell::new(0);
        let is_interrupted = || looks.replace(looks.get() + 1) > 2;
        let check = |timeout, is_interrupted: &dyn Fn() -> bool, expected| {
            let limits = CommandLimits { bytes_max: 10, timeout, is_interrupted };
            let command = ProcessCommand::new("/bin/sleep").arg("600");
            assert_eq!(command.run(None, &limits).unwrap_err().kind(), expected);
        };
        check(Some(Duration::from_millis(10)), &|| false, io::ErrorKind::TimedOut);
        check(None, &is_interrupted, io::ErrorKind::Interrupted);
        assert_eq!(run("exec /nonexistent", None).unwrap().0, Some(127));
    }
}
