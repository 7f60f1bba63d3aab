//! Two points of a study that were measured in pairs: loaded in turn, block by block.
//!
//! ```text
//! runs/DATE-STUDY-N/
//!   pairs/
//!     01-ABOVE-BELOW-SCENARIO.json      figures, series, doubts
//!     01-ABOVE-BELOW-SCENARIO-a.folded, …-b.folded    where the servers' CPU time went, with --profile
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stats::sequence::{self, LookSchedule};
use stats::{ConfidenceInterval, NoInterval};

use crate::allowance::Allowance;
use crate::comparison::{ComparedMetric, PairResults, RareEvents, with_standstills};
use crate::error::{Error, io};
use crate::inside::Inside;
use crate::{AttemptEnding, Moment, files, finished};

/// One attempt at a pairing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairingAttempt {
    /// Number of the pairing in the study, from 1.
    pub number: usize,
    /// Number of the attempt, from 1.
    pub attempt: usize,
    /// The variant of the numerator, which is side B of the figures.
    pub above: String,
    /// The variant of the denominator, side A.
    pub below: String,
    /// The scenario of the numerator, and of the denominator unless it has another one.
    pub scenario: String,
    /// The scenario of the denominator where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_scenario: Option<String>,
    /// The axes of the numerator, and of the denominator unless it has others.
    pub axes: BTreeMap<String, String>,
    /// The axes of the denominator where they are others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_axes: Option<BTreeMap<String, String>>,
    /// The end.
    pub ending: AttemptEnding,
    /// Wall clock at its beginning, RFC 3339.
    pub started_at: String,
    /// The beginning.
    pub began: Moment,
    /// The end.
    pub ended: Moment,
    /// The half-width that was asked for, as a share.
    pub precision: f64,
    /// Series from which the ratios of throughput and latency are computed.
    pub series: Vec<RatioSeries>,
    /// What both sides have shown.
    #[serde(flatten)]
    pub shown: PairResults,
}

/// The observations that the ratio of two totals rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioSeries {
    /// Of what.
    pub metric: ComparedMetric,
    /// The numerator's workload, where several run together and these are one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The numerator's, one for each unit of observation.
    pub above: Vec<f64>,
    /// The denominator's.
    pub below: Vec<f64>,
    /// The same while the servers worked, where one stood still: without that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working: Option<WorkingSeries>,
}

/// The observations of a series without the time in which servers stood still.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkingSeries {
    /// The numerator's.
    pub above: Vec<f64>,
    /// The denominator's.
    pub below: Vec<f64>,
}

/// The smallest p-value that is told, and the steps in which one is found.
const P_MIN: f64 = 1e-9;
const P_STEPS: usize = 30;

impl RatioSeries {
    /// The observations of a metric: one of each for every segment, or for several.
    pub fn new(metric: ComparedMetric, above: Vec<f64>, below: Vec<f64>) -> RatioSeries {
        RatioSeries { metric, workload: None, above, below, working: None }
    }

    /// The ratio of the totals, valid at these looks; where a server stood still, with the standstills that may come.
    ///
    /// # Errors
    /// As [`sequence::totals`].
    pub fn ratio(
        &self,
        looks: LookSchedule,
        rare: Option<&RareEvents>,
        confidence: f64,
    ) -> Result<ConfidenceInterval, NoInterval> {
        match (&self.working, rare) {
            (Some(WorkingSeries { above, below }), Some(rare)) => {
                let working = sequence::ratio_at(looks, above, below, confidence)?;
                Ok(with_standstills(working, &rare.standstills))
            }
            _ => sequence::ratio_at(looks, &self.above, &self.below, confidence),
        }
    }

    /// The smallest error at which the interval of [`RatioSeries::ratio`] leaves out `bound`; 1 where none does.
    #[must_use]
    pub fn p_value(&self, looks: LookSchedule, rare: Option<&RareEvents>, bound: f64) -> f64 {
        if self.working.is_none() || rare.is_none() {
            return sequence::ratio_p_at(looks, &self.above, &self.below, bound).unwrap_or(1.0);
        }
        let leaves_out = |error: f64| {
            let interval = self.ratio(looks, rare, 1.0 - error);
            interval.is_ok_and(|interval| !interval.contains(bound))
        };
        let (mut low, mut high) = (P_MIN, 1.0);
        if !leaves_out(1.0 - P_MIN) {
            return 1.0;
        }
        for _ in 0..P_STEPS {
            let middle = (low * high).sqrt();
            if leaves_out(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// The same of one workload of several.
    pub fn of(self, workload: String) -> RatioSeries {
        RatioSeries { workload: Some(workload), ..self }
    }
}

impl PairingAttempt {
    /// The series that a ratio of this metric rests on.
    pub fn series(&self, metric: ComparedMetric) -> Option<&RatioSeries> {
        self.series_of(metric, None)
    }

    /// The same of one of several workloads that run together.
    pub fn series_of(
        &self,
        metric: ComparedMetric,
        workload: Option<&str>,
    ) -> Option<&RatioSeries> {
        self.series.iter().find(|one| one.metric == metric && one.workload.as_deref() == workload)
    }

    /// The scenario of the denominator.
    pub fn scenario_below(&self) -> &str {
        self.below_scenario.as_deref().unwrap_or(&self.scenario)
    }

    /// The axes of the denominator.
    pub fn axes_below(&self) -> &BTreeMap<String, String> {
        self.below_axes.as_ref().unwrap_or(&self.axes)
    }

    /// The names of the denominator's side and the numerator's: what they differ in of variant, scenario
    /// and axes, the first that does.
    pub fn sides(&self) -> [String; 2] {
        if self.above != self.below {
            return [self.below.clone(), self.above.clone()];
        }
        if self.scenario_below() != self.scenario {
            return [self.scenario_below().to_owned(), self.scenario.clone()];
        }
        [self.axes_below(), &self.axes].map(|axes| {
            let axes = axes.iter().map(|(axis, value)| format!("{axis}={value}"));
            axes.collect::<Vec<_>>().join(",")
        })
    }

    /// `B ÷ A, load clients=8`: the sides, and what both have in common.
    #[must_use]
    pub fn name(&self) -> String {
        let [below, above] = self.sides();
        let mut name = format!("{above} ÷ {below}, ");
        if self.above == self.below {
            name.push_str(&self.above);
        } else {
            name.push_str(&self.scenario);
            if let Some(below) = &self.below_scenario {
                name.push_str(&format!(" ÷ {below}"));
            }
        }
        for (axis, value) in &self.axes {
            name.push_str(&format!(" {axis}={value}"));
        }
        name
    }

    /// The name of its files, without their end.
    fn stem(&self) -> String {
        let PairingAttempt { number, above, below, scenario, .. } = self;
        let mut name = format!("{number:02}-{above}-{below}-{scenario}");
        if let Some(scenario) = &self.below_scenario {
            name.push_str(&format!("-{scenario}"));
        }
        match self.attempt {
            0 | 1 => name,
            attempt => format!("{name}-attempt-{attempt}"),
        }
    }

    /// Files of the folded stacks of A and of B.
    fn profiles(&self) -> [String; 2] {
        ["a", "b"].map(|side| format!("{}-{side}.folded", self.stem()))
    }

    /// Adds it to a record.
    pub(crate) fn write(&self, record: &Path) -> Result<(), Error> {
        let directory = record.join(PAIRS);
        fs::create_dir_all(&directory).map_err(io("creating", &directory))?;
        if let Some(profile) = &self.shown.profile {
            for (name, folded) in self.profiles().iter().zip(&profile.folded) {
                let folded = folded.as_bytes();
                files::replace(&directory.join(name), |out| out.write_all(folded))?;
            }
        }
        let file = directory.join(format!("{}.json", self.stem()));
        files::replace(&file, |out| files::json(out, self))
    }

    /// All of a record, ordered by number and attempt.
    pub(crate) fn read_all(
        record: &Inside,
        allowance: &mut Allowance,
    ) -> Result<Vec<PairingAttempt>, Error> {
        if !record.has(PAIRS) {
            return Ok(Vec::new());
        }
        let directory = record.directory(PAIRS)?;
        let mut all: Vec<PairingAttempt> = Vec::new();
        for entry in directory.entries()? {
            let name = entry.name.to_string_lossy();
            if name.ends_with(".json") {
                // In memory an observation takes that many times its text, and half of it is free.
                let bytes = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
                allowance.keep(bytes.saturating_mul(4), &directory.path(&*name))?;
                let mut paired: PairingAttempt = finished::read_json(&directory, &name)?;
                let profiles = paired.profiles();
                if let Some(profile) = &mut paired.shown.profile {
                    for (name, folded) in profiles.iter().zip(&mut profile.folded) {
                        *folded = directory.text(name, finished::JSON_BYTES_MAX)?;
                        allowance.keep(folded.len(), &directory.path(name))?;
                    }
                }
                all.push(paired);
            }
        }
        all.sort_by_key(|paired| (paired.number, paired.attempt));
        Ok(all)
    }
}

const PAIRS: &str = "pairs";
