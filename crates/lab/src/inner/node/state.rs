//! A node whose disk keeps a log of its writes, and one whose disk holds a state of such a log.

use std::path::PathBuf;

use fault::disk::{Disk, Recorded};

use crate::error::Error;
use crate::files::make_directory;
use crate::inner::node::Node;
use crate::inner::program::Runs;

impl Node {
    pub(crate) fn record_writes(&mut self, bytes: Option<u64>) -> Result<(), Error> {
        self.with_disk("recording the writes of", |disk, init| match bytes {
            Some(bytes) => {
                disk.record_next(bytes);
                Ok(())
            }
            None => disk.record(init),
        })
        .map(drop)
    }

    pub(crate) fn end_record(&mut self) -> Result<Recorded, Error> {
        let doing = "ending the log of";
        let recorded = self.with_disk(doing, Disk::end_record)?;
        recorded.ok_or_else(|| self.program.state(doing, NO_DISK))
    }

    pub(crate) fn load_state(&mut self) -> Result<(), Error> {
        self.program.kill9()?;
        self.program.make_directory()?;
        let log = self.log();
        let folder = log.parent().unwrap_or(&log);
        if !folder.is_dir() {
            make_directory(folder, self.program.owner)?;
        }
        self.with_disk("changing the state of", Disk::load_state)?;
        // Its next start switches the disk on.
        self.is_cut = true;
        Ok(())
    }

    pub(crate) fn power_off(&mut self) -> Result<(), Error> {
        self.program.kill9()?;
        self.with_disk("switching off", Disk::power_off).map(drop)
    }

    pub(crate) fn state_path(&self) -> Result<PathBuf, Error> {
        let disk = self.disk.as_ref().map(Disk::patch_path);
        disk.ok_or_else(|| self.program.state("exploring", NO_DISK))
    }

    pub(crate) fn disk_directory(&self) -> Result<PathBuf, Error> {
        let disk = self.disk.as_ref().map(|disk| disk.directory().to_owned());
        disk.ok_or_else(|| self.program.state("exploring", NO_DISK))
    }
}

const NO_DISK: &str = "has no disk of its own";
