//! The processes that the rig starts itself: `pgrig disk`, `generator`, `lab`, `link` and `probe`.

use std::ffi::OsString;
use std::io::{BufReader, stdin, stdout};
use std::path::PathBuf;

use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// `pgrig disk`: a disk whose power can be cut.
pub(crate) fn disk(words: &[OsString]) -> Result<ProgramExit, Complaint> {
    fault::disk::serve(words).map(|()| ProgramExit::Done).map_err(Complaint::new)
}

/// `pgrig generator`: one of several processes that share a load. Its orders arrive on stdin.
pub(crate) fn generator() -> Result<ProgramExit, Complaint> {
    // The user's interruption reaches the whole process group; it is the conductor's to answer.
    let _ = ctrlc::set_handler(|| {});
    load::generators::serve(BufReader::new(stdin()), stdout())
        .map(|()| ProgramExit::Done)
        .map_err(Complaint::new)
}

/// `pgrig lab`: a lab on a host, which `pgrig host` starts. The rig asks on stdin.
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

/// `pgrig link`: a process of a link.
pub(crate) fn link(words: &[String]) -> Result<ProgramExit, Complaint> {
    fault::link::serve(words, &mut stdout()).map(|()| ProgramExit::Done).map_err(Complaint::new)
}

/// `pgrig probe`: a sampler on a host, which `pgrig host` starts. The first line on stdin names the servers.
pub(crate) fn probe() -> Result<ProgramExit, Complaint> {
    let _ = ctrlc::set_handler(|| {});
    probe::serve(BufReader::new(stdin()), stdout())
        .map(|()| ProgramExit::Done)
        .map_err(Complaint::new)
}
