//! The states of power cuts that were looked through, in sentences: how many, of how many, about what, and what
//! no state was about.

use std::collections::{BTreeMap, BTreeSet};

use record::Trial;
use spec::{Metric, metrics};

use crate::unseen::UNSEEN;

/// The explorations of one variant under one scenario, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExploredStates {
    /// The variant.
    pub variant: String,
    /// The scenario.
    pub scenario: String,
    /// Explored loads.
    pub loads: u64,
    /// States that were looked through.
    pub states: u64,
    /// States that failed; none where too few were looked at to say that none does.
    pub failed: Option<u64>,
    /// In how many of these states the server did not start.
    pub not_started: u64,
    /// How many of these states lacked something acknowledged.
    pub lost: u64,
    /// How many of these states were damaged.
    pub damaged: u64,
    /// Writes of the logs, and those of them that some state is about; the same of intervals between flushes
    /// and of kinds of write in each way.
    pub met: [(u64, u64); 3],
    /// The decimal logarithm of the number of states that the largest log has.
    pub possible_log10: f64,
    /// States about each kind of write.
    pub of_kinds: BTreeMap<String, u64>,
    /// States of each way that a log has.
    pub of_ways: BTreeMap<String, u64>,
    /// Tables that the loads wrote and that nothing follows; none where that is not known.
    pub unfollowed: Option<BTreeSet<String>>,
    /// True if some states were compared with nothing that was acknowledged.
    pub is_uncompared: bool,
}

/// All explorations of trials that have ended, in the order of variants and scenarios.
pub fn explored(trials: &[Trial]) -> Vec<ExploredStates> {
    let mut sums: BTreeMap<(&str, &str), ExploredStates> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| !trial.ending.is_open()) {
        let value = |metric: &Metric| trial.scopes(metric)?.get("").copied();
        let Some(states) = value(&metrics::EXPLORE_STATES) else { continue };
        let sum = sums.entry((&trial.variant, &trial.scenario)).or_default();
        let is_first = sum.loads == 0;
        sum.variant.clone_from(&trial.variant);
        sum.scenario.clone_from(&trial.scenario);
        sum.loads += 1;
        sum.states += states as u64;
        sum.failed = match (sum.failed, value(&metrics::EXPLORE_FAILED)) {
            (None, failed) if is_first => failed.map(|failed| failed as u64),
            (before, failed) => {
                let is_known = before.is_some() && failed.is_some();
                // An unknown part counts nothing: the sum is then shown only as "at least", or as
                // unknown.
                let failed = before.unwrap_or(0) + failed.unwrap_or(0.0) as u64;
                // Once something has failed, that stands.
                (is_known || failed > 0).then_some(failed)
            }
        };
        // These figures are left out only where no state failed, so that all of them are 0.
        let count = |metric| value(metric).unwrap_or(0.0) as u64;
        sum.not_started += count(&metrics::EXPLORE_NOT_STARTED);
        sum.lost += count(&metrics::EXPLORE_LOST);
        sum.damaged += count(&metrics::EXPLORE_CORRUPT);
        sum.is_uncompared |= count(&metrics::EXPLORE_UNCOMPARED) > 0;
        let met = [
            (&metrics::EXPLORE_WRITES, &metrics::EXPLORE_WRITES_MET),
            (&metrics::EXPLORE_INTERVALS, &metrics::EXPLORE_INTERVALS_MET),
            (&metrics::EXPLORE_PAIRS, &metrics::EXPLORE_PAIRS_MET),
        ];
        for (sum, (all, met)) in sum.met.iter_mut().zip(met) {
            sum.0 += count(all);
            sum.1 += count(met);
        }
        // Without a number of possible states, the largest of the others stands.
        let possible = value(&metrics::EXPLORE_POSSIBLE).unwrap_or(0.0);
        sum.possible_log10 = sum.possible_log10.max(possible);
        for (counts, metric) in [
            (&mut sum.of_kinds, &metrics::EXPLORE_OF_KIND),
            (&mut sum.of_ways, &metrics::EXPLORE_OF_WAY),
        ] {
            for (name, count) in trial.scopes(metric).into_iter().flatten() {
                *counts.entry(name.clone()).or_default() += *count as u64;
            }
        }
        let scopes = trial.scopes(&metrics::EXPLORE_UNFOLLOWED);
        let names = scopes.map(|scopes| {
            scopes.keys().filter(|name| !name.is_empty()).cloned().collect::<BTreeSet<_>>()
        });
        sum.unfollowed = match (is_first, sum.unfollowed.take(), names) {
            (true, _, names) => names,
            (false, all, names) => all.zip(names).map(|(mut all, names)| {
                all.extend(names);
                all
            }),
        };
    }
    sums.into_values().collect()
}

impl ExploredStates {
    /// What was found, and what it was found in.
    pub fn sentences(&self) -> Vec<String> {
        let Self { variant, scenario, loads, states, .. } = self;
        let of = if *loads == 1 { "1 load".to_owned() } else { format!("{loads} loads") };
        let about = match self.possible_log10 {
            small if small < 6.0 => format!("{:.0}", 10_f64.powf(small)),
            large => format!("10^{large:.0}"),
        };
        let drawn = format!("{states} states drawn of about {about} of {of}");
        let found = match self.failed {
            None => format!("none of {drawn} failed, which are too few to say that none does"),
            Some(0) => format!("none of {drawn} failed"),
            Some(failed) => format!(
                "{failed} of {drawn} failed ({} did not start, {} lost something acknowledged, {} were \
                 damaged)",
                self.not_started, self.lost, self.damaged
            ),
        };
        let mut sentences = vec![format!("explored {variant}/{scenario}: {found}")];
        sentences.push(match &self.unfollowed {
            _ if self.is_uncompared => "acknowledged: not compared; an asynchronous standby may lack what was \
                                        acknowledged, and the rows of a cluster are on several servers"
                .to_owned(),
            None => "acknowledged: what the ledger's tables have; which other tables the load wrote is not \
                     known"
                .to_owned(),
            Some(tables) if tables.is_empty() => {
                "acknowledged: all that was, in every table that the load wrote".to_owned()
            }
            Some(tables) => {
                let names: Vec<&str> = tables.iter().map(String::as_str).collect();
                format!(
                    "acknowledged: not all that was; the load also wrote, and nothing follows, {}",
                    names.join(", ")
                )
            }
        });
        let [writes, intervals, pairs] = self.met;
        // A record of an earlier version does not say it.
        if pairs.0 > 0 {
            sentences.push(format!(
                "states are about {} of {} writes, {} of {} intervals between flushes, and {} of {} kinds \
                 and ways",
                writes.1, writes.0, intervals.1, intervals.0, pairs.1, pairs.0
            ));
            sentences.push(format!("by kind: {}", counts(&self.of_kinds)));
            sentences.push(format!("by way: {}", counts(&self.of_ways)));
            let names: Vec<&str> = UNSEEN.iter().map(|one| one.name).collect();
            sentences.push(format!("not seen by this (docs/power-cuts.md): {}", names.join(", ")));
        }
        sentences
    }
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    words.join(", ")
}
