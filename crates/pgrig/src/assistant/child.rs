//! A command of a call, as a process of its own: pgrig itself, in a session of its own, with the limits that it has on
//! a command line.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp::CallCourse;
use os::command::{ProcessCommand, ProcessOutput};
use rustix::process::Signal;

/// What a command has printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildOutcome {
    /// The exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) said: String,
}

/// What becomes of a command whose call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildPatience {
    /// It has a moment to print what it reads: a client that has sent its last request may still read.
    FinishesReading,
    /// It ends.
    EndsAtOnce,
}

impl ChildPatience {
    fn time(self) -> Duration {
        match self {
            ChildPatience::FinishesReading => Duration::from_secs(5),
            ChildPatience::EndsAtOnce => Duration::ZERO,
        }
    }
}

/// Time after the end of the call at which a command is killed. It ends by itself within 9 s of the first signal.
const KILLED_AFTER: Duration = Duration::from_millis(9_500);

/// Time after which a call is told to be running, where the command says nothing.
const QUIET: Duration = Duration::from_secs(10);

/// Time in which what was printed is read after the command has ended: somebody else may hold its streams.
const READ_TIME: Duration = Duration::from_secs(2);

/// Bytes of each stream that are kept.
const KEPT_MAX: usize = 8 << 20;

/// Pause between two looks.
const GLANCE: Duration = Duration::from_millis(20);

/// Runs a command to its end.
///
/// # Errors
/// The system's, if the command did not start.
pub(crate) fn run(
    program: &Path,
    words: &[String],
    course: &CallCourse,
    patience: ChildPatience,
) -> io::Result<ChildOutcome> {
    let command = ProcessCommand::new(program)
        .args(words)
        .inherit_env()
        .env("NO_COLOR", "1")
        .stdout(ProcessOutput::Pipe)
        .stderr(ProcessOutput::Pipe)
        // This thread waits for it.
        .parent_death_signal(Signal::TERM);
    let mut child = command.spawn()?;
    let out = child.stdout().map(KeptStream::keep);
    let err = child.stderr().map(KeptStream::keep);
    let mut quiet_since = Instant::now();
    let mut ended = None;
    let mut is_signalled = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if let Some(line) = err.as_ref().and_then(KeptStream::news) {
            course.tell(&line);
            quiet_since = Instant::now();
        } else if quiet_since.elapsed() >= QUIET {
            course.tell("still running");
            quiet_since = Instant::now();
        }
        if course.is_ended() {
            let since = *ended.get_or_insert_with(Instant::now);
            if !is_signalled && since.elapsed() >= patience.time() {
                // One that has ended by now is fine.
                let _ = child.signal(Signal::TERM);
                is_signalled = true;
            }
            if since.elapsed() >= KILLED_AFTER {
                break None;
            }
        }
        thread::sleep(GLANCE);
    };
    // One that has not ended is killed.
    drop(child);
    Ok(ChildOutcome {
        code: status.and_then(|status| status.code()),
        out: out.map(KeptStream::text).unwrap_or_default(), // The stream is a pipe.
        said: err.map(KeptStream::text).unwrap_or_default(), // As above.
    })
}

/// A stream that a thread reads to its end, so that its writer never waits.
struct KeptStream {
    reader: JoinHandle<()>,
    kept: Arc<Mutex<KeptText>>,
}

#[derive(Default)]
struct KeptText {
    bytes: Vec<u8>,
    /// The last line, until somebody has taken it.
    last: Option<String>,
}

impl KeptStream {
    fn keep(stream: impl Read + Send + 'static) -> KeptStream {
        let kept: Arc<Mutex<KeptText>> = Arc::default();
        let shared = Arc::clone(&kept);
        let reader = thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            loop {
                let mut line = Vec::new();
                let part = (&mut stream).take(LINE_MAX).read_until(b'\n', &mut line);
                if !part.is_ok_and(|bytes| bytes > 0) {
                    return;
                }
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT_MAX.saturating_sub(kept.bytes.len());
                kept.bytes.extend_from_slice(&line[..line.len().min(room)]);
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                if !text.is_empty() {
                    kept.last = Some(text);
                }
            }
        });
        KeptStream { reader, kept }
    }

    /// The last line, if it is a new one.
    fn news(&self) -> Option<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).last.take()
    }

    /// All of it, once its writers have ended.
    fn text(self) -> String {
        let began = Instant::now();
        while !self.reader.is_finished() && began.elapsed() < READ_TIME {
            thread::sleep(Duration::from_millis(1));
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept.bytes).into_owned()
    }
}

/// Bytes of a line that are read at once.
const LINE_MAX: u64 = 64 << 10;
