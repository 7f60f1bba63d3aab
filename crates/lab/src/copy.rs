//! Copying data directories: by reference where the file system can, else by the kernel.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use os::regular_file;
use os::user::SystemUser;

use crate::error::Error;
use crate::files::{failed, remove_tree};

/// Copies the directory `from` of `owner`'s to `to`, which must not exist. Modes stay what they are;
/// links (a tablespace, WAL elsewhere) are refused. Returns how many bytes the files hold.
///
/// Files are cloned with FICLONE where the file system shares blocks (btrfs, xfs, bcachefs) and
/// otherwise copied inside the kernel (copy_file_range).
pub(crate) fn copy_tree(from: &Path, to: &Path, owner: SystemUser) -> Result<u64, Error> {
    let mut copy = TreeCopy { can_clone: true, bytes: 0 };
    if to.exists() {
        return Err(failed("copying to", to)(io::ErrorKind::AlreadyExists.into()));
    }
    let copied = owner.access(|| Ok(copy.directory(from, to)));
    copied.map_err(failed("copying", from)).flatten().inspect_err(|_| {
        // Half a data directory would look like a whole one; the first error is the one to tell.
        let _ = remove_tree(to);
    })?;
    Ok(copy.bytes)
}

/// Copies what is in the directory `from` of `owner`'s into `to`, which is there and empty, as
/// [`copy_tree`] does.
pub(crate) fn copy_into(from: &Path, to: &Path, owner: SystemUser) -> Result<(), Error> {
    let mut copy = TreeCopy { can_clone: true, bytes: 0 };
    let copied = owner.access(|| Ok(copy.entries(from, to)));
    copied.map_err(failed("copying", from)).flatten()
}

/// Copies a data directory that is not a server's of the rig to `to`, a new directory of the servers' user: by reference
/// where the file system can. Files are read with the rights of this process, and written with those of the user. Links to
/// tablespaces and to the WAL are followed, so that the copy shares nothing with its source.
///
/// # Errors
/// [`Error::File`]. What was copied by then is removed.
pub fn copy_foreign_tree(from: &Path, to: &Path) -> Result<(), Error> {
    let owner = SystemUser::unprivileged().unwrap_or_else(SystemUser::current);
    let mut copy = TreeCopy { can_clone: true, bytes: 0 };
    if to.exists() {
        return Err(failed("copying to", to)(io::ErrorKind::AlreadyExists.into()));
    }
    copy.foreign(from, to, owner, 0).inspect_err(|_| {
        // Half a data directory would look like a whole one; the first error is the one to tell.
        let _ = remove_tree(to);
    })
}

/// A data directory has fewer levels; a link that leads to a directory above it has no end.
const DEPTH_MAX: usize = 16;

/// A copy under way: what was learnt from one file counts for the next.
struct TreeCopy {
    can_clone: bool,
    bytes: u64,
}

impl TreeCopy {
    fn directory(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let failed = failed("copying", from);
        let mode = fs::metadata(from).map_err(&failed)?.mode();
        let made = fs::DirBuilder::new().mode(0o700).create(to);
        made.map_err(self::failed("making the directory", to))?;
        self.entries(from, to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed)
    }

    fn entries(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let failed = failed("copying", from);
        for entry in fs::read_dir(from).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let (source, copy) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().map_err(&failed)?;
            if kind.is_dir() {
                self.directory(&source, &copy)?;
            } else if kind.is_symlink() {
                let why = "two servers would share what this link leads to";
                let error = io::Error::new(io::ErrorKind::Unsupported, why);
                return Err(self::failed("copying", &source)(error));
            } else if kind.is_file() {
                self.file(&source, &copy).map_err(self::failed("copying", &source))?;
            }
        }
        Ok(())
    }

    fn foreign(
        &mut self,
        from: &Path,
        to: &Path,
        owner: SystemUser,
        depth: usize,
    ) -> Result<(), Error> {
        let failed = failed("copying", from);
        if depth > DEPTH_MAX {
            return Err(failed(io::Error::other("its links lead in a circle")));
        }
        owner
            .access(|| fs::DirBuilder::new().mode(0o700).create(to))
            .map_err(self::failed("making the directory", to))?;
        for entry in fs::read_dir(from).map_err(&failed)? {
            let (source, name) = entry.map(|one| (one.path(), one.file_name())).map_err(&failed)?;
            let (copy, failed) = (to.join(&name), self::failed("copying", &source));
            // Through links.
            let about = fs::metadata(&source).map_err(&failed)?;
            if about.is_dir() {
                self.foreign(&source, &copy, owner, depth + 1)?;
            } else if about.is_file() {
                let file = File::open(&source).map_err(&failed)?;
                let make =
                    || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy);
                let made = owner.access(make).map_err(&failed)?;
                self.contents(file, made).map_err(&failed)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let source = regular_file::open(OpenOptions::new().read(true), from)?;
        let mode = source.metadata()?.mode();
        let copy = OpenOptions::new().write(true).create_new(true).mode(mode).open(to)?;
        self.contents(source, copy)
    }

    fn contents(&mut self, mut source: File, mut copy: File) -> io::Result<()> {
        self.can_clone = self.can_clone && rustix::fs::ioctl_ficlone(&copy, &source).is_ok();
        if !self.can_clone {
            io::copy(&mut source, &mut copy)?;
        }
        self.bytes += copy.metadata()?.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_files_and_modes_and_no_links() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir_all(from.join("base/1")).unwrap();
        fs::write(from.join("base/1/1259"), vec![7; 100_000]).unwrap();
        fs::write(from.join("PG_VERSION"), "15\n").unwrap();
        fs::set_permissions(from.join("PG_VERSION"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o750)).unwrap();

        assert_eq!(copy_tree(&from, &to, SystemUser::current()).unwrap(), 100_003);

        assert_eq!(fs::read(to.join("base/1/1259")).unwrap(), vec![7; 100_000]);
        assert_eq!(fs::metadata(to.join("PG_VERSION")).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o750);
        assert!(copy_tree(&from, &to, SystemUser::current()).is_err(), "must not overwrite");
        assert!(to.join("PG_VERSION").exists());

        std::os::unix::fs::symlink("/elsewhere", from.join("pg_wal")).unwrap();
        let linked = directory.path().join("linked");
        let error = copy_tree(&from, &linked, SystemUser::current()).unwrap_err().to_string();
        assert!(error.ends_with("two servers would share what this link leads to"), "{error}");
        assert!(!linked.exists());
    }
    #[test]
    fn a_foreign_copy_follows_links_and_shares_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(directory.path(), open).unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let elsewhere = directory.path().join("elsewhere");
        fs::create_dir_all(from.join("pg_tblspc")).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("1259"), "rows").unwrap();
        fs::write(from.join("PG_VERSION"), "15\n").unwrap();
        std::os::unix::fs::symlink(&elsewhere, from.join("pg_tblspc/16384")).unwrap();

        copy_foreign_tree(&from, &to).unwrap();

        let copied = to.join("pg_tblspc/16384");
        assert!(!copied.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read(copied.join("1259")).unwrap(), b"rows");
        assert_eq!(fs::metadata(to.join("PG_VERSION")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o700);
        assert!(copy_foreign_tree(&from, &to).is_err(), "must not overwrite");

        std::os::unix::fs::symlink(&from, from.join("round")).unwrap();
        let round = directory.path().join("round");
        let error = copy_foreign_tree(&from, &round).unwrap_err().to_string();
        assert!(error.ends_with("its links lead in a circle"), "{error}");
        assert!(!round.exists());
    }
}
