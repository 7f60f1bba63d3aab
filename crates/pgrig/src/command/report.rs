//! `pgrig report`: a record's report, written anew.

use std::path::Path;

use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::records;
use console::terminal;

/// Writes report.html, report.md and the tables beside the record.
pub(crate) fn report(directory: &Path) -> Result<ProgramExit, Complaint> {
    let opened = records::open(directory)?;
    let page = records::write_report(&opened)?;
    terminal::result(page.display());
    Ok(ProgramExit::Done)
}
