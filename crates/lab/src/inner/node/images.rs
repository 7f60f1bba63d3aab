//! A node's data, taken from images of disks that somebody else has written: by programs of the servers'
//! user, never by the kernel.

use std::fs::{self, File};
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fault::disk::ImageReader;
use os::command::{ProcessCommand, ProcessOutput};
use os::init::ProcessExit;
use terms::{DataPart, FileSystem};

use crate::error::Error;
use crate::files::{failed, remove_file, write_file};
use crate::inner::node::disk::of_node;
use crate::inner::node::{Node, part};

impl Node {
    /// Takes each part of the data from the image of its disk. The images lie in a directory of the rig's, and become the servers' user's.
    pub(crate) fn init_from_images(
        &mut self,
        images: &[(DataPart, PathBuf)],
        kind: FileSystem,
    ) -> Result<(), Error> {
        self.program.expect_stopped("reading the images of")?;
        self.make_room()?;
        let owner = self.program.owner;
        for (part, image) in images {
            let directory = part::directory(*part);
            let reader = ImageReader::new(kind, image, directory);
            let reader = reader.map_err(|source| of_node(self.name(), source))?;
            let give = || {
                fchown(File::options().write(true).open(image)?, Some(owner.uid), Some(owner.gid))
            };
            give().map_err(failed("giving away", image))?;
            let (exit, said) = self.read_image(reader.replay)?;
            if !matches!(exit, ProcessExit::Code(code) if ImageReader::has_replayed(code)) {
                return Err(self.image_lost(image, &format!("e2fsck {exit}: {said}")));
            }
            let (_, said) = self.read_image(reader.extract)?;
            let place = self.program.file(directory);
            if !owner.access(|| Ok(place.symlink_metadata()?.is_dir())).unwrap_or(false) {
                let why = format!("debugfs found no directory {directory}: {said}");
                return Err(self.image_lost(image, &why));
            }
        }
        for (part, _) in images.iter().filter(|(part, _)| *part != DataPart::Main) {
            let with_data = self.data().join(part.directory());
            remove_file(&with_data, owner)?;
            owner
                .access(|| fs::rename(self.program.file(part::directory(*part)), &with_data))
                .map_err(failed("moving a part of the data to", &with_data))?;
        }
        Ok(())
    }

    fn read_image(&self, command: ProcessCommand) -> Result<(ProcessExit, String), Error> {
        let (directory, owner) = (&self.program.directory, self.program.owner);
        let output = self.program.file("images.log");
        write_file(&output, "", owner)?;
        let command = command
            .directory(directory)
            .user(owner)
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        Ok((exit, crate::log::tail(&output, 0, owner).trim().to_owned()))
    }

    fn image_lost(&self, image: &Path, why: &str) -> Error {
        let why = format!("the file system in {} cannot be read: {why}", image.display());
        Error::DataLost { node: self.name().to_owned(), why }
    }
}

/// They read and write as much as the data have.
const TIMEOUT: Duration = Duration::from_secs(1800);
