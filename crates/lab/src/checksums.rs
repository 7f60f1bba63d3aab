//! The output of pg_checksums.

use serde::{Deserialize, Serialize};

/// The findings of pg_checksums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksums {
    /// Blocks that it has read.
    pub blocks: u64,
    /// Blocks whose checksum is not that of their content.
    pub bad: u64,
    /// Messages about the first of them.
    pub complaints: Vec<String>,
}

impl Checksums {
    /// Reads it; none where it has not read to the end.
    pub(crate) fn parse(said: &str) -> Option<Checksums> {
        let number = |name: &str| -> Option<u64> {
            said.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok())
        };
        let (blocks, bad) = (number("Blocks scanned:")?, number("Bad checksums:")?);
        let complaints = said.lines().filter_map(|line| {
            let at = line.find("checksum verification failed")?;
            Some(line[at..].to_owned())
        });
        Some(Checksums { blocks, bad, complaints: complaints.take(COMPLAINTS_MAX).collect() })
    }
}

/// More than these are not read.
const COMPLAINTS_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pg_checksums_says_is_understood() {
        let check = |said: &str, expected: Option<(u64, u64, usize)>| {
            let found =
                Checksums::parse(said).map(|one| (one.blocks, one.bad, one.complaints.len()));
            assert_eq!(found, expected, "{said}");
        };
        check(
            "Checksum operation completed\nFiles scanned:   965\nBlocks scanned:  2856\n\
             Bad checksums:  0\nData checksum version: 1\n",
            Some((2856, 0, 0)),
        );
        check(
            "pg_checksums: error: checksum verification failed in file \"base/5/16389\", block 3: \
             calculated checksum 2A6B but block contains 9C01\nChecksum operation completed\n\
             Files scanned:   965\nBlocks scanned:  2856\nBad checksums:  1\n",
            Some((2856, 1, 1)),
        );
        check("pg_checksums: error: cluster must be shut down\n", None);
    }
}
