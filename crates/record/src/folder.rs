//! A study's folder on disk: read to be run, and copied into the record as it was run.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::FileType;
use spec::StudyFolder;

use crate::error::{Error, io};
use crate::inside::{Inside, refuse_unless};
use crate::{files, layout};

/// Files of a study are scripts and small tables; a bigger one was put there by mistake.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The study itself is parsed as a whole; the longest that comes with pgrig has a fiftieth of this.
const STUDY_BYTES_MAX: u64 = 1024 * 1024;

/// All files of a study together: they are held in memory.
const FOLDER_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Folders in folders.
const DEPTH_MAX: usize = 16;

/// Reads a study's folder, sub-folders included. Left out are hidden files, files that are no
/// text or above 16 MiB (data belong elsewhere), and records: runs may well lie in the folder.
/// A folder without study.toml is not searched.
///
/// # Errors
/// If the folder or a file of it cannot be read, or it holds something that is neither a regular
/// file nor a directory: a link may lead to any file of the reader's.
pub fn read_folder(path: &Path) -> Result<StudyFolder, Error> {
    let full = path.canonicalize().map_err(io("reading", path))?;
    // Only the folder `/` has no name.
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    read(&Inside::open(&full)?, name)
}

/// Reads the study's folder of this name in a directory.
pub(crate) fn read_below(directory: &Inside, name: &str) -> Result<StudyFolder, Error> {
    read(&directory.directory(name)?, name.to_owned())
}

fn read(inside: &Inside, name: String) -> Result<StudyFolder, Error> {
    let mut folder =
        StudyFolder { name, files: BTreeMap::new(), is_private: is_closed(inside.mode()?) };
    if inside.has(StudyFolder::STUDY) {
        add(inside, "", &mut folder, &mut 0)?;
    }
    Ok(folder)
}

fn add(
    inside: &Inside,
    prefix: &str,
    folder: &mut StudyFolder,
    bytes_read: &mut u64,
) -> Result<(), Error> {
    for entry in inside.entries()? {
        let name = entry.name.to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        folder.is_private |= is_closed(entry.mode);
        if entry.kind == FileType::Directory {
            let below = inside.directory(&entry.name)?;
            if prefix.matches('/').count() == DEPTH_MAX {
                let (path, max) = (inside.path(name), DEPTH_MAX as u64);
                return Err(Error::TooLarge { path, what: "folders above it", max });
            }
            if !below.has(layout::HEADER) {
                add(&below, &format!("{prefix}{name}/"), folder, bytes_read)?;
            }
            continue;
        }
        refuse_unless(FileType::RegularFile, entry.kind, &inside.path(&entry.name))?;
        let is_study = prefix.is_empty() && name == StudyFolder::STUDY;
        if entry.bytes > FILE_BYTES_MAX && !is_study {
            continue;
        }
        let bytes_max = if is_study { STUDY_BYTES_MAX } else { FILE_BYTES_MAX };
        let bytes = inside.bytes(&entry.name, bytes_max)?;
        *bytes_read += bytes.len() as u64;
        if *bytes_read > FOLDER_BYTES_MAX {
            let (path, max) = (inside.own_path(), FOLDER_BYTES_MAX);
            return Err(Error::TooLarge { path, what: "bytes", max });
        }
        if let Ok(text) = String::from_utf8(bytes) {
            folder.files.insert(format!("{prefix}{name}"), text);
        }
    }
    Ok(())
}

/// True if users other than its owner and group may not read it.
fn is_closed(mode: u32) -> bool {
    mode & 0o004 == 0
}

/// Writes a folder's files below a directory.
pub(crate) fn write_folder(folder: &StudyFolder, to: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(to).map_err(io("writing", to))?;
    if folder.is_private {
        files::close(to)?;
    }
    for (name, text) in &folder.files {
        let path = to.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(io("writing", parent))?;
        }
        files::write(&path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
    }
    files::sync_directory(to)
}
