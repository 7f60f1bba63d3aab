//! `pgrig link`: a process of a link. Started by the rig itself.

use std::io::stdout;

use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// Does what the words say.
pub(crate) fn link(words: &[String]) -> Result<ProgramExit, Complaint> {
    fault::link::serve(words, &mut stdout()).map(|()| ProgramExit::Done).map_err(Complaint::new)
}
