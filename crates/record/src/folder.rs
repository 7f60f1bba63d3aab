//! A study's folder on disk: read to be run, and copied into the record as it was run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use spec::Folder;

use crate::error::{Error, io};
use crate::files;

/// Files of a study are scripts and small tables; a bigger one was put there by mistake.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads a study's folder, sub-folders included. Left out are hidden files, files that are no
/// text or above 16 MiB (data belong elsewhere), and records: runs may well lie in the folder.
/// A folder without study.toml is not searched.
///
/// # Errors
/// If the folder or a file of it cannot be read.
pub fn read_folder(path: &Path) -> Result<Folder, Error> {
    let full = path.canonicalize().map_err(io("reading", path))?;
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut folder = Folder { name, files: BTreeMap::new() };
    if !full.is_dir() {
        let why = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(io("reading", path)(why));
    }
    if full.join(Folder::STUDY).is_file() {
        read_below(&full, "", &mut folder)?;
    }
    Ok(folder)
}

fn read_below(directory: &Path, prefix: &str, folder: &mut Folder) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(io("reading", directory))? {
        let entry = entry.map_err(io("reading", directory))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(io("reading", directory))?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        // A link to a directory is not followed: it may lead back here.
        if kind.is_dir() {
            if !path.join(crate::reader::HEADER).exists() {
                read_below(&path, &format!("{prefix}{name}/"), folder)?;
            }
            continue;
        }
        let metadata = fs::metadata(&path).map_err(io("reading", &path))?;
        if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
            continue;
        }
        let bytes = fs::read(&path).map_err(io("reading", &path))?;
        if let Ok(text) = String::from_utf8(bytes) {
            folder.files.insert(format!("{prefix}{name}"), text);
        }
    }
    Ok(())
}

/// Writes a folder's files below a directory.
pub(crate) fn write_folder(folder: &Folder, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(io("writing", to))?;
    for (name, text) in &folder.files {
        let path = to.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io("writing", parent))?;
        }
        files::write(&path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
    }
    files::sync_directory(to)
}
