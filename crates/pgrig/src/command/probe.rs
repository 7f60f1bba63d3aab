//! `pgrig probe`: a sampler on a host. Started by `pgrig host`.

use std::io::{BufReader, stdin, stdout};

use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// Samples the servers that the first line on stdin names.
pub(crate) fn probe() -> Result<ProgramExit, Complaint> {
    let _ = ctrlc::set_handler(|| {});
    probe::serve(BufReader::new(stdin()), stdout())
        .map(|()| ProgramExit::Done)
        .map_err(Complaint::new)
}
