//! What two sides have shown that were loaded in turn, and the comparison of two sides that `pgrig compare`
//! makes.

mod background;
mod instances;
mod metric;
mod production;
mod rare;
mod ratio;
mod reservation;
mod shown;
mod sides;
mod slowdown;
mod statements;
mod study;
mod tails;
mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FigureClass, FigureDoubt, MeasuringConditions};

pub use background::SideBackgroundWork;
pub use instances::{InstanceFindings, NoiseFloor, SPREAD_ASSUMED, ServerRenewal};
pub use metric::ComparedMetric;
pub use production::{ChangedSetting, GivenOfProduction};
pub use rare::{OpenRisk, RareEvents, SideStandstills, with_standstills};
pub use ratio::MetricRatio;
pub use reservation::{VerdictReservation, WorkLeft};
pub use shown::{PairResults, PlannedLooks};
pub use slowdown::{ExecutedPlan, PlanNode, SlowdownCure, SlowdownReason, WrongEstimate};
pub use statements::{ProductionForecast, StatementComparison, StatementTimes, StatementVerdict};
pub use tails::ComparedTails;
pub use work::WorkComparison;

/// The part of a record's first page that only `pgrig compare` has: what was asked, and what the sides are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The commit that was compared, where the environment names one.
    pub commit: Option<String>,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// pgbench's options, which say what the load is; empty with a study.
    pub workload: String,
    /// Side A.
    pub a: ComparisonSide,
    /// Side B.
    pub b: ComparisonSide,
    /// The point of a study whose load it is; none where pgbench's options say what the load is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<ComparedPoint>,
    /// True if B is a copy of A on purpose.
    #[serde(rename = "self")]
    pub is_self: bool,
    /// Origin of the data of both sides.
    pub data: DataOrigin,
    /// The file of the data of both sides, as it was named; none for pgbench's tables and for those of a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_file: Option<String>,
    /// The settings that pgrig gave both servers by itself.
    pub set: Vec<(String, String)>,
    /// Transactions a second that each side is asked for; none where a client begins one as soon as
    /// the one before has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The half-width that was asked for, as a share.
    pub precision: f64,
    /// A difference below this share counts as none.
    pub threshold: f64,
    /// Standstills that are as rare as one in so many seconds must be excluded, or nothing is said; none where that was not
    /// asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon_s: Option<f64>,
    /// The deciding figures' intervals hold together at this level, the others each by itself.
    pub confidence: f64,
    /// The figures that the answer rests on, at least one; it begins with the first.
    pub decides: Vec<ComparedMetric>,
    /// Defaults and build options of the servers that differ without being asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<ServerDifference>,
    /// What fails the command and the cases for CI; none where the comparison only reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<FailOn>,
    /// What servers of pgrig's were given of production.
    #[serde(default, skip_serializing_if = "GivenOfProduction::is_nothing")]
    pub given: GivenOfProduction,
}

/// A default, a build option or another property in which the servers of both sides differ without being asked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerDifference {
    /// The setting, as `effective_io_concurrency`, the build option, as `compiler`, the extension, or a property of
    /// the database, as `collation`.
    pub name: String,
    /// On A; none where A's PostgreSQL does not have it.
    pub a: Option<String>,
    /// The same on B.
    pub b: Option<String>,
    /// The option of `pgrig compare` that makes the sides alike; none if no option does.
    pub level: Option<String>,
}

impl ServerDifference {
    /// True if both sides have it, or an option makes them alike. The others are settings that a new version brings.
    #[must_use]
    pub fn is_told_first(&self) -> bool {
        (self.a.is_some() && self.b.is_some()) || self.level.is_some()
    }

    /// `collation is C on A and C.UTF-8 on B`
    #[must_use]
    pub fn words(&self) -> String {
        let ServerDifference { name, a, b, .. } = self;
        match (a, b) {
            (Some(a), Some(b)) => format!("{name} is {a} on A and {b} on B"),
            (Some(a), None) => format!("{name} is {a} on A and not there on B"),
            (None, Some(b)) => format!("{name} is not there on A and {b} on B"),
            (None, None) => format!("{name} differs"),
        }
    }
}

/// Answers that fail a comparison with `--gate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailOn {
    /// B is worse.
    Worse,
    /// B is worse, or it cannot be told whether it is.
    WorseOrUnknown,
}

/// One side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonSide {
    /// The variant of a study whose servers these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The PostgreSQL.
    pub version: String,
    /// Directory of its programs; none for a server that pgrig did not start.
    pub bin: Option<String>,
    /// What its programs were built from, as far as that is known: `commit 1a2b3c4d5e Faster sort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Address of a server that pgrig did not start, without a password.
    pub server: Option<String>,
    /// Settings of its own.
    pub settings: Vec<(String, String)>,
    /// The options with which initdb made its data directory, in the place of the server's defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initdb: Vec<String>,
    /// The script that was run on it alone.
    pub sql: Option<String>,
}

/// The point of a study at which two variants are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparedPoint {
    /// The study's name.
    pub study: String,
    /// The scenario.
    pub scenario: String,
    /// A value for each of its axes, as written.
    pub axes: BTreeMap<String, String>,
}

impl ComparedPoint {
    /// `pool/reads clients=16`
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = format!("{}/{}", self.study, self.scenario);
        for (axis, value) in &self.axes {
            words.push_str(&format!(" {axis}={value}"));
        }
        words
    }
}

/// Origin of the data of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataOrigin {
    /// File by file.
    #[default]
    Copied,
    /// By the same statements, from the same seed.
    LoadedTwice,
    /// They were there before; rows were compared.
    Found,
    /// B's by pg_upgrade from A's; rows were compared.
    Upgraded,
}

/// Reason why a comparison ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonStop {
    /// It has not ended, or never began.
    #[default]
    Running,
    /// The interval of throughput is as narrow as was asked for.
    Precision,
    /// Each deciding figure lies wholly within the threshold or wholly beyond it.
    Decided,
    /// The time is over.
    Time,
    /// The user interrupted it.
    Interrupted,
    /// A client of a side ended with an error.
    Died,
    /// B does something else than A: no speed is compared.
    OtherWork,
}

impl ComparisonStop {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ComparisonStop::Running => "it is still running",
            ComparisonStop::Precision => "the precision is reached",
            ComparisonStop::Decided => "the threshold is decided",
            ComparisonStop::Time => "the time is over",
            ComparisonStop::Interrupted => "interrupted",
            ComparisonStop::Died => "a client failed",
            ComparisonStop::OtherWork => "B does something else",
        }
    }
}

/// Conclusion about one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureVerdict {
    /// B is better by more than chance.
    Better,
    /// B is worse by more than chance.
    Worse,
    /// The difference is smaller than the threshold: the whole interval lies within it.
    Equal,
    /// The interval contains 1 and reaches beyond the threshold.
    CannotTell,
}

impl FigureVerdict {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            FigureVerdict::Better => "better",
            FigureVerdict::Worse => "worse",
            FigureVerdict::Equal => "equal",
            FigureVerdict::CannotTell => "cannot tell",
        }
    }

    /// For programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FigureVerdict::CannotTell => "cannot_tell",
            other => other.words(),
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonFigure {
    /// Metric of the figure.
    pub metric: ComparedMetric,
    /// The unit of the sides' values.
    pub unit: String,
    /// The value of side A.
    pub a: f64,
    /// The value of side B.
    pub b: f64,
    /// B ÷ A; none where there is too little to compute an interval from.
    pub b_over_a: Option<MetricRatio>,
    /// Conclusion about it.
    pub verdict: FigureVerdict,
    /// True if the answer rests on it.
    pub deciding: bool,
}

impl ComparisonFigure {
    /// True if both sides show next to nothing of it, and so no quotient: 0 and 0 are equal.
    #[must_use]
    pub fn is_of_nothing(&self) -> bool {
        self.a.max(self.b) < self.metric.negligible()
    }

    /// True if one side shows none of it at all, and the other one does: that has no quotient.
    #[must_use]
    pub fn is_of_one_side(&self) -> bool {
        !self.is_of_nothing() && (self.a == 0.0 || self.b == 0.0)
    }

    /// Why it has no quotient, in two or three words.
    #[must_use]
    pub fn lacking(&self) -> &'static str {
        match () {
            () if self.is_of_nothing() => "next to nothing",
            () if self.is_of_one_side() => "none on one side",
            () => "nothing can be said",
        }
    }

    /// The doubt about the conditions that keeps it from being judged. One that pulls quotients
    /// towards 1 matters only where the whole interval is within this threshold of 1.
    #[must_use]
    pub fn refusal(&self, conditions: &MeasuringConditions, threshold: f64) -> Option<FigureDoubt> {
        let sort = match (self.metric, self.metric.quantile()) {
            (ComparedMetric::Throughput, _) => FigureClass::Rate,
            (_, Some(_)) => FigureClass::Latency,
            _ => FigureClass::Use,
        };
        let is_near_one = self.b_over_a.as_ref().is_some_and(|ratio| ratio.is_within(threshold));
        conditions.doubts().into_iter().find(|doubt| doubt.refuses(sort, is_near_one))
    }

    /// The same, with what the conditions leave of its verdict.
    #[must_use]
    pub fn under(self, conditions: &MeasuringConditions, threshold: f64) -> ComparisonFigure {
        match self.refusal(conditions, threshold) {
            Some(_) => ComparisonFigure { verdict: FigureVerdict::CannotTell, ..self },
            None => self,
        }
    }

    /// Title of the figure, with the unit of the sides' values if the title does not contain it:
    /// `median latency, ms`, `context switches per transaction`.
    #[must_use]
    pub fn title(&self) -> String {
        let (words, unit) = (self.metric.words(), &self.unit);
        match words.contains(unit.as_str()) {
            true => words.to_owned(),
            false => format!("{words}, {unit}"),
        }
    }
}

/// The share of the clients' time that went to one kind of wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitKindShare {
    /// `IO:DataFileRead`; `CPU` for no wait.
    pub event: String,
    /// Share of the samples of active clients on A, 0..1.
    pub a: f64,
    /// The same on B.
    pub b: f64,
}

/// One statement's plan on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPair {
    /// The statement as it was explained, its variables filled in.
    pub statement: String,
    /// On A.
    pub a: QueryPlan,
    /// On B.
    pub b: QueryPlan,
}

impl PlanPair {
    /// True if both have the same steps.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.a.steps == self.b.steps
    }
}

/// The planner's plan for a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryPlan {
    /// The planner's total cost.
    pub cost: f64,
    /// The rows that it expects.
    pub rows: f64,
    /// The nodes from the top, each indented below its parent, with what they read.
    pub steps: Vec<String>,
}

/// Profile of the servers' CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuProfile {
    /// Duration of the profile in seconds.
    pub seconds: f64,
    /// Of A and of B: a line for each stack, its functions from the outermost, between semicolons,
    /// and the CPU time in nanoseconds that a thousand transactions spent there. Files of their own.
    #[serde(skip)]
    pub folded: [String; 2],
}

/// Pairs of neighbouring blocks in an octet: eight blocks of which each side has four.
pub const OCTET_PAIRS: usize = 4;

/// The state of a comparison after a segment: what was measured from one restart to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterimLook {
    /// Pairs until then.
    pub pairs: usize,
    /// Since measuring began.
    pub seconds: f64,
    /// Throughput of B ÷ A in this segment alone; none where A did nothing.
    pub segment: Option<f64>,
    /// True if the sides had exchanged their files: B the original, A the copy.
    pub is_exchanged: bool,
    /// Value, lower and upper bound of each ratio that has an interval.
    pub ratios: BTreeMap<ComparedMetric, [f64; 3]>,
    /// Work of the servers of A and of B besides the load in this segment.
    pub background: [SideBackgroundWork; 2],
}

impl Comparison {
    /// Describes the sides in sentences: `A: random_page_cost 4, B: 1.1`; what pgrig has set.
    #[must_use]
    pub fn sides_words(&self) -> Vec<String> {
        sides::words(self)
    }

    /// Describes what each side has of its own, in a sentence; none where they have nothing.
    #[must_use]
    pub fn own_words(&self) -> Option<String> {
        sides::own_words(self)
    }

    /// The names of both sides, with what each has of its own: `A`, `B with index.sql`.
    #[must_use]
    pub fn names(&self) -> [String; 2] {
        sides::names(self)
    }

    /// Says which intervals of the claims and of the table of figures hold together.
    #[must_use]
    pub fn intervals_words(&self) -> String {
        sides::intervals(self)
    }

    /// The confidence of each deciding figure's interval, so that they hold together (Bonferroni).
    #[must_use]
    pub fn confidence_of_each(&self) -> f64 {
        1.0 - (1.0 - self.confidence) / self.decides.len().max(1) as f64
    }

    /// The figure that the answer begins with.
    #[must_use]
    pub fn headline(&self) -> ComparedMetric {
        self.decides.first().copied().unwrap_or(ComparedMetric::Throughput)
    }

    /// The name that it was given; else the load that it compares under.
    #[must_use]
    pub fn title(&self) -> String {
        let load = self.point.as_ref().map_or(self.workload.clone(), ComparedPoint::words);
        match (&self.name, load.as_str()) {
            (Some(name), _) => name.clone(),
            (None, "") => "compare".to_owned(),
            (None, load) => format!("compare {load}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_its_unit_once() {
        let title = |metric: ComparedMetric, unit: &str| {
            let (unit, verdict) = (unit.to_owned(), FigureVerdict::Equal);
            ComparisonFigure {
                metric,
                unit,
                a: 1.0,
                b: 1.0,
                b_over_a: None,
                verdict,
                deciding: false,
            }
            .title()
        };
        assert_eq!(title(ComparedMetric::P50, "ms"), "median latency, ms");
        assert_eq!(title(ComparedMetric::Wal, "bytes"), "WAL per transaction, bytes");
        let switches = title(ComparedMetric::ContextSwitches, "switches");
        assert_eq!(switches, "context switches per transaction");
    }

    #[test]
    fn a_wait_for_a_cpu_refuses_what_is_within_the_threshold_and_stays_the_reason() {
        let conditions =
            MeasuringConditions { run_delay_share_max: 0.1, ..MeasuringConditions::default() };
        let check = |value: f64, verdict: FigureVerdict, expected: FigureVerdict| {
            let (low, high) = (value * 0.99, value * 1.01);
            let (confidence, n, method) = (0.95, 9, String::new());
            let ratio = MetricRatio { value, low, high, confidence, n, method };
            let unit = "1/s".to_owned();
            let metric = ComparedMetric::Throughput;
            let (b_over_a, deciding) = (Some(ratio), true);
            let figure =
                ComparisonFigure { metric, unit, a: 1.0, b: value, b_over_a, verdict, deciding };
            let figure = figure.under(&conditions, 0.03);
            assert_eq!(figure.verdict, expected, "{value}");
            let is_refused = figure.refusal(&conditions, 0.03).is_some();
            assert_eq!(is_refused, expected == FigureVerdict::CannotTell, "{value}");
        };
        check(1.0, FigureVerdict::Equal, FigureVerdict::CannotTell);
        check(0.9, FigureVerdict::Worse, FigureVerdict::Worse);
    }
}
