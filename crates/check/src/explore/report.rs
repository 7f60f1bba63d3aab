//! The report on what an exploration has seen, and what it has not.

use std::collections::BTreeMap;
use std::time::Duration;

use crash::{LogCoverage, LossPattern, StatePlan, WriteKind};
use fault::disk::RequestLog;
use record::{Note, NoteKind};
use spec::{StateExploration, metrics};

use crate::explore::fate::StateFate;
use crate::explore::spent::ExplorationTime;
use crate::explore::witness::MinimalLoss;
use crate::explore::{Explored, Seen, place};
use crate::outcome::CheckOutcome;

pub(super) fn figures(
    explored: &Explored<'_>,
    node: &str,
    recorded: &[RequestLog],
    seen: &[Seen],
    took: Duration,
    outcome: &mut CheckOutcome,
) {
    let fates = || seen.iter().flat_map(|one| [&one.fate].into_iter().chain(&one.second));
    let count = |is: fn(&StateFate) -> bool| fates().filter(|fate| is(fate)).count() as f64;
    let states = count(|_| true);
    let kinds: std::collections::BTreeSet<WriteKind> =
        seen.iter().map(|one| one.planned.kind).collect();
    for (metric, value) in [
        (&metrics::EXPLORE_STATES, states),
        (&metrics::EXPLORE_SECOND, seen.iter().map(|one| one.second.len()).sum::<usize>() as f64),
        (&metrics::EXPLORE_KINDS, kinds.len() as f64),
        (&metrics::EXPLORE_RATE, states / took.as_secs_f64().max(1e-9)),
        (&metrics::EXPLORE_WRITES, explored.log.writes() as f64),
        (&metrics::EXPLORE_FLUSHES, explored.log.flushes() as f64),
        (&metrics::EXPLORE_LOG_BYTES, recorded.iter().map(|one| one.bytes).sum::<u64>() as f64),
    ] {
        outcome.set(metric, node, value);
        outcome.set(metric, "", value);
    }
}

/// The figures that claims rest on. Too few states without a failure say nothing.
pub(super) fn verdict(
    explore: &StateExploration,
    node: &str,
    seen: &[Seen],
    outcome: &mut CheckOutcome,
) {
    let fates = || seen.iter().flat_map(|one| [&one.fate].into_iter().chain(&one.second));
    let count = |is: fn(&StateFate) -> bool| fates().filter(|fate| is(fate)).count();
    let (states, failed) = (count(|_| true), count(StateFate::has_failed));
    if failed == 0 && states < explore.least as usize {
        outcome.note(format!(
            "none of {states} states failed, and nothing rests on fewer than {}: no figure says how many \
             failed (least = {states} would have it said)",
            explore.least
        ));
        return;
    }
    for (metric, count) in [
        (&metrics::EXPLORE_FAILED, failed),
        (
            &metrics::EXPLORE_NOT_STARTED,
            count(|fate| matches!(fate, StateFate::NotStarted(_) | StateFate::NotMounted(_))),
        ),
        (&metrics::EXPLORE_NOT_MOUNTED, count(|fate| matches!(fate, StateFate::NotMounted(_)))),
        (&metrics::EXPLORE_LOST, count(|fate| matches!(fate, StateFate::Lost(..)))),
        (&metrics::EXPLORE_CORRUPT, count(|fate| matches!(fate, StateFate::Damaged(_)))),
    ] {
        outcome.set(metric, node, count as f64);
        outcome.set(metric, "", count as f64);
    }
}

/// What each state is compared with, of what was acknowledged.
pub(super) enum ComparedTables {
    /// All that was, but what is in these tables, which the load wrote and nothing follows, with the rows that were
    /// written.
    AllBut(BTreeMap<String, i64>),
    /// The tables of the ledger. The server could not say which others the load wrote.
    Unknown,
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// Tables that the load wrote and that nothing follows.
pub(super) struct UnfollowedTables {
    /// What the states are compared with.
    pub(super) tables: ComparedTables,
    /// Tables whose query does not complain when every row is gone.
    pub(super) blind: Vec<String>,
}

/// The tables in which an acknowledged change may be missing without anybody seeing it.
pub(super) fn followed(unfollowed: &UnfollowedTables, outcome: &mut CheckOutcome) {
    let tables = match &unfollowed.tables {
        ComparedTables::AllBut(tables) => tables,
        ComparedTables::Unknown => {
            outcome.note(
                "the tables that the load wrote are not known: the server could not be asked, or does not count \
                 rows (track_counts)",
            );
            return;
        }
        ComparedTables::Nothing(why) => {
            outcome.set(&metrics::EXPLORE_UNCOMPARED, "", 1.0);
            outcome.note(format!("no state was compared with what was acknowledged: {why}"));
            return;
        }
    };
    for (table, rows) in tables {
        outcome.set(&metrics::EXPLORE_UNFOLLOWED, table, *rows as f64);
    }
    for table in &unfollowed.blind {
        outcome.set(&metrics::EXPLORE_UNFOLLOWED, table, 0.0);
        outcome.note(format!(
            "the query that is to follow {table} does not complain when every row of it is gone"
        ));
    }
    let count = tables.len() + unfollowed.blind.len();
    outcome.set(&metrics::EXPLORE_UNFOLLOWED, "", count as f64);
    if !tables.is_empty() {
        let names = tables.iter().map(|(table, rows)| match rows {
            0 => format!("{table} (emptied or written anew)"),
            rows => format!("{table} ({rows} rows)"),
        });
        outcome.note(format!(
            "tables that the load writes and neither its ledger nor a query follows, where an acknowledged \
             change may be missing unseen: {}",
            list(names)
        ));
    }
}

/// The kinds of writes and the ways, with the states of each, and how much of the log they are about.
pub(super) fn coverage(
    explored: &Explored<'_>,
    node: &str,
    kinds: &[Vec<WriteKind>],
    plan: &StatePlan,
    seen: &[Seen],
    outcome: &mut CheckOutcome,
) {
    let looked_at = seen.iter().map(|one| &one.planned);
    let reach = LogCoverage::of(explored.log, explored.flushes, plan, looked_at);
    let (pairs, pairs_met) = reach.kinds_and_ways();
    for (metric, value) in [
        (&metrics::EXPLORE_WRITES_MET, reach.writes_met as f64),
        (&metrics::EXPLORE_INTERVALS, reach.intervals as f64),
        (&metrics::EXPLORE_INTERVALS_MET, reach.intervals_met as f64),
        (&metrics::EXPLORE_PAIRS, pairs as f64),
        (&metrics::EXPLORE_PAIRS_MET, pairs_met as f64),
        (&metrics::EXPLORE_POSSIBLE, reach.states_log10),
    ] {
        outcome.set(metric, node, value);
        outcome.set(metric, "", value);
    }
    let mut by_way: BTreeMap<LossPattern, usize> = BTreeMap::new();
    for (kind, ways) in &reach.states {
        let sum = ways.values().sum::<usize>();
        outcome.set(&metrics::EXPLORE_OF_KIND, kind.words(), sum as f64);
        ways.iter().for_each(|(way, count)| *by_way.entry(*way).or_default() += count);
    }
    for (way, count) in &by_way {
        outcome.set(&metrics::EXPLORE_OF_WAY, way.words(), *count as f64);
    }
    for (way, kinds) in reach.ways_not_met() {
        let kinds = kinds.iter().map(|kind| kind.words().to_owned());
        outcome.note(format!("no state has \u{201c}{}\u{201d} of: {}", way.words(), list(kinds)));
    }
    for way in reach.ways_impossible() {
        outcome.note(format!(
            "no state can have \u{201c}{}\u{201d}: the log does not have {}",
            way.words(),
            way.needs()
        ));
    }
    let missing = place::missing(kinds);
    if !missing.is_empty() {
        let names = missing.iter().map(|kind| kind.words().to_owned());
        outcome.note(format!("kinds that the log has no write of, so not seen: {}", list(names)));
    }
    let second: usize = seen.iter().map(|one| one.second.len()).sum();
    outcome.note(format!(
        "{} states planned and {second} of second cuts; {} were drawn and had the content of another \
         one",
        plan.states.len(),
        plan.duplicates
    ));
}

/// The time of a state, by what was done with it.
pub(super) fn time(spent: ExplorationTime, seen: &[Seen], outcome: &mut CheckOutcome) {
    let states = seen.iter().map(|one| 1 + one.second.len()).sum();
    outcome.note(format!("a state took, on average: {}", spent.each(states)));
}

/// States that failed after a second cut.
pub(super) fn second_cuts(seen: &[Seen], outcome: &mut CheckOutcome) {
    for one in seen {
        for fate in one.second.iter().filter(|fate| fate.has_failed()).take(1) {
            let number = one.number;
            let text = format!(
                "state {number}, recovered with the study's settings and cut again meanwhile: {fate}"
            );
            outcome.notes.push(Note::new(NoteKind::Ledger, text));
        }
    }
}

/// Notes the reasons why states failed, and the least that has to be lost for it.
pub(super) fn witnesses(
    explored: &Explored<'_>,
    witnesses: &[MinimalLoss],
    outcome: &mut CheckOutcome,
) {
    for MinimalLoss { number, state, fate } in witnesses {
        outcome.notes.push(Note::new(NoteKind::Ledger, format!("state {number}: {fate}")));
        for line in explored.loss(state) {
            outcome.notes.push(Note::new(NoteKind::Ledger, format!("state {number}: {line}")));
        }
    }
}

fn list(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crash::{DiskState, PlannedState};

    use super::*;

    #[test]
    fn too_few_states_without_a_failure_say_nothing() {
        let lost = StateFate::Lost(1, "client 3".to_owned());
        let check = |fates: &[StateFate], second: &[StateFate], expected: Option<f64>| {
            let explore = StateExploration {
                node: None,
                states: 10,
                least: 4,
                second_cuts: 1,
                complaints: None,
                followed: BTreeMap::new(),
            };
            let planned = PlannedState {
                state: DiskState { cut: 0, lost: Vec::new() },
                kind: WriteKind::Heap,
                way: LossPattern::ALL[0],
                write: None,
            };
            let mut seen: Vec<Seen> = Vec::new();
            for (number, fate) in fates.iter().enumerate() {
                let (planned, fate) = (planned.clone(), fate.clone());
                seen.push(Seen { number, planned, fate, second: Vec::new() });
            }
            seen[0].second = second.to_vec();
            let mut outcome = CheckOutcome::default();
            verdict(&explore, "primary", &seen, &mut outcome);
            let failed = outcome
                .figures
                .iter()
                .find(|one| one.metric == &metrics::EXPLORE_FAILED && one.scope.is_empty());
            assert_eq!(failed.map(|one| one.value), expected, "{fates:?} {second:?}");
        };
        let sound = vec![StateFate::Sound; 4];
        check(&sound, &[], Some(0.0));
        check(&sound[..3], &[], None);
        // A second cut is a state as well.
        check(&sound[..3], &sound[..1], Some(0.0));
        // One failure is enough, however few there are.
        check(std::slice::from_ref(&lost), &[], Some(1.0));
        check(&sound[..1], &[lost], Some(1.0));
    }
}
