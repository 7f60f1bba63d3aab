//! One reading of a probe.

use serde::{Deserialize, Serialize};
use spec::Metric;

use crate::Moment;

/// One value that a probe read at one moment. Counters are stored as rates per second since the
/// reading before, gauges as they are; the catalogue in `spec` says which is which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Time of the reading.
    pub at: Moment,
    /// Node that was read; `machine` for the host and `generator` for the rig itself.
    pub node: String,
    /// The metric's name in the catalogue.
    pub metric: String,
    /// A label within the metric (a wait event, a statement, a device); empty for none.
    pub label: String,
    /// The value, in the catalogue's unit.
    pub value: f64,
}

impl Sample {
    /// True if it is a reading of that metric.
    pub fn is_of(&self, metric: &Metric) -> bool {
        self.metric == metric.name
    }
}
