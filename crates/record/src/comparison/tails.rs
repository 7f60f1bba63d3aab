//! Slow transactions of both sides.

use serde::{Deserialize, Serialize};
use tail::SlowTransactions;

/// The slow transactions of both sides by cause; none of a side that could not be sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparedTails {
    /// Those of A.
    pub a: Option<SlowTransactions>,
    /// Those of B.
    pub b: Option<SlowTransactions>,
}

impl ComparedTails {
    /// True if nothing was sampled.
    pub fn is_empty(&self) -> bool {
        self.a.is_none() && self.b.is_none()
    }
}
