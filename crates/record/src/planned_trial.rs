//! A trial of a run's plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spec::{PointName, ScheduledTrial};

/// A trial of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTrial {
    /// Position in the order of execution, from 1.
    pub number: usize,
    /// Round, from 1.
    pub round: usize,
    /// The variant.
    pub variant: String,
    /// The scenario.
    pub scenario: String,
    /// The point on the scenario's axes, axis → value as written in the study.
    pub axes: BTreeMap<String, String>,
}

impl PlannedTrial {
    /// A trial of a study's plan at the point with this name.
    pub fn new(planned: &ScheduledTrial, name: &PointName) -> PlannedTrial {
        PlannedTrial {
            number: planned.number,
            round: planned.round as usize,
            variant: name.variant.clone(),
            scenario: name.scenario.clone(),
            axes: name.axes.iter().cloned().collect(),
        }
    }
}
