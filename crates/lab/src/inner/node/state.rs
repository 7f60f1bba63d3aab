//! A node whose disk keeps a log of its writes, and one whose disk holds a state of such a log.

use std::path::PathBuf;

use fault::disk::{FaultyDisk, RequestLog};

use crate::error::Error;
use crate::files::make_directory;
use crate::inner::node::Node;
use crate::inner::program::Runs;

impl Node {
    pub(crate) fn record_writes(&mut self, bytes: Option<u64>) -> Result<(), Error> {
        self.with_disks("recording the writes of", |disk, init| match bytes {
            Some(bytes) => {
                disk.record_next(bytes);
                Ok(())
            }
            None => disk.record(init),
        })
        .map(drop)
    }

    pub(crate) fn end_record(&mut self) -> Result<Vec<RequestLog>, Error> {
        let doing = "ending the log of";
        self.expect_disk(doing)?;
        self.with_disks(doing, FaultyDisk::end_record)
    }

    pub(crate) fn load_state(&mut self) -> Result<(), Error> {
        self.program.kill9()?;
        self.program.make_directory()?;
        let log = self.log();
        let folder = log.parent().unwrap_or(&log);
        if !folder.is_dir() {
            make_directory(folder, self.program.owner)?;
        }
        self.with_disks("changing the state of", FaultyDisk::load_state)?;
        // Its next start switches the disk on.
        self.is_cut = true;
        Ok(())
    }

    pub(crate) fn power_off(&mut self) -> Result<(), Error> {
        self.program.kill9()?;
        self.with_disks("switching off", FaultyDisk::power_off).map(drop)
    }

    pub(crate) fn state_paths(&self) -> Result<Vec<PathBuf>, Error> {
        self.expect_disk("exploring")?;
        let parts = self.parts.iter().map(|part| &part.disk);
        Ok(self.disk.iter().chain(parts).map(FaultyDisk::patch_path).collect())
    }

    pub(crate) fn disk_directory(&self) -> Result<PathBuf, Error> {
        self.expect_disk("exploring").map(|disk| disk.directory().to_owned())
    }

    fn expect_disk(&self, doing: &'static str) -> Result<&FaultyDisk, Error> {
        self.disk.as_ref().ok_or_else(|| self.program.state(doing, NO_DISK))
    }
}

const NO_DISK: &str = "has no disk of its own";
