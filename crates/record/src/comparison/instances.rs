//! Restarts of the servers of a comparison, and the amount by which a new instance changes figures.
//!
//! Two identical servers differ lastingly, by which memory and which files each of them got. What
//! stays the same during a comparison is in no interval, so servers are restarted again and again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ComparedMetric, MetricRatio};

/// Treatment of the servers between two segments of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerRenewal {
    /// Each side keeps the server that it began with.
    #[default]
    Kept,
    /// Both sides are sessions of one server.
    Shared,
    /// Both sides' servers are restarted.
    Restarted,
    /// The same, and the sides exchange their files, so that each has the original as often as the
    /// copy.
    Exchanged,
}

impl ServerRenewal {
    /// True if every segment has a new instance of each server.
    #[must_use]
    pub fn restarts(self) -> bool {
        matches!(self, ServerRenewal::Restarted | ServerRenewal::Exchanged)
    }
}

/// Findings from the instances of the servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceFindings {
    /// Treatment of the servers between two segments.
    pub renewal: ServerRenewal,
    /// Segments: with [`ServerRenewal::restarts`], so many instances of each side were measured.
    pub segments: usize,
    /// By how much B ÷ A lastingly differs from one segment to the next: the standard deviation of
    /// its logarithm, without what the two halves of a segment do not have in common.
    pub spread: BTreeMap<ComparedMetric, f64>,
    /// Throughput with the copied files ÷ throughput with the original ones, whichever side had them.
    pub copied: Option<MetricRatio>,
    /// Average duration of a restart, warming up included, in seconds.
    pub restart_s: f64,
    /// Average duration of VACUUM and CHECKPOINT of A and of B before each segment, in seconds.
    pub tidy_s: [f64; 2],
    /// Known differences between identical servers on this machine.
    pub floor: NoiseFloor,
}

/// By how much identical servers differ on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseFloor {
    /// The standard deviation of the logarithm of B ÷ A from one pair of instances to another.
    pub spread: BTreeMap<ComparedMetric, f64>,
    /// The restarts of identical servers that it was measured with; 0 where it is an assumption.
    pub restarts: usize,
}

/// The spread of throughput and latency where it was not measured: that of the virtual machine with
/// two CPUs on which pgrig is developed.
pub const SPREAD_ASSUMED: f64 = 0.015;

/// A spread that is measured to be smaller is taken for this: it is itself measured with some error.
const SPREAD_MIN: f64 = 0.003;

/// 95 % of a normal distribution lie within so many standard deviations.
const WITHIN: f64 = 1.96;

impl NoiseFloor {
    /// Differences between identical servers, each comparison weighed by its restarts.
    pub fn of<'c>(comparisons: impl IntoIterator<Item = &'c InstanceFindings>) -> NoiseFloor {
        let mut floor = NoiseFloor::default();
        let mut sums: BTreeMap<ComparedMetric, (f64, usize)> = BTreeMap::new();
        let has_spread = |one: &&InstanceFindings| one.renewal.restarts() && !one.spread.is_empty();
        for one in comparisons.into_iter().filter(has_spread) {
            floor.restarts += one.segments;
            for (metric, spread) in &one.spread {
                let sum = sums.entry(*metric).or_default();
                sum.0 += spread * spread * one.segments as f64;
                sum.1 += one.segments;
            }
        }
        let mean = |(squares, restarts): (f64, usize)| (squares / restarts.max(1) as f64).sqrt();
        floor.spread = sums.into_iter().map(|(metric, sum)| (metric, mean(sum))).collect();
        floor
    }

    /// The spread of one pair of instances.
    #[must_use]
    pub fn spread(&self, metric: ComparedMetric) -> f64 {
        self.spread.get(&metric).map_or(SPREAD_ASSUMED, |spread| spread.max(SPREAD_MIN))
    }

    /// Bound that the mean over so many instances of identical servers stays within in 95 of 100
    /// comparisons, as a share.
    #[must_use]
    pub fn share(&self, metric: ComparedMetric, instances: usize) -> f64 {
        (WITHIN * self.spread(metric) / (instances.max(1) as f64).sqrt()).exp_m1()
    }
}

impl InstanceFindings {
    /// Restarts of the servers and what they have shown, in sentences for people.
    #[must_use]
    pub fn words(&self, headline: ComparedMetric) -> Vec<String> {
        let InstanceFindings { renewal, segments, restart_s, tidy_s: [a, b], .. } = *self;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let times = terms::counted(segments as u64, "time");
        let mut words = Vec::new();
        words.push(match renewal {
            ServerRenewal::Kept => "The servers were not restarted: the interval is wider by what \
                              identical servers lastingly differ by."
                .to_owned(),
            ServerRenewal::Shared => "Both sides were sessions of one server.".to_owned(),
            ServerRenewal::Restarted => format!(
                "Both servers were restarted {times}, each with its own files; a restart \
                 took {restart_s:.1} s with its warm-up."
            ),
            ServerRenewal::Exchanged => format!(
                "Both servers were restarted {times}, and the sides exchanged their files \
                 in half of them; a restart took {restart_s:.1} s with its warm-up."
            ),
        });
        if let Some(spread) = self.spread.get(&headline).filter(|_| renewal.restarts()) {
            let (spread, what) = (percent(*spread), headline.words());
            words.push(format!(
                "From one restart to the next, B ÷ A of the {what} differs by a standard deviation \
                 of {spread} beyond what blocks do."
            ));
        }
        if let Some(copied) = &self.copied {
            words.push(format!(
                "With the copied files, throughput is {} of that with the original ones.",
                copied.words()
            ));
        }
        if renewal != ServerRenewal::Shared {
            let floor = percent(self.floor(headline));
            let is_known = self.floor.spread.contains_key(&headline);
            let from = match self.floor.restarts {
                _ if !is_known => format!(
                    "assumed: instances differ by {} (pgrig compare --self measures it here)",
                    percent(SPREAD_ASSUMED)
                ),
                n => format!(
                    "measured in {} of identical servers on this machine",
                    terms::counted(n as u64, "restart")
                ),
            };
            words.push(format!(
                "Nothing within ± {floor} of 1 is called faster, slower or equal ({from})."
            ));
        }
        if a.max(b) > 0.0 {
            words.push(format!(
                "VACUUM and CHECKPOINT before each segment took {a:.2} s on A and {b:.2} s on B, \
                 and are in no other figure."
            ));
        }
        words
    }

    /// By how much the logarithm of a ratio may be off for good, because the servers were never restarted; 0
    /// where they were, and every interval contains it.
    #[must_use]
    pub fn lasting(&self, metric: ComparedMetric) -> f64 {
        if self.renewal == ServerRenewal::Kept { self.floor(metric).ln_1p() } else { 0.0 }
    }

    /// The smallest share by which sides may be said to differ, or within which to be equal.
    #[must_use]
    pub fn floor(&self, metric: ComparedMetric) -> f64 {
        match self.renewal {
            ServerRenewal::Shared => 0.0,
            ServerRenewal::Kept => self.floor.share(metric, 1),
            ServerRenewal::Restarted | ServerRenewal::Exchanged => {
                self.floor.share(metric, self.segments)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_pooled_and_falls_with_the_root_of_restarts() {
        let of = |renewal, segments, spread: f64| InstanceFindings {
            renewal,
            segments,
            spread: BTreeMap::from([(ComparedMetric::Throughput, spread)]),
            ..InstanceFindings::default()
        };
        let all = [
            of(ServerRenewal::Exchanged, 30, 0.01),
            of(ServerRenewal::Restarted, 10, 0.03),
            of(ServerRenewal::Kept, 100, 0.5),
        ];
        let floor = NoiseFloor::of(&all);
        let spread = ((30.0 * 0.0001 + 10.0 * 0.0009) / 40.0_f64).sqrt();
        assert!(
            (floor.spread(ComparedMetric::Throughput) - spread).abs() < 1e-12
                && floor.restarts == 40
        );
        assert_eq!(floor.spread(ComparedMetric::P99), SPREAD_ASSUMED);
        let one = floor.share(ComparedMetric::Throughput, 1);
        assert!((one - (1.96 * spread).exp_m1()).abs() < 1e-12);
        assert!(
            (floor.share(ComparedMetric::Throughput, 25).ln_1p() * 5.0 - one.ln_1p()).abs() < 1e-12
        );
        // A short one has no spread: what is assumed in its place was not measured in its restarts.
        let short =
            InstanceFindings { spread: BTreeMap::new(), ..of(ServerRenewal::Restarted, 3, 0.0) };
        assert_eq!(NoiseFloor::of([&short]), NoiseFloor::default());
        let words = InstanceFindings { floor: NoiseFloor::of(&all), ..all[0].clone() };
        let check = |headline, expected: &str| {
            let words = words.words(headline).join(" ");
            assert!(words.contains(expected), "{words}");
        };
        check(ComparedMetric::Throughput, "(measured in 40 restarts");
        check(ComparedMetric::P99, "(assumed: instances differ by 1.5 %");
        let quiet = NoiseFloor::of(&[of(ServerRenewal::Exchanged, 9, 0.0)]);
        assert_eq!(quiet.spread(ComparedMetric::Throughput), SPREAD_MIN);
    }
}
