//! Points of a study that were measured in pairs of blocks, besides its trials.

use std::collections::BTreeMap;

use record::comparison::{ComparedMetric, PairResults, RareEvents};
use record::{AttemptEnding, Comparison, PairingAttempt};
use spec::Study;

use crate::grouping::label;
use crate::json::Json;
use crate::view::{PairsBlock, Table};
use crate::{compared, flame, tail_tables};

/// Each pairing's last attempt, and its curves. `first` is the number of curves that the page has
/// already.
pub(crate) fn pairs(
    study: &Study,
    comparison: Option<&Comparison>,
    all: &[PairingAttempt],
    first: usize,
) -> (Vec<PairsBlock>, Vec<Json>) {
    let is_last = |paired: &&PairingAttempt| {
        !all.iter().any(|other| other.number == paired.number && other.attempt > paired.attempt)
    };
    let mut curves: Vec<Json> = Vec::new();
    let mut block = |paired: &PairingAttempt| {
        let sides = paired.sides();
        let names @ [below, above] = sides.each_ref().map(String::as_str);
        let quotient = format!("{above} ÷ {below}");
        let drawn = compared::curves(&paired.shown.looks, &quotient);
        let ids = (first + curves.len()..).take(drawn.len()).collect();
        curves.extend(drawn);
        let mut tables: Vec<Table> = comparison.map(compared::sides).into_iter().collect();
        tables.extend(comparison.and_then(compared::differences));
        tables.extend(self::tables(&paired.shown, names));
        let headline = comparison.map_or(ComparedMetric::Throughput, Comparison::headline);
        let mut words = words(paired, headline);
        words.extend(comparison.map(Comparison::intervals_words));
        let flame = paired.shown.profile.as_ref().and_then(flame::graph);
        PairsBlock { heading: heading(study, paired, &quotient), words, ids, tables, flame }
    };
    let blocks = all.iter().filter(is_last).map(&mut block).collect();
    (blocks, curves)
}

/// What both sides have shown.
fn tables(shown: &PairResults, names: [&str; 2]) -> Vec<Table> {
    let mut tables = Vec::new();
    if !shown.figures.is_empty() {
        let note = format!(
            "of rates and of what servers used, {} ÷ {} is that of the sums over all segments; a claim has \
             the mean of the segments' quotients, which differs where segments do",
            names[1], names[0]
        );
        tables.push(compared::figures(&shown.figures, names, &note));
    }
    if !shown.statements.is_empty() {
        tables.push(compared::statements(&shown.statements, names));
        tables.extend(shown.statements.iter().filter_map(|one| compared::reason(one, names)));
    }
    if !shown.waits.is_empty() {
        let mut waits = compared::waits(&shown.waits, names);
        waits.folded = true;
        tables.push(waits);
    }
    let [below, above] = names;
    tables.extend(tail_tables::tables(&[
        (below, shown.tails.a.as_ref()),
        (above, shown.tails.b.as_ref()),
    ]));
    tables.extend(shown.plans.iter().map(compared::plan));
    tables.extend(compared::background(shown.background, names));
    tables
}

/// `In pairs: governed ÷ plain, hot rows, clients = 64`
fn heading(study: &Study, paired: &PairingAttempt, quotient: &str) -> String {
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

fn words(paired: &PairingAttempt, headline: ComparedMetric) -> Vec<String> {
    if paired.ending != AttemptEnding::Done {
        return vec![format!("Not measured: {}.", paired.ending.why())];
    }
    let stop = paired.shown.stop.words();
    let measured = format!(
        "Both servers stood at once, with {} each, and were loaded in turn: {} of {} in {:.0} s. It \
         ended: {stop}.",
        terms::counted(paired.shown.clients.into(), "client"),
        terms::counted(paired.shown.pairs as u64, "pair"),
        paired.shown.blocks(),
        paired.shown.seconds
    );
    let identical = paired.shown.identical.as_ref().map(|ratio| {
        let [below, _] = paired.sides();
        format!(
            "One half of {below}'s blocks against the other half: throughput {}.",
            ratio.words()
        )
    });
    let doubts = paired.shown.doubts.iter().map(|doubt| format!("Doubt: {doubt}."));
    let instances = paired.shown.instances.words(headline);
    let rare = paired.shown.rare.iter().flat_map(RareEvents::words);
    let seen = [measured].into_iter().chain(identical).chain(instances);
    seen.chain(rare).chain(doubts).collect()
}
