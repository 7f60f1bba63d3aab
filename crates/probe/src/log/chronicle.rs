//! Log entries → marks: checkpoints, autovacuum, errors, lock waits, crashes and restarts, which
//! standby is synchronous.
//!
//! Limits: messages are recognised in English (`lc_messages = C`); another language gives errors
//! by their SQLSTATE and nothing else. A flood of one error becomes one mark a second, and after
//! [`MARKS_MAX`] marks the rest is only counted.

use std::collections::BTreeMap;

use record::{MarkKind, Moment, TimelineMark};
use serde::{Deserialize, Serialize};

use super::Entry;
use super::crash::{CrashKind, CrashSign};

/// More marks than this no timeline can show.
const MARKS_MAX: usize = 10_000;

/// More signs of crashes and damage say no more.
const CRASHES_MAX: usize = 1_000;

/// Errors of one kind within this time become one mark.
const FLOOD_NS: u64 = 1_000_000_000;

/// Longest text of a mark, in characters.
const TEXT_MAX: usize = 200;

/// Messages of a server that stops, crashes, starts or changes its role.
const LIFE: [&str; 13] = [
    "received smart shutdown request",
    "received fast shutdown request",
    "received immediate shutdown request",
    "received promote request",
    "terminating any other active server processes",
    "all server processes terminated; reinitializing",
    "database system was not properly shut down",
    "database system was interrupted",
    "database system is ready to accept",
    "database system is shut down",
    "redo done at",
    "archive recovery complete",
    "started streaming WAL from primary",
];

/// A standby that commits wait for from a moment on, as the log of its primary says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandbyTakeover {
    /// Time at which the primary logged it.
    pub at: Moment,
    /// The primary.
    pub node: String,
    /// The standby, by its application_name.
    pub standby: String,
}

/// The marks that one node's log has given so far.
#[derive(Debug)]
pub(crate) struct Chronicle {
    node: String,
    /// The application whose own errors are not the server's story.
    own_application: &'static str,
    marks: Vec<TimelineMark>,
    takeovers: Vec<StandbyTakeover>,
    crashes: Vec<CrashSign>,
    checkpoint: Option<(Moment, String)>,
    floods: BTreeMap<String, Flood>,
    dropped: u64,
}

#[derive(Debug)]
struct Flood {
    began: Moment,
    mark: usize,
    count: u64,
}

impl Chronicle {
    pub(crate) fn of(node: &str, own_application: &'static str) -> Chronicle {
        Chronicle {
            node: node.to_owned(),
            own_application,
            marks: Vec::new(),
            takeovers: Vec::new(),
            crashes: Vec::new(),
            checkpoint: None,
            floods: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Takes one entry that was written at `at`.
    pub(crate) fn take(&mut self, at: Moment, entry: &Entry) {
        let message = entry.message.as_str();
        if let (Some(kind), ..CRASHES_MAX) = (CrashKind::of(entry), self.crashes.len()) {
            // The statement of a process that died stands in the detail.
            let text = match entry.detail.as_str() {
                "" => first_line(message),
                detail => first_line(&format!("{message}; {}", detail.replace('\n', " "))),
            };
            let node = self.node();
            self.crashes.push(CrashSign { at, node, kind, text });
        }
        if entry.application == self.own_application {
            return;
        }
        if is_error(entry) {
            let key = format!("{} {}", entry.severity, entry.sqlstate);
            let text = format!("{key}: {}", first_line(message));
            self.error(at, key, text);
        } else if let Some((what, reason)) = checkpoint_start(message) {
            self.checkpoint = Some((at, format!("{what} ({})", reason.trim())));
        } else if let Some(complete) = CheckpointEnd::parse(message) {
            self.checkpoint_end(at, &complete);
        } else if let Some(text) = message.strip_prefix("automatic ") {
            // An entry that tells no time is a moment.
            let length_ns = seconds_after(message, "elapsed: ").unwrap_or(0);
            let text = first_line(text);
            let what = text.split_once(": index scans").map_or(&*text, |(what, _)| what);
            let (what, manner) = match what.strip_prefix("aggressive ") {
                Some(what) => (what, " (aggressive)"),
                None => (what, ""),
            };
            let removed = removed_rows(message).unwrap_or_default(); // an analyze removes none
            self.ended(at, length_ns, MarkKind::Autovacuum, format!("auto{what}{manner}{removed}"));
        } else if message.starts_with("process ") && message.contains(" still waiting for ") {
            let text = format!("lock wait: {}", first_line(message));
            self.error(at, "lock wait".to_owned(), text);
        } else if let Some(standby) = synchronous_standby(message) {
            let (node, standby) = (self.node(), standby.to_owned());
            self.takeovers.push(StandbyTakeover { at, node, standby });
            self.instant(at, MarkKind::Replication, message);
        } else if is_life(message) {
            self.instant(at, MarkKind::ServerError, message);
        }
    }

    /// The standbys that commits came to wait for, in order of time.
    pub(crate) fn take_takeovers(&mut self) -> Vec<StandbyTakeover> {
        std::mem::take(&mut self.takeovers)
    }

    /// The signs of crashes and damage, in order of time.
    pub(crate) fn take_crashes(&mut self) -> Vec<CrashSign> {
        std::mem::take(&mut self.crashes)
    }

    /// All marks, and what a reader should know of them. A checkpoint that is still going on lasts
    /// until `end`.
    pub(crate) fn finish(mut self, end: Moment) -> (Vec<TimelineMark>, Option<String>) {
        if let Some((began, what)) = self.checkpoint.take() {
            let text = format!("{what}, not complete at the end");
            self.ended(end, end.since(began), MarkKind::Checkpoint, text);
        }
        let note = (self.dropped > 0).then(|| {
            format!("{}: {} more log entries than a timeline can show", self.node, self.dropped)
        });
        (self.marks, note)
    }

    fn checkpoint_end(&mut self, at: Moment, complete: &CheckpointEnd<'_>) {
        let (began, what) = self.checkpoint.take().unwrap_or_else(|| {
            let began = Moment(at.0.saturating_sub(complete.total_ns));
            (began, complete.what.to_owned())
        });
        let text = format!(
            "{what}: {} buffers in {:.1} s",
            complete.buffers,
            complete.total_ns as f64 / 1e9
        );
        self.ended(at, at.since(began), MarkKind::Checkpoint, text);
    }

    fn instant(&mut self, at: Moment, kind: MarkKind, message: &str) {
        let text = first_line(message);
        self.push(TimelineMark { at, length_ns: 0, kind, node: self.node(), text });
    }

    /// Something that lasted until `at`.
    fn ended(&mut self, at: Moment, length_ns: u64, kind: MarkKind, text: String) {
        let began = Moment(at.0.saturating_sub(length_ns));
        let length_ns = at.since(began);
        self.push(TimelineMark { at: began, length_ns, kind, node: self.node(), text });
    }

    fn error(&mut self, at: Moment, key: String, text: String) {
        if let Some(flood) = self.floods.get_mut(&key)
            && at.since(flood.began) < FLOOD_NS
        {
            flood.count += 1;
            if let Some(mark) = self.marks.get_mut(flood.mark) {
                mark.text = format!("{text} (×{} within a second)", flood.count);
            }
            return;
        }
        self.floods.insert(key, Flood { began: at, mark: self.marks.len(), count: 1 });
        self.push(TimelineMark {
            at,
            length_ns: 0,
            kind: MarkKind::ServerError,
            node: self.node(),
            text,
        });
    }

    fn push(&mut self, mark: TimelineMark) {
        if self.marks.len() < MARKS_MAX {
            self.marks.push(mark);
        } else {
            self.dropped += 1;
        }
    }

    fn node(&self) -> String {
        self.node.clone()
    }
}

/// The class of an SQLSTATE tells an error in every language: 00 is success, 01 a warning, 02 no
/// data. A log entry of an internal problem carries a code too, but only LOG as severity.
fn is_error(entry: &Entry) -> bool {
    match entry.severity.as_str() {
        "ERROR" | "FATAL" | "PANIC" => true,
        "LOG" | "WARNING" | "NOTICE" | "INFO" | "DEBUG" => false,
        // An entry without a code is no error.
        _ => !["", "00", "01", "02"].contains(&entry.sqlstate.get(..2).unwrap_or_default()),
    }
}

fn is_life(message: &str) -> bool {
    LIFE.iter().any(|start| message.starts_with(start))
        || (message.contains(" (PID ") && message.contains(") was terminated by signal "))
}

/// The standby for which commits wait from now on, if that is what a server says of it in its log.
fn synchronous_standby(message: &str) -> Option<&str> {
    let name = message.strip_prefix("standby \"")?;
    Some(name.split_once("\" is now a synchronous standby ")?.0)
}

/// `checkpoint starting: time` → what and why.
fn checkpoint_start(message: &str) -> Option<(&str, &str)> {
    let (what, reason) = message.split_once(" starting: ")?;
    ["checkpoint", "restartpoint"].contains(&what).then_some((what, reason))
}

struct CheckpointEnd<'a> {
    what: &'a str,
    buffers: u64,
    total_ns: u64,
}

impl CheckpointEnd<'_> {
    fn parse(message: &str) -> Option<CheckpointEnd<'_>> {
        let (what, rest) = message.split_once(" complete:")?;
        ["checkpoint", "restartpoint"].contains(&what).then_some(())?;
        // PostgreSQL 19 repeats why it was made: `checkpoint complete: time: wrote …`.
        let (_, rest) = rest.split_once(" wrote ")?;
        Some(CheckpointEnd {
            what,
            buffers: rest.split(' ').next()?.parse().ok()?,
            total_ns: seconds_after(rest, "total=")?,
        })
    }
}

/// The decimal seconds that follow `key`, in nanoseconds.
fn seconds_after(text: &str, key: &str) -> Option<u64> {
    let number = text.split_once(key)?.1.split(' ').next()?;
    let seconds: f64 = number.parse().ok()?;
    (0.0..1e9).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

fn first_line(text: &str) -> String {
    // The first line of an empty text is empty.
    text.lines().next().unwrap_or_default().chars().take(TEXT_MAX).collect()
}

/// What an autovacuum removed, and what it could not: `: 900 rows removed, 30 dead ones kept`.
fn removed_rows(message: &str) -> Option<String> {
    let line = message.lines().find_map(|line| line.trim().strip_prefix("tuples: "))?;
    let count = |after: &str| {
        let number = line.split(", ").find_map(|part| part.strip_suffix(after))?;
        number.parse::<u64>().ok()
    };
    let removed = count(" removed")?;
    let kept = count(" are dead but not yet removable").filter(|kept| *kept > 0);
    let kept = kept.map_or(String::new(), |kept| format!(", {kept} dead ones kept"));
    Some(format!(": {removed} rows removed{kept}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(severity: &str, sqlstate: &str, message: &str) -> Entry {
        Entry {
            severity: severity.into(),
            sqlstate: sqlstate.into(),
            message: message.into(),
            ..Entry::default()
        }
    }

    fn log(message: &str) -> Entry {
        entry("LOG", "00000", message)
    }

    /// Feeds entries that were written `.0` milliseconds into the run, ends it after 60 s, and
    /// shows each mark as "from–to kind text", in milliseconds.
    fn check(entries: &[(u64, Entry)], expected: &[&str]) {
        let mut chronicle = Chronicle::of("primary", "pgrig probe");
        for (ms, entry) in entries {
            chronicle.take(Moment(ms * 1_000_000), entry);
        }
        let (marks, _) = chronicle.finish(Moment(60_000_000_000));
        let got: Vec<String> = marks
            .iter()
            .map(|mark| {
                let from = mark.at.0 / 1_000_000;
                let to = (mark.at.0 + mark.length_ns) / 1_000_000;
                format!("{from}–{to} {:?} {}", mark.kind, mark.text)
            })
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_crash_has_the_statement_that_the_process_ran() {
        let mut chronicle = Chronicle::of("primary", "pgrig probe");
        let died = "server process (PID 99) was terminated by signal 11: Segmentation fault";
        let entry = Entry {
            detail: "Failed process was running: SELECT\n crash()".into(),
            backend_type: "postmaster".into(),
            ..log(died)
        };
        chronicle.take(Moment(1), &entry);
        let expected = format!("{died}; Failed process was running: SELECT  crash()");
        assert_eq!(chronicle.take_crashes()[0].text, expected);
    }

    const COMPLETE: &str = "checkpoint complete: wrote 1234 buffers (7.5%); 0 WAL file(s) added, \
        0 removed, 1 recycled; write=2.693 s, sync=0.120 s, total=3.000 s; sync files=12, \
        longest=0.050 s, average=0.010 s; distance=16384 kB, estimate=16384 kB";

    #[test]
    fn a_checkpoint_lasts_from_its_start_to_its_completion() {
        check(
            &[(1_000, log("checkpoint starting: immediate force wait")), (4_001, log(COMPLETE))],
            &["1000–4001 Checkpoint checkpoint (immediate force wait): 1234 buffers in 3.0 s"],
        );
    }

    #[test]
    fn a_checkpoint_that_was_going_on_before_or_is_still_going_on() {
        check(
            &[(4_000, log(COMPLETE))],
            &["1000–4000 Checkpoint checkpoint: 1234 buffers in 3.0 s"],
        );
        check(
            &[(59_000, log("checkpoint starting: time"))],
            &["59000–60000 Checkpoint checkpoint (time), not complete at the end"],
        );
        // PostgreSQL 18's wording.
        let newer = COMPLETE
            .replace("buffers (7.5%);", "buffers (7.5%), wrote 3 SLRU buffers;")
            .replace("checkpoint", "restartpoint");
        check(
            &[(3_500, log(&newer))],
            &["500–3500 Checkpoint restartpoint: 1234 buffers in 3.0 s"],
        );
        // PostgreSQL 19's.
        let newest = COMPLETE.replace("complete: wrote", "complete: fast force wait: wrote");
        check(
            &[(1_000, log("checkpoint starting: fast force wait")), (4_001, log(&newest))],
            &["1000–4001 Checkpoint checkpoint (fast force wait): 1234 buffers in 3.0 s"],
        );
    }

    #[test]
    fn autovacuum_lasts_as_long_as_it_says() {
        let vacuum = "automatic vacuum of table \"bank.public.accounts\": index scans: 1\n\
            pages: 0 removed, 164 remain\n\ttuples: 900 removed, 100 remain, 30 are dead but \
            not yet removable\nsystem usage: CPU: user: 0.10 s, system: 0.05 s, \
            elapsed: 1.50 s";
        let aggressive = "automatic aggressive vacuum of table \"a.b.c\": index scans: 0\nsystem usage: CPU: \
            user: 0.10 s, system: 0.00 s, elapsed: 0.25 s";
        let analyze = "automatic analyze of table \"bank.public.accounts\"\nsystem usage: CPU: \
            user: 0.10 s, system: 0.00 s, elapsed: 0.25 s";
        check(
            &[(5_000, log(vacuum)), (6_000, log(analyze)), (7_000, log(aggressive))],
            &[
                "3500–5000 Autovacuum autovacuum of table \"bank.public.accounts\": 900 rows removed, \
                 30 dead ones kept",
                "5750–6000 Autovacuum autoanalyze of table \"bank.public.accounts\"",
                "6750–7000 Autovacuum autovacuum of table \"a.b.c\" (aggressive)",
            ],
        );
    }

    #[test]
    fn errors_crashes_restarts_and_lock_waits() {
        let waiting = "process 7 still waiting for ShareLock on transaction 9 after 1000.1 ms";
        check(
            &[
                (1, entry("ERROR", "23505", "duplicate key value\nmore")),
                (2, entry("LOG", "00000", "statement: select 1")),
                (3, entry("WARNING", "01000", "there is no transaction in progress")),
                (4, log("server process (PID 99) was terminated by signal 9: Killed")),
                (5, log("all server processes terminated; reinitializing")),
                (6, log("database system is ready to accept connections")),
                (7, entry("PANIC", "53100", "could not write to file")),
                (8, log(waiting)),
                (9, entry("FEHLER", "22012", "Division durch Null")),
            ],
            &[
                "1–1 ServerError ERROR 23505: duplicate key value",
                "4–4 ServerError server process (PID 99) was terminated by signal 9: Killed",
                "5–5 ServerError all server processes terminated; reinitializing",
                "6–6 ServerError database system is ready to accept connections",
                "7–7 ServerError PANIC 53100: could not write to file",
                &format!("8–8 ServerError lock wait: {waiting}"),
                "9–9 ServerError FEHLER 22012: Division durch Null",
            ],
        );
    }

    #[test]
    fn a_standby_that_becomes_synchronous() {
        let message = "standby \"standby2\" is now a synchronous standby with priority 2";
        check(&[(7, log(message))], &[&format!("7–7 Replication {message}")]);
        assert_eq!(synchronous_standby(message), Some("standby2"));
        assert_eq!(synchronous_standby("standby \"a\" is now a candidate"), None);
    }

    #[test]
    fn a_flood_of_one_error_is_one_mark_a_second() {
        let error = || entry("ERROR", "40001", "could not serialize access");
        check(
            &[(0, error()), (1, error()), (999, error()), (1_500, error())],
            &[
                "0–0 ServerError ERROR 40001: could not serialize access (×3 within a second)",
                "1500–1500 ServerError ERROR 40001: could not serialize access",
            ],
        );
    }

    #[test]
    fn the_probe_does_not_report_its_own_errors() {
        let mut own = entry("ERROR", "42501", "permission denied");
        own.application = "pgrig probe".into();
        check(&[(1, own)], &[]);
    }

    #[test]
    fn marks_are_bounded_and_the_rest_is_counted() {
        let mut chronicle = Chronicle::of("n", "pgrig probe");
        for i in 0..MARKS_MAX as u64 + 5 {
            chronicle.take(Moment(i), &log("database system is shut down"));
        }
        let (marks, note) = chronicle.finish(Moment(0));
        assert_eq!(marks.len(), MARKS_MAX);
        assert_eq!(note.unwrap(), "n: 5 more log entries than a timeline can show");
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(
            start in prop_oneof![
                Just("checkpoint complete: wrote 1 buffers; total="),
                Just("automatic vacuum of table elapsed: "),
                Just("checkpoint starting: "), Just("process 1 still waiting for "), Just(""),
            ],
            rest in ".{0,40}", at in 0u64..5_000_000_000,
            severity in "[A-Z]{0,5}", state in ".{0,6}",
        ) {
            let mut chronicle = Chronicle::of("n", "pgrig probe");
            let message = format!("{start}{rest}");
            chronicle.take(Moment(at), &entry(&severity, &state, &message));
            chronicle.take(Moment(at / 2), &log(&message));
            chronicle.finish(Moment(at / 3));
        }
    }
}
