//! Faults of a disk: a cut of its power, now or at a chosen request, and requests that fail.

use std::fs::File;
use std::time::{Duration, Instant};

use os::init::Init;
use terms::{DiskFault, DiskRequest};

use super::error::{Error, step};
use super::orders::{DiskError, Failing, Order, Status, What};
use super::{Cut, Disk, PAUSE, UNMOUNT_TIMEOUT, parts};

/// A cut under way. Several disks lose their power in one moment when each of the three steps is taken
/// for all of them.
#[derive(Debug)]
pub struct Cutting {
    root: File,
    /// Files that lie in the kernel's memory, which cannot be opened afterwards.
    unwritten: Vec<File>,
    device: Status,
}

impl Disk {
    /// Cuts the power: from now on nothing is written, and every access fails with EIO. What uses
    /// the disk should be killed next, then [`Disk::power_off`] and [`Disk::power_on`] follow. With
    /// `at` the power of a block disk is cut when that request comes, or after half a minute without it.
    pub fn cut(&mut self, init: &Init, seed: u64, at: Option<DiskRequest>) -> Result<Cut, Error> {
        let mut cutting = self.begin_cut(init)?;
        self.cut_device(&mut cutting, seed, at)?;
        self.end_cut(init, cutting)
    }

    /// Looks at what a cut can take.
    pub fn begin_cut(&self, init: &Init) -> Result<Cutting, Error> {
        let path = self.outside(init)?;
        let failed = || step("cutting the power of", path.clone());
        let root = File::open(&path).map_err(failed())?;
        let unwritten = self.owner.access(|| parts::unwritten_files(&path)).map_err(failed())?;
        Ok(Cutting { root, unwritten, device: Status::default() })
    }

    /// Cuts the power of the device, if it is one of ours.
    pub fn cut_device(
        &self,
        cutting: &mut Cutting,
        seed: u64,
        at: Option<DiskRequest>,
    ) -> Result<(), Error> {
        cutting.device = match (at, self.config.method.is_block()) {
            (Some(at), _) => self.cut_at(seed, at)?,
            (None, true) => self.tell(Order::Cut { seed })?,
            (None, false) => Status::default(),
        };
        Ok(())
    }

    /// Stops the file system, and counts what is lost. Nothing of it is open any more then.
    pub fn end_cut(&self, init: &Init, cutting: Cutting) -> Result<Cut, Error> {
        let path = self.outside(init)?;
        let failed = || step("cutting the power of", path.clone());
        let Cutting { root, unwritten, device } = cutting;
        if self.can_be_shut_down() {
            os::file_system::shut_down(&root).map_err(failed())?;
        }
        let in_memory = parts::unwritten_bytes(&unwritten).map_err(failed())?;
        Ok(Cut {
            unflushed_bytes: in_memory + device.cached,
            dropped_bytes: in_memory + device.dropped,
            kept_bytes: device.cached - device.dropped,
            torn_blocks: device.torn_blocks,
        })
    }

    fn cut_at(&self, seed: u64, at: DiskRequest) -> Result<Status, Error> {
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
    fn number_of(&self, at: DiskRequest) -> Result<(What, u64), Error> {
        let status = self.status()?;
        Ok(match at {
            DiskRequest::Write(number) => (What::Write, status.writes + number),
            DiskRequest::Flush(number) => (What::Flush, status.flushes + number),
        })
    }

    /// Has a block disk fail requests from a chosen one on, counted from now.
    pub fn fail_from(&self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        let (what, from) = self.number_of(at)?;
        let error = match fault {
            DiskFault::Broken => DiskError::Broken,
            DiskFault::Full => DiskError::Full,
        };
        self.fail(Failing { what, from, error })
    }

    /// Has a block disk fail requests from a chosen one on.
    pub fn fail(&self, failing: Failing) -> Result<(), Error> {
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

    /// Ends what [`Disk::fail`] and [`Disk::slow_from`] began.
    pub fn heal(&self) -> Result<(), Error> {
        self.expect_block("healing")?;
        self.tell(Order::Heal).map(drop)
    }
}
