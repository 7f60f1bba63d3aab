//! The file to which each block of a disk belongs, and the relation to which each file belongs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::SystemTime;

use crash::{BLOCK_BYTES, DISK_BLOCKS, DiskFileKind, DiskLog, FileExtent, FileMap, MappedFile};
use fault::disk::{DiskFile, RequestLog};
use site::SiteNode;

/// The relations of a server's databases that the rig is in, by their files.
#[derive(Debug, Default)]
pub(super) struct RelationsByFile(BTreeMap<String, (DiskFileKind, String)>);

/// Asks a server; one that does not answer has none.
pub(super) fn relations(node: &SiteNode) -> RelationsByFile {
    let ask = || {
        let mut client = node.connect().ok()?;
        client.query(RELATIONS, &[]).ok()
    };
    // Files of a server that does not answer are called by their paths.
    let rows = ask().unwrap_or_default();
    let relations = rows.iter().filter_map(|row| {
        let path: Option<String> = row.get(0);
        let kind = match (row.get::<_, bool>(1), row.get::<_, bool>(2), row.get::<_, bool>(3)) {
            (true, false, _) => DiskFileKind::Index,
            (true, true, _) => DiskFileKind::ToastIndex,
            (false, true, _) => DiskFileKind::Toast,
            (false, false, true) => DiskFileKind::Sequence,
            (false, false, false) => DiskFileKind::Heap,
        };
        Some((path?, (kind, row.get(4))))
    });
    RelationsByFile(relations.collect())
}

/// Files that the log did not write, and a moment before which it began.
#[derive(Debug, Clone, Default)]
pub(super) struct BaseFiles {
    /// First files of relations, from the data directory on.
    pub(super) paths: Vec<String>,
    /// Seconds of the epoch.
    pub(super) since_s: f64,
}

/// The relations' files that were there before the log, and none of whose blocks the log writes. `base` is
/// the image, whose copying ended just before the log began.
pub(super) fn untouched(
    recorded: &RequestLog,
    log: &DiskLog,
    base: &Path,
) -> std::io::Result<BaseFiles> {
    let since = std::fs::metadata(base)?.modified()?;
    // A file from before 1970 is older than any log.
    let since_s = since.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |at| at.as_secs_f64());
    let pieces = log.entries.iter().flat_map(crash::LoggedRequest::pieces);
    let written: BTreeSet<u64> = pieces.map(|piece| piece.block).collect();
    let name = |file: &DiskFile| {
        let path = file.path.strip_prefix("data").unwrap_or(&file.path).to_string_lossy();
        // base/5/16390.1 is of base/5/16390.
        path.split('.').next().unwrap_or_default().to_owned()
    };
    let is_written = |file: &&DiskFile| {
        file.extents.iter().any(|(_, physical, length)| {
            let blocks = physical / BLOCK_BYTES..(physical + length).div_ceil(BLOCK_BYTES);
            written.range(blocks).next().is_some()
        })
    };
    let touched: BTreeSet<String> =
        recorded.files.iter().flatten().filter(is_written).map(name).collect();
    let there: BTreeSet<String> = recorded.files[0].iter().map(name).collect();
    Ok(BaseFiles { paths: there.difference(&touched).cloned().collect(), since_s })
}

/// Maps where each file lay when the log of each disk began and when it ended.
pub(super) fn map(recorded: &[RequestLog], relations: &RelationsByFile) -> FileMap {
    let mut map = FileMap::default();
    for (disk, recorded) in recorded.iter().enumerate() {
        let first = disk as u64 * DISK_BLOCKS;
        let ranges = recorded.journal.iter();
        map.journal.extend(ranges.map(|(from, to)| first + from..=first + to));
        let [before, after] = &recorded.files;
        let before = before.iter().map(|file| (file, true));
        for (file, is_before) in before.chain(after.iter().map(|file| (file, false))) {
            add(&mut map, file, first, is_before, relations);
        }
    }
    map
}

/// Adds a file of the disk that begins with the block `first`.
fn add(
    map: &mut FileMap,
    file: &DiskFile,
    first: u64,
    is_before: bool,
    relations: &RelationsByFile,
) {
    let number = map.files.len();
    for (logical, physical, length) in &file.extents {
        let (logical, length) = (*logical, *length);
        let physical = physical + first * BLOCK_BYTES;
        map.extents.push(FileExtent { physical, logical, length, file: number });
        if is_before {
            let blocks = physical / BLOCK_BYTES..(physical + length).div_ceil(BLOCK_BYTES);
            map.old_blocks.extend(blocks);
        }
    }
    // The file is on the disk of the data, or on that of the WAL.
    let path = match file.path.strip_prefix("wal") {
        Ok(rest) => Path::new("pg_wal").join(rest),
        Err(_) => file.path.strip_prefix("data").unwrap_or(&file.path).to_owned(),
    };
    map.files.push(mapped(path.to_string_lossy().into_owned(), relations));
}

fn mapped(path: String, relations: &RelationsByFile) -> MappedFile {
    // base/5/16390.1 and base/5/16390_fsm are of base/5/16390.
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let number: String = name.chars().take_while(char::is_ascii_digit).collect();
    let relation = relations.0.get(&format!("{folder}/{number}"));
    let kind = match (DiskFileKind::of_path(&path), relation) {
        (DiskFileKind::Other, Some((kind, _))) => *kind,
        (kind, _) => kind,
    };
    MappedFile { path, kind, relation: relation.map(|(_, name)| name.clone()) }
}

const RELATIONS: &str = "\
    SELECT pg_relation_filepath(c.oid), c.relkind IN ('i', 'I'), \
      c.relnamespace = 'pg_toast'::regnamespace, c.relkind = 'S', c.oid::regclass::text \
    FROM pg_class c WHERE c.relkind IN ('r', 'i', 't', 'm', 'S')";

/// The kinds that a log has no write of.
pub(super) fn missing(kinds: &[Vec<crash::WriteKind>]) -> Vec<crash::WriteKind> {
    let there: BTreeSet<crash::WriteKind> = kinds.iter().flatten().copied().collect();
    crash::WriteKind::ALL.into_iter().filter(|kind| !there.contains(kind)).collect()
}
