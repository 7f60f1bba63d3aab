//! Reservations: what keeps a verdict on throughput from being said although its interval is clear.

use super::{ComparedMetric, FigureVerdict, MetricRatio, OpenRisk, PairResults};

/// What speaks against a verdict on throughput.
#[derive(Clone, Debug, PartialEq)]
pub enum VerdictReservation {
    /// A rare event is not excluded.
    Rare(OpenRisk),
    /// Neighbouring segments resemble each other, with this correlation.
    AlikeNeighbours(f64),
    /// B ÷ A still changes when a segment ends: its second half ÷ its first.
    Trend(MetricRatio),
    /// A side leaves work to the other's turn, or to the time between segments.
    WorkLeft {
        /// The side: 0 for A.
        side: usize,
        /// The work.
        left: WorkLeft,
    },
}

impl VerdictReservation {
    /// For people: a clause that can stand behind "for".
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            VerdictReservation::Rare(risk) => risk.words(),
            VerdictReservation::AlikeNeighbours(correlation) => format!(
                "neighbouring segments are alike (correlation {correlation:.2}): so few of them do not show the mean"
            ),
            VerdictReservation::Trend(trend) => format!(
                "B ÷ A changes within a segment, from its first half to its second: {}; it may go on (--segment \
                 measures for longer after a start)",
                trend.words()
            ),
            VerdictReservation::WorkLeft { side, left } => left.words(*side),
        }
    }
}

/// A side that does so much of the machine's work in the other one's turn, more than that one does in its own, is charged.
const LEFT_MIN: f64 = 0.02;

/// VACUUM and CHECKPOINT between segments take a side longer where they take this many times as long as the other
/// side, and so many seconds more.
const TIDY_TIMES: f64 = 1.5;
const TIDY_MORE_S: f64 = 0.25;

impl PairResults {
    /// The same with no verdict on throughput that there is a [`VerdictReservation`] against.
    #[must_use]
    pub fn with_reservations(mut self, threshold: f64, horizon_s: Option<f64>) -> PairResults {
        let reserved = self.figure(ComparedMetric::Throughput).and_then(|figure| {
            self.reservation(figure.verdict, figure.b_over_a.as_ref()?, threshold, horizon_s)
        });
        if reserved.is_some() {
            let throughput =
                self.figures.iter_mut().find(|one| one.metric == ComparedMetric::Throughput);
            throughput.into_iter().for_each(|figure| figure.verdict = FigureVerdict::CannotTell);
        }
        self
    }

    /// What keeps this verdict on throughput from being said, with this threshold, and up to this horizon in seconds where
    /// one was asked for.
    #[must_use]
    pub fn reservation(
        &self,
        verdict: FigureVerdict,
        ratio: &MetricRatio,
        threshold: f64,
        horizon_s: Option<f64>,
    ) -> Option<VerdictReservation> {
        if verdict == FigureVerdict::CannotTell {
            return None;
        }
        let beyond = horizon_s.and_then(|horizon_s| self.rare?.beyond(horizon_s));
        let unseen = || self.rare.filter(|_| verdict == FigureVerdict::Equal)?.open(threshold);
        let rare = beyond.or_else(unseen).map(VerdictReservation::Rare);
        rare.or_else(|| self.neighbours.map(VerdictReservation::AlikeNeighbours))
            .or_else(|| self.lasting_trend(verdict, threshold))
            .or_else(|| self.work_left(verdict, ratio, threshold))
    }

    /// A quotient that still changes when a segment ends.
    fn lasting_trend(&self, verdict: FigureVerdict, threshold: f64) -> Option<VerdictReservation> {
        let trend = self.trend.as_ref()?;
        let falls = trend.high < 1.0;
        let matters = match verdict {
            FigureVerdict::Equal => true,
            FigureVerdict::Better => falls,
            FigureVerdict::Worse => !falls,
            FigureVerdict::CannotTell => false,
        };
        let is_large = trend.value.ln().abs() > threshold.ln_1p() / 2.0;
        let is_shown = falls || trend.low > 1.0;
        (is_large && is_shown && matters).then(|| VerdictReservation::Trend(trend.clone()))
    }

    /// Work that a side leaves to the other's turn, or to the time between segments.
    fn work_left(
        &self,
        verdict: FigureVerdict,
        ratio: &MetricRatio,
        threshold: f64,
    ) -> Option<VerdictReservation> {
        let left = self.left();
        let speed = |side: usize| left[side].speed();
        // The side with more of it is not as fast as it seems.
        let (low, high) = (ratio.low * speed(1), ratio.high / speed(0));
        let (is_changed, side) = match verdict {
            FigureVerdict::Better => (low <= 1.0, 1),
            FigureVerdict::Worse => (high >= 1.0, 0),
            FigureVerdict::Equal if low < 1.0 / (1.0 + threshold) => (true, 1),
            FigureVerdict::Equal => (high > 1.0 + threshold, 0),
            FigureVerdict::CannotTell => (false, 0),
        };
        let left = left[side];
        (is_changed && speed(side) < 1.0).then_some(VerdictReservation::WorkLeft { side, left })
    }

    /// What each side leaves undone in its own turns, beyond what the other one does.
    fn left(&self) -> [WorkLeft; 2] {
        let cores = self.conditions.cores.filter(|cores| *cores > 0);
        let throughput =
            self.figure(ComparedMetric::Throughput).and_then(|figure| figure.b_over_a.as_ref());
        let faster = throughput.map_or(1.0, |ratio| ratio.value);
        [0, 1].map(|side: usize| {
            let idle = |side: usize| self.background[side].idle_cpus;
            let cpu = match (idle(side), idle(1 - side), cores) {
                (Some(own), Some(other), Some(cores)) => (own - other) / cores as f64,
                _ => 0.0,
            };
            // A side that does more has more to tidy up.
            let more = if side == 1 { faster } else { 1.0 / faster };
            let (own_s, other_s) =
                (self.instances.tidy_s[side] / more, self.instances.tidy_s[1 - side]);
            let is_longer = own_s > TIDY_TIMES * other_s && own_s - other_s > TIDY_MORE_S;
            let segments = self.instances.segments.max(1) as f64;
            // Where it is not known how long a side worked, its work between segments is not
            // charged.
            let worked_s = self.rare.map_or(0.0, |rare| rare.standstills[side].worked_s) / segments;
            let tidy_s = if is_longer && worked_s > 0.0 { own_s - other_s } else { 0.0 };
            WorkLeft { cpu: if cpu > LEFT_MIN { cpu.min(0.9) } else { 0.0 }, tidy_s, worked_s }
        })
    }
}

/// What a side leaves undone in its own turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkLeft {
    /// Share of the machine's CPU time that it uses in the other side's turns.
    cpu: f64,
    /// Seconds of VACUUM and CHECKPOINT after a segment.
    tidy_s: f64,
    /// Seconds of a segment in which it worked.
    worked_s: f64,
}

impl WorkLeft {
    /// The speed if it did that work in its own turns, and the other side were not kept from its own by it.
    fn speed(self) -> f64 {
        let tidied = if self.tidy_s > 0.0 { 1.0 + self.tidy_s / self.worked_s } else { 1.0 };
        (1.0 - self.cpu).powi(2) / tidied
    }

    fn words(self, side: usize) -> String {
        let (own, other) = if side == 0 { ("A", "B") } else { ("B", "A") };
        let mut parts = Vec::new();
        if self.cpu > 0.0 {
            let percent = terms::percent(self.cpu);
            parts.push(format!(
                "{percent} of the machine's CPU time goes to {own} while {other} has its turn"
            ));
        }
        if self.tidy_s > 0.0 {
            parts.push(format!(
                "VACUUM and CHECKPOINT after a segment take {own} {:.2} s longer for as many transactions",
                self.tidy_s
            ));
        }
        let figure = terms::figure(self.speed());
        format!(
            "{own} leaves work undone in its turns ({}); done there, it may be {figure} times as fast as it seems",
            parts.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MeasuringConditions;
    use crate::comparison::{InstanceFindings, RareEvents, SideBackgroundWork, SideStandstills};

    fn ratio(value: f64, half: f64) -> MetricRatio {
        let (low, high) = (value * (1.0 - half), value * (1.0 + half));
        MetricRatio { value, low, high, confidence: 0.975, n: 30, method: String::new() }
    }

    fn shown() -> PairResults {
        let worked = SideStandstills { worked_s: 200.0, ..SideStandstills::default() };
        let rare = RareEvents { standstills: [worked; 2], restarts: 30, ..RareEvents::default() };
        let idle =
            |cpus| SideBackgroundWork { idle_cpus: Some(cpus), ..SideBackgroundWork::default() };
        PairResults {
            rare: Some(rare),
            background: [idle(0.02), idle(0.02)],
            instances: InstanceFindings {
                segments: 30,
                tidy_s: [0.2, 0.2],
                ..InstanceFindings::default()
            },
            conditions: MeasuringConditions { cores: Some(2), ..MeasuringConditions::default() },
            ..PairResults::default()
        }
    }

    #[test]
    fn each_reservation_has_its_verdicts() {
        use FigureVerdict::{Better, Equal, Worse};
        let check = |shown: &PairResults, verdict, value: f64, expected: &str| {
            let seen = shown.reservation(verdict, &ratio(value, 0.01), 0.03, None);
            let words = seen.map_or(String::new(), |one| one.words());
            let is_right =
                if expected.is_empty() { words.is_empty() } else { words.contains(expected) };
            assert!(is_right, "{verdict:?} {value}: {words}");
        };
        let quiet = shown();
        check(&quiet, Equal, 1.0, "");
        check(&quiet, Better, 1.11, "");
        check(&quiet, Better, 0.99, "");
        // B leaves a tenth of two CPUs' time to A's turns.
        let mut left = shown();
        left.background[1].idle_cpus = Some(0.22);
        check(
            &left,
            Better,
            1.11,
            "B leaves work undone in its turns (10 % of the machine's CPU time",
        );
        check(&left, Better, 1.5, "");
        check(&left, Worse, 0.9, "");
        check(&left, Equal, 1.0, "B leaves work undone");
        left.background = [left.background[1], left.background[0]];
        check(&left, Worse, 0.9, "A leaves work undone");
        // As much on both sides is charged to none.
        left.background = [left.background[0]; 2];
        check(&left, Better, 1.11, "");
        let mut tidy = shown();
        tidy.instances.tidy_s = [0.2, 1.2];
        check(&tidy, Better, 1.05, "VACUUM and CHECKPOINT after a segment take B 1.00 s longer");
        check(&tidy, Worse, 0.95, "");
        let mut alike = shown();
        alike.neighbours = Some(0.7);
        check(&alike, Worse, 0.9, "neighbouring segments are alike (correlation 0.70)");
        let mut falls = shown();
        falls.trend = Some(ratio(0.9, 0.02));
        check(&falls, Equal, 1.0, "changes within a segment");
        check(&falls, Better, 1.1, "changes within a segment");
        check(&falls, Worse, 0.9, "");
        falls.trend = Some(ratio(0.9, 0.2));
        check(&falls, Equal, 1.0, "");
    }

    #[test]
    fn a_horizon_beyond_what_was_seen_keeps_everything_back() {
        let far = shown().reservation(FigureVerdict::Worse, &ratio(0.5, 0.01), 0.03, Some(300.0));
        assert!(far.is_some_and(|one| one.words().contains("--horizon asks for 5 min")));
        assert!(
            shown()
                .reservation(FigureVerdict::Worse, &ratio(0.5, 0.01), 0.03, Some(60.0))
                .is_none()
        );
    }
}
