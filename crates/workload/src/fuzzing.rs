//! Readers of sources, for bytes that a fuzzer makes up.

use std::path::Path;

use crate::catalogue::TableCatalogue;
use crate::folder::WorkloadFolder;
use crate::log::{LinePrefix, SessionReader};
use crate::make::{read_log, snapshot};
use crate::reading::{CoveredScript, scripts_of};
use crate::snapshot::CallFilter;
use crate::tally::StatementTally;

/// The workload of two exports of pg_stat_statements, one after the other; none where either is refused.
pub fn statements(first: &[u8], last: &[u8]) -> Option<WorkloadFolder> {
    let mut tally = StatementTally::default();
    let read = |bytes| snapshot(bytes, "export", &CallFilter::default());
    let (first, last) = (read(first).ok()?, read(last).ok()?);
    last.since(first, &mut tally).tally("export", &mut tally).ok()?;
    Some(folder(&tally))
}

/// The workload of a server's log; none where it is refused.
pub fn log(bytes: &[u8]) -> Option<WorkloadFolder> {
    let prefix = LinePrefix::parse("%m [%p] %q%u@%d ").ok()?;
    let mut tally = StatementTally::default();
    let mut reader = SessionReader::new(CallFilter::default(), true);
    read_log(bytes, Path::new("log"), &prefix, &mut reader, &mut tally).ok()?;
    (reader.finish(&mut tally) > 0).then(|| folder(&tally))
}

/// The covered scripts of a text as `workload.toml`, all of which lie inside the folder.
pub fn scripts(text: &str) -> Result<Vec<CoveredScript>, String> {
    let scripts = scripts_of(text, Path::new("folder"))?;
    let is_inside = |path: &Path| path.starts_with("folder") && !path.ends_with("..");
    assert!(scripts.iter().all(|one| is_inside(&one.path)), "{scripts:?}");
    Ok(scripts)
}

fn folder(tally: &StatementTally) -> WorkloadFolder {
    crate::folder(tally, &TableCatalogue::default(), "a source", true, &mut |_| None)
}
