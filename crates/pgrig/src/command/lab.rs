//! `pgrig lab`: a lab on a host. Started by `pgrig host`.

use std::io::{BufReader, stdin, stdout};
use std::path::PathBuf;

use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// Does with servers what the rig asks on stdin.
pub(crate) fn lab() -> Result<ProgramExit, Complaint> {
    // The end of its input is what ends it; a signal would leave the servers to their init.
    let _ = ctrlc::set_handler(|| {});
    // A program that was copied here for this run has removed its file.
    let own = std::env::current_exe().ok().filter(|path| path.is_file());
    let program = own.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    lab::serve(&program, BufReader::new(stdin()), stdout())
        .map(|()| ProgramExit::Done)
        .map_err(Complaint::new)
}
