//! The moments of a timeline's actions: planned and actual.

use record::{Moment, Trial};
use spec::Study;

use crate::glance::trial_label;
use crate::view::{Outcome, Table};

/// Every action of every attempt, where any had a timeline.
pub(crate) fn table(study: &Study, trials: &[Trial]) -> Option<Table> {
    let columns =
        ["Trial", "#Attempt", "Action", "#Planned", "#Began", "#Ended", "#Late", "#Limit", ""];
    let note = "in seconds since the window opened; an action is late from the moment at which it could be \
                done, and one that is later than its limit makes the attempt void";
    let mut table = Table::new("Actions", note, &columns);
    for trial in trials {
        let Some(window) = trial.window else { continue };
        let at = |moment: Moment| seconds(moment.since(window.open));
        let unknown = || "–".to_owned();
        for one in &trial.actions {
            let (mark, word) = match (one.began, one.is_late()) {
                (Some(_), false) => (Outcome::Holds, "in time"),
                (Some(_), true) => (Outcome::Fails, "late"),
                (None, _) if one.skipped.is_some() => (Outcome::Unsure, "left out"),
                (None, _) => (Outcome::Fails, "not done"),
            };
            table.row([
                format!("{} {}", trial.number, trial_label(study, trial)),
                trial.attempt.to_string(),
                one.action.clone(),
                at(one.planned),
                one.began.map_or_else(unknown, at),
                one.ended.map_or_else(unknown, at),
                one.late_ns().map_or_else(unknown, seconds),
                seconds(one.limit_ns),
                format!("{} {word}", mark.symbol()),
            ]);
        }
    }
    table.folded = table.rows.len() > SHOWN_MAX;
    (!table.rows.is_empty()).then_some(table)
}

/// To the millisecond, in which moments are planned.
fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

/// More actions than these stand folded away.
const SHOWN_MAX: usize = 24;
