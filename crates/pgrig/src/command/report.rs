//! `pgrig report`: a record's report, written anew.

use std::path::Path;

use record::{Comparison, comparison};

use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::{records, terminal};

/// Writes report.html, report.md and the tables beside the record.
pub(crate) fn report(directory: &Path) -> Result<Exit, Complaint> {
    if comparison::is_comparison(directory) {
        let page = records::write_compared(directory, &Comparison::open(directory)?)?;
        terminal::result(page.display());
        return Ok(Exit::Done);
    }
    let opened = records::open(directory)?;
    let page = records::write_report(&opened)?;
    terminal::result(page.display());
    Ok(Exit::Done)
}
