//! Reasons to believe the figures, or to doubt them.

use std::collections::BTreeSet;

use record::{AttemptEnding, GeneratorCost, Trial};
use spec::{Study, metrics};
use stats::sample;
use verdict::StudyVerdicts;

use crate::claims;
use crate::glance::trial_label;
use crate::grouping::{entry, in_study_order};
use crate::hosts;
use crate::noise::Noise;
use crate::number;
use crate::view::{Cell, Outcome, Table};

/// More notes than these stand folded away.
const NOTES_SHOWN_MAX: usize = 6;

/// The reasons in words, and the tables.
pub(crate) fn trust(
    study: &Study,
    trials: &[Trial],
    noise: &[Noise],
    judgement: &StudyVerdicts,
) -> (Vec<String>, Vec<Table>) {
    let mut words: Vec<String> = claims::noise(judgement).into_iter().collect();
    words.extend(counted(trials));
    let points = points(study, trials);
    let (generator, is_limit) = generator(trials, &points);
    words.push(if is_limit {
        "In some trials the rig itself may have been the limit; the table names them.".to_owned()
    } else {
        "The rig itself was not the limit in any trial: its busiest thread, and its loop lag \
         stayed below their bounds, and so did its wait for a CPU where that is known."
            .to_owned()
    });
    let unseen = points.iter().flat_map(|(_, indices)| indices);
    let unseen = unseen.filter(|&&index| trials[index].generator.run_delay_share.is_none()).count();
    if unseen > 0 {
        let unseen = terms::counted(unseen as u64, "trial");
        words.push(format!("How long the rig waited for a CPU is not known of {unseen}."));
    }
    words.extend(verdict::missed_rates(study, trials).into_iter().map(|one| {
        format!(
            "Rate not reached: {} of {} a second by {} in trial {} ({}); due and never started: \
             {}.",
            number::figure(one.reached),
            number::figure(one.asked),
            one.workload,
            one.number,
            one.name,
            number::count(one.backlog)
        )
    }));
    words.extend(verdict::explored(trials).iter().flat_map(verdict::ExploredStates::sentences));
    let mut tables = Vec::new();
    tables.extend(attempts(study, trials));
    tables.push(generator);
    tables.extend(hosts::table(trials));
    tables.extend(claims::noise_table(study, judgement));
    tables.push(machine(trials, noise, &points));
    tables.extend(notes(study, trials));
    (words, tables)
}

/// Number of trials that count, of those that do not, and of the attempts that they took.
pub(crate) fn counted(trials: &[Trial]) -> Option<String> {
    let counted = trials.iter().filter(|trial| trial.ending == AttemptEnding::Done).count();
    let numbers: BTreeSet<usize> = trials.iter().map(|trial| trial.number).collect();
    let words = counted_of(counted, numbers.len())?;
    match trials.len() - numbers.len() {
        0 => Some(words),
        more => Some(format!("{words} Attempts beyond the first: {more}, all of them kept.")),
    }
}

fn counted_of(counted: usize, trials: usize) -> Option<String> {
    match trials {
        0 => None,
        1 if counted == 1 => Some("The one trial counts.".to_owned()),
        all if all == counted => Some(format!("All {counted} trials count; none was discarded.")),
        all if all == counted + 1 => {
            Some(format!("{counted} of {all} trials count; one was discarded."))
        }
        all => Some(format!("{counted} of {all} trials count; {} were discarded.", all - counted)),
    }
}

/// A point's label and the trials of it that count.
type PointTrials = (String, Vec<usize>);

fn points(study: &Study, trials: &[Trial]) -> Vec<PointTrials> {
    let mut points: Vec<PointTrials> = Vec::new();
    for index in in_study_order(study, trials) {
        if trials[index].ending == AttemptEnding::Done {
            let label = trial_label(study, &trials[index]);
            let new = || (label.clone(), Vec::new());
            entry(&mut points, |(known, _)| *known == label, new).1.push(index);
        }
    }
    points
}

/// Every attempt that was made, where any does not count, and why each counts or not.
fn attempts(study: &Study, trials: &[Trial]) -> Option<Table> {
    let columns = ["Trial", "#Round", "#Attempt", "Ending", "Why", "Counts"];
    let note = "every attempt that was made; none is ever replaced or removed";
    let mut table = Table::new("Attempts", note, &columns);
    for (trial, used) in trials.iter().zip(verdict::uses(trials)) {
        let name = format!("{} {}", trial.number, trial_label(study, trial));
        let why = match &trial.ending {
            AttemptEnding::Failed(reason) => format!("{} ({})", reason.text, reason.kind.words()),
            ending => ending.why().to_owned(),
        };
        table.row([
            name,
            trial.round.to_string(),
            trial.attempt.to_string(),
            trial.ending.word().to_owned(),
            why,
            used.why.to_owned(),
        ]);
    }
    table.folded = table.rows.len() > ATTEMPTS_SHOWN_MAX;
    trials.iter().any(|trial| trial.ending != AttemptEnding::Done).then_some(table)
}

/// More attempts than these stand folded away.
const ATTEMPTS_SHOWN_MAX: usize = 24;

/// Cost of the generator, and whether it was the limit anywhere.
fn generator(trials: &[Trial], points: &[PointTrials]) -> (Table, bool) {
    let columns = [
        "",
        "#Cores used",
        "#Share of all CPU used",
        "#Busiest thread",
        "#Loop lag p99",
        "#Lag ÷ waiting",
        "#Wait for a CPU ÷ waiting",
        "The limit?",
    ];
    let mut table = Table::new(
        "The generator's own cost",
        "the middle of all rounds, of threads, lag and waits the worst; on one machine it competes with the server for the same cores",
        &columns,
    );
    let mut any_limit = false;
    for (label, indices) in points {
        let middle = |of: &dyn Fn(&Trial) -> Option<f64>| {
            let values = indices.iter().filter_map(|&index| of(&trials[index]));
            sample::median(&values.collect::<Vec<f64>>())
        };
        let cores = middle(&|t| Some(t.generator.cpu_ns as f64 / 1e9 / t.window?.seconds()));
        let share = middle(&|t| t.scopes(&metrics::GENERATOR_CPU_SHARE)?.get("").copied());
        let worst = |of: &dyn Fn(&Trial) -> Option<f64>| {
            indices.iter().filter_map(|&index| of(&trials[index])).reduce(f64::max)
        };
        let busy = worst(&|t| Some(t.generator.busy_share_max));
        let lag_ns = worst(&|t| Some(t.generator.lag_p99_ns as f64));
        let lag_share = worst(&|t| Some(t.generator.lag_share));
        let run_delay = worst(&|t| t.generator.run_delay_share);
        let limit = busy.is_some_and(|share| share > GeneratorCost::BUSY_SHARE_MAX)
            || lag_share.is_some_and(|share| share > GeneratorCost::LAG_SHARE_MAX)
            || run_delay.is_some_and(|share| share > GeneratorCost::RUN_DELAY_SHARE_MAX);
        any_limit |= limit;
        let percent = |share: Option<f64>| share.map_or("–".to_owned(), number::percent);
        let mut row: Vec<Cell> = [
            label.clone(),
            cores.map_or("–".to_owned(), number::figure),
            percent(share),
            percent(busy),
            lag_ns.map_or("–".to_owned(), number::duration_ns),
            percent(lag_share),
            percent(run_delay),
        ]
        .map(Cell::from)
        .into();
        row.push(match limit {
            true => Cell::verdict(Outcome::Unsure, "perhaps"),
            false => Cell::verdict(Outcome::Holds, "no"),
        });
        table.rows.push(row);
    }
    (table, any_limit)
}

/// Variation between rounds, and the work of others on the machine meanwhile.
fn machine(trials: &[Trial], noise: &[Noise], points: &[PointTrials]) -> Table {
    let columns = [
        "",
        "#Rounds",
        "#Spread of rounds",
        "#Steal, mean",
        "#Steal, largest second",
        "#Pressure cpu",
        "#Pressure io",
        "#Pressure memory",
    ];
    let note = "spread: standard deviation ÷ mean of transactions a second; steal: CPU that the \
                hypervisor gave to others; pressure: share of the time in which something waited \
                for a resource";
    let mut table = Table::new("Noise of the machine", note, &columns);
    for (label, indices) in points {
        let tps = |&index: &usize| trials[index].scopes(&metrics::TPS)?.get("").copied();
        let tps: Vec<f64> = indices.iter().filter_map(tps).collect();
        let percent = |value: Option<f64>| {
            value.map_or("–".to_owned(), |value| number::with_unit(value, "%"))
        };
        let readings: Vec<&Noise> = indices.iter().map(|&index| &noise[index]).collect();
        let steal: Vec<f64> = readings.iter().filter_map(|n| Some(n.steal_pct?.0)).collect();
        let peak = readings.iter().filter_map(|n| Some(n.steal_pct?.1)).reduce(f64::max);
        let pressure = |resource: &str| {
            let each = readings.iter().filter_map(|n| n.pressure_pct.get(resource).copied());
            percent(sample::mean(&each.collect::<Vec<f64>>()))
        };
        table.row([
            label.clone(),
            indices.len().to_string(),
            sample::coefficient_of_variation(&tps).map_or("–".to_owned(), number::percent),
            percent(sample::mean(&steal)),
            percent(peak),
            pressure("cpu"),
            pressure("io"),
            pressure("memory"),
        ]);
    }
    table
}

fn notes(study: &Study, trials: &[Trial]) -> Option<Table> {
    let mut table = Table::new("Notes of single trials", "", &["Trial", "#Round", "Note"]);
    for trial in trials {
        for note in &trial.notes {
            let name = format!("{} {}", trial.number, trial_label(study, trial));
            table.row([name, trial.round.to_string(), note.text.clone()]);
        }
    }
    table.folded = table.rows.len() > NOTES_SHOWN_MAX;
    (!table.rows.is_empty()).then_some(table)
}
