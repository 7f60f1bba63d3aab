//! Errors of a disk: what was being done, why it failed, what to do next.

use std::io;
use std::path::PathBuf;

/// A failure of a disk. The message says what and why, [`Error::hint`] what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Error {
    #[error("a disk whose power can be cut needs root")]
    NotRoot,
    #[error("a disk whose power can be cut needs a mount namespace, which is not allowed here")]
    NoNamespace,
    #[error("a disk whose power can be cut needs {device}: {source}")]
    NoDevice { device: &'static str, source: io::Error },
    #[error("no loop device is free: {source}")]
    NoLoopDevice { source: io::Error },
    #[error("this kernel has no file system {kind}")]
    UnknownFileSystem { kind: &'static str },
    #[error(
        "the image of somebody else's {kind} file system is not mounted, and nothing here reads one \
         otherwise"
    )]
    NoImageReader { kind: &'static str },
    #[error("{program} is not installed")]
    NoProgram { program: &'static str },
    #[error(
        "the image of a disk of {} MiB does not fit: {} has {} MiB free",
        .needs_bytes >> 20, .directory.display(), .free_bytes >> 20
    )]
    NoSpace { directory: PathBuf, needs_bytes: u64, free_bytes: u64 },
    #[error("{program} did not {purpose}: {said}")]
    Program { program: String, purpose: &'static str, said: String },
    #[error("{doing} a disk that is cut at its file system: only a block disk can")]
    NotABlockDisk {
        /// The order, as in "failing requests of".
        doing: &'static str,
    },
    #[error("the file system on {} cannot be mounted: {source}", .image.display())]
    FileSystemLost { image: PathBuf, source: io::Error },
    #[error(
        "the log of the disk's writes does not fit: it needs {} and may have {}",
        size(.needs_bytes), size(.max_bytes)
    )]
    LogFull { needs_bytes: u64, max_bytes: u64 },
    #[error("{doing} {}: {source}", .path.display())]
    Step {
        /// The step, as in "mounting".
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Error {
    /// Says what to do next, where that is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::LogFull { needs_bytes, .. } => {
                // A second run of the load does not write exactly as much.
                let enough = (needs_bytes + needs_bytes / 4).div_ceil(1 << 20);
                return Some(format!(
                    "give the disk log = \"{enough}MB\", or lower the window, the clients or the rate of \
                     the load"
                ));
            }
            Self::NotRoot => "run it with sudo; everything else of a study runs without",
            Self::NoNamespace => "run it outside the container, or give that CAP_SYS_ADMIN",
            Self::NoDevice { device: FUSE, .. } => {
                "load the kernel's fuse module, or pass the device to the container; \
                 cut = \"filesystem\" needs none"
            }
            Self::NoDevice { .. } => {
                "load the kernel's loop module, or pass the device to the container"
            }
            Self::NoLoopDevice { .. } => {
                "losetup -l shows who has them; in a container, pass more of /dev/loop* to it"
            }
            Self::UnknownFileSystem { .. } => "load its kernel module",
            Self::NoImageReader { .. } => {
                "run its study, which explores states of your own; or write the image with --image and \
                 look at it in a virtual machine"
            }
            Self::NoProgram { program: "mkfs.xfs" } => "apt-get install xfsprogs",
            Self::NoProgram { program: "mkfs.btrfs" } => "apt-get install btrfs-progs",
            Self::NoProgram { .. } => "apt-get install e2fsprogs",
            Self::NoSpace { .. } => "give the disk a smaller size, or free some space",
            Self::Step { source, .. } if source.kind() == io::ErrorKind::Unsupported => {
                "counting what a cut loses needs Linux 6.5 or later (cachestat)"
            }
            Self::Program { .. }
            | Self::NotABlockDisk { .. }
            | Self::FileSystemLost { .. }
            | Self::Step { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// In PostgreSQL's units, rounded up, so that a log of a few kilobytes is not 0.
fn size(bytes: &u64) -> String {
    match *bytes {
        bytes if bytes < 10 << 20 => format!("{}kB", bytes.div_ceil(1 << 10)),
        bytes => format!("{}MB", bytes.div_ceil(1 << 20)),
    }
}

pub(crate) fn step(
    doing: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    move |source| Error::Step { doing, path, source }
}

/// The device of file systems in user space.
pub(crate) const FUSE: &str = "/dev/fuse";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_does_not_fit_says_what_would() {
        let check = |needs_bytes, max_bytes, says: &str, hint: &str| {
            let error = Error::LogFull { needs_bytes, max_bytes };
            assert!(error.to_string().ends_with(says), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        };
        check(300_000, 10_000, "it needs 293kB and may have 10kB", "log = \"1MB\",");
        check(80 << 20, 64 << 20, "it needs 80MB and may have 64MB", "log = \"100MB\",");
    }
}
