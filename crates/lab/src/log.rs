//! The end of a server's log, for people who ask why.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use os::user::SystemUser;

use crate::files::open_file;

/// The format of the log that programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line (PostgreSQL 15 and later).
    Json,
    /// Comma-separated values.
    Csv,
}

impl LogFormat {
    /// The better one of those that a major version has.
    pub fn of(major: u32) -> Self {
        if major >= 15 { Self::Json } else { Self::Csv }
    }

    /// Its name in `log_destination`.
    pub(crate) fn destination(self) -> &'static str {
        match self {
            Self::Json => "jsonlog",
            Self::Csv => "csvlog",
        }
    }

    /// Suffix that it puts in the place of `.log`.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// The last lines of `path`, a file of `owner`'s, after its first `from_bytes`; empty where there is
/// no such file.
pub(crate) fn tail(path: &Path, from_bytes: u64, owner: SystemUser) -> String {
    let read = || {
        let mut file = open_file(path, owner)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from_bytes.max(length.saturating_sub(TAIL_BYTES))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        std::io::Result::Ok(bytes)
    };
    // See above: the tail is for people, and a program that wrote no log has none.
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Enough to see a reason and its context, and still readable.
const TAIL_LINES: usize = 15;
const TAIL_BYTES: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_last_lines() {
        let tail = |path: &Path, from| tail(path, from, SystemUser::current());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let text: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let text = tail(&path, 0);
        assert_eq!(text.lines().count(), TAIL_LINES);
        assert!(text.ends_with("line 9999"));
        let length = path.metadata().unwrap().len();
        assert_eq!(tail(&path, length - 10), "line 9999");
        assert_eq!(tail(&path, length), "");
        assert_eq!(tail(&directory.path().join("none"), 0), "");
    }
}
