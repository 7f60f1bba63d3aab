//! A verdict for each script of a mixed load: each is run by itself on both sides in turn, before every segment.

use std::collections::BTreeMap;
use std::time::Instant;

use load::{
    BlockSchedule, ClientGroup, LaneFleet, LoadLimit, LoadPlan, LoadScript, Pace, ScriptOutcome,
    StopUrgency, WarmUp,
};
use record::comparison::{
    ComparedMetric, FigureVerdict, InstanceFindings, ProductionForecast, StatementComparison,
    StatementTimes, StatementVerdict,
};
use stats::sequence::OBSERVATIONS_MIN;
use stats::{ConfidenceInterval, LatencyHistogram, sequence};

use crate::loading::{LoadMeasurement, PreparedLoad};
use crate::pair::answer;
use crate::pair::contest::{CONFIDENCE, PairContest};
use crate::pair::course::ContestRun;
use crate::pair::design::{self, CYCLE};
use crate::pair::error::PairError;
use crate::pair::work::{ExcludedScript, has_same_scripts};
use crate::pair::{figure, instances};

/// The shortest and the longest block in which one client runs one script, in milliseconds.
const BLOCK_MS: [f64; 2] = [20.0, 10_000.0];

/// A block has room for so many executions, where they are not too long.
const EXECUTIONS: f64 = 4.0;

/// A script whose executions take longer than this has two blocks in a segment, and others a whole cycle.
const LONG_MS: f64 = 50.0;

/// Blocks in which the caches of sessions fill, of scripts that are not long.
const WARM_BLOCKS: usize = 4;

/// The share of a contest in which scripts are run by themselves, at so many restarts.
const SHARE: f64 = 0.4;
const RESTARTS: f64 = 12.0;

/// The assumed time of an execution that was never seen, in milliseconds.
const UNSEEN_MS: f64 = 20.0;

/// Connecting both sides, and disconnecting, in seconds.
const CONNECT_S: f64 = 0.05;

/// The times of one script so far: one entry a segment in which both sides ran it, of A and of B, in milliseconds.
#[derive(Clone, Debug, Default)]
struct TimeSeries {
    means: [Vec<f64>; 2],
    medians: [Vec<f64>; 2],
    executions: [u64; 2],
    /// All time of both sides.
    total_ms: [f64; 2],
    /// What both sides did in the segment under way.
    under_way: [LatencyHistogram; 2],
    /// The number of each entry's segment.
    at: Vec<usize>,
    /// Segments that are over.
    ended: usize,
}

/// The times of all scripts so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementSeries {
    /// Each script by itself; empty before the first one has run.
    alone: Vec<TimeSeries>,
    together: Vec<TimeSeries>,
}

impl TimeSeries {
    /// Adds what both sides did in the segment under way.
    fn add(&mut self, sides: [&ScriptOutcome; 2]) {
        for (side, outcome) in sides.into_iter().enumerate() {
            self.executions[side] += outcome.latency.count();
            self.total_ms[side] += outcome.latency.sum_ns() as f64 / 1e6;
            self.under_way[side].merge(&outcome.latency);
        }
    }

    /// The segment is over.
    fn end_segment(&mut self) {
        let times = std::mem::take(&mut self.under_way).map(|latency| {
            let median_ns = latency.quantile_ns(0.5)? as f64;
            Some([latency.mean_ns()? / 1e6, median_ns / 1e6])
        });
        self.ended += 1;
        // Both sides of a pair ran in the same segment.
        let [Some(a), Some(b)] = times else { return };
        self.at.push(self.ended - 1);
        for (side, [mean, median]) in [a, b].into_iter().enumerate() {
            self.means[side].push(mean);
            self.medians[side].push(median);
        }
    }

    /// Segments in which both sides ran it.
    fn runs(&self) -> usize {
        self.means[0].len()
    }

    /// Segments so far, those in which it did not run among them.
    fn segments(&self) -> usize {
        self.ended
    }

    fn times(&self) -> StatementTimes {
        let [mean, median] = [&self.means, &self.medians].map(interval);
        let of = |series: &[Vec<f64>; 2]| series.each_ref().map(|side| stats::sample::mean(side));
        StatementTimes {
            executions: self.executions,
            mean_ms: of(&self.means),
            median_ms: of(&self.medians),
            mean: mean.map(figure::recorded),
            median: median.map(figure::recorded),
        }
    }

    /// The evidence that B is slower, and that it is faster, by the means or by the medians: the mean of two e-values
    /// is one.
    fn evidence(&self) -> [f64; 2] {
        let of = |above: usize, below: usize| {
            let both = [&self.means, &self.medians].map(|series| {
                // Too few segments are no evidence.
                sequence::evidence_above(&series[above], &series[below], 1.0).unwrap_or(0.0)
            });
            f64::midpoint(both[0], both[1])
        };
        [of(1, 0), of(0, 1)]
    }

    /// The verdict, where it is known of all scripts together whether B is slower or faster.
    fn verdict(&self, slower: bool, faster: bool, threshold: f64, floor: f64) -> StatementVerdict {
        let verdicts = [&self.means, &self.medians].map(|series| {
            answer::verdict(ComparedMetric::P50, interval(series).as_ref(), threshold, floor)
        });
        let is = |verdict: FigureVerdict| verdicts.contains(&verdict);
        match () {
            () if verdicts == [FigureVerdict::Equal; 2] => StatementVerdict::Equal,
            () if slower && !faster && is(FigureVerdict::Worse) => StatementVerdict::Slower,
            () if faster && !slower && is(FigureVerdict::Better) => StatementVerdict::Faster,
            () => StatementVerdict::CannotTell,
        }
    }
}

/// B ÷ A of a series of both sides.
fn interval([a, b]: &[Vec<f64>; 2]) -> Option<ConfidenceInterval> {
    sequence::mean_ratio(b, a, CONFIDENCE).ok()
}

fn add_all(series: &mut Vec<TimeSeries>, sides: [&[ScriptOutcome]; 2]) {
    series.resize(sides[0].len(), TimeSeries::default());
    for ((series, a), b) in series.iter_mut().zip(sides[0]).zip(sides[1]) {
        series.add([a, b]);
        series.end_segment();
    }
}

impl StatementSeries {
    /// Adds the times of a segment in which all scripts ran together.
    pub(crate) fn add_together(&mut self, sides: [&[ScriptOutcome]; 2]) {
        add_all(&mut self.together, sides);
    }

    /// A verdict for each script, those with the largest effect on A's time first. `differences` says which scripts do
    /// something else on B, `excluded` which ones were left out of the load.
    pub(crate) fn judged(
        &self,
        workload: &ClientGroup,
        threshold: f64,
        instances: &InstanceFindings,
        differences: &BTreeMap<usize, String>,
        excluded: &[ExcludedScript],
    ) -> Vec<StatementComparison> {
        let mut all = self.verdicts(workload, threshold, instances);
        for (one, script) in all.iter_mut().zip(0..) {
            if let Some(why) = differences.get(&script) {
                (one.verdict, one.why) = (StatementVerdict::DifferentResults, Some(why.clone()));
            }
        }
        let weights = workload.scripts.iter().map(|script| script.weight);
        let weights: u32 = weights.chain(excluded.iter().map(|one| one.script.weight)).sum();
        all.extend(excluded.iter().map(|one| one.shown(f64::from(weights))));
        // What does something else, fails or does not end has no effect in time, and comes first.
        let key = |one: &StatementComparison| {
            (one.why.is_none() || !one.verdict.is_worse(), -one.gain().abs())
        };
        all.sort_by(|one, other| {
            let (one, other) = (key(one), key(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        all
    }

    /// What B would need for production's statements, whose shares of production's time are given by the name of the
    /// script. Scripts with enough restarts count; one that did not run in a restart has the mean of the others there.
    pub(crate) fn forecast(
        &self,
        workload: &ClientGroup,
        production: &BTreeMap<String, f64>,
    ) -> Option<ProductionForecast> {
        if production.is_empty() {
            return None;
        }
        let of = |at: usize| production.get(&workload.scripts[at].name).copied();
        let known = self.alone.iter().enumerate().filter_map(|(at, series)| {
            let [Some(a), Some(b)] = series.means.each_ref().map(|side| stats::sample::mean(side))
            else {
                return None;
            };
            Some((of(at)?, series, [1.0, b / a], a)).filter(|_| series.runs() >= OBSERVATIONS_MIN)
        });
        let known: Vec<_> = known.collect();
        // Without a series there is no segment.
        let segments = known.iter().map(|(_, series, ..)| series.segments()).max().unwrap_or(0);
        let sum = |side: usize, segment: usize| -> f64 {
            let part = |(share, series, usual, a_ms): &(f64, &TimeSeries, [f64; 2], f64)| {
                let run = series.at.iter().position(|one| *one == segment);
                share * run.map_or(usual[side], |run| series.means[side][run] / a_ms)
            };
            known.iter().map(part).sum()
        };
        let sums = [0, 1].map(|side| (0..segments).map(|segment| sum(side, segment)).collect());
        Some(ProductionForecast {
            covered: production.values().sum(),
            measured: known.iter().map(|(share, ..)| share).sum(),
            time: interval(&sums).map(figure::recorded),
        })
    }

    /// A verdict for each script, in their order. A difference below `threshold`, a share, counts as none; below the floor of
    /// the instances nothing is said.
    fn verdicts(
        &self,
        workload: &ClientGroup,
        threshold: f64,
        instances: &InstanceFindings,
    ) -> Vec<StatementComparison> {
        let weights: f64 = workload.scripts.iter().map(|script| f64::from(script.weight)).sum();
        let evidence: Vec<[f64; 2]> = self.alone.iter().map(TimeSeries::evidence).collect();
        let [slower, faster] = [0, 1].map(|side| {
            let of: Vec<f64> = evidence.iter().map(|both| both[side]).collect();
            stats::discoveries(&of, StatementComparison::FALSE_DISCOVERIES)
        });
        let total_ms: f64 = self.together.iter().map(|series| series.total_ms[0]).sum();
        let floor = instances.floor(ComparedMetric::P50);
        let judge = |(at, alone): (usize, &TimeSeries)| {
            // Nothing ran together where transactions are too long for blocks.
            let together = self.together.get(at).cloned().unwrap_or_default();
            let verdict = alone.verdict(slower[at], faster[at], threshold, floor);
            StatementComparison {
                script: workload.scripts[at].name.clone(),
                calls: f64::from(workload.scripts[at].weight) / weights,
                time: if total_ms > 0.0 { together.total_ms[0] / total_ms } else { 0.0 },
                alone: alone.times(),
                together: together.times(),
                verdict,
                why: None,
                reason: None,
                production: None,
            }
        };
        self.alone.iter().enumerate().map(judge).collect()
    }
}

impl PairContest<'_> {
    /// The mixed load whose scripts get a verdict each: one workload of several scripts, the same on both sides.
    pub(crate) fn mixed(&self) -> Option<&ClientGroup> {
        let [[a], [_]] = [&self.workloads[0][..], &self.workloads[1][..]] else { return None };
        // One that is left of several is still one of them.
        let is_mixed = a.scripts.len() > 1 || !self.excluded.is_empty();
        (self.has_statements && is_mixed && has_same_scripts(&self.workloads)).then_some(a)
    }
}

impl ContestRun<'_, '_> {
    /// Runs scripts of a mixed load one by one, each by one client on each side in turn: those first whose verdict is
    /// open and which take most of the time, for a part of the contest's time.
    pub(crate) fn statements_alone(&mut self, number: u64) -> Result<(), PairError> {
        // A single script is what the contest runs anyway.
        let Some(mixed) = self.contest.mixed() else { return Ok(()) };
        let (mixed, rehearsed) = (mixed.clone(), self.contest.rehearsal.mean_ms.clone());
        self.statements.alone.resize(mixed.scripts.len(), TimeSeries::default());
        let budget_s = self.contest.max_time.as_secs_f64() * SHARE / RESTARTS;
        let began = Instant::now();
        let order = self.scripts_in_order(&mixed);
        // Again and again, so that what the machine does for a moment meets all scripts.
        for pass in 0.. {
            let mut has_run = false;
            for script in &order {
                let seen = self.statements.alone[*script].times().mean_ms;
                let rehearsed = rehearsed.get(*script);
                let seen = [0, 1].map(|side| seen[side].or(rehearsed.and_then(|one| one[side])));
                let stretch = Stretch::of(seen.into_iter().flatten().reduce(f64::max));
                let is_first = pass == 0 && !has_run;
                let would_end_s = began.elapsed().as_secs_f64() + stretch.seconds();
                if !is_first && would_end_s > budget_s {
                    continue;
                }
                let draws = number.wrapping_shl(20).wrapping_add(pass);
                self.script_alone(draws, *script, stretch)?;
                has_run = true;
                if self.contest.control.urgency() != StopUrgency::None {
                    break;
                }
            }
            if !has_run || self.contest.control.urgency() != StopUrgency::None {
                break;
            }
        }
        self.statements.alone.iter_mut().for_each(TimeSeries::end_segment);
        Ok(())
    }

    /// The scripts: those without a verdict first, among them those that were run least often, and of these the one that
    /// takes most of A's time.
    fn scripts_in_order(&self, mixed: &ClientGroup) -> Vec<usize> {
        let rule = &self.contest.rule;
        let floor = instances::instances(
            &self.segments,
            self.contest.arena.renewal(),
            &self.contest.floor,
            self.cost,
        );
        let verdicts = self.statements.verdicts(mixed, rule.threshold, &floor);
        let is_settled = |at: usize| verdicts[at].verdict != StatementVerdict::CannotTell;
        let runs = |at: usize| self.statements.alone[at].runs();
        let mut order: Vec<usize> = (0..verdicts.len()).collect();
        order.sort_by(|&one, &other| {
            let by_time = verdicts[other].time.total_cmp(&verdicts[one].time);
            (is_settled(one), runs(one)).cmp(&(is_settled(other), runs(other))).then(by_time)
        });
        order
    }

    /// Runs one script on both sides in turn.
    fn script_alone(
        &mut self,
        draws: u64,
        script: usize,
        stretch: Stretch,
    ) -> Result<(), PairError> {
        let seed =
            stats::mix(self.contest.seed.wrapping_add(draws << 12).wrapping_add(script as u64));
        let Stretch { block_ms, blocks, warm_blocks } = stretch;
        let mut order = design::order(1, seed);
        let order = order.split_off(CYCLE - blocks.min(CYCLE));
        // The blocks before those that count are like the first ones of them.
        let order: Vec<_> = order.iter().take(warm_blocks).chain(&order).copied().collect();
        let workloads = self.contest.workloads.each_ref().map(|side| alone(&side[0], script));
        let plan = LoadPlan {
            lanes: 1,
            seed,
            limit: LoadLimit::Time {
                warm_up: WarmUp::Fixed(warm_blocks as u64 * block_ms),
                window_ms: blocks as u64 * block_ms,
            },
            blocks: Some(BlockSchedule {
                length_ms: block_ms,
                rest_ms: block_ms / 5,
                sides: vec![0, 1],
                order,
            }),
            ..self.contest.plan(workloads.into(), block_ms.max(INTERVAL_MS))
        };
        let load = PreparedLoad::new(&plan, Instant::now(), Vec::new());
        let measured = load.run(LaneFleet::Threads, self.contest.control, &mut []);
        let LoadMeasurement { mut outcome, .. } = measured.map_err(|source| PairError::Load {
            side: "A or B".to_owned(),
            source: Box::new(source),
        })?;
        for (side, done) in std::mem::take(&mut outcome.work).into_iter().enumerate() {
            self.note_work((side, 0), done.in_script(script), &outcome.workloads[side]);
        }
        let sides = [0, 1].map(|side| &outcome.scripts[side][0]);
        self.statements.alone[script].add(sides);
        Ok(())
    }
}

/// The shortest interval in which what was counted is handed over, in milliseconds.
const INTERVAL_MS: u64 = 250;

/// The blocks in which one script is run by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    block_ms: u64,
    blocks: usize,
    warm_blocks: usize,
}

impl Stretch {
    /// Blocks for a script whose executions take so long on the slower side.
    fn of(mean_ms: Option<f64>) -> Stretch {
        let mean_ms = mean_ms.unwrap_or(UNSEEN_MS);
        let [least, most] = BLOCK_MS;
        match mean_ms > LONG_MS {
            true => {
                let block_ms = (mean_ms * 1.5).min(most) as u64;
                Stretch { block_ms, blocks: 2, warm_blocks: 0 }
            }
            false => {
                let block_ms = (mean_ms * EXECUTIONS).max(least) as u64;
                Stretch { block_ms, blocks: CYCLE, warm_blocks: WARM_BLOCKS }
            }
        }
    }

    fn seconds(self) -> f64 {
        CONNECT_S + self.block_ms as f64 * (self.blocks + self.warm_blocks) as f64 / 1e3
    }
}

/// One client that runs one script of a workload.
pub(crate) fn alone(workload: &ClientGroup, script: usize) -> ClientGroup {
    let script = LoadScript { weight: 1, ..workload.scripts[script].clone() };
    ClientGroup {
        clients: 1,
        pace: Pace::Closed,
        latency_limit_us: None,
        scripts: vec![script],
        ..workload.clone()
    }
}

#[cfg(test)]
mod tests {
    use load::Protocol;
    use stats::Prng;

    use super::*;

    /// Twelve segments of scripts whose true B ÷ A are given, with noise of 2 %.
    fn series(ratios: &[f64]) -> StatementSeries {
        let mut prng = Prng::new(5);
        let mut series = StatementSeries::default();
        for _ in 0..12 {
            let mut outcome = |ratio: f64| {
                let ms = 10.0 * ratio * (1.0 + 0.04 * (prng.unit() - 0.5));
                let mut latency = LatencyHistogram::new();
                (0..20).for_each(|_| latency.record_ns((ms * 1e6) as u64));
                ScriptOutcome { latency, ..ScriptOutcome::default() }
            };
            let a: Vec<_> = ratios.iter().map(|_| outcome(1.0)).collect();
            let b: Vec<_> = ratios.iter().map(|ratio| outcome(*ratio)).collect();
            add_all(&mut series.alone, [&a, &b]);
            series.add_together([&a, &b]);
        }
        series
    }

    #[test]
    fn each_script_has_its_verdict_and_the_largest_effect_comes_first() {
        let script = |(at, weight): (usize, u32)| LoadScript {
            name: format!("{at}.sql"),
            text: String::new(),
            weight,
            syntax: load::ScriptSyntax::Current,
        };
        let scripts = [1, 1, 2].into_iter().enumerate().map(script).collect();
        let workload = ClientGroup::new("w", String::new(), scripts, 1, Protocol::Simple);
        let found = series(&[1.0, 1.3, 0.5]).judged(
            &workload,
            0.05,
            &InstanceFindings::default(),
            &BTreeMap::new(),
            &[],
        );
        let seen: Vec<_> =
            found.iter().map(|one| (one.script.as_str(), one.calls, one.verdict.words())).collect();
        let expected =
            [("2.sql", 0.5, "faster"), ("1.sql", 0.25, "slower"), ("0.sql", 0.25, "equal")];
        assert_eq!(seen, expected, "{found:?}");
        assert_eq!(found[0].alone.executions, [240, 240]);

        let production = [("0.sql", 0.2), ("1.sql", 0.5), ("2.sql", 0.2), ("not covered", 0.05)];
        let production = production.map(|(name, share)| (name.to_owned(), share)).into();
        let mut seen = series(&[1.0, 1.3, 0.5]);
        // The last script did not run in one of the segments.
        let rare = &mut seen.alone[2];
        rare.at.remove(3);
        for side in &mut rare.means {
            side.remove(3);
        }
        let forecast = seen.forecast(&workload, &production).expect("production is known");
        let time = forecast.time.expect("12 segments");
        let expected = (0.2 + 0.5 * 1.3 + 0.2 * 0.5) / 0.9;
        assert!(
            (time.value - expected).abs() < 0.01 && time.low < expected && expected < time.high
        );
        assert!((forecast.measured - 0.9).abs() < 1e-9 && (forecast.covered - 0.95).abs() < 1e-9);
    }
}
