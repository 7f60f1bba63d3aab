//! Loop devices: a file as a block device (loop(4)).
//!
//! A device is attached with autoclear: the kernel detaches it when nothing has it open or mounted
//! any more, however that came about. It need not be detached by hand.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// A file that is attached to a loop device. Dropping it closes the device, which the kernel then
/// detaches unless it is mounted.
#[derive(Debug)]
pub struct LoopDevice {
    /// Keeps the device attached until it is mounted.
    _device: File,
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches `backing` to a free loop device.
    ///
    /// # Errors
    /// `PermissionDenied` without root's rights; `NotFound` where the kernel has no loop devices;
    /// otherwise the system's error, with no device free among them.
    pub fn attach(backing: impl AsFd) -> io::Result<Self> {
        let backing = backing.as_fd().as_raw_fd();
        for _ in 0..ATTEMPTS_MAX {
            let (device, path) = open_free()?;
            let config = LoopConfig::autoclear(backing);
            // SAFETY: LOOP_CONFIGURE reads a loop_config, which `config` is laid out as, and both
            // descriptors are open.
            let done =
                unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
            if done == 0 {
                return Ok(Self { _device: device, path });
            }
            let error = io::Error::last_os_error();
            // Another process was faster to take the same one.
            if error.raw_os_error() != Some(libc::EBUSY) {
                return Err(error);
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// The place below `/dev`.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Checks that a device is free now; another process may take it a moment later.
pub fn check_free() -> io::Result<()> {
    open_free().map(drop)
}

fn open_free() -> io::Result<(File, PathBuf)> {
    let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    // SAFETY: LOOP_CTL_GET_FREE takes no argument and touches no memory of this process.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    let path = Path::new("/dev").join(format!("loop{number}"));
    let device = OpenOptions::new().read(true).write(true).open(&path);
    let device = device.map_err(|error| match error.kind() {
        // The kernel would have one, but its node does not exist: a container.
        io::ErrorKind::NotFound => {
            io::Error::new(io::ErrorKind::ResourceBusy, format!("{} is not there", path.display()))
        }
        _ => error,
    })?;
    Ok((device, path))
}

/// `struct loop_config` of linux/loop.h (Linux 5.8).
#[repr(C)]
struct LoopConfig {
    backing: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// `struct loop_info64` of linux/loop.h; what is not named here is left at zero.
#[repr(C)]
struct LoopInfo {
    ids_offset_and_limit: [u64; 5],
    number_and_encryption: [u32; 3],
    flags: u32,
    names_and_key: [u8; 160],
    init: [u64; 2],
}

impl LoopConfig {
    fn autoclear(backing: i32) -> Self {
        let info = LoopInfo {
            ids_offset_and_limit: [0; 5],
            number_and_encryption: [0; 3],
            flags: LO_FLAGS_AUTOCLEAR,
            names_and_key: [0; 160],
            init: [0; 2],
        };
        Self { backing: backing.cast_unsigned(), block_size: 0, info, reserved: [0; 8] }
    }
}

/// Gives the numbers of devices that are free.
pub const CONTROL: &str = "/dev/loop-control";

// linux/loop.h
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// Other programs take loop devices at the same time, but not that many.
const ATTEMPTS_MAX: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
