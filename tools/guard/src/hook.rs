//! The operator's command, which is run at each change. The guard never waits for it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use console::terminal::{self, UNSURE, styled};

/// A thread that runs the command for one event after the other.
pub(crate) struct EventHook {
    events: Sender<(&'static str, String)>,
    thread: JoinHandle<()>,
    done: Receiver<()>,
}

impl EventHook {
    pub(crate) fn new(command: &str) -> EventHook {
        let command = command.to_owned();
        let (events, queue) = mpsc::channel::<(&'static str, String)>();
        let (ended, done) = mpsc::channel();
        let thread = thread::spawn(move || {
            for (kind, line) in queue {
                if let Err(why) = run(&command, kind, &line, TIME_MAX) {
                    let text = format!("--exec for the event {kind}: {why}");
                    terminal::narrate(styled(UNSURE, text));
                }
            }
            let _ = ended.send(());
        });
        EventHook { events, thread, done }
    }

    /// Has the command run for an event.
    pub(crate) fn run(&self, kind: &'static str, line: String) {
        // The thread lives as long as this value.
        let _ = self.events.send((kind, line));
    }

    /// Waits a while until the command has been run for what is left.
    pub(crate) fn end(self) {
        drop(self.events);
        if self.done.recv_timeout(END_MAX).is_ok() {
            let _ = self.thread.join();
        }
    }
}

/// Runs the command by the shell, in a process group of its own.
fn run(command: &str, kind: &str, line: &str, time_max: Duration) -> Result<(), String> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("PGRIG_EVENT", kind)
        // It is the guard's own conversation with systemd.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("starting /bin/sh: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A line fits into a pipe; a command that reads nothing has closed it.
        let _ = writeln!(input, "{line}");
    }
    let ended = wait(&mut child, time_max);
    // Whatever it has left behind.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        && ended.is_none()
    {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
    match ended {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("it ended with {status}")),
        None => Err(format!("it was killed, because it had not ended after {time_max:?}")),
    }
}

fn wait(child: &mut Child, time_max: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + time_max;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Time that the command may take.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Time that the end of the guard waits for it.
const END_MAX: Duration = Duration::from_secs(3);
const GLANCE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_event_and_has_a_limit_of_time() {
        let place = tempfile::tempdir().unwrap();
        let seen = place.path().join("seen");
        let command = format!("{{ echo $PGRIG_EVENT; cat; }} >{}", seen.display());
        run(&command, "closed", "{\"window\":1}", TIME_MAX).unwrap();
        assert_eq!(std::fs::read_to_string(seen).unwrap(), "closed\n{\"window\":1}\n");
        let check = |command: &str, expected: &str| {
            let why = run(command, "closed", "{}", Duration::from_millis(200)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        check("exit 7", "exit status: 7");
        check("sleep 60 & wait", "killed");
    }
}
