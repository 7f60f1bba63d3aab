//! The rig's end of the line to one host: its threads, its heartbeat, its processes.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use os::command::Child;
use rustix::process::Signal;

use crate::clock::{Clock, Ping};
use crate::hello::Hello;
use crate::inventory::Entry;
use crate::launcher::{Interrupted, Program};
use crate::message::{self, Ask, Tell, read_line};
use crate::process::{Output, Process};
use crate::trouble::Trouble;
use crate::{Role, monotonic_ns};

/// A host of which nothing was heard for so long is lost.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(4);
/// How often a host is pinged.
const BEAT: Duration = Duration::from_millis(200);
/// How often it is pinged until its clock is known.
const FIRST_BEAT: Duration = Duration::from_millis(10);
/// Pings after which a clock is known for a start.
const FIRST_PINGS: u64 = 50;
/// Lines before the greeting that are taken for a banner.
const BANNER_LINES_MAX: usize = 200;
/// Lines of standard error that are kept.
const SAID_LINES_MAX: usize = 20;
/// How often it is looked whether the user has asked for the end.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the last words of a launcher that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a launcher is given to end after its input has.
const LEAVING: Duration = Duration::from_secs(3);

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

/// A host that has answered. Dropping it ends everything that the rig started there.
#[derive(Debug)]
pub struct Host {
    hello: Hello,
    banner: Vec<String>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    entry: Arc<Entry>,
    writer: Mutex<Option<Sender<String>>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    child: Child,
    heard: Instant,
    lost: Option<Loss>,
    clock: Clock,
    /// What was sent and has not come back: number and moment.
    pings: VecDeque<(u64, u64)>,
    next: u32,
    started: HashMap<u32, Result<u32, String>>,
    outputs: HashMap<u32, Sender<Result<String, Loss>>>,
    answers: HashMap<u32, Result<u16, String>>,
    said: VecDeque<String>,
}

impl Host {
    /// Hears a host's greeting.
    pub(crate) fn greet(
        entry: Arc<Entry>,
        mut child: Child,
        program: &Program,
        called: &str,
        is_interrupted: Interrupted<'_>,
    ) -> Result<Host, Trouble> {
        let waited = entry.timeout;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin(), child.stdout(), child.stderr())
        else {
            return Err(Trouble::Process("the launcher has no pipes; this is a bug".to_owned()));
        };
        let (writer, lines) = channel();
        let shared = Arc::new(Shared {
            entry,
            writer: Mutex::new(Some(writer)),
            state: Mutex::new(State {
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
            }),
            changed: Condvar::new(),
        });
        let mut threads = vec![keep_what_it_says(&shared, stderr), write_lines(stdin, lines)];
        let (told, greeting) = channel();
        let reader = Arc::clone(&shared);
        threads.push(thread::spawn(move || reader.read(stdout, &told)));
        let mut banner = Vec::new();
        let deadline = Instant::now() + waited;
        let heard = loop {
            match greeting.recv_timeout(GLANCE) {
                Err(RecvTimeoutError::Timeout) if is_interrupted() => break Ok(None),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(error) => break Err(error),
                Ok(greeting) => break Ok(Some(greeting)),
            }
        };
        let hello = match heard {
            Ok(None) => Err(Trouble::Interrupted),
            Ok(Some(Greeting { hello: Some(Ok(hello)), banner: before }))
                if hello.version == program.version =>
            {
                banner = before;
                Ok(hello)
            }
            Ok(Some(Greeting { hello: Some(told), .. })) => {
                let theirs = told.map_or_else(|version| version, |hello| hello.version);
                Err(Trouble::Version { theirs, ours: program.version.clone() })
            }
            Ok(Some(Greeting { hello: None, banner })) if banner.len() > BANNER_LINES_MAX => {
                let said = banner.last().cloned().unwrap_or_default();
                Err(Trouble::Chatter { lines: BANNER_LINES_MAX, said })
            }
            Ok(Some(Greeting { hello: None, banner })) => {
                Err(shared.ended_early(&banner, called, &threads[0]))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let said = shared.lock().said.back().cloned().unwrap_or_default();
                Err(Trouble::Silent { waited, said })
            }
        };
        let hello = match hello {
            Ok(hello) => hello,
            Err(trouble) => {
                shared.lose("the host was not used");
                threads.into_iter().for_each(|thread| drop(thread.join()));
                return Err(trouble);
            }
        };
        let beats = Arc::clone(&shared);
        threads.push(thread::spawn(move || beats.beat()));
        Ok(Host { hello, banner, shared, threads })
    }

    /// Its entry in the inventory.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.shared.entry
    }

    /// What it said about itself.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// What came before its greeting: a banner.
    #[must_use]
    pub fn banner(&self) -> &[String] {
        &self.banner
    }

    /// Why it is lost, if it is.
    #[must_use]
    pub fn lost(&self) -> Option<Loss> {
        self.shared.lock().lost.clone()
    }

    /// What is known of its clock now.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.lock().clock.clone()
    }

    /// Waits until its clock is known for a start.
    ///
    /// # Errors
    /// When the host is lost.
    pub fn await_clock(&self) -> Result<(), Loss> {
        self.shared.wait(|state| (state.clock.pings() >= FIRST_PINGS).then_some(()))
    }

    /// Starts a process of the rig there.
    ///
    /// # Errors
    /// When it cannot be started or the host is lost.
    pub fn start(&self, role: Role) -> Result<(Process, Output), Loss> {
        let (lines, output) = channel();
        let number = {
            let mut state = self.shared.lock();
            let number = state.next;
            state.next += 1;
            state.outputs.insert(number, lines);
            number
        };
        self.shared.send(message::message(&Ask::Start { process: number, role }));
        let started = self.shared.wait(|state| state.started.remove(&number));
        match started {
            Ok(Ok(pid)) => {
                let process = Process::there(Arc::clone(&self.shared), number, pid);
                Ok((process, Box::new(output.into_iter())))
            }
            Ok(Err(why)) => Err(Loss { why }),
            Err(loss) => Err(loss),
        }
    }

    /// Has it listen at a free port of an address of its own for a few seconds: the port.
    ///
    /// # Errors
    /// What the host's system says.
    pub fn listen(&self, address: &str) -> Result<u16, String> {
        self.ask(|ask| Ask::Listen { ask, address: address.to_owned() })
    }

    /// Has it connect to an address (`host:port`).
    ///
    /// # Errors
    /// What the host's system says.
    pub fn reach(&self, address: &str) -> Result<(), String> {
        self.ask(|ask| Ask::Reach { ask, address: address.to_owned() }).map(drop)
    }

    fn ask(&self, make: impl FnOnce(u32) -> Ask) -> Result<u16, String> {
        let number = {
            let mut state = self.shared.lock();
            state.next += 1;
            state.next
        };
        self.shared.send(message::message(&make(number)));
        self.shared.wait(|state| state.answers.remove(&number)).map_err(|loss| loss.why)?
    }
}

/// Ends hosts at the same time, instead of one after the other.
pub fn end(hosts: Vec<Host>) {
    hosts.iter().for_each(Host::close);
}

impl Host {
    /// The end of its input ends the host, which removes what it made.
    fn close(&self) {
        self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.close();
        let began = Instant::now();
        let mut ended = false;
        while !ended && began.elapsed() < LEAVING {
            let is_lost = {
                let mut state = self.shared.lock();
                ended = !matches!(state.child.try_wait(), Ok(None));
                state.lost.is_some()
            };
            if is_lost {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.shared.lose("the rig has ended");
        for thread in self.threads.drain(..) {
            // They end with the pipes.
            let _ = thread.join();
        }
    }
}

/// What came until the greeting, or instead of it.
struct Greeting {
    hello: Option<Result<Hello, String>>,
    banner: Vec<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a line. A host that is lost does not hear it.
    pub(crate) fn send(&self, line: String) {
        if let Some(writer) = &*self.writer.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writer.send(line);
        }
    }

    /// Waits for something of the host's, or for its loss.
    fn wait<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> Result<T, Loss> {
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
    fn lose(&self, why: &str) {
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
    fn ended_early(&self, banner: &[String], called: &str, says: &JoinHandle<()>) -> Trouble {
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
    fn read(&self, stdout: ChildStdout, told: &Sender<Greeting>) {
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
    fn beat(&self) {
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

/// Writes what is sent, so that a launcher that does not read holds nobody up.
fn write_lines(mut stdin: ChildStdin, lines: Receiver<String>) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in lines {
            // A launcher that is gone shows on its other pipe.
            if writeln!(stdin, "{line}").and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    })
}

fn keep_what_it_says(shared: &Arc<Shared>, stderr: ChildStderr) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        // A line without an end cannot fill the memory.
        while (&mut lines).take(64 * 1024).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            if !text.is_empty() {
                let mut state = shared.lock();
                state.said.push_back(text);
                if state.said.len() > SAID_LINES_MAX {
                    state.said.pop_front();
                }
            }
        }
    })
}
