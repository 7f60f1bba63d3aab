//! What the servers of a site can be restored from and to: base backups that were taken, and moments that were
//! noted, each between two bounds on the clock of this machine.

use std::path::PathBuf;
use std::time::Instant;

/// The backups and the restore points of the trial under way.
#[derive(Debug, Default)]
pub struct RestoreSources {
    /// Base backups, in the order in which they ended.
    pub backups: Vec<TakenBackup>,
    /// Restore points, in the order in which they were noted.
    pub points: Vec<RestorePoint>,
}

/// An interval of this machine's monotonic clock in which something happened on a server.
#[derive(Clone, Copy, Debug)]
pub struct ClockInterval {
    /// Before the server was asked.
    pub earliest: Instant,
    /// After it had answered.
    pub latest: Instant,
}

/// A server's clock, and when it was read.
#[derive(Clone, Copy, Debug)]
pub struct ClockLook {
    /// When it was read.
    pub read: ClockInterval,
    /// Microseconds since 1970.
    pub server_us: i64,
}

/// A place in the WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalPlace {
    /// The timeline.
    pub timeline: u32,
    /// The position, in bytes.
    pub lsn: u64,
}

/// A base backup.
#[derive(Clone, Debug)]
pub struct TakenBackup {
    /// The server that it was taken of.
    pub node: String,
    /// The server in whose directory the archive lies that it belongs to.
    pub archive_of: String,
    /// Where it lies.
    pub directory: PathBuf,
    /// From before its begin until after its end.
    pub taken: ClockInterval,
    /// The server's clock before and after it.
    pub clocks: [ClockLook; 2],
    /// A place in the WAL before its begin: from there on it needs the WAL.
    pub begin: WalPlace,
    /// The database system identifier.
    pub system: u64,
    /// True if the server wrote whole pages into its WAL by its own setting.
    pub writes_full_pages: bool,
}

/// A moment on a server that others can be restored to.
#[derive(Clone, Debug)]
pub struct RestorePoint {
    /// The server.
    pub node: String,
    /// The server in whose directory the archive lies.
    pub archive_of: String,
    /// Its name in the WAL (`pg_create_restore_point`), and when it was made.
    pub name: (String, ClockInterval),
    /// The server's clock as PostgreSQL writes it, and when it was read.
    pub time: (String, ClockLook),
    /// A position in the WAL as PostgreSQL writes it, and when it was read.
    pub lsn: (String, ClockInterval),
    /// The number of a transaction of the rig's, and when it was committed.
    pub xid: (String, ClockInterval),
    /// The place in the WAL after all of them.
    pub end: WalPlace,
}

/// The end of an archive: all that was written before is in it.
#[derive(Clone, Debug)]
pub struct ArchiveEnd {
    /// When the last segment was completed.
    pub completed: ClockInterval,
    /// The name of the last segment.
    pub segment: String,
    /// The server's clock.
    pub clock: ClockLook,
}

impl WalPlace {
    /// The place of a position as PostgreSQL writes it, as in `0/2000028`.
    pub fn parse(timeline: u32, lsn: &str) -> Option<WalPlace> {
        let (high, low) = lsn.split_once('/')?;
        let high = u64::from_str_radix(high, 16).ok().filter(|high| *high <= u32::MAX.into())?;
        let low = u64::from_str_radix(low, 16).ok().filter(|low| *low <= u32::MAX.into())?;
        Some(WalPlace { timeline, lsn: high << 32 | low })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_two_hexadecimal_numbers() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(WalPlace::parse(1, text).map(|place| place.lsn), expected, "{text}");
        };
        check("0/2000028", Some(0x200_0028));
        check("A/0", Some(0xA_0000_0000));
        check("1", None);
        check("0/FFFFFFFFF", None);
    }
}
