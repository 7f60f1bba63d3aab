//! The process of a disk: mounts the device, then does what it is told, until it is killed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use fuser::{Config, MountOption, Session};

use crate::disk::device::Device;
use crate::disk::medium::DurableMedium;
use crate::disk::orders::Order;

/// The arguments of a disk's process, after those that lead to [`serve`].
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    pub(crate) image: &'a Path,
    pub(crate) mount_point: &'a Path,
    pub(crate) socket: &'a Path,
    pub(crate) sector_bytes: u32,
    pub(crate) is_lying: bool,
    /// The changes that a state makes to the image, which is only read then.
    pub(crate) patch: Option<&'a Path>,
}

impl Arguments<'_> {
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mut words = vec![
            self.image.into(),
            self.mount_point.into(),
            self.socket.into(),
            self.sector_bytes.to_string().into(),
            if self.is_lying { LYING } else { HONEST }.into(),
        ];
        words.extend(self.patch.map(OsString::from));
        words
    }
}

/// Becomes a disk, as `arguments` say it; returns only if it cannot be one any more. A program
/// that starts disks calls this in the process that [`super::DiskProgram`] describes.
pub fn serve(arguments: &[OsString]) -> io::Result<()> {
    let [image, mount_point, socket, sector, honesty, patch @ ..] = arguments else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the arguments of a disk"));
    };
    let sector = sector.to_str().and_then(|word| word.parse().ok());
    let sector = sector.filter(|bytes: &usize| bytes.is_power_of_two() && *bytes >= 512);
    let sector = sector.ok_or(io::ErrorKind::InvalidInput)?;
    // Its own directory, beside those of the other disks of its init.
    let directory = Path::new(mount_point).parent().unwrap_or(Path::new("/"));
    let medium = match patch {
        [] => DurableMedium::Image(Device::open(image)?),
        [patch, ..] => DurableMedium::state(File::open(image)?, Path::new(patch), directory)?,
    };
    let log = directory.join(LOG);
    let device = Device::new(medium, sector, honesty == OsStr::new(LYING), log)?;
    let disks = Path::new(socket).parent().unwrap_or(Path::new("/"));
    os::file_system::leave_mounts_below(disks)?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("pgrig-disk".to_owned()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoExec,
    ];
    let _session = Session::new(device.clone(), mount_point, &config)?.spawn()?;
    // A client that can connect finds the disk mounted.
    let listener = UnixListener::bind(socket)?;
    for rig in listener.incoming() {
        // A rig that is gone in the middle of a line does not end the disk.
        let _ = answer(&device, rig?);
    }
    Ok(())
}

fn answer(device: &Device, rig: UnixStream) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&rig).read_line(&mut line)?;
    let answer = match line.parse::<Order>() {
        Ok(order) => device.obey(order).map(|status| status.to_string()),
        Err(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not an order")),
    };
    match answer {
        Ok(status) => writeln!(&rig, "ok {status}"),
        Err(error) => writeln!(&rig, "error {error}"),
    }
}

/// The name of its log.
pub(crate) const LOG: &str = "writes.log";

/// The name of the list of blocks whose requests it fails: the first and the last of each run, a line each.
pub(crate) const FAILING: &str = "failing";

/// The name of the copy of its image from before the log.
pub(crate) const BASE: &str = "base";

const LYING: &str = "lying";
const HONEST: &str = "honest";
