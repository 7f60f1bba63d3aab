//! A copy of production's data directory: a base backup, or a directory that a backup was restored to.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use lab::{Format, Installation, Lab, LabConfig, Node, NodeConfig, Settings, copy_foreign_tree};
use rustix::process::{Pid, test_kill_process};

use crate::configuration::settings_in;
use crate::error::Error;
use crate::program;

/// A copy of production's data directory.
#[derive(Clone, Debug)]
pub struct BaseBackup {
    name: String,
    directory: PathBuf,
    form: Form,
    major: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A data directory.
    Directory,
    /// `base.tar`, `pg_wal.tar` and one for each tablespace, as `pg_basebackup --format=tar` writes them.
    Tars,
}

/// The file of a server that uses a data directory.
const POSTMASTER: &str = "postmaster.pid";

impl BaseBackup {
    /// True for a data directory, and for a directory of a backup in tar format.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        path.join("PG_VERSION").is_file() || tar(path, "base").is_some()
    }

    /// Looks at a data directory, or at a backup in tar format.
    ///
    /// # Errors
    /// If a server uses it, it lacks a part, or it is no copy of a server's data.
    pub fn look(path: &Path) -> Result<BaseBackup, Error> {
        let name = path.display().to_string();
        let unfit = |why, hint| Error::Unfit { name: name.clone(), why, hint };
        let read = |source| Error::Read { path: path.to_owned(), source };
        let directory = std::path::absolute(path).map_err(read)?;
        let (form, version) = match tar(&directory, "base") {
            Some(base) => {
                if tar(&directory, "pg_wal").is_none() {
                    return Err(unfit(
                        "it has no pg_wal.tar, without which it cannot be recovered",
                        "take it with pg_basebackup --wal-method=stream, or restore it first with its archive",
                    ));
                }
                (Form::Tars, of_tar(&base, "PG_VERSION")?)
            }
            None => {
                let version = fs::read_to_string(directory.join("PG_VERSION")).map_err(read)?;
                (Form::Directory, version)
            }
        };
        let major = version.trim().parse().map_err(|_| {
            unfit(
                "its PG_VERSION is no major version",
                "name a base backup of PostgreSQL 10 or later",
            )
        })?;
        if form == Form::Directory {
            if let Some(pid) = in_use(&directory) {
                return Err(Error::InUse { name, pid });
            }
            if !directory.join("global/pg_control").is_file() {
                return Err(unfit(
                    "global/pg_control is missing",
                    "restore the backup first, as a whole",
                ));
            }
            if wal_is_missing(&directory) {
                return Err(unfit(
                    "pg_wal is empty, without which it cannot be recovered",
                    "take it with pg_basebackup --wal-method=stream, or restore it first with its archive",
                ));
            }
        }
        Ok(BaseBackup { name, directory, form, major })
    }

    /// As messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The major version of the server that it was copied from.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The settings in the files that the copy has; none where they are elsewhere, as on Debian.
    ///
    /// # Errors
    /// A file that cannot be read as settings.
    pub fn settings(&self) -> Result<Option<Settings>, Error> {
        let [whole, altered] =
            ["postgresql.conf", "postgresql.auto.conf"].map(|name| self.directory.join(name));
        if self.form == Form::Tars || !whole.is_file() {
            return Ok(None);
        }
        let mut settings = settings_in(&whole)?;
        if altered.is_file() {
            settings.extend(settings_in(&altered)?);
        }
        Ok(Some(settings))
    }

    /// Makes sure that servers of this installation can run on a copy of it.
    ///
    /// # Errors
    /// [`Error::OtherMajor`]; [`Error::OtherFormat`] where it comes from another architecture or another build.
    pub fn fits(&self, installation: &Installation) -> Result<(), Error> {
        let version = installation.version();
        if version.major != self.major {
            let (name, server) = (self.name.clone(), version.to_string());
            return Err(Error::OtherMajor { name, major: self.major, server });
        }
        // Inside of a tar it is behind all the data.
        let control = self.directory.join("global/pg_control");
        if self.form == Form::Tars {
            return Ok(());
        }
        let lab = Lab::open(LabConfig::new(installation.clone()))?;
        let node = |name: &str| lab.node(name, NodeConfig::new(Settings::new()));
        let mut own = node("own")?;
        own.init()?;
        let mut theirs = node("theirs")?;
        let place = theirs.place_for_data()?;
        let read = |source| Error::Read { path: control.clone(), source };
        let stage = tempfile::tempdir().map_err(read)?;
        fs::create_dir(stage.path().join("global")).map_err(read)?;
        fs::copy(&control, stage.path().join("global/pg_control")).map_err(read)?;
        copy_foreign_tree(stage.path(), &place)?;
        let expected: Format = own.format()?;
        match theirs.format() {
            Ok(format) if format == expected => Ok(()),
            _ => Err(Error::OtherFormat { name: self.name.clone(), server: version.to_string() }),
        }
    }

    /// Gives a node a copy of it, by reference where the file system can, and recovers that.
    ///
    /// # Errors
    /// What cannot be copied, and what the server says that cannot be recovered.
    pub fn place(&self, node: &mut Node, is_interrupted: &dyn Fn() -> bool) -> Result<(), Error> {
        let place = node.place_for_data()?;
        match self.form {
            Form::Directory => copy_foreign_tree(&self.directory, &place)?,
            Form::Tars => self.unpack(&place, is_interrupted)?,
        }
        Ok(node.adopt_data()?)
    }

    fn unpack(&self, place: &Path, is_interrupted: &dyn Fn() -> bool) -> Result<(), Error> {
        let failed = |source| Error::Read { path: self.directory.clone(), source };
        let entries = fs::read_dir(&self.directory).map_err(failed)?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| Ok(entry?.path())).collect::<Result<_, _>>().map_err(failed)?;
        // The base makes the directories that the others fill.
        paths.sort_by_key(|path| (stem(path) != Some("base"), path.clone()));
        for path in &paths {
            let Some(stem) = stem(path) else { continue };
            let inside = match stem {
                "base" => place.to_owned(),
                "pg_wal" => place.join("pg_wal"),
                oid => place.join("pg_tblspc").join(oid),
            };
            let words = ["--extract", "--file=-", "--no-same-owner"];
            let mut make = program::command("/bin/sh".as_ref());
            make = make.args(["-c", "umask 077; mkdir -p \"$1\"", "sh"]).arg(&inside);
            program::run("mkdir", make, None, is_interrupted)?;
            let mut command = program::command("tar".as_ref()).args(words).args(packed(path));
            command = command.arg("--directory").arg(&inside);
            let file =
                File::open(path).map_err(|source| Error::Read { path: path.clone(), source })?;
            let ended = program::run("tar", command, Some(Box::new(file)), is_interrupted)?;
            if !ended.is_success {
                let why = format!("{}: {}", path.display(), ended.stderr.trim());
                let hint = "take the backup again, or unpack it yourself and name the directory"
                    .to_owned();
                return Err(Error::Failed { why, hint });
            }
        }
        let chmod = program::command("chmod".as_ref()).arg("0700").arg(place);
        program::run("chmod", chmod, None, is_interrupted)?;
        Ok(())
    }
}

/// The tar of this name in a directory.
fn tar(directory: &Path, name: &str) -> Option<PathBuf> {
    let names = [format!("{name}.tar"), format!("{name}.tar.gz")];
    names.iter().map(|name| directory.join(name)).find(|path| path.is_file())
}

/// `base` of `base.tar.gz`.
fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".tar").or_else(|| name.strip_suffix(".tar.gz"))
}

/// The option of tar for a packed file that is not named to it.
fn packed(path: &Path) -> Option<&'static str> {
    path.extension().is_some_and(|suffix| suffix == "gz").then_some("--gzip")
}

/// A small file near the beginning of a tar.
fn of_tar(path: &Path, member: &str) -> Result<String, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let words = ["--extract", "--to-stdout", "--occurrence=1", "--file=-"];
    let command = program::command("tar".as_ref()).args(words).args(packed(path)).arg(member);
    let file: Box<dyn Read + Send> = Box::new(File::open(path).map_err(failed)?);
    Ok(program::run("tar", command, Some(file), &|| false)?.stdout)
}

/// The server that uses a data directory, where it runs on this machine.
fn in_use(directory: &Path) -> Option<i32> {
    let text = fs::read_to_string(directory.join(POSTMASTER)).ok()?;
    let pid: i32 = text.lines().next()?.trim().parse().ok()?;
    let is_alive = Pid::from_raw(pid.abs())
        .is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)));
    is_alive.then_some(pid.abs())
}

/// True where no segment of WAL is there.
fn wal_is_missing(directory: &Path) -> bool {
    let is_segment = |name: &str| name.len() == 24 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let entries = fs::read_dir(directory.join("pg_wal")).into_iter().flatten().flatten();
    !entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_segment))
}
