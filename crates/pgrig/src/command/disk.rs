//! `pgrig disk`: the process of a disk whose power can be cut. Started by the rig itself.

use std::ffi::OsString;

use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// Becomes the disk that the rig has described.
pub(crate) fn disk(words: &[OsString]) -> Result<ProgramExit, Complaint> {
    fault::disk::serve(words).map(|()| ProgramExit::Done).map_err(Complaint::new)
}
