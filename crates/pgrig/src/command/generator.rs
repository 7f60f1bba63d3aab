//! `pgrig generator`: one of several processes that share a load. Started by the rig itself.

use std::io::{BufReader, stdin, stdout};

use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// Does what the orders on stdin say.
pub(crate) fn generator() -> Result<ProgramExit, Complaint> {
    // The user's interruption reaches the whole process group; it is the conductor's to answer.
    let _ = ctrlc::set_handler(|| {});
    load::generators::serve(BufReader::new(stdin()), stdout())
        .map(|()| ProgramExit::Done)
        .map_err(Complaint::new)
}
