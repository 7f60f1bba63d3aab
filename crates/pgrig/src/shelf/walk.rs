//! The folders of records below a folder.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What was found.
pub(super) struct FoundRecords {
    pub(super) records: Vec<PathBuf>,
    /// What was not looked at, in words; empty where all was.
    pub(super) left_out: String,
}

/// Levels of folders that are looked into.
const DEPTH_MAX: usize = 6;

/// Folders that are looked into.
const FOLDERS_MAX: usize = 20_000;

/// Records that are shown.
const RECORDS_MAX: usize = 10_000;

/// The records below a folder, which may be one itself. No link is followed: it may lead to a folder that is none of
/// these. Nothing is looked for inside a record, and in folders whose name begins with a dot.
pub(super) fn records_below(root: &Path) -> FoundRecords {
    let mut found = FoundRecords { records: Vec::new(), left_out: String::new() };
    let mut next = vec![(root.to_owned(), 0)];
    let mut folders = 0;
    while let Some((folder, depth)) = next.pop() {
        folders += 1;
        if record::is_record(&folder) {
            found.records.push(folder);
        } else if depth < DEPTH_MAX {
            // A folder that cannot be listed has no records for this user.
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    next.push((entry.path(), depth + 1));
                }
            }
        }
        if folders >= FOLDERS_MAX || found.records.len() >= RECORDS_MAX {
            found.left_out = format!(
                "Not all is shown: at most {RECORDS_MAX} records and {FOLDERS_MAX} folders are looked at. Name a folder \
                 with fewer."
            );
            break;
        }
    }
    found
}

/// The time and the size of a record's first page; none if it is gone.
pub(super) fn stamp(directory: &Path) -> Option<(SystemTime, u64)> {
    let metadata = directory.join(record::HEADER).symlink_metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn records_are_found_at_any_depth_and_links_lead_nowhere() {
        let root = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join(record::HEADER), "{}").expect("written");
        };
        make("one");
        make("deep/er/two");
        // Inside a record, below a dot, and too deep.
        make("one/trials/three");
        make(".git/four");
        make("a/b/c/d/e/f/g/five");
        std::os::unix::fs::symlink(root.path().join("deep"), root.path().join("link"))
            .expect("a link");
        let found = records_below(root.path());
        let mut names: Vec<_> =
            found.records.iter().map(|one| one.strip_prefix(root.path()).expect("below")).collect();
        names.sort();
        assert_eq!(names, [Path::new("deep/er/two"), Path::new("one")]);
        assert_eq!(found.left_out, "");
        assert_eq!(records_below(&root.path().join("one")).records.len(), 1);
    }
}
