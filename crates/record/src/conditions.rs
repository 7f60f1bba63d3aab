//! Observations of machine and generator while sides were loaded in turn, and the doubts that
//! follow from them: the same list, with the same effect, for `pgrig compare` and for the pairs of
//! studies.

use serde::{Deserialize, Serialize};

use crate::GeneratorCost;

/// Observations of machine and generator while sides were loaded in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuringConditions {
    /// The busiest generator thread of any segment, as a share of it.
    pub busy_share_max: f64,
    /// The largest share of the clients' waiting that passed while the generator waited for a CPU.
    pub run_delay_share_max: f64,
    /// The share of CPU time that the hypervisor took away.
    pub steal_share: f64,
    /// CPUs of this machine, where the servers are on it.
    pub cores: Option<usize>,
    /// Threads of others that had a CPU or waited for one before anything was built, on the machine of the servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable_others: Option<f64>,
    /// True if a side did less than the rate that it was asked for.
    pub is_rate_missed: bool,
    /// True if B did something else with the same statements.
    #[serde(default)]
    pub is_other_work: bool,
    /// True if the sides differ in what nobody has named: collation, configuration, statistics.
    #[serde(default)]
    pub is_other_ground: bool,
    /// The larger share of failed transactions of both sides, 0 to 1.
    pub failed_share_max: f64,
    /// The share of failed transactions of A and of B.
    pub failed_shares: [f64; 2],
    /// Bounds of B's share less A's at [`MeasuringConditions::FAILED_CONFIDENCE`], from segment to segment. None where
    /// transactions failed and there are fewer than two segments, and in records of earlier versions.
    #[serde(default)]
    pub failed_difference: Option<[f64; 2]>,
}

/// What both sides' failures say about whether B fails more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedMore {
    /// The interval of the difference lies above 0.
    Shown,
    /// It does not, and what it leaves open is small, or no transaction of B failed.
    NotShown,
    /// It does not, and leaves more open than that.
    Unknown,
}

/// Reason why figures are doubtful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureDoubt {
    /// A generator thread was busy for this share of a segment.
    Busy(f64),
    /// The generator waited for a CPU during this share of what its clients waited.
    RunDelay(f64),
    /// The hypervisor took this share of the CPU time away.
    Steal(f64),
    /// Others had so many threads that could run, on so many CPUs.
    Crowd(f64, usize),
    /// A side did not reach its rate.
    RateMissed,
    /// B does something else.
    OtherWork,
    /// The sides differ in what nobody has named.
    OtherGround,
    /// This share of a side's transactions failed.
    Failed(f64),
}

/// A figure, as far as doubts make a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureClass {
    /// Transactions a second.
    Rate,
    /// A time that clients waited.
    Latency,
    /// Resources that servers used: the clients have no part in them.
    Use,
}

impl MeasuringConditions {
    /// Above this share of CPU time that the hypervisor took away, a machine is not the one that was
    /// asked about. Six rounds on a quiet machine give an interval of ± 5 %, in which less is lost.
    pub const STEAL_SHARE_MAX: f64 = 0.05;

    /// A side of which more transactions fail does other work. A difference of the sides that is not shown
    /// is excluded from there on, too.
    pub const FAILED_SHARE_MAX: f64 = 0.01;

    /// Above this many runnable threads of others for each CPU, servers and clients wait for them.
    pub const CROWD_PER_CPU_MAX: f64 = 0.5;

    /// The doubt that others use the machine.
    pub fn crowd(&self) -> Option<FigureDoubt> {
        let (runnable, cores) = self.runnable_others.zip(self.cores)?;
        let is_crowd = runnable > MeasuringConditions::CROWD_PER_CPU_MAX * cores as f64;
        is_crowd.then_some(FigureDoubt::Crowd(runnable, cores))
    }
    /// The confidence of the difference of the sides' failures. One in 200 identical sides that fail is said to
    /// fail more: the figures that decide hold together at 95 %, and this is beside them.
    pub const FAILED_CONFIDENCE: f64 = 0.99;

    /// Every doubt.
    pub fn doubts(&self) -> Vec<FigureDoubt> {
        let share = |doubt: fn(f64) -> FigureDoubt, share: f64, most: f64| {
            (share > most).then(|| doubt(share))
        };
        let all = [
            self.is_other_work.then_some(FigureDoubt::OtherWork),
            self.is_other_ground.then_some(FigureDoubt::OtherGround),
            self.crowd(),
            share(FigureDoubt::Busy, self.busy_share_max, GeneratorCost::BUSY_SHARE_MAX),
            share(
                FigureDoubt::RunDelay,
                self.run_delay_share_max,
                GeneratorCost::RUN_DELAY_SHARE_MAX,
            ),
            share(FigureDoubt::Steal, self.steal_share, MeasuringConditions::STEAL_SHARE_MAX),
            self.is_rate_missed.then_some(FigureDoubt::RateMissed),
            share(
                FigureDoubt::Failed,
                self.failed_share_max,
                MeasuringConditions::FAILED_SHARE_MAX,
            ),
        ];
        all.into_iter().flatten().collect()
    }

    /// Says if a larger share of B's transactions failed than of A's. No difference that is shown is free.
    pub fn failed_more(&self) -> FailedMore {
        let is_without = self.failed_shares[1] == 0.0;
        match self.failed_difference {
            Some([low, _]) if low > 0.0 => FailedMore::Shown,
            Some([_, high]) if high <= MeasuringConditions::FAILED_SHARE_MAX => {
                FailedMore::NotShown
            }
            _ if is_without => FailedMore::NotShown,
            _ => FailedMore::Unknown,
        }
    }

    /// The failures of both sides, and what their difference was tested against, in words.
    pub fn failures_words(&self) -> String {
        let [a, b] = self.failed_shares.map(terms::percent);
        let shares = format!("{a} of A's, {b} of B's");
        let Some(bounds) = self.failed_difference else {
            return match self.failed_shares {
                [0.0, 0.0] => shares,
                _ => format!("{shares}; an interval of the difference takes two segments"),
            };
        };
        let [low, high] = bounds.map(|bound| terms::percent(bound).replace(" %", ""));
        let confidence = MeasuringConditions::FAILED_CONFIDENCE * 100.0;
        let tested = match self.failed_more() {
            FailedMore::Shown => "B fails more",
            FailedMore::NotShown | FailedMore::Unknown => "no difference is shown",
        };
        format!(
            "{shares}; B's share less A's is within {low} and {high} percentage points \
             ({confidence} % interval from segment to segment): {tested}"
        )
    }
}

impl FigureDoubt {
    /// True if the doubt keeps a figure from being judged. `is_near_one` means that the conclusion
    /// holds only for a quotient near 1: the generator's wait for a CPU adds to both sides alike,
    /// and pulls every quotient towards 1.
    pub fn refuses(self, sort: FigureClass, is_near_one: bool) -> bool {
        match (self, sort) {
            (FigureDoubt::OtherWork | FigureDoubt::OtherGround, _) => true,
            // Both sides have the same others: they widen intervals.
            (_, FigureClass::Use) | (FigureDoubt::Crowd(..), _) => false,
            (FigureDoubt::RunDelay(_), _) => is_near_one,
            (
                FigureDoubt::Busy(_)
                | FigureDoubt::Steal(_)
                | FigureDoubt::RateMissed
                | FigureDoubt::Failed(_),
                _,
            ) => true,
        }
    }

    /// For people.
    pub fn words(self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self {
            FigureDoubt::Busy(share) => format!(
                "a generator thread was busy for {} of a segment, and was the limit (more threads: -j)",
                percent(share)
            ),
            FigureDoubt::RunDelay(share) => format!(
                "the generator waited for a CPU during {} of what clients waited, which pulls \
                 quotients towards 1 (fewer clients, or a machine with more CPUs)",
                percent(share)
            ),
            FigureDoubt::Steal(share) => {
                format!("the hypervisor took {} of the CPU time away", percent(share))
            }
            FigureDoubt::Crowd(runnable, cores) => format!(
                "the machine is used by others: {runnable:.0} runnable on {cores} CPU{}",
                if cores == 1 { "" } else { "s" }
            ),
            FigureDoubt::RateMissed => {
                "a side did not reach its rate: latencies depend on how long it was loaded"
                    .to_owned()
            }
            FigureDoubt::OtherWork => {
                "B does something else than A with the same statements".to_owned()
            }
            FigureDoubt::OtherGround => {
                "the sides differ in what no option has named (--differs)".to_owned()
            }
            FigureDoubt::Failed(share) => {
                format!("{:.1} % of a side's transactions failed", share * 100.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_doubt_has_its_condition_and_its_effect() {
        let none = MeasuringConditions::default();
        let check = |conditions: MeasuringConditions, words: &str, refused: [bool; 4]| {
            let doubts = conditions.doubts();
            let [doubt] = doubts.as_slice() else { panic!("{doubts:?}") };
            assert!(doubt.words().contains(words), "{doubt:?}");
            let figures = [
                (FigureClass::Rate, false),
                (FigureClass::Rate, true),
                (FigureClass::Latency, false),
            ];
            let of = |(sort, near)| doubt.refuses(sort, near);
            let [rate, near, latency] = figures.map(of);
            assert_eq!([rate, near, latency, of((FigureClass::Use, true))], refused, "{doubt:?}");
        };
        assert_eq!(none.doubts(), []);
        let all = [true, true, true, false];
        check(MeasuringConditions { busy_share_max: 0.92, ..none }, "busy for 92 %", all);
        check(MeasuringConditions { steal_share: 0.2, ..none }, "took 20 %", all);
        check(MeasuringConditions { failed_share_max: 0.025, ..none }, "2.5 %", all);
        let crowd = MeasuringConditions { runnable_others: Some(14.2), cores: Some(2), ..none };
        check(crowd, "used by others: 14 runnable on 2 CPUs", [false; 4]);
        assert_eq!(MeasuringConditions { runnable_others: Some(0.9), ..crowd }.crowd(), None);
        let delay = MeasuringConditions { run_delay_share_max: 0.1, ..none };
        check(delay, "10 % of what clients waited", [false, true, false, false]);
        let missed = MeasuringConditions { is_rate_missed: true, ..none };
        check(missed, "did not reach its rate", all);
        let other = MeasuringConditions { is_other_work: true, ..none };
        check(other, "does something else", [true; 4]);
        let ground = MeasuringConditions { is_other_ground: true, ..none };
        check(ground, "no option has named", [true; 4]);
    }
}
