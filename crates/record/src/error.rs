//! Errors of reading and writing a record.

use std::io;
use std::path::{Path, PathBuf};

/// Error of writing or reading a record. Each message says what was being done to which file;
/// [`Error::hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("reading {path}{line}: {why}", path = path.display(), line = line_suffix(*line))]
    Damaged {
        path: PathBuf,
        /// The line, from 1; 0 for the file as a whole.
        line: usize,
        why: String,
    },
    /// Something in a study or a record is not what is read there: it may lead out of the folder, or
    /// keep a reader waiting.
    #[error(
        "reading {path}: it is {found}, not {wanted}; of a study or a record only regular files \
         inside its folder are read",
        path = path.display()
    )]
    NotInside { path: PathBuf, found: &'static str, wanted: &'static str },
    #[error("reading {path}: the name leads out of its folder", path = path.display())]
    Outside { path: PathBuf },
    #[error("reading {path}: it has more than {max} {what}", path = path.display())]
    TooLarge { path: PathBuf, what: &'static str, max: u64 },
    #[error(
        "reading {path}, which has {bytes} bytes: {of} would take more than {max} {what}",
        path = path.display()
    )]
    TooMuch { path: PathBuf, bytes: u64, of: &'static str, what: &'static str, max: u64 },
    #[error("reading {path}: interrupted", path = path.display())]
    Interrupted { path: PathBuf },
    #[error("writing {path}: {holder} is running into it", path = path.display())]
    Held { path: PathBuf, holder: String },
    #[error("reading {path}: not a record: it has no record.json", path = path.display())]
    NotARecord { path: PathBuf },
    #[error(
        "reading {path}: pgrig {writer} wrote this record in format {found}, \
         this pgrig reads {own}",
        path = path.display(), own = crate::FORMAT
    )]
    Format { path: PathBuf, found: u32, writer: String },
}

impl Error {
    /// Next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Held { .. } => {
                Some("wait for its end or stop it, or name another record with --out".to_owned())
            }
            Error::Io { doing, source, path } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(format!(
                    "make room on the disk of {} and go on with --resume, or choose another \
                     place with --out; trials that were finished are kept",
                    path.display()
                )),
                io::ErrorKind::PermissionDenied if *doing == "reading" => {
                    Some("run pgrig as a user who may read it".to_owned())
                }
                io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::NotADirectory => {
                    Some("choose a directory that you may write to with --out".to_owned())
                }
                io::ErrorKind::NotFound if *doing == "reading" => {
                    Some("records lie under runs/ unless --out said otherwise".to_owned())
                }
                io::ErrorKind::AlreadyExists => Some(
                    "name a directory with --out that is empty or does not exist; a record that \
                     was interrupted goes on with --resume"
                        .to_owned(),
                ),
                _ => None,
            },
            Error::NotInside { .. } => {
                Some("remove it, or put a copy of what is meant in its place".to_owned())
            }
            Error::Outside { .. } | Error::TooLarge { .. } => {
                Some("do not trust this folder: pgrig writes nothing of the kind".to_owned())
            }
            Error::TooMuch { .. } => Some(
                "of a stranger's record, do not trust it: a run of many hours has half of that; of your \
                 own, move some directories below trials/ to another place and read the rest"
                    .to_owned(),
            ),
            Error::Interrupted { .. } => None,
            Error::Damaged { .. } => {
                Some("the file was changed after it was written; run the study again".to_owned())
            }
            Error::NotARecord { .. } => {
                Some("name a directory that `pgrig run` has written, runs/DATE-STUDY-N".to_owned())
            }
            Error::Format { found, .. } if *found > crate::FORMAT => {
                Some("read it with the pgrig that wrote it, or a newer one".to_owned())
            }
            Error::Format { .. } => {
                Some("read it with the pgrig that wrote it, or run the study again".to_owned())
            }
        }
    }
}

/// Turns an I/O error into one that says what was being done to what.
pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}

fn line_suffix(line: usize) -> String {
    if line == 0 { String::new() } else { format!(" line {line}") }
}
