//! Running launchers: `LAUNCHER… pgrig host`, and copying the program there first.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use os::command::{Child, Command, Input, Output};
use os::limits::OpenFiles;
use rustix::process::Signal;

use crate::host::Host;
use crate::interrupted::Interrupted;
use crate::inventory::HostEntry;
use crate::line::{LAST_WORDS, join};
use crate::trouble::{Trouble, short};

/// This program, for the hosts that it is started on.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable of this process.
    pub path: PathBuf,
    /// Its version: hosts must have the same.
    pub version: String,
    /// Copy it to every host before it is started there.
    pub push: bool,
}

/// Reaches every host at the same time, until it answers or the user has asked for the end. In the
/// order of `entries`.
pub fn launch(
    entries: &[HostEntry],
    program: &Program,
    is_interrupted: &Interrupted,
) -> Vec<Result<Host, Trouble>> {
    // Three pipes each; where the hard limit is too low, starting a launcher says so.
    let _ = OpenFiles::raise();
    std::thread::scope(|scope| {
        let reach = |entry| scope.spawn(move || one(entry, program, is_interrupted));
        let threads: Vec<_> = entries.iter().map(reach).collect();
        let lost = |_| Err(Trouble::Lost("reaching it panicked; this is a bug".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    })
}

fn one(
    entry: &HostEntry,
    program: &Program,
    is_interrupted: &Interrupted,
) -> Result<Host, Trouble> {
    let remote = match (entry.launch.is_empty(), program.push) {
        (true, _) => None,
        (false, true) => Some(push(entry, program, is_interrupted)?),
        (false, false) => Some(entry.program.clone()),
    };
    let started = match &remote {
        None => start(Command::new(&program.path).arg("host"), &program.path.display().to_string()),
        Some(remote) => {
            let mut words = vec![remote.as_str(), "host"];
            if program.push {
                // It removes its file as soon as it runs.
                words.push("--remove-program");
            }
            start(command(entry, &words), &entry.launch[0])
        }
    };
    let called = remote.unwrap_or_else(|| program.path.display().to_string());
    let host = started.and_then(|child| {
        Host::greet(Arc::new(entry.clone()), child, program, &called, is_interrupted)
    });
    if let (Err(_), true, false) = (&host, program.push, entry.launch.is_empty()) {
        // It did not come so far as to remove its file itself.
        let _ = run(entry, &["rm", "-f", &called], None, is_interrupted);
    }
    host
}

fn command(entry: &HostEntry, words: &[&str]) -> Command {
    Command::new(&entry.launch[0]).args(&entry.launch[1..]).args(words)
}

/// Starts a launcher. There is no terminal that it could ask for a password, and the user's
/// interruption is the rig's to answer.
fn start(command: Command, name: &str) -> Result<Child, Trouble> {
    command
        .inherit_env()
        .stdin(Input::Pipe)
        .stdout(Output::Pipe)
        .stderr(Output::Pipe)
        .spawn()
        .map_err(|error| Trouble::NoLauncher { program: name.to_owned(), why: error.to_string() })
}

/// Copies the program to a host, by programs that every host has and words that no shell changes.
fn push(
    entry: &HostEntry,
    program: &Program,
    is_interrupted: &Interrupted,
) -> Result<String, Trouble> {
    let Program { path: program, version, .. } = program;
    let mut random = [0; 8];
    let path =
        |random: [u8; 8]| format!("/tmp/pgrig-{version}-{:016x}", u64::from_ne_bytes(random));
    let failed = |path: &str, why: String| Trouble::Push { path: path.to_owned(), why };
    let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    let path = path(random);
    filled.map_err(|error| failed(&path, error.to_string()))?;
    let bytes = std::fs::read(program)
        .map_err(|error| failed(&path, format!("reading {}: {error}", program.display())))?;
    let copy = ["dd", &format!("of={path}"), "status=none"];
    let made = run(entry, &copy, Some(bytes), is_interrupted)
        .and_then(|()| run(entry, &["chmod", "700", &path], None, is_interrupted));
    if let Err(why) = made {
        let _ = run(entry, &["rm", "-f", &path], None, is_interrupted);
        return Err(failed(&path, why));
    }
    Ok(path)
}

/// Runs a command on a host to its end; when the user has asked for the end, for a few seconds.
fn run(
    entry: &HostEntry,
    words: &[&str],
    input: Option<Vec<u8>>,
    is_interrupted: &Interrupted,
) -> Result<(), String> {
    let mut child =
        start(command(entry, words), &entry.launch[0]).map_err(|trouble| trouble.to_string())?;
    let mut stdin = child.stdin();
    let writer = std::thread::spawn(move || {
        if let (Some(stdin), Some(bytes)) = (&mut stdin, input) {
            // A launcher that ends early says why on its standard error.
            let _ = stdin.write_all(&bytes);
        }
    });
    let mut stderr = child.stderr();
    let (told, said) = channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(stderr) = &mut stderr {
            let _ = stderr.take(64 * 1024).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        // Nobody waits for it where a child of the launcher's keeps the pipe.
        let _ = told.send(short(said.lines().last().unwrap_or_default().trim()));
    });
    let mut deadline = Instant::now() + entry.timeout.max(PUSH_TIMEOUT_MIN);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if Instant::now() >= deadline => {
                let _ = child.signal(Signal::KILL);
                break Err(format!("`{}` did not end", words[0]));
            }
            Ok(None) => {
                if is_interrupted() {
                    deadline = deadline.min(Instant::now() + INTERRUPTED_TIMEOUT);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    join(vec![writer]);
    let said = said.recv_timeout(LAST_WORDS).unwrap_or_default();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}`: {status}: {said}", words[0])),
        Err(why) => Err(format!("{why}: {said}")),
    }
}

/// Time that a command may still take after the user has asked for the end: it removes a file.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(2);
/// A copy takes longer than a greeting.
const PUSH_TIMEOUT_MIN: Duration = Duration::from_secs(120);
