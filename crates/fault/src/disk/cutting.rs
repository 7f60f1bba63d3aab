//! Faults of a disk: a cut of its power, now or at a chosen request, and requests that fail.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crash::BLOCK_BYTES;
use os::init::Init;
use terms::{DiskFault, DiskRequest, FailingRequests, RequestKind};

use super::error::{Error, step};
use super::orders::{DiskError, DiskStatus, Order, RequestFailure};
use super::serve::FAILING;
use super::{FaultyDisk, PAUSE, PowerCutReport, UNMOUNT_TIMEOUT, parts};

/// A cut under way. Several disks lose their power in one moment when each of the three steps is taken
/// for all of them.
#[derive(Debug)]
pub struct PowerCutInProgress {
    root: File,
    /// Files that lie in the kernel's memory, which cannot be opened afterwards.
    unwritten: Vec<File>,
    device: DiskStatus,
}

impl FaultyDisk {
    /// Cuts the power: from now on nothing is written, and every access fails with EIO. What uses
    /// the disk should be killed next, then [`FaultyDisk::power_off`] and [`FaultyDisk::power_on`] follow. With
    /// `at` the power of a block disk is cut when that request comes, or after half a minute without it.
    pub fn cut(
        &mut self,
        init: &Init,
        seed: u64,
        at: Option<DiskRequest>,
    ) -> Result<PowerCutReport, Error> {
        let mut cutting = self.begin_cut(init)?;
        self.cut_device(&mut cutting, seed, at)?;
        self.end_cut(init, cutting)
    }

    /// Looks at what a cut can take.
    pub fn begin_cut(&self, init: &Init) -> Result<PowerCutInProgress, Error> {
        let path = self.outside(init)?;
        let failed = || step("cutting the power of", path.clone());
        let root = File::open(&path).map_err(failed())?;
        let unwritten = self.owner.access(|| parts::unwritten_files(&path)).map_err(failed())?;
        Ok(PowerCutInProgress { root, unwritten, device: DiskStatus::default() })
    }

    /// Cuts the power of the device, if it is one of ours.
    pub fn cut_device(
        &self,
        cutting: &mut PowerCutInProgress,
        seed: u64,
        at: Option<DiskRequest>,
    ) -> Result<(), Error> {
        cutting.device = match (at, self.config.method.is_block()) {
            (Some(at), _) => self.cut_at(seed, at)?,
            (None, true) => self.tell(Order::Cut { seed })?,
            (None, false) => DiskStatus::default(),
        };
        Ok(())
    }

    /// Stops the file system, and counts what is lost. Nothing of it is open any more then.
    pub fn end_cut(
        &self,
        init: &Init,
        cutting: PowerCutInProgress,
    ) -> Result<PowerCutReport, Error> {
        let path = self.outside(init)?;
        let failed = || step("cutting the power of", path.clone());
        let PowerCutInProgress { root, unwritten, device } = cutting;
        if self.can_be_shut_down() {
            os::file_system::shut_down(&root).map_err(failed())?;
        }
        let in_memory = parts::unwritten_bytes(&unwritten).map_err(failed())?;
        Ok(PowerCutReport {
            unflushed_bytes: in_memory + device.cached,
            dropped_bytes: in_memory + device.dropped,
            kept_bytes: device.cached - device.dropped,
            torn_blocks: device.torn_blocks,
        })
    }

    fn cut_at(&self, seed: u64, at: DiskRequest) -> Result<DiskStatus, Error> {
        let (what, from) = self.number_of(at)?;
        self.tell(Order::CutAt { what, from, seed })?;
        let deadline = Instant::now() + UNMOUNT_TIMEOUT;
        while Instant::now() < deadline {
            let status = self.tell(Order::Status)?;
            if status.off > 0 {
                return Ok(status);
            }
            std::thread::sleep(PAUSE);
        }
        self.tell(Order::Cut { seed })
    }

    /// The number of a request since the power came on.
    fn number_of(&self, at: DiskRequest) -> Result<(RequestKind, u64), Error> {
        let status = self.status()?;
        Ok(match at {
            DiskRequest::Write(number) => (RequestKind::Write, status.writes + number),
            DiskRequest::Flush(number) => (RequestKind::Flush, status.flushes + number),
        })
    }

    /// Has a block disk fail requests from a chosen one on, counted from now.
    pub fn fail_from(&self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        let (what, from) = self.number_of(at)?;
        self.fail(RequestFailure { what, from, error: error_of(fault) })
    }

    /// Has some requests of a block disk fail, and the number of the blocks that they are about; 0 where no named
    /// file is on it. The blocks are those that the files have now.
    pub fn fail_requests(&self, init: &Init, failing: &FailingRequests) -> Result<u64, Error> {
        self.expect_block("failing requests of")?;
        let what = failing.kind;
        // In an order, 0 means that no number was given: requests fail until the disk is healed.
        let (error, times) = (error_of(failing.fault), failing.times.unwrap_or(0));
        let has_blocks = !failing.files.is_empty();
        let mut runs: BTreeMap<u64, u64> = BTreeMap::new();
        for file in if has_blocks { self.files(init)? } else { Vec::new() } {
            if failing.files.iter().any(|name| is_of(&data_path(&file.path), name)) {
                let extents = file.extents.iter().map(|(_, physical, length)| {
                    (physical / BLOCK_BYTES, (physical + length - 1) / BLOCK_BYTES)
                });
                runs.extend(extents);
            }
        }
        let blocks = runs.iter().map(|(first, last)| last - first + 1).sum();
        if has_blocks && blocks == 0 {
            return Ok(0);
        }
        let list = self.directory.join(FAILING);
        let text: String = runs.iter().map(|(first, last)| format!("{first} {last}\n")).collect();
        std::fs::write(&list, text).map_err(step("writing", &list))?;
        self.tell(Order::FailSome { what, error, times, has_blocks })?;
        Ok(if has_blocks { blocks } else { self.config.size_bytes / BLOCK_BYTES })
    }

    /// Has a block disk fail requests from a chosen one on.
    pub fn fail(&self, failing: RequestFailure) -> Result<(), Error> {
        self.expect_block("failing requests of")?;
        self.tell(Order::Fail(failing)).map(drop)
    }

    /// Has each request of a block disk take so much longer from a chosen one on, counted from now.
    pub fn slow_from(&self, at: DiskRequest, delay: Duration) -> Result<(), Error> {
        self.expect_block("slowing")?;
        let (what, from) = self.number_of(at)?;
        let delay_us = delay.as_micros() as u64;
        self.tell(Order::Slow { what, from, delay_us }).map(drop)
    }

    /// Ends what [`FaultyDisk::fail`], [`FaultyDisk::fail_requests`] and [`FaultyDisk::slow_from`] began.
    pub fn heal(&self) -> Result<DiskStatus, Error> {
        self.expect_block("healing")?;
        self.tell(Order::Heal)
    }
}

/// The path of a file from the data directory on: the disk has that as `data`, and the directory of the WAL, where it
/// has one of its own, as `wal`.
fn data_path(path: &Path) -> String {
    let path = match path.strip_prefix("wal") {
        Ok(rest) => Path::new("pg_wal").join(rest),
        Err(_) => path.strip_prefix("data").unwrap_or(path).to_owned(),
    };
    path.to_string_lossy().into_owned()
}

/// True if a path is that file, a further segment of it or below that directory.
fn is_of(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
}

fn error_of(fault: DiskFault) -> DiskError {
    match fault {
        DiskFault::Broken => DiskError::Broken,
        DiskFault::Full => DiskError::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_file_its_segments_or_a_directory() {
        for (path, name, expected) in [
            ("data/base/5/16390", "base/5/16390", true),
            ("data/base/5/16390.1", "base/5/16390", true),
            ("data/base/5/16390_fsm", "base/5/16390", false),
            ("data/base/5/163901", "base/5/16390", false),
            ("data/pg_xact/0000", "pg_xact", true),
            ("wal/000000010000000000000001", "pg_wal", true),
            ("data/global/pg_control", "pg_xact", false),
        ] {
            assert_eq!(is_of(&data_path(Path::new(path)), name), expected, "{path} {name}");
        }
    }
}
