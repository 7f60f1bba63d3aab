//! The report on what an exploration has seen, and what it has not.

use std::collections::BTreeMap;
use std::time::Duration;

use crash::{Kind, Plan, Way};
use fault::disk::Recorded;
use record::{Note, NoteKind};
use spec::metrics;

use crate::explore::fate::Fate;
use crate::explore::spent::Spent;
use crate::explore::witness::Witness;
use crate::explore::{Explored, Seen, place};
use crate::outcome::Outcome;

pub(super) fn figures(
    explored: &Explored<'_>,
    node: &str,
    recorded: &[Recorded],
    seen: &[Seen],
    took: Duration,
    outcome: &mut Outcome,
) {
    let fates = || seen.iter().flat_map(|one| [&one.fate].into_iter().chain(&one.second));
    let count = |is: fn(&Fate) -> bool| fates().filter(|fate| is(fate)).count() as f64;
    let states = count(|_| true);
    let kinds: std::collections::BTreeSet<Kind> = seen.iter().map(|one| one.planned.kind).collect();
    for (metric, value) in [
        (&metrics::EXPLORE_STATES, states),
        (&metrics::EXPLORE_SECOND, seen.iter().map(|one| one.second.len()).sum::<usize>() as f64),
        (&metrics::EXPLORE_FAILED, count(Fate::has_failed)),
        (
            &metrics::EXPLORE_NOT_STARTED,
            count(|fate| matches!(fate, Fate::NotStarted(_) | Fate::NotMounted(_))),
        ),
        (&metrics::EXPLORE_NOT_MOUNTED, count(|fate| matches!(fate, Fate::NotMounted(_)))),
        (&metrics::EXPLORE_LOST, count(|fate| matches!(fate, Fate::Lost(..)))),
        (&metrics::EXPLORE_CORRUPT, count(|fate| matches!(fate, Fate::Damaged(_)))),
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

/// The kinds of writes, and the states about each.
pub(super) fn coverage(kinds: &[Vec<Kind>], plan: &Plan, seen: &[Seen], outcome: &mut Outcome) {
    let mut by_kind: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut by_way: BTreeMap<Way, usize> = BTreeMap::new();
    for one in seen {
        *by_kind.entry(one.planned.kind).or_default() += 1;
        *by_way.entry(one.planned.way).or_default() += 1;
    }
    let kinds_seen = by_kind.iter().map(|(kind, count)| format!("{} {count}", kind.words()));
    let ways_seen = by_way.iter().map(|(way, count)| format!("{} {count}", way.words()));
    outcome.note(format!("states by kind of write: {}", list(kinds_seen)));
    outcome.note(format!("states by what was lost: {}", list(ways_seen)));
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
pub(super) fn time(spent: Spent, seen: &[Seen], outcome: &mut Outcome) {
    let states = seen.iter().map(|one| 1 + one.second.len()).sum();
    outcome.note(format!("a state took, on average: {}", spent.each(states)));
}

/// States that failed after a second cut.
pub(super) fn second_cuts(seen: &[Seen], outcome: &mut Outcome) {
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
pub(super) fn witnesses(explored: &Explored<'_>, witnesses: &[Witness], outcome: &mut Outcome) {
    for Witness { number, state, fate } in witnesses {
        outcome.notes.push(Note::new(NoteKind::Ledger, format!("state {number}: {fate}")));
        for line in explored.loss(state) {
            outcome.notes.push(Note::new(NoteKind::Ledger, format!("state {number}: {line}")));
        }
    }
}

fn list(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
