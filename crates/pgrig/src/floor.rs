//! By how much identical servers differ on this machine: what the records of `pgrig compare --self`
//! below `runs` say.

use std::path::Path;

use record::comparison::{InstanceFindings, NoiseFloor};
use record::{RecordHeader, RecordReader};

use crate::history;

/// The floor of this machine. Records that cannot be read, are of another machine or of servers that
/// were not restarted say nothing.
pub(crate) fn on_this_machine(runs: &Path) -> NoiseFloor {
    let here = history::machine(&study::machine_facts(&std::env::temp_dir()));
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let is_meant = |header: &RecordHeader| {
        header.comparison.as_ref().is_some_and(|one| one.is_self)
            && history::machine(&header.facts) == here
    };
    let directories = entries.map(|entry| entry.path());
    // What a study has measured takes long to read.
    let own =
        directories.filter(|path| RecordHeader::read(path).is_ok_and(|header| is_meant(&header)));
    let readers: Vec<RecordReader> =
        own.filter_map(|path| RecordReader::open(&path).ok()).collect();
    let pairs = readers.iter().flat_map(RecordReader::pairs);
    let found: Vec<&InstanceFindings> = pairs.map(|paired| &paired.shown.instances).collect();
    NoiseFloor::of(found)
}
