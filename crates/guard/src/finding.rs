//! Findings of a status: what its short answer rests on.

use std::fmt;

use serde::Serialize;

use crate::books::ExposureWindow;
use crate::event::called;
use crate::kinds::kinds;
use crate::status::{CONFIRM_MAX, ServerStatus};

/// The short answer of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusVerdict {
    /// Commits wait for as many standbys as asked for, these confirm, no window is open, and a guard runs.
    Covered,
    /// A commit may be acknowledged without the standbys that are asked for, or none is asked for.
    Exposed,
    /// The server does not answer.
    Unreachable,
    /// Too few standbys confirm: commits wait without an end.
    Stalled,
    /// As covered, and no guard runs: if the standbys fail, commits wait without an end.
    Unguarded,
    /// The server is a standby: it has no commits.
    Standby,
}

/// What a short answer rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)] // Each field is what its name says.
pub enum StatusFinding {
    /// The server does not answer.
    Unreachable,
    /// An exposure window is open.
    WindowOpen { window: u64, since: String },
    /// The server is a standby.
    Standby,
    /// A weaker setting is in force.
    Weaker { in_force: String, asked: String },
    /// No standby is asked for.
    NothingAsked,
    /// Commits do not wait, whatever the setting says.
    CommitsDoNotWait { synchronous_commit: String },
    /// The standbys that commits wait for do not confirm, or are too few.
    NotConfirmed { in_force: String, waiting: usize },
    /// No guard runs.
    NoGuard { in_force: String },
    /// All is well.
    Covered { in_force: String },
}

impl StatusFinding {
    pub(crate) fn of(server: Option<&ServerStatus>, windows: &[ExposureWindow]) -> StatusFinding {
        let Some(seen) = server else { return StatusFinding::Unreachable };
        let in_force = seen.in_force.clone();
        if let Some(open) = windows.last().filter(|window| window.closed.is_none()) {
            return StatusFinding::WindowOpen {
                window: open.opened.window,
                since: open.opened.at.clone(),
            };
        }
        match seen.synchronous_commit.as_str() {
            // A standby built from a base backup of a window has the lowered setting and the mark, and
            // no commit waits for it.
            _ if seen.is_in_recovery => StatusFinding::Standby,
            _ if seen.asked != in_force => {
                StatusFinding::Weaker { in_force, asked: seen.asked.clone() }
            }
            _ if in_force.is_empty() => StatusFinding::NothingAsked,
            "off" | "local" => StatusFinding::CommitsDoNotWait {
                synchronous_commit: seen.synchronous_commit.clone(),
            },
            _ if !seen.is_confirmed => {
                StatusFinding::NotConfirmed { in_force, waiting: seen.waiting }
            }
            _ if seen.guard.is_none() => StatusFinding::NoGuard { in_force },
            _ => StatusFinding::Covered { in_force },
        }
    }

    /// The short answer.
    pub fn verdict(&self) -> StatusVerdict {
        match self {
            StatusFinding::Unreachable => StatusVerdict::Unreachable,
            StatusFinding::WindowOpen { .. }
            | StatusFinding::Weaker { .. }
            | StatusFinding::NothingAsked
            | StatusFinding::CommitsDoNotWait { .. } => StatusVerdict::Exposed,
            StatusFinding::Standby => StatusVerdict::Standby,
            StatusFinding::NotConfirmed { .. } => StatusVerdict::Stalled,
            StatusFinding::NoGuard { .. } => StatusVerdict::Unguarded,
            StatusFinding::Covered { .. } => StatusVerdict::Covered,
        }
    }
}

kinds! { StatusFinding:
    Unreachable => "unreachable",
    WindowOpen => "window_open",
    Standby => "standby",
    Weaker => "weaker",
    NothingAsked => "nothing_asked",
    CommitsDoNotWait => "commits_do_not_wait",
    NotConfirmed => "not_confirmed",
    NoGuard => "no_guard",
    Covered => "covered",
}

impl fmt::Display for StatusFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusFinding::Unreachable => f.write_str("unreachable: the server does not answer"),
            StatusFinding::WindowOpen { window, since } => {
                write!(f, "exposed: window {window} is open since {since}")
            }
            StatusFinding::Standby => f.write_str("standby: the server has no commits of its own"),
            StatusFinding::Weaker { in_force, asked } => {
                write!(f, "exposed: {} is in force, and {asked} is asked for", called(in_force))
            }
            StatusFinding::NothingAsked => {
                f.write_str("exposed: synchronous_standby_names is empty, so no commit waits")
            }
            StatusFinding::CommitsDoNotWait { synchronous_commit } => write!(
                f,
                "exposed: synchronous_commit is {synchronous_commit} by default, so commits wait for \
                 no standby"
            ),
            StatusFinding::NotConfirmed { in_force, waiting } => write!(
                f,
                "stalled: the standbys of {in_force} have not confirmed the WAL of the moment within \
                 {} s; commits that wait: {waiting}",
                CONFIRM_MAX.as_secs()
            ),
            StatusFinding::NoGuard { in_force } => write!(
                f,
                "unguarded: commits wait for {in_force}, which confirm, and no guard runs"
            ),
            StatusFinding::Covered { in_force } => {
                write!(f, "covered: commits wait for {in_force}, which confirm, and a guard runs")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_that_wait_for_a_standby_that_confirms_are_covered() {
        let covered = ServerStatus {
            place: String::new(),
            is_in_recovery: false,
            guard: Some("process 1".to_owned()),
            asked: "s1".to_owned(),
            in_force: "s1".to_owned(),
            synchronous_commit: "on".to_owned(),
            is_confirmed: true,
            standbys: Vec::new(),
            missing: Vec::new(),
            waiting: 0,
        };
        let check = |change: &dyn Fn(&mut ServerStatus), expected: StatusVerdict, kind: &str| {
            let mut seen = covered.clone();
            change(&mut seen);
            let finding = StatusFinding::of(Some(&seen), &[]);
            assert_eq!((finding.verdict(), finding.kind()), (expected, kind));
            let word = serde_json::to_string(&expected).unwrap();
            assert!(finding.to_string().starts_with(word.trim_matches('"')), "{finding}");
        };
        let off =
            |seen: &mut ServerStatus| (seen.asked, seen.in_force) = (String::new(), String::new());
        check(&|_| (), StatusVerdict::Covered, "covered");
        check(&|seen| seen.in_force.clear(), StatusVerdict::Exposed, "weaker");
        check(&off, StatusVerdict::Exposed, "nothing_asked");
        for value in ["off", "local"] {
            let change = |seen: &mut ServerStatus| seen.synchronous_commit = value.to_owned();
            check(&change, StatusVerdict::Exposed, "commits_do_not_wait");
        }
        check(
            &|seen| seen.synchronous_commit = "remote_write".to_owned(),
            StatusVerdict::Covered,
            "covered",
        );
        check(&|seen| seen.is_confirmed = false, StatusVerdict::Stalled, "not_confirmed");
        check(&|seen| seen.guard = None, StatusVerdict::Unguarded, "no_guard");
        let standby = |seen: &mut ServerStatus| {
            (seen.is_in_recovery, seen.is_confirmed, seen.in_force) = (true, false, String::new());
        };
        check(&standby, StatusVerdict::Standby, "standby");
        assert_eq!(StatusFinding::of(None, &[]).verdict(), StatusVerdict::Unreachable);
    }
}
