//! Running launchers: `LAUNCHER… pgrig host`, and copying the program there first.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use os::command::{ChildProcess, ProcessCommand, ProcessInput, ProcessOutput};
use os::limits::OpenFiles;
use rustix::process::Signal;
use sha2::{Digest, Sha256};

use crate::host::Host;
use crate::interrupted::Interrupted;
use crate::inventory::HostEntry;
use crate::line::{LAST_WORDS, join};
use crate::trouble::{LauncherTrouble, short};

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
) -> Vec<Result<Host, LauncherTrouble>> {
    // Of the file as it is now, once for all.
    let sum = if program.push { sum_of(&program.path) } else { Ok(String::new()) };
    // Three pipes each; where the hard limit is too low, starting a launcher says so.
    let _ = OpenFiles::raise();
    std::thread::scope(|scope| {
        let sum = &sum;
        let reach = |entry| scope.spawn(move || one(entry, program, sum, is_interrupted));
        let threads: Vec<_> = entries.iter().map(reach).collect();
        let lost = |_| Err(LauncherTrouble::Lost("reaching it panicked; this is a bug".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    })
}

fn one(
    entry: &HostEntry,
    program: &Program,
    sum: &Result<String, String>,
    is_interrupted: &Interrupted,
) -> Result<Host, LauncherTrouble> {
    let remote = match (entry.launch.is_empty(), program.push) {
        (true, _) => None,
        (false, true) => Some(push(entry, program, sum, is_interrupted)?),
        (false, false) => Some(entry.program.clone()),
    };
    let started = match &remote {
        None => start(
            ProcessCommand::new(&program.path).arg("host"),
            &program.path.display().to_string(),
        ),
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

fn command(entry: &HostEntry, words: &[&str]) -> ProcessCommand {
    ProcessCommand::new(&entry.launch[0]).args(&entry.launch[1..]).args(words)
}

/// Starts a launcher. There is no terminal that it could ask for a password, and the user's
/// interruption is the rig's to answer.
fn start(command: ProcessCommand, name: &str) -> Result<ChildProcess, LauncherTrouble> {
    command
        .inherit_env()
        .stdin(ProcessInput::Pipe)
        .stdout(ProcessOutput::Pipe)
        .stderr(ProcessOutput::Pipe)
        .spawn()
        .map_err(|error| LauncherTrouble::NoLauncher {
            program: name.to_owned(),
            why: error.to_string(),
        })
}

/// Copies the program to a host, by programs that every host has and words that no shell changes.
fn push(
    entry: &HostEntry,
    program: &Program,
    sum: &Result<String, String>,
    is_interrupted: &Interrupted,
) -> Result<String, LauncherTrouble> {
    let Program { path: program, version, .. } = program;
    let mut random = [0; 8];
    let path =
        |random: [u8; 8]| format!("/tmp/pgrig-{version}-{:016x}", u64::from_ne_bytes(random));
    let failed = |path: &str, why: String| LauncherTrouble::Push { path: path.to_owned(), why };
    let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    let path = path(random);
    filled.map_err(|error| failed(&path, error.to_string()))?;
    let unread = |why: &dyn std::fmt::Display| format!("reading {}: {why}", program.display());
    let sum = sum.as_ref().map_err(|why| failed(&path, unread(why)))?;
    let file = File::open(program).map_err(|error| failed(&path, unread(&error)))?;
    let copy = ["dd", &format!("of={path}"), "status=none"];
    let made = run(entry, &copy, Some(file), is_interrupted)
        .and_then(|_| run(entry, &["sha256sum", &path], None, is_interrupted))
        .and_then(|told| is_whole(&told, sum))
        .and_then(|()| run(entry, &["chmod", "700", &path], None, is_interrupted));
    if let Err(why) = made {
        let _ = run(entry, &["rm", "-f", &path], None, is_interrupted);
        return Err(failed(&path, why));
    }
    Ok(path)
}

/// The SHA-256 of a file, as `sha256sum` writes it.
fn sum_of(path: &Path) -> Result<String, String> {
    let mut hasher = Sha256::new();
    let hash = |hasher: &mut Sha256| {
        let mut file = File::open(path)?;
        let mut piece = vec![0; 1 << 16];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                length => hasher.update(&piece[..length]),
            }
        }
    };
    hash(&mut hasher).map_err(|error: std::io::Error| error.to_string())?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares what `sha256sum` says on a host with the sum of what was sent.
fn is_whole(told: &str, sum: &str) -> Result<(), String> {
    // Login scripts may print before it.
    match told.split_whitespace().any(|word| word.trim_start_matches('\\') == sum) {
        true => Ok(()),
        false => Err("it did not arrive as it was sent (its SHA-256 is another one)".to_owned()),
    }
}

/// Runs a command on a host to its end, with a file as its input: its output. When the user has asked for the
/// end, for a few seconds only.
fn run(
    entry: &HostEntry,
    words: &[&str],
    input: Option<File>,
    is_interrupted: &Interrupted,
) -> Result<String, String> {
    let mut child =
        start(command(entry, words), &entry.launch[0]).map_err(|trouble| trouble.to_string())?;
    let mut stdin = child.stdin();
    let writer = std::thread::spawn(move || {
        if let (Some(stdin), Some(mut file)) = (&mut stdin, input) {
            // A launcher that ends early says why on its standard error.
            let _ = std::io::copy(&mut file, stdin);
        }
    });
    let output = read_output(child.stdout());
    let mut stderr = child.stderr();
    let (told, said) = channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(stderr) = &mut stderr {
            let _ = stderr.take(64 * 1024).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        // Nobody waits for it where a child of the launcher's keeps the pipe. One that is silent has no
        // last line.
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
    // A child of the launcher's may keep its pipes open: what it wrote is then not waited for. The only
    // output that matters is a sum, which an empty text does not equal.
    let said = said.recv_timeout(LAST_WORDS).unwrap_or_default();
    let output = || output.recv_timeout(LAST_WORDS).unwrap_or_default(); // See above.
    match status {
        Ok(status) if status.success() => Ok(output()),
        Ok(status) => Err(format!("`{}`: {status}: {said}", words[0])),
        Err(why) => Err(format!("{why}: {said}")),
    }
}

/// Reads what a command writes, which is little.
fn read_output(output: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (told, read) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(output) = output {
            let _ = output.take(64 * 1024).read_to_end(&mut text);
        }
        // Nobody waits for it where a child of the launcher's keeps the pipe.
        let _ = told.send(String::from_utf8_lossy(&text).into_owned());
    });
    read
}

/// Time that a command may still take after the user has asked for the end: it removes a file.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(2);
/// A copy takes longer than a greeting.
const PUSH_TIMEOUT_MIN: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_if_its_sum_is_that_of_what_was_sent() {
        let folder = tempfile_with(b"abc");
        let sum = sum_of(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let check = |told: &str, expected: bool| {
            assert_eq!(is_whole(told, &sum).is_ok(), expected, "{told}");
        };
        check(&format!("{sum}  /tmp/pgrig-0.1.0-0123\n"), true);
        check(&format!("Welcome\n\\{sum}  /tmp/a\\b\n"), true);
        check("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  /tmp/x\n", false);
        check("", false);
        assert!(sum_of(Path::new("/nowhere")).is_err());
    }

    fn tempfile_with(bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pgrig-sum-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
