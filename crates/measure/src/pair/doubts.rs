//! Reasons to doubt an answer.

use std::time::Duration;

use record::comparison::MetricRatio;
use record::{FigureDoubt, MeasuringConditions};
use stats::{IntervalSummary, SteadyState, UnsteadyReason, WindowQuantity, steady_state};

use crate::pair::observation::{self, BlockOctet};

/// Above this many CPUs that a side keeps busy in the other one's turn, it is not quiet.
const IDLE_CPUS_MAX: f64 = 0.1;

/// Every doubt, in a sentence.
pub(crate) fn doubts(
    octets: &[BlockOctet],
    names: [&str; 2],
    conditions: &MeasuringConditions,
) -> Vec<String> {
    let mut doubts: Vec<String> = conditions.doubts().into_iter().map(FigureDoubt::words).collect();
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if conditions.cores == Some(1) {
        doubts.push(
            "this machine has one CPU, which clients and servers share: differences between the \
             servers look smaller than they are"
                .to_owned(),
        );
    }
    let drifts: Vec<String> = (0..2).flat_map(|side| moved(octets, side, names[side])).collect();
    if !drifts.is_empty() {
        doubts.push(format!(
            "a side was not steady ({}): the ratio is a mean over that",
            drifts.join(", ")
        ));
    }
    let background = observation::background(octets);
    for (name, other, seen) in [(0, 1), (1, 0)].map(|(i, j)| (names[i], names[j], background[i])) {
        if let Some(cpus) = seen.idle_cpus.filter(|cpus| *cpus > IDLE_CPUS_MAX) {
            doubts.push(format!(
                "while side {other} had its turn, the servers of side {name} used {} of a CPU",
                percent(cpus)
            ));
        }
    }
    let [a, b] = background;
    let mut counted = |what: &str, a: u64, b: u64| {
        if a + b > 0 {
            let [one, other] = names;
            doubts.push(format!("{what} while it was measured: {a} on {one}, {b} on {other}"));
        }
    };
    counted("checkpoints began", a.checkpoints, b.checkpoints);
    counted("autovacuum was seen at work", a.autovacuums, b.autovacuums);
    for (index, name) in names.into_iter().enumerate() {
        let halves = octets.iter().map(|octet| &octet.sides[index]);
        let failures: u64 = halves.map(|half| half.failures + half.lead_failures).sum();
        if failures > 0 {
            let failed = terms::counted(failures, "transaction");
            doubts.push(format!("{failed} of side {name} failed"));
        }
    }
    doubts
}

/// Identical sides that differ.
pub(crate) fn of_identical(identical: &MetricRatio) -> Option<String> {
    let covers = identical.low <= 1.0 && 1.0 <= identical.high;
    (!covers).then(|| {
        format!(
            "one half of A's blocks differs from the other half, which is the same server: throughput {}",
            identical.words()
        )
    })
}

/// A side whose VACUUM and CHECKPOINT take longer, by this factor and so many seconds, does work
/// between segments that is in no figure: an index more, or what autovacuum would have done.
const TIDY_FACTOR: f64 = 1.5;
const TIDY_S: f64 = 0.25;

/// The doubt that arises where one side does more between segments than the other.
pub(crate) fn of_tidying(names: [&str; 2], [a, b]: [f64; 2]) -> Option<String> {
    let (least, most) = (a.min(b), a.max(b));
    (most > TIDY_FACTOR * least && most - least > TIDY_S).then(|| {
        let [one, other] = names;
        format!(
            "VACUUM and CHECKPOINT between segments took {a:.2} s on {one} and {b:.2} s on {other}: \
             what that costs in production is not in the figures"
        )
    })
}

/// The doubt that arises where vacuum and checkpoint were ended by their limit, so often on A and on B.
pub(crate) fn of_cut_tidying(
    names: [&str; 2],
    [a, b]: [usize; 2],
    limit: Duration,
) -> Option<String> {
    (a + b > 0).then(|| {
        let [one, other] = names;
        format!(
            "vacuum and checkpoint before a segment were not done within {} and were ended, {} on \
             {one} and {} on {other}: a part of that work may be in the figures",
            terms::duration(limit.as_secs_f64()),
            terms::counted(a as u64, "time"),
            terms::counted(b as u64, "time")
        )
    })
}

/// The changes of a side that are large, octet by octet. Both sides have the same octets: what
/// moves both alike does not move the ratio.
fn moved(octets: &[BlockOctet], side: usize, name: &str) -> Vec<String> {
    let summary = |octet: &BlockOctet| {
        let half = &octet.sides[side];
        IntervalSummary {
            transactions: half.transactions as f64,
            latency_sum_ns: half.latency.sum_ns() as f64,
            backlog: 0.0,
        }
    };
    let summaries: Vec<IntervalSummary> = octets.iter().map(summary).collect();
    // An octet takes the place of a second.
    let SteadyState::NotSteady { reasons } = steady_state(&summaries, 1.0) else {
        return Vec::new();
    };
    let told = |reason: &UnsteadyReason| match *reason {
        UnsteadyReason::Change { quantity, at_s, length_s, before, after, .. } => {
            let (from, to, digits, unit) = match quantity {
                WindowQuantity::Latency => (before / 1e6, after / 1e6, 2, "ms"),
                WindowQuantity::Throughput | WindowQuantity::Backlog => {
                    (before, after, 0, "transactions an octet")
                }
            };
            let until =
                length_s.map_or(String::new(), |octets| format!(", for {octets:.0} octets"));
            format!(
                "{name} went from {from:.digits$} to {to:.digits$} {unit} after {at_s:.0} octets{until}"
            )
        }
        UnsteadyReason::Drift(shift) => format!(
            "{} of {name} changed by {:+.0} % from the first octet to the last",
            shift.quantity.name(),
            shift.share * 100.0
        ),
        UnsteadyReason::Standstill { at_s, length_s } => {
            format!("{name} did nothing for {length_s:.0} octets after {at_s:.0}")
        }
        UnsteadyReason::NotARate => format!("figures of {name} are not numbers"),
    };
    reasons.iter().filter(|reason| reason.is_large()).map(told).collect()
}

#[cfg(test)]
mod tests {
    use record::comparison::SideBackgroundWork;

    use super::*;
    use crate::pair::observation::SideObservation;

    fn octets(transactions: impl Fn(u64) -> [u64; 2]) -> Vec<BlockOctet> {
        let octet = |index| BlockOctet {
            sides: transactions(index)
                .map(|transactions| SideObservation { transactions, ..SideObservation::default() }),
        };
        (0..30).map(octet).collect()
    }

    #[test]
    fn work_between_segments_is_told_where_it_differs() {
        let told = |a, b| of_tidying(["A", "B"], [a, b]).is_some();
        assert!(told(0.2, 0.6) && told(2.0, 0.3));
        assert!(!told(0.05, 0.2) && !told(2.0, 2.6) && !told(0.0, 0.0));
        let cut = |a, b| of_cut_tidying(["A", "B"], [a, b], Duration::from_secs(5));
        assert!(cut(0, 0).is_none());
        let doubt = cut(0, 2).expect("a doubt");
        assert!(
            doubt.contains("within 5 s") && doubt.contains("0 times on A and 2 times on B"),
            "{doubt}"
        );
    }

    #[test]
    fn each_doubt_has_its_condition() {
        let check = |octets: &[BlockOctet], conditions: MeasuringConditions, expected: &[&str]| {
            let doubts = doubts(octets, ["A", "B"], &conditions);
            assert_eq!(doubts.len(), expected.len(), "{doubts:?}");
            for (doubt, words) in doubts.iter().zip(expected) {
                assert!(doubt.contains(words), "{doubt}");
            }
        };
        let steady = octets(|_| [1_000, 900]);
        let none = MeasuringConditions::default();
        check(&steady, none, &[]);
        check(&steady, MeasuringConditions { steal_share: 0.2, ..none }, &["took 20 %"]);
        check(&steady, MeasuringConditions { busy_share_max: 0.9, ..none }, &["busy for 90 %"]);
        check(
            &steady,
            MeasuringConditions { run_delay_share_max: 0.1, ..none },
            &["waited for a CPU"],
        );
        check(&steady, MeasuringConditions { cores: Some(1), ..none }, &["one CPU"]);
        check(&steady, MeasuringConditions { cores: Some(2), ..none }, &[]);
        check(&octets(|index| [1_000, 900 - 20 * index]), none, &["throughput of B changed by -"]);
        let dip = |index| if (12..20).contains(&index) { 600 } else { 900 };
        let dips = "(B went from 900 to 600 transactions an octet after 12 octets, for 8 octets)";
        check(&octets(|index| [1_000, dip(index)]), none, &[dips]);
        check(&octets(|index| [1_000, 900 + index % 3]), none, &[]);
        let background = |change: fn(&mut SideBackgroundWork)| {
            let mut octets = steady.clone();
            octets.iter_mut().for_each(|octet| change(&mut octet.sides[1].background));
            octets
        };
        check(&background(|seen| seen.idle_cpus = Some(0.02)), none, &[]);
        let idle = background(|seen| seen.idle_cpus = Some(0.25));
        check(&idle, none, &["while side A had its turn, the servers of side B used 25 %"]);
        let checkpoints = background(|seen| seen.checkpoints = 1);
        check(&checkpoints, none, &["checkpoints began while it was measured: 0 on A, 30 on B"]);
        let vacuum = background(|seen| seen.autovacuums = 2);
        check(&vacuum, none, &["autovacuum was seen at work"]);
        let mut failing = steady;
        failing[0].sides[1].failures = 3;
        check(&failing, none, &["3 transactions of side B failed"]);
    }
}
