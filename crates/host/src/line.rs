//! The rig's end of the line to one host: its threads, its heartbeat, its processes.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use os::command::ChildProcess;
use rustix::process::Signal;

use crate::clock::{Clock, Ping};
use crate::gaps::{SilentGap, SilentGaps};
use crate::hello::ForeignGreeting;
use crate::hello::HostGreeting;
use crate::interrupted::Interrupted;
use crate::inventory::HostEntry;
use crate::loss::HostLoss;
use crate::message::{
    self, HostMessage, OWN_CLOCK, OWN_LINE_BYTES_MAX, RigRequest, Role, read_line,
};
use crate::monotonic_ns;
use crate::own_clock::{GAP_MIN, begin_to_watch_own_clock, note_own_gap, own_gaps};
use crate::queue::Queue;
use crate::trouble::{LauncherTrouble, short};

/// A host of which nothing was heard for so long is lost.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(4);
/// Time between two pings of a host.
const BEAT: Duration = Duration::from_millis(200);
/// Time between two pings until its clock is known.
const FIRST_BEAT: Duration = Duration::from_millis(10);
/// A ping that is later than this shows that this process was held up, and not the host.
const LATE_MAX: Duration = Duration::from_millis(250);
/// Shorter silences are not seen: an answer comes five times a second through the launcher, which carries much else.
const SILENCE_MIN: Duration = Duration::from_millis(500);
/// Pings after which a clock is known for a start.
pub(crate) const FIRST_PINGS: u64 = 50;
/// Lines before the greeting that are taken for a banner, and their bytes.
const BANNER_LINES_MAX: usize = 200;
const BANNER_BYTES_MAX: usize = 256 << 10;
/// Time for which hosts outlive the user's request for the end: a window is closed, readings are
/// handed over.
const INTERRUPTION_MAX: Duration = Duration::from_secs(7);
/// Pause between two looks of a wait at whether the user has asked for the end.
const GLANCE: Duration = Duration::from_millis(50);
/// Lines of standard error that are kept.
const SAID_LINES_MAX: usize = 20;
/// Longest wait for the last words of a launcher that has ended.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);
/// Time that a launcher has to end after its input has.
pub(crate) const LEAVING: Duration = Duration::from_secs(3);

pub(crate) struct Shared {
    pub(crate) entry: Arc<HostEntry>,
    is_interrupted: Interrupted,
    pub(crate) writer: Mutex<Option<Sender<String>>>,
    state: Mutex<LineState>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct LineState {
    pub(crate) child: ChildProcess,
    /// The moment at which something was heard of it last.
    heard_ns: u64,
    /// Times for which nothing was heard of it.
    pub(crate) silences: SilentGaps,
    /// The gaps that each of its watches tells of: times without an answer, with a full disk, or in which it stood still.
    pub(crate) watched: HashMap<u32, SilentGaps>,
    pub(crate) lost: Option<HostLoss>,
    pub(crate) clock: Clock,
    /// Pings without an answer: number and moment.
    pings: VecDeque<(u64, u64)>,
    pub(crate) next: u32,
    /// Processes that were asked for, and the result of each start.
    pub(crate) started: HashMap<u32, Option<Result<u32, String>>>,
    pub(crate) outputs: HashMap<u32, (Role, Arc<Queue>)>,
    pub(crate) answers: HashMap<u32, Option<Result<u16, String>>>,
    pub(crate) said: VecDeque<String>,
}

/// Lines up to the greeting, or the lines that came instead of it.
pub(crate) struct Greeting {
    pub(crate) hello: Option<Result<HostGreeting, ForeignGreeting>>,
    pub(crate) banner: Vec<String>,
    /// More than a banner.
    pub(crate) too_much: Option<&'static str>,
}

impl Shared {
    /// The line to the host of that launcher, and what is to be written to it.
    pub(crate) fn new(
        entry: Arc<HostEntry>,
        child: ChildProcess,
        is_interrupted: Interrupted,
    ) -> (Arc<Shared>, Receiver<String>) {
        let (lines, outgoing) = channel();
        begin_to_watch_own_clock();
        let state = LineState {
            child,
            heard_ns: monotonic_ns(),
            silences: SilentGaps::new(SILENCE_MIN),
            watched: HashMap::from([(OWN_CLOCK, SilentGaps::new(GAP_MIN))]),
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
        let changed = Condvar::new();
        (Arc::new(Shared { entry, is_interrupted, writer, state, changed }), outgoing)
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

    /// Waits for something of the host's (`what`, as in "did not say …"), for its loss, for the user's
    /// wish for the end, or as long as the host may take.
    pub(crate) fn wait<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut LineState) -> Option<T>,
    ) -> Result<T, HostLoss> {
        let (since, waited) = (Instant::now(), self.entry.timeout);
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(loss) = &state.lost {
                return Err(loss.clone());
            }
            if (self.is_interrupted)() {
                return Err(HostLoss::of("interrupted"));
            }
            if since.elapsed() > waited {
                let why = format!("did not say {what} within {} s", waited.as_secs());
                return Err(HostLoss { why });
            }
            let waited = self.changed.wait_timeout(state, GLANCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The host is lost, if it was not before: its processes say so, its launcher is killed.
    pub(crate) fn lose(&self, why: &str) {
        let mut state = self.lock();
        if state.lost.is_none() {
            state.lost = Some(HostLoss::of(why));
            for (_, (_, output)) in state.outputs.drain() {
                output.end(Some(HostLoss::of(why)));
            }
        }
        let _ = state.child.signal(Signal::KILL);
        drop(state);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.changed.notify_all();
    }

    /// The reason why there was no greeting before the launcher's output ended.
    pub(crate) fn ended_early(
        &self,
        banner: &[String],
        called: &str,
        says: &JoinHandle<()>,
    ) -> LauncherTrouble {
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
        // A launcher may end without a word.
        let said = state.said.back().or(banner.last()).cloned().unwrap_or_default();
        match status {
            Some(status) if lacks_program(status.code(), &said) => {
                LauncherTrouble::NoProgram { program: called.to_owned(), said }
            }
            Some(status) => LauncherTrouble::Ended { how: ended(status), said },
            None => LauncherTrouble::Ended { how: "closed its output".to_owned(), said },
        }
    }

    /// Reads what comes until nothing comes any more.
    pub(crate) fn read(&self, stdout: ChildStdout, told: &Sender<Greeting>) {
        let mut input = BufReader::with_capacity(1 << 16, stdout);
        let greeting = greeting(&mut input);
        let is_there = matches!(greeting.hello, Some(Ok(_)));
        self.lock().heard_ns = monotonic_ns();
        if told.send(greeting).is_err() || !is_there {
            return;
        }
        let why = loop {
            match read_line(&mut input, |start| self.line_bytes_max(start)) {
                Ok(Some(line)) => {
                    let received = monotonic_ns();
                    if let Err(why) = self.hear(&line, received) {
                        break why;
                    }
                }
                Ok(None) => break self.how_it_ended(),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    break format!("said {error}");
                }
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
        let unknown = |why: String| format!("said \"{}\", which is not pgrig's{why}", short(line));
        let (process, rest) = message::split(line).ok_or_else(|| unknown(String::new()))?;
        let mut state = self.lock();
        state.heard_ns = received;
        state.silences.answered(received);
        if process > 0 {
            let output = state.outputs.get(&process).map(|(_, output)| Arc::clone(output));
            drop(state);
            if let Some(output) = output
                && let Err(loss) = output.put(rest.to_owned(), || self.is_heard())
            {
                output.end(Some(loss));
            }
            return Ok(());
        }
        match serde_json::from_str::<HostMessage>(rest)
            .map_err(|error| unknown(format!(": {error}")))?
        {
            HostMessage::Pong(number, there) => {
                while let Some((sent_number, sent)) = state.pings.pop_front() {
                    if sent_number == number {
                        state.clock.add(Ping { sent, there, received });
                        break;
                    }
                }
            }
            HostMessage::Started { process, pid } => fill(&mut state.started, process, Ok(pid)),
            HostMessage::NotStarted { process, why } => {
                state.outputs.remove(&process);
                fill(&mut state.started, process, Err(why));
            }
            HostMessage::Ended { process, .. } => {
                if let Some((_, output)) = state.outputs.remove(&process) {
                    output.end(None);
                }
            }
            HostMessage::Answer { ask, result } => fill(&mut state.answers, ask, result),
            HostMessage::Gap { watch, from, to } => {
                let gap = match state.clock.course() {
                    Some(course) => {
                        let offset = course.offset_at(received).saturating_neg();
                        let here = |there: u64| there.saturating_add_signed(offset);
                        SilentGap { from_ns: here(from), to_ns: here(to) }
                    }
                    // Without the host's clock: a gap is told as soon as it is over.
                    None => SilentGap {
                        from_ns: received.saturating_sub(to.saturating_sub(from)),
                        to_ns: received,
                    },
                };
                if let Some(gaps) = state.watched.get_mut(&watch) {
                    gaps.add(gap);
                }
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn is_heard(&self) {
        let mut state = self.lock();
        state.heard_ns = monotonic_ns();
        let heard_ns = state.heard_ns;
        state.silences.answered(heard_ns);
    }

    /// Largest length of a line with this beginning.
    fn line_bytes_max(&self, start: &[u8]) -> usize {
        let number = start.split(|byte| *byte == b' ').next().expect("a split has a first part");
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        let state = self.lock();
        let output = number.and_then(|number: u32| state.outputs.get(&number));
        output.map_or(OWN_LINE_BYTES_MAX, |(role, _)| role.line_bytes_max())
    }

    /// Pings the host, and notices when it does not answer, or goes on when the user wants the end.
    pub(crate) fn beat(&self) {
        let mut interrupted = None;
        let mut due_ns = monotonic_ns();
        for number in 0.. {
            let now_ns = monotonic_ns();
            if now_ns.saturating_sub(due_ns) > LATE_MAX.as_nanos() as u64 {
                // It is this process that was held up.
                note_own_gap(SilentGap { from_ns: due_ns, to_ns: now_ns });
            }
            if (self.is_interrupted)()
                && interrupted.get_or_insert_with(Instant::now).elapsed() > INTERRUPTION_MAX
            {
                return self.lose("interrupted, and it did not end");
            }
            let pause = {
                let mut state = self.lock();
                if state.lost.is_some() {
                    return;
                }
                let silent_ns = silent_ns(state.heard_ns, monotonic_ns(), own_gaps);
                if silent_ns > SILENCE_MAX.as_nanos() as u64 {
                    drop(state);
                    self.lose(&format!(
                        "nothing was heard of it for {:.1} s",
                        silent_ns as f64 / 1e9
                    ));
                    return;
                }
                state.pings.push_back((number, monotonic_ns()));
                if state.clock.pings() < FIRST_PINGS { FIRST_BEAT } else { BEAT }
            };
            self.send(message::message(&RigRequest::Ping(number)));
            due_ns = monotonic_ns() + pause.as_nanos() as u64;
            thread::sleep(pause);
        }
    }
}

/// Time for which nothing was heard of a host until now, without the time in which this process stood still: what came
/// then has not been read.
fn silent_ns(heard_ns: u64, now_ns: u64, own: impl Fn(u64, u64) -> Vec<SilentGap>) -> u64 {
    let own_ns: u64 = own(heard_ns, now_ns).into_iter().map(SilentGap::length_ns).sum();
    now_ns.saturating_sub(heard_ns).saturating_sub(own_ns)
}

/// True if a launcher has ended because the host lacks the program. Every shell, ssh, env and nsenter end with
/// 127; the others have words of their own, and other numbers: docker 126 or 127, kubectl 1 or 126, srun 2,
/// mpirun 134 or 1, ip 255. A number that they give for other troubles as well says nothing without the words.
fn lacks_program(code: Option<i32>, said: &str) -> bool {
    const WORDS: [&str; 5] = [
        // docker, podman, kubectl, containerd: `exec: "pgrig": executable file not found in $PATH`
        "executable file not found",
        // kubectl and docker with a path: `exec: "/x/pgrig": stat /x/pgrig: no such file or directory`
        "no such file or directory: unknown",
        // srun: `error: execve(): pgrig: No such file or directory`
        "execve(): ",
        // mpirun: `mpirun was unable to find the specified executable file`
        "unable to find the specified executable file",
        // ip netns exec: `exec of "pgrig" failed: No such file or directory`
        "exec of \"",
    ];
    // A program that is there and may not be run is not lacking.
    let may_not = said.contains("Permission denied");
    code == Some(127) || !may_not && WORDS.iter().any(|words| said.contains(words))
}

/// Keeps an answer if there was a question.
fn fill<T>(asked: &mut HashMap<u32, Option<T>>, number: u32, answer: T) {
    if let Some(place) = asked.get_mut(&number) {
        *place = Some(answer);
    }
}

/// Reads until a greeting comes, or what is no banner.
pub(crate) fn greeting(input: &mut impl BufRead) -> Greeting {
    let mut greeting = Greeting { hello: None, banner: Vec::new(), too_much: None };
    let mut bytes = 0;
    loop {
        let line = match read_line(input, |_| OWN_LINE_BYTES_MAX) {
            Ok(Some(line)) => line,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Greeting { too_much: Some("a line of 64 KiB"), ..greeting };
            }
            Ok(None) | Err(_) => return greeting,
        };
        if let Some(hello) = HostGreeting::read(&line) {
            return Greeting { hello: Some(hello), ..greeting };
        }
        bytes += line.len();
        greeting.banner.push(line);
        if greeting.banner.len() > BANNER_LINES_MAX {
            return Greeting { too_much: Some("200 lines"), ..greeting };
        }
        if bytes > BANNER_BYTES_MAX {
            return Greeting { too_much: Some("256 KiB"), ..greeting };
        }
    }
}

/// Waits for threads that end with the pipes of a launcher, which is killed; a child of its own that
/// has them too does not hold the rig up.
pub(crate) fn join(threads: Vec<JoinHandle<()>>) {
    let deadline = Instant::now() + LAST_WORDS;
    for thread in threads {
        while !thread.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Status with which a launcher ended, as in "the launcher ended with exit code 255".
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_not_silent_while_the_rig_stands_still() {
        const S: u64 = 1_000_000_000;
        let own = |from_ns: u64, to_ns: u64| {
            let mut own = SilentGaps::new(GAP_MIN);
            own.add(SilentGap { from_ns: 12 * S, to_ns: 17 * S });
            own.between(from_ns, to_ns, to_ns)
        };
        let check = |heard_s: u64, now_s: u64, expected_s: u64| {
            assert_eq!(silent_ns(heard_s * S, now_s * S, own), expected_s * S, "{heard_s} {now_s}");
        };
        check(1, 5, 4);
        check(11, 17, 1);
        check(11, 22, 6);
        check(18, 23, 5);
    }

    #[test]
    fn launchers_say_in_their_own_ways_that_there_is_no_program() {
        let check = |code: i32, said: &str, expected: bool| {
            assert_eq!(lacks_program(Some(code), said), expected, "{code}: {said}");
        };
        check(127, "bash: line 1: pgrig: command not found", true);
        check(127, "env: 'pgrig': No such file or directory", true);
        check(
            126,
            "OCI runtime exec failed: exec failed: unable to start container process: exec: \"pgrig\": \
             executable file not found in $PATH: unknown",
            true,
        );
        check(
            126,
            "OCI runtime exec failed: exec failed: unable to start container process: exec: \
             \"/opt/pgrig\": stat /opt/pgrig: no such file or directory: unknown",
            true,
        );
        check(
            1,
            "error: Internal error occurred: error executing command in container: failed to exec in container: exec: \"pgrig\": executable file not found in $PATH",
            true,
        );
        check(2, "slurmstepd: error: execve(): pgrig: No such file or directory", true);
        check(134, "mpirun was unable to find the specified executable file, and therefore", true);
        check(255, "exec of \"pgrig\" failed: No such file or directory", true);
        check(255, "ssh: connect to host db1 port 22: Connection refused", false);
        check(1, "Error from server (NotFound): pods \"load-0\" not found", false);
        check(126, "permission denied", false);
        check(2, "slurmstepd: error: execve(): pgrig: Permission denied", false);
        check(255, "exec of \"/opt/pgrig\" failed: Permission denied", false);
        check(1, "Cannot open network namespace \"load1\": No such file or directory", false);
    }
}
