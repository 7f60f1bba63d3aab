//! What can be done to a disk of its own, whichever object has it.

use std::time::Duration;

use fault::disk::PowerCutReport;
use terms::{DiskFault, DiskRequest};

use crate::error::Error;

/// An object that may have a disk of its own: a node, a station.
pub(crate) trait PoweredObject {
    /// Cuts the power of its disk and kills all its processes.
    fn power_cut(&mut self, seed: u64, at: Option<DiskRequest>) -> Result<PowerCutReport, Error>;

    /// Has its block disk fail from that request on.
    fn fail_disk(&mut self, at: DiskRequest, fault: DiskFault) -> Result<(), Error>;

    /// Slows its block disk down from that request on, or heals it.
    fn slow_disk(&mut self, slow: Option<(DiskRequest, Duration)>) -> Result<(), Error>;

    /// Makes sure that what it has written so far survives a cut.
    fn sync(&mut self) -> Result<(), Error>;
}
