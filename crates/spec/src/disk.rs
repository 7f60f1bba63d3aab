//! The disk of a node's data, and the way in which it can lose power.

use terms::{DataPart, FileSystem};

use crate::fields::{Fields, choice};
use crate::problem::Problems;
use crate::value::{Is, Value};

/// The disk of a node's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskKind {
    /// The lab's own directory.
    Plain,
    /// A file system of its own on which a power cut loses what was not synced: the file system
    /// shuts down without a flush, its journal is replayed at the next mount.
    CutFilesystem {
        /// The size, in bytes.
        size_bytes: u64,
    },
    /// A block device of its own on which a power cut loses what was not flushed, sector by sector.
    CutBlock {
        /// The size, in bytes.
        size_bytes: u64,
        /// Unit that is written whole or not at all, in bytes.
        sector_bytes: u32,
        /// True if it reports a flush without having done it.
        lying: bool,
        /// The file system.
        file_system: FileSystem,
        /// The most bytes that a log of its writes and flushes may take; none where it keeps no log.
        log_bytes: Option<u64>,
        /// The size of another such disk, in bytes, that has the WAL and loses its power in the same moment;
        /// none where the WAL is with the data.
        wal_bytes: Option<u64>,
        /// The size of another such disk, in bytes, that has the tablespaces; none where they are with the data.
        tablespaces_bytes: Option<u64>,
    },
}

impl DiskKind {
    /// True if its power can be cut.
    pub fn can_be_cut(self) -> bool {
        self != DiskKind::Plain
    }

    /// True if it keeps a log of its writes and flushes.
    pub fn has_log(self) -> bool {
        matches!(self, DiskKind::CutBlock { log_bytes: Some(_), .. })
    }

    /// The disks of a server's data with their sizes in bytes: that of the data directory first, then those of parts
    /// of it. None for a plain one.
    pub fn parts(self) -> Vec<(DataPart, u64)> {
        let (main, wal, tablespaces) = match self {
            DiskKind::Plain => (None, None, None),
            DiskKind::CutFilesystem { size_bytes } => (Some(size_bytes), None, None),
            DiskKind::CutBlock { size_bytes, wal_bytes, tablespaces_bytes, .. } => {
                (Some(size_bytes), wal_bytes, tablespaces_bytes)
            }
        };
        let each =
            [(DataPart::Main, main), (DataPart::Wal, wal), (DataPart::Tablespaces, tablespaces)];
        each.into_iter().filter_map(|(part, bytes)| Some((part, bytes?))).collect()
    }

    /// True if a part of its data is on another disk.
    pub fn has_parts_apart(self) -> bool {
        self.parts().len() > 1
    }

    /// True if its tablespaces are on another disk.
    pub fn has_tablespaces_apart(self) -> bool {
        matches!(self, DiskKind::CutBlock { tablespaces_bytes: Some(_), .. })
    }

    /// `"plain"`, or `{ cut = "block", size = "2GB", sector = 512, lying = false, fs = "xfs" }`.
    pub(crate) fn parse(value: &Value, problems: &Problems) -> DiskKind {
        if let Is::Text(_) = value.is {
            let words = [("plain", DiskKind::Plain)];
            return choice("disk", value, &words, problems).unwrap_or(DiskKind::Plain);
        }
        let Some(fields) = Fields::of("a disk", value, problems) else { return DiskKind::Plain };
        fields.required("cut");
        let way = fields.choice("cut", WAYS);
        let size_bytes = size("size", SIZE_MIN, &fields).unwrap_or(SIZE_DEFAULT);
        let disk = match way {
            None => DiskKind::Plain,
            Some(Way::Filesystem) => DiskKind::CutFilesystem { size_bytes },
            Some(Way::Block) => DiskKind::CutBlock {
                size_bytes,
                sector_bytes: sector(&fields),
                lying: fields.boolean("lying").unwrap_or(false),
                file_system: fields.choice("fs", FILE_SYSTEMS).unwrap_or(FileSystem::Ext4),
                log_bytes: log(&fields),
                wal_bytes: size("wal", PART_MIN, &fields),
                tablespaces_bytes: size("tablespaces", PART_MIN, &fields),
            },
        };
        fields.finish();
        disk
    }
}

fn size(key: &'static str, min: u64, fields: &Fields<'_>) -> Option<u64> {
    let value = fields.value(key)?;
    let bytes = match &value.is {
        Is::Text(text) => bytes(text).filter(|bytes| *bytes >= min),
        _ => None,
    };
    if bytes.is_none() {
        let hint = format!("write \"512MB\" or \"2GB\"; it needs {}MB at least", min >> 20);
        fields.problems.hinted(&value.span, format!("{key}: not the size of a disk"), hint);
    }
    bytes
}

/// PostgreSQL's units: powers of 1024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let units = [("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40)];
    let (unit, shift) = units.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
    number.checked_mul(1 << shift)
}

fn log(fields: &Fields<'_>) -> Option<u64> {
    let value = fields.value("log")?;
    let bytes = match &value.is {
        Is::Text(text) => bytes(text).filter(|bytes| *bytes > 0),
        _ => None,
    };
    if bytes.is_none() {
        let hint = "write \"256MB\" or \"1GB\"";
        fields.problems.hinted(&value.span, "log: not the size of a log", hint);
    }
    bytes
}

fn sector(fields: &Fields<'_>) -> u32 {
    let sector: u32 = fields.integer("sector", SECTOR_MIN..=SECTOR_MAX).unwrap_or(SECTOR_MIN);
    if !sector.is_power_of_two() {
        let span = fields.value("sector").map_or(fields.span(), |value| &value.span);
        fields.problems.add(span, "sector must be a power of two");
    }
    sector
}

/// A way in which a disk loses power, by its name in study.toml.
#[derive(Clone, Copy)]
enum Way {
    Filesystem,
    Block,
}

const FILE_SYSTEMS: &[(&str, FileSystem)] = &[
    ("ext4", FileSystem::Ext4),
    ("ext4-writeback", FileSystem::Ext4Writeback),
    ("xfs", FileSystem::Xfs),
    ("btrfs", FileSystem::Btrfs),
];

const WAYS: &[(&str, Way)] = &[("filesystem", Way::Filesystem), ("block", Way::Block)];

/// A small cluster with its WAL.
const SIZE_DEFAULT: u64 = 2 << 30;
const SIZE_MIN: u64 = 256 << 20;
/// Some segments of the WAL or some tables, and the journal of a file system.
const PART_MIN: u64 = 128 << 20;
/// Bounds of the unit that disks write whole: 512 bytes on old disks, a page of PostgreSQL's.
const SECTOR_MIN: u32 = 512;
const SECTOR_MAX: u32 = 8192;
