//! pg_checksums on a node's data.

use std::time::Duration;

use os::command::Output;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::files::write_file;
use crate::node::Node;

/// What pg_checksums has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksums {
    /// Blocks that it has read.
    pub blocks: u64,
    /// Blocks whose checksum is not that of their content.
    pub bad: u64,
    /// What it said of each of the first of them.
    pub complaints: Vec<String>,
}

impl Node {
    /// Compares every block's checksum with its content (pg_checksums --check). The node must have
    /// been shut down, and its data made with `--data-checksums`.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Checksums`] with what pg_checksums said.
    pub(crate) fn check_checksums(&mut self) -> Result<Checksums, Error> {
        self.program.expect_stopped("checking the checksums of")?;
        let output = self.program.file("checksums.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command("pg_checksums", self.directory())
            .args(["--check", "--pgdata"])
            .arg(self.data())
            .stdout(Output::File(output.clone()))
            .stderr(Output::File(output.clone()));
        let exit = self.program.shared.run(&command, CHECK_TIMEOUT)?;
        let said = self.program.text(&output);
        found(&said).ok_or_else(|| {
            let output = self.program.tail(&output, 0);
            Error::Checksums { node: self.name().to_owned(), exit, output }
        })
    }
}

/// None where it has not read to the end.
fn found(said: &str) -> Option<Checksums> {
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

/// More than these are not read.
const COMPLAINTS_MAX: usize = 5;

/// It reads a data directory at the speed of the disk.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pg_checksums_says_is_understood() {
        let check = |said: &str, expected: Option<(u64, u64, usize)>| {
            let found = found(said).map(|one| (one.blocks, one.bad, one.complaints.len()));
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
