//! Points of a study that were measured in pairs of blocks, besides its trials.

use std::collections::BTreeMap;

use record::comparison::Metric;
use record::{Ending, Paired};
use spec::Study;

use crate::compared;
use crate::grouping::label;
use crate::json::Json;
use crate::view::PairsBlock;

/// Metrics that are drawn over the pairs.
const DRAWN: [Metric; 2] = [Metric::Throughput, Metric::P99];

/// Each pairing's last attempt, and its curves. `first` is the number of curves that the page has
/// already.
pub(crate) fn pairs(study: &Study, all: &[Paired], first: usize) -> (Vec<PairsBlock>, Vec<Json>) {
    let is_last = |paired: &&Paired| {
        !all.iter().any(|other| other.number == paired.number && other.attempt > paired.attempt)
    };
    let mut curves: Vec<Json> = Vec::new();
    let mut block = |paired: &Paired| {
        let sides = paired.sides();
        let names @ [below, above] = sides.each_ref().map(String::as_str);
        let quotient = format!("{above} ÷ {below}");
        let drawn: Vec<Json> = DRAWN
            .into_iter()
            .filter_map(|metric| compared::curve(metric, &paired.shown.looks, &quotient))
            .collect();
        let ids = (first + curves.len()..).take(drawn.len()).collect();
        curves.extend(drawn);
        let mut tables = Vec::new();
        if !paired.shown.figures.is_empty() {
            tables.push(compared::figures(&paired.shown.figures, names, ""));
        }
        if !paired.shown.waits.is_empty() {
            let mut waits = compared::waits(&paired.shown.waits, names);
            waits.folded = true;
            tables.push(waits);
        }
        PairsBlock { heading: heading(study, paired, &quotient), words: words(paired), ids, tables }
    };
    let blocks = all.iter().filter(is_last).map(&mut block).collect();
    (blocks, curves)
}

/// `In pairs: governed ÷ plain, hot rows, clients = 64`
fn heading(study: &Study, paired: &Paired, quotient: &str) -> String {
    let scenario = |name| label(&study.scenarios, name);
    let place = match (paired.above == paired.below, &paired.below_scenario) {
        (true, _) => label(&study.variants, &paired.above).to_owned(),
        (false, None) => scenario(&paired.scenario).to_owned(),
        (false, Some(below)) => format!("{} ÷ {}", scenario(&paired.scenario), scenario(below)),
    };
    let axes = |axes: &BTreeMap<String, String>| -> String {
        axes.iter().map(|(axis, value)| format!(", {axis} = {value}")).collect()
    };
    match &paired.below_axes {
        None => format!("In pairs: {quotient}, {place}{}", axes(&paired.axes)),
        Some(below) => {
            format!("In pairs: {quotient}, {place}{} ÷{}", axes(&paired.axes), axes(below))
        }
    }
}

fn words(paired: &Paired) -> Vec<String> {
    if paired.ending != Ending::Done {
        return vec![format!("Not measured: {}.", paired.ending.why())];
    }
    let stop = paired.shown.stop.words();
    let measured = format!(
        "Both servers stood at once, with {} clients each, and were loaded in turn: {} pairs of \
         blocks of {} ms in {:.0} s. It ended because {stop}.",
        paired.shown.clients, paired.shown.pairs, paired.shown.block_ms, paired.shown.seconds
    );
    let doubts = paired.shown.doubts.iter().map(|doubt| format!("Doubt: {doubt}."));
    let instances = paired.shown.instances.words(Metric::Throughput);
    [measured].into_iter().chain(instances).chain(doubts).collect()
}
