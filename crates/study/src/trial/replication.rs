//! Course of replication in a trial: standbys that took another's place, and times at which
//! standbys had caught up.

use std::collections::BTreeMap;

use probe::StandbyTakeover;
use record::{Moment, Sample};
use server::StandbyDemand;
use spec::metrics;

use measure::NodeDeath;

/// The longest time, in nanoseconds, from the end of one of these standbys until the log of their
/// primary `node` said that another one was synchronous; none where none took a place. One that
/// came back to its own place left it free.
pub(crate) fn handover_ns<'d>(
    node: &str,
    deaths: impl Iterator<Item = &'d NodeDeath>,
    takeovers: &[StandbyTakeover],
) -> Option<u64> {
    let took = |death: &NodeDeath| {
        let mut later = takeovers.iter().filter(|one| one.node == node && one.at >= death.from);
        let next = later.next()?;
        (next.standby != death.node).then(|| next.at.since(death.from))
    };
    deaths.filter_map(took).max()
}

/// The longest time, in nanoseconds, from the restart of one of these standbys until the log of their
/// primary `node` said that it was synchronous again; none where none took its place back.
pub(crate) fn return_ns<'d>(
    node: &str,
    deaths: impl Iterator<Item = &'d NodeDeath>,
    takeovers: &[StandbyTakeover],
) -> Option<u64> {
    let took_back = |death: &NodeDeath| {
        let restarted = death.restarted?;
        let mut later = takeovers.iter().filter(|one| one.node == node && one.at >= restarted);
        later.find(|one| one.standby == death.node).map(|one| one.at.since(restarted))
    };
    deaths.filter_map(took_back).max()
}

/// Since when, until `until` without a break, as many standbys of `node` as are asked for had
/// caught up: at each reading of `pg_stat_replication` they had flushed whatever had been written
/// by the reading before. It is the moment of the last reading that shows something else, and thus
/// up to a second too early; `from` if there is none.
pub(crate) fn caught_up_since(
    samples: &[Sample],
    node: &str,
    asked: &StandbyDemand,
    from: Moment,
    until: Moment,
) -> Moment {
    let mine = || samples.iter().filter(|sample| sample.node == node && sample.at <= until);
    let mut lags: BTreeMap<Moment, Vec<f64>> = BTreeMap::new();
    let lag = &metrics::REPLICATION_FLUSH_LAG_BYTES;
    for sample in mine().filter(|sample| sample.is_of(lag)) {
        if asked.priority(&sample.label).is_some() {
            lags.entry(sample.at).or_default().push(sample.value);
        }
    }
    let rates: BTreeMap<Moment, f64> = mine()
        .filter(|sample| sample.is_of(&metrics::WAL_BYTES))
        .map(|sample| (sample.at, sample.value))
        .collect();
    let mut since = from;
    for ((before, _), (at, rate)) in rates.iter().zip(rates.iter().skip(1)) {
        let written = rate * at.since(*before) as f64 / 1e9;
        let caught_up = lags.get(at).into_iter().flatten().filter(|lag| **lag <= written);
        if *at > from && caught_up.count() < asked.count {
            since = *at;
        }
    }
    since
}

#[cfg(test)]
mod tests {
    use server::SyncStandbysSetting;

    use super::*;

    fn seconds(s: f64) -> Moment {
        Moment((s * 1e9) as u64)
    }

    fn takeovers(took: &[(f64, &str)]) -> Vec<StandbyTakeover> {
        let takeover = |(at, standby): &(f64, &str)| StandbyTakeover {
            at: seconds(*at),
            node: "primary".to_owned(),
            standby: (*standby).to_owned(),
        };
        took.iter().map(takeover).collect()
    }

    #[test]
    fn a_place_is_taken_by_another_standby() {
        let death = |node: &str, at| NodeDeath {
            is_sudden: true,
            node: node.to_owned(),
            from: seconds(at),
            until: seconds(at + 0.1),
            restarted: None,
            back: None,
            is_power_cut: false,
        };
        let check = |deaths: &[NodeDeath], took: &[(f64, &str)], expected: Option<f64>| {
            let takeovers = takeovers(took);
            let expected = expected.map(|expected| seconds(expected).0);
            assert_eq!(handover_ns("primary", deaths.iter(), &takeovers), expected, "{took:?}");
            assert_eq!(handover_ns("other", deaths.iter(), &takeovers), None);
        };
        check(&[death("a", 4.0)], &[(4.25, "b"), (9.0, "a")], Some(0.25));
        check(&[death("a", 4.0)], &[(1.0, "a")], None);
        check(
            &[death("a", 4.0), death("b", 5.0)],
            &[(4.5, "b"), (9.0, "b"), (12.0, "a")],
            Some(0.5),
        );
    }

    #[test]
    fn a_standby_takes_its_place_back_after_its_restart() {
        let check = |restarted: Option<f64>, took: &[(f64, &str)], expected: Option<f64>| {
            let death = NodeDeath {
                is_sudden: true,
                node: "a".to_owned(),
                from: seconds(4.0),
                until: seconds(4.1),
                restarted: restarted.map(seconds),
                back: restarted.map(seconds),
                is_power_cut: false,
            };
            let takeovers = takeovers(took);
            let expected = expected.map(|expected| seconds(expected).0);
            assert_eq!(return_ns("primary", [death].iter(), &takeovers), expected, "{took:?}");
        };
        check(Some(9.0), &[(4.5, "b"), (9.5, "a")], Some(0.5));
        check(Some(9.0), &[(1.0, "a"), (4.5, "b")], None);
        check(None, &[(4.5, "b"), (9.5, "a")], None);
    }

    #[test]
    fn a_standby_has_caught_up_when_it_has_what_was_written_a_second_ago() {
        let asked = |text: &str| match text.parse() {
            Ok(SyncStandbysSetting::Sync(asked)) => asked,
            _ => panic!("{text} asks for no standby"),
        };
        // Second by second, 1,000 bytes are written in each, and so far behind are a and b.
        let check = |a: &[f64], b: &[f64], text: &str, expected: f64| {
            let mut samples = Vec::new();
            for second in 0..a.len().max(b.len()) {
                let mut add = |metric: &str, label: &str, value| {
                    let (at, node) = (seconds(second as f64), "primary".to_owned());
                    let (metric, label) = (metric.to_owned(), label.to_owned());
                    samples.push(Sample { at, node, metric, label, value });
                };
                add("wal_bytes", "", 1_000.0);
                for (name, lags) in [("a", a), ("b", b)] {
                    let lag = lags.get(second).copied().filter(|lag| lag.is_finite());
                    lag.into_iter().for_each(|lag| add("replication_flush_lag_bytes", name, lag));
                }
            }
            let (asked, from, until) = (asked(text), seconds(1.5), seconds(6.5));
            let since = caught_up_since(&samples, "primary", &asked, from, until);
            assert_eq!(since, seconds(expected), "{text}: {a:?}, {b:?}");
        };
        const GONE: f64 = f64::NAN;
        let back = [0.0, 0.0, GONE, GONE, 9_000.0, 1_000.0, 0.0, 0.0];
        check(&back, &[], "FIRST 1 (a, b)", 4.0);
        check(&back, &[0.0; 8], "FIRST 1 (a)", 4.0);
        check(&back, &[0.0; 8], "ANY 1 (a, b)", 1.5);
        check(&back, &[0.0; 8], "ANY 2 (a, b)", 4.0);
        // It came and went again.
        check(&[0.0, GONE, 0.0, GONE, 0.0, 0.0, 0.0], &[], "a", 3.0);
        check(&[GONE; 8], &[], "a", 6.0);
    }
}
