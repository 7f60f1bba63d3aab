//! A station's disk of its own: its server's data lie on it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use fault::disk::{self, DiskConfig, FaultyDisk, PowerCutReport};
use os::init::Init;
use terms::{DiskFault, DiskRequest};

use crate::copy::copy_tree;
use crate::error::Error;
use crate::inner::powered::PoweredObject;
use crate::inner::program::{Program, Runs};
use crate::inner::station::Station;

/// The disk, and what is known of it.
#[derive(Debug)]
pub(super) struct OwnDisk {
    disk: FaultyDisk,
    /// True since its power was cut or its requests fail: it must be switched on anew.
    is_broken: bool,
    /// The copy of the data that were on it.
    kept: Option<PathBuf>,
}

impl OwnDisk {
    /// The disk for a program of the lab's; it is not formatted yet.
    pub(super) fn new(config: DiskConfig, program: &Program) -> OwnDisk {
        let disks = program.shared.disks();
        let disk =
            FaultyDisk::new(config, &disks.join(&program.name), &new_socket(&disks), program.owner);
        OwnDisk { disk, is_broken: false, kept: None }
    }

    pub(super) fn mount_point(&self) -> PathBuf {
        self.disk.mount_point()
    }
}

/// The socket of a new disk. By a number it is short: the kernel limits its path, a station's name may be long,
/// and the lab has checked its directory for the sockets of nodes only.
fn new_socket(disks: &Path) -> PathBuf {
    static MADE: AtomicU16 = AtomicU16::new(0);
    disks.join(format!(".s{}", MADE.fetch_add(1, Ordering::Relaxed)))
}

impl Station {
    /// Gives its disk an empty file system, if it has one.
    pub(super) fn format_disk(&mut self) -> Result<(), Error> {
        self.with_disk("formatting", |own, init| {
            own.is_broken = false;
            own.disk.format(init)
        })
        .map(drop)
    }

    /// Switches a disk on anew that fails or has lost its power, once nothing of the station runs.
    pub(super) fn mend_disk(&mut self) -> Result<(), Error> {
        if !self.disk.as_ref().is_some_and(|own| own.is_broken) || self.is_running()? {
            return Ok(());
        }
        // A server outlives the manager that has started it.
        self.kill9()?;
        self.with_disk("switching on", |own, init| {
            own.disk.power_off(init)?;
            own.disk.power_on(init)?;
            own.is_broken = false;
            Ok(())
        })
        .map(drop)
    }

    /// Copies the data on its disk aside.
    pub(super) fn keep_data(&mut self) -> Result<(), Error> {
        // Without data of its own on a disk, there is nothing to copy.
        let Some(from) = self.data_here()? else { return Ok(()) };
        let (to, owner) = (self.program.shared.new_snapshot_directory(), self.program.owner);
        copy_tree(&from, &to, owner)?;
        if let Some(own) = &mut self.disk {
            own.kept = Some(to);
        }
        Ok(())
    }

    /// Puts the data back on a file system that is made anew.
    pub(super) fn reset_data(&mut self) -> Result<(), Error> {
        let Some(kept) = self.disk.as_ref().and_then(|own| own.kept.clone()) else {
            // What was never copied is not restored.
            return Ok(());
        };
        self.format_disk()?;
        match self.data_here()? {
            Some(to) => copy_tree(&kept, &to, self.program.owner).map(drop),
            None => Ok(()),
        }
    }

    /// The data on its disk as this process can open them; none without a disk or a server.
    fn data_here(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some(data) = self.data.clone() else { return Ok(None) };
        let found = self.with_disk("finding the data of", |own, init| {
            let below = data.strip_prefix(own.disk.mount_point()).unwrap_or(Path::new(""));
            Ok(own.disk.outside(init)?.join(below))
        })?;
        Ok(found)
    }

    /// Does something with its disk; nothing where it has none.
    fn with_disk<T>(
        &mut self,
        doing: &'static str,
        act: impl FnOnce(&mut OwnDisk, &Init) -> Result<T, disk::Error>,
    ) -> Result<Option<T>, Error> {
        let Some(own) = &mut self.disk else { return Ok(None) };
        let init = self.program.init(doing)?;
        let failed = |source| Error::Disk { node: self.program.name.clone(), source };
        act(own, init).map(Some).map_err(failed)
    }

    /// The same of one that must have it.
    fn with_own_disk<T>(
        &mut self,
        doing: &'static str,
        act: impl FnOnce(&mut OwnDisk, &Init) -> Result<T, disk::Error>,
    ) -> Result<T, Error> {
        let done = self.with_disk(doing, act)?;
        done.ok_or_else(|| self.program.state(doing, "has no disk of its own"))
    }
}

impl PoweredObject for Station {
    fn power_cut(&mut self, seed: u64, at: Option<DiskRequest>) -> Result<PowerCutReport, Error> {
        let cut = self.with_own_disk("cutting the power of", |own, init| {
            own.is_broken = true;
            own.disk.cut(init, seed, at)
        })?;
        self.kill9()?;
        Ok(cut)
    }

    fn fail_disk(&mut self, at: DiskRequest, fault: DiskFault) -> Result<(), Error> {
        self.with_own_disk("failing requests of", |own, _| {
            own.is_broken = true;
            own.disk.fail_from(at, fault)
        })
    }

    fn slow_disk(&mut self, slow: Option<(DiskRequest, Duration)>) -> Result<(), Error> {
        self.with_own_disk("slowing", |own, _| match slow {
            Some((at, by)) => own.disk.slow_from(at, by),
            None => own.disk.heal().map(drop),
        })
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.with_disk("syncing", |own, init| own.disk.sync(init)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{DISKS, SOCKETS};

    #[test]
    fn a_disks_socket_is_no_longer_than_a_nodes() {
        let longest = Path::new(SOCKETS).join(".s.PGSQL.65535").as_os_str().len();
        let socket = new_socket(Path::new(DISKS));
        assert_ne!(socket, new_socket(Path::new(DISKS)));
        let digits = 5;
        assert!(socket.with_file_name(".s").as_os_str().len() + digits <= longest);
    }
}
