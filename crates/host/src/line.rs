//! The rig's end of the line to one host: its threads, its heartbeat, its processes.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use os::command::Child;
use rustix::process::Signal;

use crate::clock::{Clock, Ping};
use crate::hello::Hello;
use crate::inventory::Entry;
use crate::message::{self, Ask, Tell, read_line};
use crate::monotonic_ns;
use crate::trouble::Trouble;

/// A host of which nothing was heard for so long is lost.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(4);
/// How often a host is pinged.
const BEAT: Duration = Duration::from_millis(200);
/// How often it is pinged until its clock is known.
const FIRST_BEAT: Duration = Duration::from_millis(10);
/// Pings after which a clock is known for a start.
pub(crate) const FIRST_PINGS: u64 = 50;
/// Lines before the greeting that are taken for a banner.
pub(crate) const BANNER_LINES_MAX: usize = 200;
/// Lines of standard error that are kept.
const SAID_LINES_MAX: usize = 20;
/// How long the last words of a launcher that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a launcher is given to end after its input has.
pub(crate) const LEAVING: Duration = Duration::from_secs(3);

/// Why a process, or the host that it was on, is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub why: String,
}

impl Loss {
    pub(crate) fn of(why: &str) -> Loss {
        Loss { why: why.to_owned() }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) entry: Arc<Entry>,
    pub(crate) writer: Mutex<Option<Sender<String>>>,
    state: Mutex<LineState>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct LineState {
    pub(crate) child: Child,
    heard: Instant,
    pub(crate) lost: Option<Loss>,
    pub(crate) clock: Clock,
    /// What was sent and has not come back: number and moment.
    pings: VecDeque<(u64, u64)>,
    pub(crate) next: u32,
    pub(crate) started: HashMap<u32, Result<u32, String>>,
    pub(crate) outputs: HashMap<u32, Sender<Result<String, Loss>>>,
    pub(crate) answers: HashMap<u32, Result<u16, String>>,
    pub(crate) said: VecDeque<String>,
}

/// What came until the greeting, or instead of it.
pub(crate) struct Greeting {
    pub(crate) hello: Option<Result<Hello, String>>,
    pub(crate) banner: Vec<String>,
}

impl Shared {
    /// The line to the host of that launcher, and what is to be written to it.
    pub(crate) fn new(entry: Arc<Entry>, child: Child) -> (Arc<Shared>, Receiver<String>) {
        let (lines, outgoing) = channel();
        let state = LineState {
            child,
            heard: Instant::now(),
            lost: None,
            clock: Clock::default(),
            pings: VecDeque::new(),
            next: 1,
            started: HashMap::new(),
            outputs: HashMap::new(),
            answers: HashMap::new(),
            said: VecDeque::new(),
        };
        let (writer, state) = (Mutex::new(Some(lines)), Mutex::new(state));
        (Arc::new(Shared { entry, writer, state, changed: Condvar::new() }), outgoing)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a line. A host that is lost does not hear it.
    pub(crate) fn send(&self, line: String) {
        if let Some(writer) = &*self.writer.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writer.send(line);
        }
    }

    /// Waits for something of the host's, or for its loss.
    pub(crate) fn wait<T>(
        &self,
        mut look: impl FnMut(&mut LineState) -> Option<T>,
    ) -> Result<T, Loss> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(loss) = &state.lost {
                return Err(loss.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The host is lost, if it was not before: its processes say so, its launcher is killed.
    pub(crate) fn lose(&self, why: &str) {
        let mut state = self.lock();
        if state.lost.is_none() {
            state.lost = Some(Loss::of(why));
            for (_, output) in state.outputs.drain() {
                // A process that has been dropped has no reader.
                let _ = output.send(Err(Loss::of(why)));
            }
        }
        let _ = state.child.signal(Signal::KILL);
        drop(state);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.changed.notify_all();
    }

    /// Why there was no greeting before the launcher's output ended.
    pub(crate) fn ended_early(
        &self,
        banner: &[String],
        called: &str,
        says: &JoinHandle<()>,
    ) -> Trouble {
        let deadline = Instant::now() + LEAVING;
        let status = loop {
            match self.lock().child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => {}
                _ => break None,
            }
            thread::sleep(Duration::from_millis(5));
        };
        // Its last words may still be on their way; a child of its own may keep the pipe open.
        let deadline = Instant::now() + LAST_WORDS;
        while !says.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let state = self.lock();
        let said = state.said.back().or(banner.last()).cloned().unwrap_or_default();
        match status {
            // Every shell, nsenter and env say it this way.
            Some(status) if status.code() == Some(127) => {
                Trouble::NoProgram { program: called.to_owned(), said }
            }
            Some(status) => Trouble::Ended { how: ended(status), said },
            None => Trouble::Ended { how: "closed its output".to_owned(), said },
        }
    }

    /// Reads what comes until nothing comes any more.
    pub(crate) fn read(&self, stdout: ChildStdout, told: &Sender<Greeting>) {
        let mut input = BufReader::with_capacity(1 << 16, stdout);
        let mut greeting = Greeting { hello: None, banner: Vec::new() };
        while greeting.hello.is_none() && greeting.banner.len() <= BANNER_LINES_MAX {
            let Ok(Some(line)) = read_line(&mut input) else { break };
            match Hello::read(&line) {
                Some(hello) => greeting.hello = Some(hello),
                None => greeting.banner.push(line),
            }
        }
        let is_there = matches!(greeting.hello, Some(Ok(_)));
        self.lock().heard = Instant::now();
        if told.send(greeting).is_err() || !is_there {
            return;
        }
        let why = loop {
            match read_line(&mut input) {
                Ok(Some(line)) => {
                    let received = monotonic_ns();
                    if let Err(why) = self.hear(&line, received) {
                        break why;
                    }
                }
                Ok(None) => break self.how_it_ended(),
                Err(error) => break format!("reading from the launcher: {error}"),
            }
        };
        self.lose(&why);
    }

    fn how_it_ended(&self) -> String {
        // The launcher's end follows that of its output.
        let deadline = Instant::now() + Duration::from_millis(500);
        loop {
            let mut state = self.lock();
            let status = state.child.try_wait();
            if let Ok(Some(status)) = status {
                let said = state.said.back().map_or(String::new(), |said| format!(": {said}"));
                return format!("its launcher {}{said}", ended(status));
            }
            if Instant::now() >= deadline {
                return "its launcher closed the pipe".to_owned();
            }
            drop(state);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn hear(&self, line: &str, received: u64) -> Result<(), String> {
        let unknown = || {
            let start: String = line.chars().take(200).collect();
            format!("said \"{start}\", which is not pgrig's")
        };
        let (process, rest) = message::split(line).ok_or_else(unknown)?;
        let mut state = self.lock();
        state.heard = Instant::now();
        if process > 0 {
            if let Some(output) = state.outputs.get(&process) {
                // A process that has been dropped has no reader.
                let _ = output.send(Ok(rest.to_owned()));
            }
            return Ok(());
        }
        match serde_json::from_str::<Tell>(rest).map_err(|_| unknown())? {
            Tell::Pong(number, there) => {
                while let Some((sent_number, sent)) = state.pings.pop_front() {
                    if sent_number == number {
                        state.clock.add(Ping { sent, there, received });
                        break;
                    }
                }
            }
            Tell::Started { process, pid } => drop(state.started.insert(process, Ok(pid))),
            Tell::NotStarted { process, why } => {
                state.outputs.remove(&process);
                state.started.insert(process, Err(why));
            }
            Tell::Ended { process, .. } => drop(state.outputs.remove(&process)),
            Tell::Answer { ask, result } => drop(state.answers.insert(ask, result)),
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Pings the host, and notices when it does not answer.
    pub(crate) fn beat(&self) {
        for number in 0.. {
            let pause = {
                let mut state = self.lock();
                if state.lost.is_some() {
                    return;
                }
                let silent = state.heard.elapsed();
                if silent > SILENCE_MAX {
                    drop(state);
                    self.lose(&format!(
                        "nothing was heard of it for {:.1} s",
                        silent.as_secs_f64()
                    ));
                    return;
                }
                state.pings.push_back((number, monotonic_ns()));
                if state.clock.pings() < FIRST_PINGS { FIRST_BEAT } else { BEAT }
            };
            self.send(message::message(&Ask::Ping(number)));
            thread::sleep(pause);
        }
    }
}

/// How a launcher ended, as in "the launcher ended with exit code 255".
fn ended(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Writes what is sent, so that a launcher that does not read holds no other up.
pub(crate) fn write_lines(mut stdin: ChildStdin, lines: Receiver<String>) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in lines {
            // A launcher that is gone shows on its other pipe.
            if writeln!(stdin, "{line}").and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    })
}

pub(crate) fn keep_what_it_says(shared: &Arc<Shared>, stderr: ChildStderr) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        // A line without an end cannot fill the memory.
        while (&mut lines).take(64 * 1024).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            // Open MPI draws a line below its messages.
            if text.contains(char::is_alphanumeric) {
                let mut state = shared.lock();
                state.said.push_back(text);
                if state.said.len() > SAID_LINES_MAX {
                    state.said.pop_front();
                }
            }
        }
    })
}
