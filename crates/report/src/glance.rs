//! Every trial at a glance: a row a point, a column a round, a sparkline each.

use record::{AttemptEnding, Trial};
use spec::{Study, metrics};

use crate::grouping::{entry, in_study_order, label, point_label};
use crate::number;
use crate::plot;
use crate::timeline::{THROUGHPUT, Timeline};
use crate::view::{GlanceCell, GlanceRow};

/// The rounds of a record, in order.
pub(crate) fn rounds(trials: &[Trial]) -> Vec<usize> {
    let mut rounds: Vec<usize> = trials.iter().map(|trial| trial.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    rounds
}

/// All trials. `positions` says where on the page a trial's timeline is.
pub(crate) fn glance(
    study: &Study,
    trials: &[Trial],
    timelines: &[Option<Timeline>],
    positions: &[Option<usize>],
) -> Vec<GlanceRow> {
    let rounds = rounds(trials);
    let mut rows: Vec<(String, Vec<Option<usize>>)> = Vec::new();
    for index in in_study_order(study, trials) {
        let trial = &trials[index];
        let label = trial_label(study, trial);
        let new = || (label.clone(), vec![None; rounds.len()]);
        let (_, cells) = entry(&mut rows, |(known, _)| *known == label, new);
        let column = rounds.iter().position(|&round| round == trial.round);
        if let Some(column) = column {
            // The attempt that counts is shown, else the last one.
            let counts = |index: usize| trials[index].ending == AttemptEnding::Done;
            if cells[column].is_none_or(|shown| !counts(shown)) {
                cells[column] = Some(index);
            }
        }
    }
    rows.into_iter()
        .map(|(label, indices)| {
            let drawn = indices.iter().flatten().filter_map(|&index| timelines[index].as_ref());
            let highest = drawn.flat_map(throughput).flatten().fold(0.0, f64::max);
            let cells = indices.into_iter().map(|index| match index {
                Some(index) => cell(&trials[index], &timelines[index], positions[index], highest),
                None => GlanceCell::Nothing,
            });
            GlanceRow { label, cells: cells.collect() }
        })
        .collect()
}

/// Name of a trial within its study: only what the study varies.
pub(crate) fn trial_label(study: &Study, trial: &Trial) -> String {
    let mut parts: Vec<&str> = Vec::new();
    if study.variants.len() > 1 {
        parts.push(label(&study.variants, &trial.variant));
    }
    if study.scenarios.len() > 1 || parts.is_empty() {
        parts.push(label(&study.scenarios, &trial.scenario));
    }
    let mut label = parts.join(" / ");
    if !trial.axes.is_empty() {
        label.push_str(" · ");
        label.push_str(&point_label(&trial.axes));
    }
    label
}

/// Why an attempt does not count, in a word and in full; none if it counts.
pub(crate) fn not_counted(ending: &AttemptEnding) -> Option<(&'static str, &str)> {
    (*ending != AttemptEnding::Done).then(|| (ending.word(), ending.why()))
}

fn cell(
    trial: &Trial,
    timeline: &Option<Timeline>,
    position: Option<usize>,
    highest: f64,
) -> GlanceCell {
    let not_counted = not_counted(&trial.ending);
    let word = not_counted.map_or_else(|| throughput_words(trial), |(word, _)| word.to_owned());
    let (Some(timeline), Some(index)) = (timeline, position) else {
        return GlanceCell::Words { words: word, void: not_counted.is_some() };
    };
    let span_s = timeline.step_s * timeline.cells as f64;
    let share = |second: f64| (second - timeline.from_s) / span_s;
    let window = timeline.window_s.map(|(open, close)| (share(open), share(close)));
    let spoken = format!("{} in round {}: {word}", trial.scenario, trial.round);
    GlanceCell::Trial {
        index,
        plot: plot::sparkline(&throughput(timeline), highest, window),
        words: word,
        spoken,
        void: not_counted.is_some(),
    }
}

fn throughput_words(trial: &Trial) -> String {
    let tps = trial.scopes(&metrics::TPS).and_then(|scopes| scopes.get(""));
    tps.map_or_else(String::new, |&tps| number::with_unit(tps, "1/s"))
}

/// Throughput of all workloads together.
fn throughput(timeline: &Timeline) -> Vec<Option<f64>> {
    let mut total = vec![None; timeline.cells];
    let panels = timeline.panels.iter().filter(|panel| panel.title.starts_with(THROUGHPUT));
    for series in panels.flat_map(|panel| &panel.series).filter(|s| !s.dashed) {
        for (sum, value) in total.iter_mut().zip(&series.values) {
            if let Some(value) = value {
                *sum.get_or_insert(0.0) += value;
            }
        }
    }
    total
}
