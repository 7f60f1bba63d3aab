//! A study's folder on disk: read to be run, and copied into the record as it was run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spec::Folder;

use crate::error::{Error, io};
use crate::files;

/// Files of a study are scripts and small tables; a bigger one was put there by mistake.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads a study's folder, sub-folders included; hidden files are left out, and so are files
/// above 16 MiB: data belongs elsewhere.
///
/// # Errors
/// If the folder or a file of it cannot be read, or a file is no text.
pub fn read_folder(path: &Path) -> Result<Folder, Error> {
    let full = path.canonicalize().map_err(io("reading", path))?;
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = BTreeMap::new();
    let mut pending: Vec<(PathBuf, String)> = vec![(full, String::new())];
    while let Some((directory, prefix)) = pending.pop() {
        for entry in fs::read_dir(&directory).map_err(io("reading", &directory))? {
            let entry = entry.map_err(io("reading", &directory))?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let metadata = fs::metadata(&path).map_err(io("reading", &path))?;
            let inner = format!("{prefix}{name}");
            if metadata.is_dir() {
                pending.push((path, format!("{inner}/")));
            } else if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX {
                let bytes = fs::read(&path).map_err(io("reading", &path))?;
                let text = String::from_utf8(bytes).map_err(|_| Error::NotText { path })?;
                files.insert(inner, text);
            }
        }
    }
    Ok(Folder { name, files })
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
