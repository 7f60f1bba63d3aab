//! Reading an image without the kernel. Whoever has written the bytes of an image may have written them
//! against the kernel that mounts it; a program without rights is as far as they come here.

use std::ffi::OsStr;
use std::path::Path;

use os::command::ProcessCommand;

use crate::disk::parts::file_system_program;
use crate::disk::{Error, FileSystem};

/// Programs that read the image of a file system, for a user who may write into the image.
#[derive(Debug)]
pub struct ImageReader {
    /// Replays the journal in the image, as mounting does.
    pub replay: ProcessCommand,
    /// Copies a directory of the image, with all that is in it, into the directory that it works in.
    pub extract: ProcessCommand,
}

impl ImageReader {
    /// The programs for an image, and a directory directly below the root of its file system.
    ///
    /// # Errors
    /// [`Error::NoImageReader`] for a file system without such programs; [`Error::NoProgram`].
    pub fn new(kind: FileSystem, image: &Path, directory: &str) -> Result<ImageReader, Error> {
        match kind {
            FileSystem::Ext4 | FileSystem::Ext4Writeback => {}
            FileSystem::Xfs | FileSystem::Btrfs => {
                return Err(Error::NoImageReader { kind: kind.name() });
            }
        }
        let command = |program| {
            file_system_program(program)
                .map(|program| ProcessCommand::new(program).env("LC_ALL", "C"))
        };
        let replay = command("e2fsck")?.args(["-y", "-E", "journal_only"]).arg(image);
        let request = format!("rdump /{directory} .");
        let extract = command("debugfs")?.args([OsStr::new("-R"), request.as_ref()]).arg(image);
        Ok(ImageReader { replay, extract })
    }

    /// True if the journal has been replayed, by the exit code of that program: it has found nothing
    /// to do, or has done it (e2fsck(8)).
    pub fn has_replayed(code: i32) -> bool {
        code & !0b11 == 0
    }
}
