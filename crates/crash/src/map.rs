//! The file that each block of a disk belongs to, and the kind of write that follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::log::{BLOCK_BYTES, BlockPiece, DiskLog, SECTOR_BYTES};

/// The places of files on a disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileMap {
    /// The files.
    pub files: Vec<MappedFile>,
    /// Their extents, before and after the load; of two that overlap, the later in this list is right.
    pub extents: Vec<FileExtent>,
    /// Blocks of the file system's journal.
    pub journal: Vec<std::ops::RangeInclusive<u64>>,
    /// Blocks of files that were there before the load.
    pub old_blocks: BTreeSet<u64>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// The path from the data directory on.
    pub path: String,
    /// The purpose of the file.
    pub kind: DiskFileKind,
    /// The name of its relation, if it is one's.
    pub relation: Option<String>,
}

/// A run of blocks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// The first byte on the disk.
    pub physical: u64,
    /// The first byte in the file.
    pub logical: u64,
    /// The length in bytes.
    pub length: u64,
    /// The number of the file.
    pub file: usize,
}

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskFileKind {
    /// A segment of the WAL.
    Wal,
    /// `pg_control`.
    Control,
    /// The commit log.
    CommitLog,
    /// A table.
    Heap,
    /// An index.
    Index,
    /// A free space map.
    FreeSpaceMap,
    /// A relation of values that a table keeps apart.
    Toast,
    /// The index of such a relation.
    ToastIndex,
    /// A sequence.
    Sequence,
    /// A prepared transaction.
    TwoPhase,
    /// A relation map.
    RelationMap,
    /// Lockers of rows, where there are several.
    MultiXact,
    /// Times of commits.
    CommitTimes,
    /// A replication slot.
    Slot,
    /// A visibility map.
    VisibilityMap,
    /// Any other one.
    Other,
}

/// A kind of write that an exploration is to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriteKind {
    /// A page of the WAL.
    Wal,
    /// A page of the WAL that begins with the rest of a record.
    WalAcrossPages,
    /// The first page of a segment of the WAL.
    WalSegment,
    /// A page of the WAL in a segment that was renamed.
    WalRecycled,
    /// `pg_control`.
    Control,
    /// The commit log.
    CommitLog,
    /// A page of the commit log that was not there before.
    CommitLogExtension,
    /// A page of a table.
    Heap,
    /// A page of a table that was not there before.
    HeapExtension,
    /// A page of an index.
    Index,
    /// A page of an index that was not there before: a page was split.
    IndexExtension,
    /// A page of values that a table keeps apart.
    Toast,
    /// A page of the index of such values.
    ToastIndex,
    /// A sequence.
    Sequence,
    /// The file of a prepared transaction.
    TwoPhase,
    /// The file that says which files the system's relations have.
    RelationMap,
    /// A page of `pg_multixact`.
    MultiXact,
    /// A page of `pg_commit_ts`.
    CommitTimes,
    /// The file of a replication slot.
    Slot,
    /// A free space map.
    FreeSpaceMap,
    /// A visibility map.
    VisibilityMap,
    /// The file system's journal.
    Journal,
    /// A commit of the file system's journal: names, sizes and blocks of files.
    JournalCommit,
    /// The file system's own structures.
    FileSystem,
    /// Any other file.
    Other,
}

impl WriteKind {
    /// Every kind.
    pub const ALL: [WriteKind; 25] = [
        WriteKind::Wal,
        WriteKind::WalAcrossPages,
        WriteKind::WalSegment,
        WriteKind::WalRecycled,
        WriteKind::Control,
        WriteKind::CommitLog,
        WriteKind::CommitLogExtension,
        WriteKind::Heap,
        WriteKind::HeapExtension,
        WriteKind::Index,
        WriteKind::IndexExtension,
        WriteKind::Toast,
        WriteKind::ToastIndex,
        WriteKind::Sequence,
        WriteKind::TwoPhase,
        WriteKind::RelationMap,
        WriteKind::MultiXact,
        WriteKind::CommitTimes,
        WriteKind::Slot,
        WriteKind::FreeSpaceMap,
        WriteKind::VisibilityMap,
        WriteKind::Journal,
        WriteKind::JournalCommit,
        WriteKind::FileSystem,
        WriteKind::Other,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            WriteKind::Wal => "WAL page",
            WriteKind::WalAcrossPages => "WAL record across pages",
            WriteKind::WalSegment => "WAL segment switch",
            WriteKind::WalRecycled => "renamed WAL segment",
            WriteKind::Control => "pg_control",
            WriteKind::CommitLog => "commit log page",
            WriteKind::CommitLogExtension => "commit log extension",
            WriteKind::Heap => "heap page",
            WriteKind::HeapExtension => "heap extension",
            WriteKind::Index => "index page",
            WriteKind::IndexExtension => "index page split",
            WriteKind::Toast => "TOAST page",
            WriteKind::ToastIndex => "TOAST index page",
            WriteKind::Sequence => "sequence",
            WriteKind::TwoPhase => "prepared transaction",
            WriteKind::RelationMap => "relation map",
            WriteKind::MultiXact => "multixact page",
            WriteKind::CommitTimes => "commit timestamps",
            WriteKind::Slot => "replication slot",
            WriteKind::FreeSpaceMap => "free space map",
            WriteKind::VisibilityMap => "visibility map",
            WriteKind::Journal => "file system journal",
            WriteKind::JournalCommit => "file system journal commit",
            WriteKind::FileSystem => "file system metadata",
            WriteKind::Other => "other file",
        }
    }
}

impl DiskFileKind {
    /// The kind of a file, by its path in the data directory. The kind of a relation is read from the catalog instead.
    pub fn of_path(path: &str) -> DiskFileKind {
        let name = path.rsplit('/').next().unwrap_or(path);
        match path {
            "global/pg_control" => DiskFileKind::Control,
            _ if path.starts_with("pg_wal/") => DiskFileKind::Wal,
            _ if path.starts_with("pg_xact/") => DiskFileKind::CommitLog,
            _ if path.starts_with("pg_twophase/") => DiskFileKind::TwoPhase,
            _ if path.starts_with("pg_multixact/") => DiskFileKind::MultiXact,
            _ if path.starts_with("pg_commit_ts/") => DiskFileKind::CommitTimes,
            _ if path.starts_with("pg_replslot/") => DiskFileKind::Slot,
            _ if name.starts_with("pg_filenode.map") => DiskFileKind::RelationMap,
            _ if name.contains("_fsm") => DiskFileKind::FreeSpaceMap,
            _ if name.contains("_vm") => DiskFileKind::VisibilityMap,
            _ => DiskFileKind::Other,
        }
    }
}

/// A place on a disk.
#[derive(Debug, Clone, Copy)]
struct FileOffset<'m> {
    file: &'m MappedFile,
    logical: u64,
}

impl FileMap {
    /// The kinds of each request of a log; a flush has none.
    pub fn kinds(&self, log: &DiskLog) -> Vec<Vec<WriteKind>> {
        let index = self.index();
        // The segment that each page of the WAL was in when it was written last.
        let mut segments: BTreeMap<u64, u64> = BTreeMap::new();
        let kinds = log.entries.iter().map(|entry| {
            let mut kinds = BTreeSet::new();
            for piece in entry.pieces() {
                self.add_kinds(log, piece, &index, &mut segments, &mut kinds);
            }
            kinds.into_iter().collect()
        });
        kinds.collect()
    }

    fn add_kinds(
        &self,
        log: &DiskLog,
        piece: &BlockPiece,
        index: &BTreeMap<u64, FileExtent>,
        segments: &mut BTreeMap<u64, u64>,
        kinds: &mut BTreeSet<WriteKind>,
    ) {
        let head = log.contents[piece.content as usize].head;
        let is_new = !self.old_blocks.contains(&piece.block);
        let Some(FileOffset { file, logical }) = self.place(index, piece.block) else {
            kinds.insert(match self.journal.iter().any(|range| range.contains(&piece.block)) {
                true if head[..8] == JOURNAL_COMMIT => WriteKind::JournalCommit,
                true => WriteKind::Journal,
                false if WalPage::of(head).is_some() => WriteKind::Wal,
                false => WriteKind::FileSystem,
            });
            return;
        };
        let also = |is: bool, kind: WriteKind| is.then_some(kind);
        let (kind, special) = match file.kind {
            DiskFileKind::Control => (WriteKind::Control, None),
            DiskFileKind::CommitLog => {
                (WriteKind::CommitLog, also(is_new, WriteKind::CommitLogExtension))
            }
            DiskFileKind::Heap => (WriteKind::Heap, also(is_new, WriteKind::HeapExtension)),
            DiskFileKind::Index => (WriteKind::Index, also(is_new, WriteKind::IndexExtension)),
            DiskFileKind::Toast => (WriteKind::Toast, None),
            DiskFileKind::ToastIndex => (WriteKind::ToastIndex, None),
            DiskFileKind::Sequence => (WriteKind::Sequence, None),
            DiskFileKind::TwoPhase => (WriteKind::TwoPhase, None),
            DiskFileKind::RelationMap => (WriteKind::RelationMap, None),
            DiskFileKind::MultiXact => (WriteKind::MultiXact, None),
            DiskFileKind::CommitTimes => (WriteKind::CommitTimes, None),
            DiskFileKind::Slot => (WriteKind::Slot, None),
            DiskFileKind::FreeSpaceMap => (WriteKind::FreeSpaceMap, None),
            DiskFileKind::VisibilityMap => (WriteKind::VisibilityMap, None),
            DiskFileKind::Other => (WriteKind::Other, None),
            DiskFileKind::Wal => {
                if let (0, Some(page)) = (piece.first, WalPage::of(head)) {
                    if page.continues {
                        kinds.insert(WriteKind::WalAcrossPages);
                    }
                    if logical == 0 {
                        kinds.insert(WriteKind::WalSegment);
                    }
                    let segment = page.address.wrapping_sub(logical);
                    let before = segments.insert(piece.block, segment);
                    if before.is_some_and(|before| before != segment) {
                        kinds.insert(WriteKind::WalRecycled);
                    }
                }
                (WriteKind::Wal, None)
            }
        };
        kinds.extend([kind].into_iter().chain(special));
    }

    /// Describes a sector of a write in words.
    pub fn words(&self, log: &DiskLog, write: usize, sectors: &std::ops::Range<u32>) -> String {
        let index = self.index();
        let pieces = log.entries.get(write).map_or(&[][..], |entry| entry.pieces());
        let mut first = 0;
        let mut said: Vec<String> = Vec::new();
        for piece in pieces {
            let (from, to) = (first, first + u32::from(piece.sectors));
            first = to;
            let (start, end) = (sectors.start.max(from), sectors.end.min(to));
            if start >= end {
                continue;
            }
            let head = log.contents[piece.content as usize].head;
            let Some(mut words) = self.piece_words(&index, piece, head, said.is_empty()) else {
                continue;
            };
            if end - start < u32::from(piece.sectors) {
                let base = u32::from(piece.first);
                let bytes = |sector: u32| u64::from(sector - from + base) * SECTOR_BYTES;
                let _ = write!(words, ", bytes {} to {} of it", bytes(start), bytes(end) - 1);
            }
            if said.last() != Some(&words) {
                said.push(words);
            }
        }
        match said.len() {
            0..=4 => said.join("; "),
            more => format!("{}; and {} blocks after it", said[..3].join("; "), more - 3),
        }
    }

    /// A part of a write in words; none where the part before it says enough.
    fn piece_words(
        &self,
        index: &BTreeMap<u64, FileExtent>,
        piece: &BlockPiece,
        head: [u8; 16],
        is_first: bool,
    ) -> Option<String> {
        let Some(FileOffset { file, logical }) = self.place(index, piece.block) else {
            let is_journal = self.journal.iter().any(|range| range.contains(&piece.block));
            return Some(match is_journal {
                true if head[..8] == JOURNAL_COMMIT => {
                    "a commit of the file system's journal".to_owned()
                }
                true => "a block of the file system's journal".to_owned(),
                false => match WalPage::of(head) {
                    Some(page) => page.words(),
                    None => format!("the file system's own block {}", piece.block),
                },
            });
        };
        let page = logical / PAGE_BYTES;
        let relation = file.relation.as_deref().unwrap_or(&file.path);
        Some(match file.kind {
            // The second block of a page that was named.
            DiskFileKind::Wal if !logical.is_multiple_of(PAGE_BYTES) && !is_first => return None,
            DiskFileKind::Wal => match WalPage::of(head) {
                Some(page) => format!("{} of file {}", page.words(), file.path),
                None => format!("the rest of a WAL page at {logical} of file {}", file.path),
            },
            DiskFileKind::Control => "pg_control".to_owned(),
            DiskFileKind::CommitLog => format!("commit log page {page} of {}", file.path),
            DiskFileKind::Heap => format!("heap page {page} of {relation}"),
            DiskFileKind::Index => format!("index page {page} of {relation}"),
            DiskFileKind::FreeSpaceMap => format!("free space map page {page} of {relation}"),
            DiskFileKind::VisibilityMap => format!("visibility map page {page} of {relation}"),
            DiskFileKind::Toast => format!("page {page} of the values apart in {relation}"),
            DiskFileKind::ToastIndex => {
                format!("index page {page} of the values apart in {relation}")
            }
            DiskFileKind::Sequence => format!("the sequence {relation}"),
            DiskFileKind::TwoPhase
            | DiskFileKind::RelationMap
            | DiskFileKind::MultiXact
            | DiskFileKind::CommitTimes
            | DiskFileKind::Slot
            | DiskFileKind::Other => format!("block {} of {}", logical / BLOCK_BYTES, file.path),
        })
    }

    /// The extent of each block; those of later extents in the place of earlier ones.
    fn index(&self) -> BTreeMap<u64, FileExtent> {
        let mut index = BTreeMap::new();
        for extent in &self.extents {
            for block in 0..extent.length.div_ceil(BLOCK_BYTES) {
                index.insert(extent.physical / BLOCK_BYTES + block, *extent);
            }
        }
        index
    }

    fn place(&self, index: &BTreeMap<u64, FileExtent>, block: u64) -> Option<FileOffset<'_>> {
        let extent = index.get(&block)?;
        let logical = extent.logical + block * BLOCK_BYTES - extent.physical;
        Some(FileOffset { file: self.files.get(extent.file)?, logical })
    }
}

/// The header of a page of the WAL (xlog_internal.h).
struct WalPage {
    address: u64,
    /// It begins with the rest of a record.
    continues: bool,
}

impl WalPage {
    fn of(head: [u8; 16]) -> Option<WalPage> {
        let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let mut address = [0; 8];
        address.copy_from_slice(&head[8..]);
        let address = u64::from_le_bytes(address);
        // XLOG_PAGE_MAGIC of versions 12 to 19 is 0xD101 to 0xD1FF.
        let is_page = word(0) >> 8 == 0xd1 && address.is_multiple_of(PAGE_BYTES);
        is_page.then_some(WalPage { address, continues: word(2) & 1 != 0 })
    }

    fn words(&self) -> String {
        format!("WAL page {:X}/{:X}", self.address >> 32, self.address & 0xffff_ffff)
    }
}

/// The beginning of a commit block (jbd2.h), magic number and type.
const JOURNAL_COMMIT: [u8; 8] = [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 2];

/// PostgreSQL's.
const PAGE_BYTES: u64 = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskLogEncoder;

    /// A page of the WAL at an address.
    fn wal(address: u64, continues: bool) -> Vec<u8> {
        let mut page = vec![7; 8192];
        page[..2].copy_from_slice(&0xd110_u16.to_le_bytes());
        page[2..4].copy_from_slice(&u16::from(continues).to_le_bytes());
        page[8..16].copy_from_slice(&address.to_le_bytes());
        page
    }

    #[test]
    fn each_write_has_its_kinds_and_its_words() {
        let file = |path: &str, kind, relation: Option<&str>| MappedFile {
            path: path.to_owned(),
            kind,
            relation: relation.map(str::to_owned),
        };
        let extent = |block: u64, blocks: u64, file| FileExtent {
            physical: block * 4096,
            logical: 0,
            length: blocks * 4096,
            file,
        };
        let map = FileMap {
            files: vec![
                file("pg_wal/000000010000000000000003", DiskFileKind::Wal, None),
                file("base/5/16390", DiskFileKind::Heap, Some("orders")),
                file("global/pg_control", DiskFileKind::of_path("global/pg_control"), None),
            ],
            extents: vec![extent(0, 8, 2), extent(0, 8, 0), extent(8, 8, 1), extent(16, 2, 2)],
            journal: vec![20..=29],
            old_blocks: BTreeSet::from([0, 1, 2, 3, 10, 11]),
        };
        let mut commit = vec![9; 4096];
        commit[..8].copy_from_slice(&JOURNAL_COMMIT);
        let cases: Vec<(u64, Vec<u8>, &[WriteKind], &str)> = vec![
            (
                0,
                wal(0x3A_0000, false),
                &[WriteKind::Wal, WriteKind::WalSegment],
                "WAL page 0/3A0000 of file pg_wal/000000010000000000000003",
            ),
            (
                8192,
                wal(0x3A_2000, true),
                &[WriteKind::Wal, WriteKind::WalAcrossPages],
                "WAL page 0/3A2000 of file pg_wal/000000010000000000000003",
            ),
            (
                0,
                wal(0x1_003A_0000, false),
                &[WriteKind::Wal, WriteKind::WalSegment, WriteKind::WalRecycled],
                "WAL page 1/3A0000 of file pg_wal/000000010000000000000003",
            ),
            (
                8 * 4096,
                vec![1; 8192],
                &[WriteKind::Heap, WriteKind::HeapExtension],
                "heap page 0 of orders",
            ),
            (10 * 4096, vec![1; 8192], &[WriteKind::Heap], "heap page 1 of orders"),
            (16 * 4096, vec![1; 512], &[WriteKind::Control], "pg_control"),
            (
                20 * 4096,
                commit,
                &[WriteKind::JournalCommit],
                "a commit of the file system's journal",
            ),
            (
                21 * 4096,
                vec![1; 4096],
                &[WriteKind::Journal],
                "a block of the file system's journal",
            ),
            (40 * 4096, vec![1; 4096], &[WriteKind::FileSystem], "the file system's own block 40"),
            // Of a file system that tells no places.
            (
                48 * 4096,
                wal(0x3A_4000, false),
                &[WriteKind::Wal, WriteKind::FileSystem],
                "WAL page 0/3A4000; the file system's own block 49",
            ),
        ];
        let (mut encoder, mut out) = (DiskLogEncoder::default(), Vec::new());
        for (offset, data, ..) in &cases {
            encoder.write(0, *offset, data, &mut out);
        }
        encoder.flush_begins(0, &mut out);
        let log = DiskLog::read(&mut out.as_slice(), &mut std::io::sink()).unwrap();
        let kinds = map.kinds(&log);
        for (number, (offset, data, expected, words)) in cases.iter().enumerate() {
            assert_eq!(&kinds[number], expected, "at {offset}");
            let sectors = 0..(data.len() / 512) as u32;
            assert_eq!(&map.words(&log, number, &sectors), words);
        }
        assert!(kinds[cases.len()].is_empty());
        assert_eq!(map.words(&log, 4, &(1..3)), "heap page 1 of orders, bytes 512 to 1535 of it");
        for (path, kind) in [
            ("pg_xact/0000", DiskFileKind::CommitLog),
            ("base/5/16390_fsm", DiskFileKind::FreeSpaceMap),
            ("base/5/16390_vm.1", DiskFileKind::VisibilityMap),
            ("base/5/16390", DiskFileKind::Other),
            ("pg_twophase/000002F1", DiskFileKind::TwoPhase),
            ("base/5/pg_filenode.map", DiskFileKind::RelationMap),
            ("global/pg_filenode.map.tmp", DiskFileKind::RelationMap),
            ("pg_multixact/members/0000", DiskFileKind::MultiXact),
            ("pg_commit_ts/0000", DiskFileKind::CommitTimes),
            ("pg_replslot/s1/state", DiskFileKind::Slot),
        ] {
            assert_eq!(DiskFileKind::of_path(path), kind, "{path}");
        }
    }
}
