//! Work of the servers of a side besides the load.

use serde::{Deserialize, Serialize};

/// Work of the servers of a side besides the load: in one octet, or in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideBackgroundWork {
    /// CPU seconds that they used in a second of the other side's turn, what pgrig's own looks at
    /// `pg_stat_activity` cost included; none where their processes cannot be read.
    pub idle_cpus: Option<f64>,
    /// Checkpoints that they began.
    pub checkpoints: u64,
    /// Times that autovacuum was seen at work. It is looked for once an octet.
    pub autovacuums: u64,
}

impl SideBackgroundWork {
    /// The work of all octets together: the mean of what was used, the sum of what was counted.
    pub fn of(octets: impl IntoIterator<Item = SideBackgroundWork>) -> SideBackgroundWork {
        let mut all = SideBackgroundWork::default();
        let (mut sum, mut read) = (0.0, 0);
        for one in octets {
            all.checkpoints += one.checkpoints;
            all.autovacuums += one.autovacuums;
            if let Some(cpus) = one.idle_cpus {
                sum += cpus;
                read += 1;
            }
        }
        all.idle_cpus = (read > 0).then(|| sum / f64::from(read));
        all
    }
}
