//! Crashes as a server's log tells of them: the server, or one of its processes, has ended in a way that
//! nobody wants.

use record::Moment;
use serde::{Deserialize, Serialize};

use super::Entry;

/// A line of a server's log by which a crash, or damage to its data, is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashSign {
    /// Time at which the server logged it.
    pub at: Moment,
    /// The server.
    pub node: String,
    /// The kind.
    pub kind: CrashKind,
    /// The words.
    pub text: String,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrashKind {
    /// A process of the server was ended by a signal, or took the others along when it ended.
    Process,
    /// The server gave up with a PANIC.
    Panic,
    /// The server starts, and finds that it was not shut down.
    Interrupted,
    /// Data or an index are damaged (class XX, data_corrupted and index_corrupted).
    Damage,
}

impl CrashKind {
    /// The kind of an entry of a log, if it tells of a crash.
    pub(crate) fn of(entry: &Entry) -> Option<CrashKind> {
        match (entry.severity.as_str(), entry.sqlstate.as_str()) {
            ("PANIC", _) => return Some(CrashKind::Panic),
            (_, "XX001" | "XX002") => return Some(CrashKind::Damage),
            _ => {}
        }
        // What sessions say may have any text.
        match ["postmaster", "startup"].contains(&entry.backend_type.as_str()) {
            true => CrashKind::of_message(&entry.message),
            false => None,
        }
    }

    fn of_message(message: &str) -> Option<CrashKind> {
        let ends = |words: &str| message.contains(" (PID ") && message.contains(words);
        let begins = |words: &str| message.starts_with(words);
        if ends(") was terminated by signal ")
            || begins("all server processes terminated")
            || begins("terminating any other active server processes")
            || begins("aborting startup due to ")
            || begins("shutting down due to startup process failure")
        {
            return Some(CrashKind::Process);
        }
        begins("database system was interrupted").then_some(CrashKind::Interrupted)
    }
}

/// The lines of a log for people by which a crash or damage is known, with their kinds.
pub fn crash_lines(log: &str) -> Vec<(CrashKind, &str)> {
    let of_line = |line: &str| {
        let (before, message) = line.split_once(":  ")?;
        let severity = before.rsplit(' ').next()?;
        match severity {
            "PANIC" => Some(CrashKind::Panic),
            "LOG" | "FATAL" => CrashKind::of_message(message),
            "ERROR" | "WARNING" => {
                let is_damaged = ["invalid page in block ", "could not read block "];
                let begins = |words: &&str| message.starts_with(*words);
                is_damaged.iter().any(begins).then_some(CrashKind::Damage)
            }
            _ => None,
        }
    };
    log.lines().filter_map(|line| Some((of_line(line)?, line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_known_by_what_the_server_says_and_not_by_what_sessions_say() {
        let check = |severity: &str, sqlstate: &str, from: &str, message: &str, expected| {
            let entry = Entry {
                severity: severity.into(),
                sqlstate: sqlstate.into(),
                message: message.into(),
                backend_type: from.into(),
                ..Entry::default()
            };
            assert_eq!(CrashKind::of(&entry), expected, "{message}");
        };
        use CrashKind::{Damage, Interrupted, Panic, Process};
        let killed = "server process (PID 99) was terminated by signal 9: Killed";
        check("LOG", "00000", "postmaster", killed, Some(Process));
        check("LOG", "00000", "client backend", killed, None);
        let checkpointer = "checkpointer process (PID 99) was terminated by signal 11: x";
        check("LOG", "00000", "postmaster", checkpointer, Some(Process));
        let all = "all server processes terminated; reinitializing";
        check("LOG", "00000", "postmaster", all, Some(Process));
        let interrupted = "database system was interrupted; last known up at 2026-11-25";
        check("LOG", "00000", "startup", interrupted, Some(Interrupted));
        check("PANIC", "53100", "walwriter", "could not write to file", Some(Panic));
        check("ERROR", "XX001", "client backend", "invalid page in block 10", Some(Damage));
        check("ERROR", "23505", "client backend", "duplicate key", None);
        check("LOG", "00000", "startup", "database system was shut down at 2026-11-25", None);
    }

    #[test]
    fn the_log_for_people_says_the_same() {
        let log = "2026-11-25 15:38:58.1 UTC [7] LOG:  checkpointer process (PID 9) was terminated \
            by signal 9: Killed\n2026-11-25 15:38:58.2 UTC [7] LOG:  all server processes \
            terminated; reinitializing\n2026-11-25 15:38:58.3 UTC [8] ERROR:  invalid page in block 3 \
            of relation base/5/1\n2026-11-25 15:38:58.4 UTC [8] PANIC:  x\nSTATEMENT:  SELECT \
            'LOG:  all server processes terminated'\n2026 [9] LOG:  database system is ready\n";
        let kinds: Vec<CrashKind> = crash_lines(log).into_iter().map(|(kind, _)| kind).collect();
        use CrashKind::{Damage, Panic, Process};
        assert_eq!(kinds, [Process, Process, Damage, Panic]);
    }
}
