//! The study with the schedule that was found alone, which `pgrig run` runs without a search.

use std::fs;
use std::path::PathBuf;

use nemesis::FaultSchedule;
use record::RecordWriter;

use super::grown::GrowingStudy;
use crate::error::Error;

/// Writes it below the record, and gives its folder.
pub(super) fn write(
    writer: &RecordWriter,
    growing: &mut GrowingStudy,
    number: usize,
    schedule: &FaultSchedule,
) -> Result<PathBuf, Error> {
    debug_assert!(!schedule.steps.is_empty());
    let folder = growing.with_schedules(std::iter::once(number))?.folder;
    let place = format!("found/{}", folder.name);
    for (name, text) in &folder.files {
        let path = writer.directory().join(&place).join(name);
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        parent.map_err(|source| record::Error::Io {
            doing: "creating",
            path: path.clone(),
            source,
        })?;
        writer.attach(&format!("{place}/{name}"), text)?;
    }
    Ok(writer.directory().join(place))
}
