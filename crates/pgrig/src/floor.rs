//! By how much identical servers differ on this machine: what the records of `pgrig compare --self`
//! below `runs` say.

use std::path::Path;

use record::Comparison;
use record::comparison::{Floor, Instances, is_comparison};

use crate::history;

/// The floor of this machine. Records that cannot be read, are of another machine or of servers that
/// were not restarted say nothing.
pub(crate) fn on_this_machine(runs: &Path) -> Floor {
    let here = history::machine(&study::machine_facts(&std::env::temp_dir()));
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let directories = entries.map(|entry| entry.path()).filter(|path| is_comparison(path));
    let found: Vec<Instances> = directories
        .filter_map(|directory| Comparison::open(&directory).ok())
        .filter(|found| found.is_self && history::machine(&found.facts) == here)
        .map(|found| found.shown.instances)
        .collect();
    Floor::of(&found)
}
