//! Rounds of which a part is not there: a server failed, or a planned trial was not run to its end.
//!
//! Such rounds are not missing by chance. A server that dies under load would have done nothing more,
//! and the rounds that survive are the better ones: what they say holds only if it also holds with the
//! others counted as nothing.

use std::collections::{BTreeMap, BTreeSet};

use record::{AttemptEnding, EndingReason, FaultyParty, PlannedTrial, Trial, VoidKind};
use spec::{MetricDirection, MetricReference, Study};

use crate::attempts::{self, AttemptChoice};
use crate::name::point_name;
use crate::rounds::figure_of;

/// The rounds of an expression, those with gaps included.
pub(crate) struct RoundGaps {
    rounds: Vec<Vec<Cell>>,
    /// Missing figures, in words.
    pub(crate) words: Vec<String>,
}

/// Content of a cell: one reference in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Value(f64),
    /// Counted as nothing: a rate of zero, a latency without an end.
    Nothing(MetricDirection),
    /// It could be anything.
    Unknown,
}

/// Larger than any figure. An infinite one has no logarithm.
const ENDLESS: f64 = 1e300;

impl RoundGaps {
    /// Looks for the gaps of the rounds that were planned.
    pub(crate) fn of(
        study: &Study,
        references: &[MetricReference],
        plan: &[PlannedTrial],
        trials: &[Trial],
    ) -> RoundGaps {
        let mut by_number: BTreeMap<usize, Vec<&Trial>> = BTreeMap::new();
        for trial in trials {
            by_number.entry(trial.number).or_default().push(trial);
        }
        let counted: BTreeMap<usize, &Trial> = attempts::chosen(trials, AttemptChoice::Counted)
            .map(|trial| (trial.number, trial))
            .collect();
        let mut by_round: BTreeMap<usize, Vec<Option<Cell>>> = BTreeMap::new();
        let (mut dead, mut missing) = (BTreeSet::new(), BTreeSet::new());
        for (number, round, place) in planned(study, plan, trials) {
            let attempts = by_number.get(&number).map_or(&[][..], Vec::as_slice);
            for (index, reference) in references.iter().enumerate() {
                if reference.point != place {
                    continue;
                }
                let figure = counted
                    .get(&number)
                    .and_then(|trial| figure_of(trial, reference.metric, &reference.scope));
                let cell = match figure {
                    _ if attempts.iter().any(|attempt| has_died(&attempt.ending)) => {
                        dead.insert(number);
                        Some(Cell::Nothing(reference.metric.better))
                    }
                    Some(figure) => Some(Cell::Value(figure.value)),
                    None if !attempts.is_empty() && attempts.iter().all(is_skipped) => None,
                    None => {
                        missing.insert(number);
                        Some(Cell::Unknown)
                    }
                };
                by_round.entry(round).or_insert(vec![None; references.len()])[index] = cell;
            }
        }
        let rounds = by_round.into_values();
        let rounds = rounds.filter_map(|cells| cells.into_iter().collect::<Option<Vec<Cell>>>());
        let say = |numbers: &BTreeSet<usize>, one: &str, many: &str| {
            let first = *numbers.first()?;
            let name = by_number
                .get(&first)
                .and_then(|attempts| attempts.first())
                .map(|trial| point_name(&trial.variant, &trial.scenario, &trial.axes));
            let name = name.map_or_else(String::new, |name| format!(", {name}"));
            Some(match numbers.len() {
                1 => format!("trial {first}{name} {one}"),
                n => format!("{n} trials {many} (the first: trial {first}{name})"),
            })
        };
        let failed = "failed by a server's or an unknown fault";
        let words = [
            say(&dead, failed, failed),
            say(&missing, "has no figure or was not run", "have no figure or were not run"),
        ];
        RoundGaps { rounds: rounds.collect(), words: words.into_iter().flatten().collect() }
    }

    /// The rounds with each gap filled with the worst: counted as nothing where that is known, and
    /// else once with zero and once without an end. Empty where there is no gap.
    pub(crate) fn filled(&self) -> Vec<Vec<Vec<f64>>> {
        let cells = || self.rounds.iter().flatten();
        let has_gap = cells().any(|cell| !matches!(cell, Cell::Value(_)));
        let is_open = cells()
            .any(|cell| matches!(cell, Cell::Unknown | Cell::Nothing(MetricDirection::Neither)));
        let with = |unknown: f64| -> Vec<Vec<f64>> {
            let value = |cell: &Cell| match cell {
                Cell::Value(value) => *value,
                Cell::Nothing(MetricDirection::Higher) => 0.0,
                Cell::Nothing(MetricDirection::Lower) => ENDLESS,
                Cell::Nothing(MetricDirection::Neither) | Cell::Unknown => unknown,
            };
            // A quotient of nothing by nothing is no number: then it cannot be told.
            self.rounds.iter().map(|row| row.iter().map(value).collect()).collect()
        };
        match (has_gap, is_open) {
            (false, _) => Vec::new(),
            (true, false) => vec![with(0.0)],
            (true, true) => vec![with(0.0), with(ENDLESS)],
        }
    }
}

/// Number, round and point of every trial that is meant to be: of the plan, or, while there is none,
/// of those that were run.
fn planned<'t>(
    study: &'t Study,
    plan: &'t [PlannedTrial],
    trials: &'t [Trial],
) -> Vec<(usize, usize, usize)> {
    let of_plan = plan.iter().filter_map(|one| {
        Some((one.number, one.round, study.point(&one.variant, &one.scenario, &one.axes)?))
    });
    let of_trials = trials.iter().filter_map(|one| {
        Some((one.number, one.round, study.point(&one.variant, &one.scenario, &one.axes)?))
    });
    let mut all: Vec<_> = if plan.is_empty() { of_trials.collect() } else { of_plan.collect() };
    all.sort_unstable();
    all.dedup();
    all
}

/// True if an attempt broke in a way that may be a server's fault. A failure of the rig, or of a host that
/// generated load, is made up for by a later attempt.
fn has_died(ending: &AttemptEnding) -> bool {
    match ending {
        AttemptEnding::Failed(reason) => {
            !matches!(reason.kind, FaultyParty::Rig | FaultyParty::GeneratorHost)
        }
        AttemptEnding::Void(EndingReason { kind: VoidKind::AllFailed, .. }) => true,
        _ => false,
    }
}

fn is_skipped(trial: &&Trial) -> bool {
    matches!(trial.ending, AttemptEnding::Skipped(_))
}
