//! Built data that are kept: a data directory for each [`BuildKey`].

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, lchown};
use std::path::{Path, PathBuf};

use lab::{Node, Password};
use os::user::SystemUser;

use crate::error::Error;
use crate::key::BuildKey;

/// The directory of built data.
#[derive(Clone, Debug)]
pub struct BuildCache {
    directory: PathBuf,
}

/// Number and size of the data that [`BuildCache::clean`] has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedData {
    /// Data directories, and builds.
    pub count: usize,
    /// Bytes in them.
    pub bytes: u64,
}

/// Root's, where servers of an unprivileged user may not enter root's home.
const OF_ROOT: &str = "/var/cache";

/// The file that holds the superuser's password.
const PASSWORD: &str = "password";

impl BuildCache {
    /// The user's: below `XDG_CACHE_HOME`, or else `~/.cache`; of root `/var/cache`.
    pub fn of_user() -> Result<BuildCache, Error> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let parent = match variable("XDG_CACHE_HOME").map(PathBuf::from) {
            Some(path) if path.is_absolute() => match foreign_part(&path, SystemUser::current()) {
                None => path,
                Some(part) => {
                    let why =
                        "another user can write there, and root would follow that user's links";
                    let source = io::Error::new(ErrorKind::PermissionDenied, why);
                    return Err(Error::Cache { doing: "using", path: part, source });
                }
            },
            _ if SystemUser::current().is_root() => PathBuf::from(OF_ROOT),
            _ => match variable("HOME") {
                Some(home) => Path::new(&home).join(".cache"),
                None => {
                    let source = io::Error::new(ErrorKind::NotFound, "HOME is not set");
                    let path = PathBuf::from("~/.cache");
                    return Err(Error::Cache { doing: "finding", path, source });
                }
            },
        };
        Ok(BuildCache { directory: parent.join("pgrig/data") })
    }

    /// Directory of programs that were built from commits.
    pub fn builds(&self) -> PathBuf {
        self.directory.with_file_name("builds")
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// One in this directory, which its first use makes.
    pub fn at(directory: PathBuf) -> BuildCache {
        BuildCache { directory }
    }

    /// The superuser's password in all data that are kept: labs that take or keep some need it.
    pub fn password(&self) -> Result<Password, Error> {
        self.make()?;
        let path = self.directory.join(PASSWORD);
        let failed = |source| self.failed("reading the password in", source);
        match servers_user().access(|| fs::read_to_string(&path)) {
            Ok(text) if !text.is_empty() => return Ok(text.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let password = lab::new_password()?;
        // If two processes make it at the same time, the first one's holds.
        let new = self.directory.join(format!(".password.{}", std::process::id()));
        let write = || {
            let mut options = fs::OpenOptions::new();
            options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?
                .write_all(password.reveal().as_bytes())?;
            let linked = fs::hard_link(&new, &path);
            fs::remove_file(&new)?;
            match linked {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => fs::read_to_string(&path),
            }
        };
        let written = servers_user().access(write);
        written.map(Password::from).map_err(|source| self.failed("writing a password in", source))
    }

    /// Gives a node without data those of this key; false where there are none. The server is stopped
    /// before and afterwards.
    pub fn take(&self, key: &BuildKey, node: &mut Node) -> Result<bool, Error> {
        let kept = self.directory.join(key.name());
        if !servers_user().access(|| kept.join("PG_VERSION").metadata()).is_ok_and(|f| f.is_file())
        {
            return Ok(false);
        }
        node.init_from_directory(&kept)?;
        Ok(true)
    }

    /// Keeps the data of a stopped node under this key, unless some are there.
    pub fn keep(&self, key: &BuildKey, node: &Node) -> Result<(), Error> {
        self.make()?;
        let (kept, name) = (self.directory.join(key.name()), key.name());
        if servers_user().access(|| fs::symlink_metadata(&kept)).is_ok() {
            return Ok(());
        }
        // Half a copy is never found under the name of a whole one.
        let new = self.directory.join(format!(".{name}.{}", std::process::id()));
        node.copy_data(&new)?;
        let renamed = servers_user().access(|| fs::rename(&new, &kept));
        renamed.or_else(|source| {
            // Another pgrig may have kept the same meanwhile.
            let _ = servers_user().access(|| fs::remove_dir_all(&new));
            match servers_user().access(|| fs::symlink_metadata(&kept)) {
                Ok(_) => Ok(()),
                Err(_) => Err(self.failed("keeping data in", source)),
            }
        })
    }

    /// Removes everything that is kept.
    pub fn clean(&self) -> Result<RemovedData, Error> {
        let mut removed = RemovedData::default();
        let user = servers_user();
        let builds = self.builds();
        for build in fs::read_dir(&builds).into_iter().flatten().flatten() {
            removed.count += 1;
            removed.bytes += bytes_below(&build.path());
        }
        match fs::remove_dir_all(&builds) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(self.failed("removing builds beside", error));
            }
            _ => {}
        }
        let entries =
            match user.access(|| fs::read_dir(&self.directory)?.collect::<io::Result<Vec<_>>>()) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(removed),
                Err(source) => return Err(self.failed("reading", source)),
            };
        for entry in entries {
            let path = entry.path();
            // What cannot be read is removed all the same, and its bytes are not told of.
            let bytes = user.access(|| Ok(bytes_below(&path))).unwrap_or(0);
            let is_data = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let remove =
                || if is_data { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            user.access(remove).map_err(|source| self.failed("removing data in", source))?;
            removed.count += usize::from(is_data);
            removed.bytes += bytes;
        }
        Ok(removed)
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> Error {
        Error::Cache { doing, path: self.directory.clone(), source }
    }

    /// Makes the directory, which is the servers' user's.
    fn make(&self) -> Result<(), Error> {
        let make = || {
            if let Some(parent) = self.directory.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
            }
            match fs::DirBuilder::new().mode(0o700).create(&self.directory) {
                Ok(()) if servers_user() == SystemUser::current() => Ok(()),
                Ok(()) => {
                    let SystemUser { uid, gid } = servers_user();
                    lchown(&self.directory, Some(uid), Some(gid))
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(error),
            }
        };
        make().map_err(|source| self.failed("making", source))
    }
}

/// The first part of a path, from its end on, that root must not follow: what another user owns, or can
/// put a link in the place of. Any part is as good for another user than root.
fn foreign_part(path: &Path, user: SystemUser) -> Option<PathBuf> {
    let is_foreign = |part: &&Path| {
        part.symlink_metadata().is_ok_and(|about| {
            let is_shared = about.mode() & 0o022 != 0 && about.mode() & STICKY == 0;
            about.uid() != user.uid || !about.is_symlink() && is_shared
        })
    };
    match user.is_root() {
        true => path.ancestors().find(is_foreign).map(Path::to_owned),
        false => None,
    }
}

/// In such a directory nobody replaces what is another user's.
const STICKY: u32 = 0o1000;

fn servers_user() -> SystemUser {
    SystemUser::unprivileged().unwrap_or_else(SystemUser::current)
}

fn bytes_below(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(file) if file.is_dir() => bytes_below(&entry.path()),
        Ok(file) => file.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    #[test]
    fn root_keeps_nothing_where_another_user_can_write() {
        if !SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        let place = tempfile::tempdir().unwrap();
        let (own, foreign) = (place.path().join("own"), place.path().join("foreign"));
        for directory in [&own, &foreign] {
            fs::DirBuilder::new().mode(0o755).create(directory).unwrap();
        }
        chown(&foreign, Some(servers_user().uid), None).unwrap();
        let check = |path: &Path, user, expected: Option<&Path>| {
            assert_eq!(foreign_part(path, user).as_deref(), expected, "{}", path.display());
        };
        let root = SystemUser::current();
        check(&own.join("not yet"), root, None);
        check(&foreign.join("not yet"), root, Some(&foreign));
        check(&foreign.join("not yet"), servers_user(), None);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(servers_user().uid), None).unwrap();
        check(&link.join("not yet"), root, Some(&link));
    }
}
