//! Finding PostgreSQL, and PgBouncer, on this machine.
//!
//! The order is: the folder that the user names, then `PG_CONFIG`, then `PATH`, then the folders
//! of the distributions, newest version first. What the user names must be right; all else is
//! taken when it is.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os::command::{CommandLimits, ProcessCommand};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::version::MAJOR_MIN;

pub use crate::version::Version;

mod pgbouncer;
#[cfg(test)]
pub(crate) mod script;

pub use pgbouncer::{PgBouncer, pgbouncer, pgbouncers};

/// One installed PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    bin: PathBuf,
    version: Version,
    share: PathBuf,
    library: PathBuf,
    /// Its programs, control files and modules, where it is another host's and cannot be looked at.
    parts: Option<BTreeSet<PathBuf>>,
}

/// Places to search; [`InstallationSearch::here`] asks the environment.
#[derive(Debug, Clone, Default)]
pub struct InstallationSearch {
    /// Folder that the user named: one of programs, or the one above it.
    pub pg_bin: Option<PathBuf>,
    /// `PG_CONFIG`: the path of a `pg_config`.
    pub pg_config: Option<PathBuf>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// The folders that hold one folder per version, each with the programs' folder in it.
    pub versions: Vec<PathBuf>,
    /// Other folders of programs.
    pub folders: Vec<PathBuf>,
}

/// Finds the PostgreSQL to use, as the module says.
///
/// # Errors
/// [`Error::NoPostgres`]; [`Error::BadInstallation`] or [`Error::TooOld`] for what the user named.
pub fn find(pg_bin: Option<&Path>) -> Result<Installation, Error> {
    InstallationSearch::here(pg_bin).first()
}

impl InstallationSearch {
    /// The folders and variables of this machine.
    pub fn here(pg_bin: Option<&Path>) -> Self {
        Self {
            pg_bin: pg_bin.map(Path::to_owned),
            pg_config: std::env::var_os("PG_CONFIG").map(PathBuf::from),
            path: std::env::var_os("PATH"),
            // Debian and Ubuntu; PGDG's RPMs (/usr/pgsql-15) are folders of /usr themselves.
            versions: vec!["/usr/lib/postgresql".into(), "/usr".into()],
            folders: vec!["/usr/local/pgsql/bin".into(), "/usr/local/bin".into()],
        }
    }

    /// The first installation in the module's order.
    pub fn first(&self) -> Result<Installation, Error> {
        if let Some(named) = &self.pg_bin {
            let inner = named.join("bin");
            let bin = if is_program(&inner.join("postgres")) { &inner } else { named };
            return Installation::at(bin);
        }
        if let Some(program) = &self.pg_config {
            return Installation::at(Path::new(
                &ask(program, "--bindir")
                    .map_err(|why| Error::BadInstallation { bin: program.clone(), why })?,
            ));
        }
        let searched = self.candidates();
        let found = searched.iter().find_map(|bin| Installation::at(bin).ok());
        found.ok_or(Error::NoPostgres { searched })
    }

    /// Every usable installation that is not named, in the module's order.
    pub fn all(&self) -> Vec<Installation> {
        let mut installations: Vec<Installation> = Vec::new();
        for installation in self.candidates().iter().filter_map(|bin| Installation::at(bin).ok()) {
            if !installations.iter().any(|known| known.bin == installation.bin) {
                installations.push(installation);
            }
        }
        installations
    }

    fn candidates(&self) -> Vec<PathBuf> {
        let path = self.path.as_deref().unwrap_or(OsStr::new(""));
        let mut candidates: Vec<PathBuf> = std::env::split_paths(path)
            .filter(|folder| is_program(&folder.join("postgres")))
            .collect();
        let mut versions: Vec<(u32, PathBuf)> =
            self.versions.iter().flat_map(|folder| versions_in(folder)).collect();
        versions.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
        candidates.extend(versions.into_iter().map(|(_, bin)| bin));
        candidates.extend(self.folders.iter().cloned());
        candidates
    }
}

impl Installation {
    /// The installation whose programs are in `bin`.
    pub fn at(bin: &Path) -> Result<Self, Error> {
        let bad = |why: String| Error::BadInstallation { bin: bin.to_owned(), why };
        for program in ["postgres", "initdb"] {
            if !is_program(&bin.join(program)) {
                return Err(bad(format!("there is no program {program}")));
            }
        }
        let bin = real_folder(bin).map_err(|error| bad(error.to_string()))?;
        let said = ask(&bin.join("postgres"), "--version").map_err(bad)?;
        let version = Version::parse(&said)
            .ok_or_else(|| bad(format!("postgres --version says {said:?}")))?;
        if version.major < MAJOR_MIN {
            return Err(Error::TooOld { bin, version });
        }
        let share = share_of(&bin, version.major);
        let library = library_of(&bin);
        Ok(Self { bin, version, share, library, parts: None })
    }

    /// The folder of its programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// Its version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// True if CREATE EXTENSION knows `name`.
    pub fn has_extension(&self, name: &str) -> bool {
        self.has(&self.control_file(name))
    }

    /// Fails where [`Installation::has_extension`] is false.
    pub fn require_extension(&self, name: &str) -> Result<(), Error> {
        self.require(name, self.control_file(name))
    }

    /// Fails where the preload library `name` is missing.
    pub fn require_library(&self, name: &str) -> Result<(), Error> {
        self.require(name, self.library_file(name))
    }

    /// Fails where it came without the program `name`.
    pub fn require_program(&self, name: &str) -> Result<(), Error> {
        self.require(name, self.program(name))
    }

    /// The same with a list of its parts, for another host that is to ask for them.
    pub(crate) fn listed(&self) -> Self {
        let folders = [&self.bin, &self.share.join("extension"), &self.library];
        let files = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        let paths = files.filter_map(|entry| Some(entry.ok()?.path()));
        let is_part = |path: &PathBuf| {
            path.parent() == Some(&self.bin)
                || path.extension().is_some_and(|suffix| suffix == "control" || suffix == "so")
        };
        Self { parts: Some(paths.filter(is_part).collect()), ..self.clone() }
    }

    fn has(&self, part: &Path) -> bool {
        match &self.parts {
            None => part.is_file(),
            Some(parts) => parts.contains(part),
        }
    }

    fn require(&self, name: &str, looked: PathBuf) -> Result<(), Error> {
        match self.has(&looked) {
            true => Ok(()),
            false => Err(Error::MissingPart {
                name: name.to_owned(),
                version: Box::new(self.version.clone()),
                looked,
                pg_config: self.program("pg_config"),
            }),
        }
    }

    fn control_file(&self, name: &str) -> PathBuf {
        self.share.join("extension").join(format!("{name}.control"))
    }

    fn library_file(&self, name: &str) -> PathBuf {
        self.library.join(format!("{name}.so"))
    }
}

/// The folders of programs below `folder`: `15/bin` and `pgsql-15/bin`, with their versions.
fn versions_in(folder: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let major = name.strip_prefix("pgsql-").unwrap_or(&name).parse().ok()?;
            let bin = entry.path().join("bin");
            is_program(&bin.join("postgres")).then_some((major, bin))
        })
        .collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The folder in which the server really is: people link it into folders of the PATH, and its other
/// programs, its extensions and its modules are found from there.
fn real_folder(bin: &Path) -> std::io::Result<PathBuf> {
    let server = bin.join("postgres").canonicalize()?;
    match server.parent() {
        Some(folder) if is_program(&folder.join("initdb")) => Ok(folder.to_owned()),
        _ => bin.canonicalize(),
    }
}

/// Limits of a question to a program of an installation, which says a line or two. A setting may name a file that
/// is not there to be read at once.
pub(crate) const QUESTION: CommandLimits<'static> = CommandLimits {
    bytes_max: 64 << 10,
    timeout: Some(Duration::from_secs(60)),
    is_interrupted: &|| false,
};

/// Output of a program for one option.
fn ask(program: &Path, option: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("running {}: {error}", program.display());
    let ended = ProcessCommand::new(program).arg(option).run(None, &QUESTION).map_err(failed)?;
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned()),
        false => Err(format!("{} {option} failed: {}", program.display(), ended.status)),
    }
}

/// `pg_config` knows, but is a package of its own in some distributions; then the places that
/// they use are tried.
fn share_of(bin: &Path, major: u32) -> PathBuf {
    let told = ask(&bin.join("pg_config"), "--sharedir").ok().map(PathBuf::from);
    let prefix = bin.parent().unwrap_or(bin);
    let mut usual =
        ["share", "share/postgresql", "share/pgsql"].map(|share| prefix.join(share)).to_vec();
    if prefix.starts_with("/usr/lib/postgresql") {
        usual.push(format!("/usr/share/postgresql/{major}").into());
    }
    told.into_iter()
        .chain(usual)
        .find(|folder| folder.join("extension").is_dir())
        .unwrap_or_else(|| prefix.join("share"))
}

fn library_of(bin: &Path) -> PathBuf {
    let told = ask(&bin.join("pg_config"), "--pkglibdir").ok().map(PathBuf::from);
    let prefix = bin.parent().unwrap_or(bin);
    let usual = ["lib", "lib/postgresql", "lib64/pgsql", "lib/pgsql"].map(|lib| prefix.join(lib));
    told.into_iter()
        .chain(usual)
        .find(|folder| folder.join("plpgsql.so").is_file())
        .unwrap_or_else(|| prefix.join("lib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_postgres_says() {
        let check = |said, expected: Option<(u32, u32, &str)>| {
            let version = Version::parse(said);
            let seen = version.as_ref().map(|v| (v.major, v.minor, v.text.as_str()));
            assert_eq!(seen, expected, "{said}");
        };
        check("postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)", Some((15, 20, "15.20")));
        check("postgres (PostgreSQL) 18.0", Some((18, 0, "18.0")));
        check("postgres (PostgreSQL) 19devel", Some((19, 0, "19devel")));
        check("postgres (PostgreSQL) 18beta1", Some((18, 0, "18beta1")));
        check("postgres (PostgreSQL) 9.6.24", Some((9, 6, "9.6.24")));
        check("postgres 15", None);
        check("", None);
    }

    /// A folder that looks like an installation of `version`.
    fn fake(bin: &Path, version: &str) {
        fs::create_dir_all(bin).unwrap();
        for program in ["postgres", "initdb"] {
            let path = bin.join(program);
            script::write(&path, &format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"));
        }
    }

    #[test]
    fn the_order_is_named_then_path_then_newest() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for (bin, version) in
            [("v/14/bin", "14.1"), ("v/16/bin", "16.3"), ("v/9.6/bin", "9.6.1"), ("p", "15.2")]
        {
            fake(&root.join(bin), version);
        }
        let search =
            InstallationSearch { versions: vec![root.join("v")], ..InstallationSearch::default() };
        assert_eq!(search.first().unwrap().version().text, "16.3");
        assert_eq!(search.all().len(), 2);

        let search = InstallationSearch { path: Some(root.join("p").into()), ..search };
        assert_eq!(search.first().unwrap().version().text, "15.2");

        let search = InstallationSearch { pg_bin: Some(root.join("v/14")), ..search };
        assert_eq!(search.first().unwrap().bin(), root.join("v/14/bin"));

        let linked = root.join("linked");
        fs::create_dir(&linked).unwrap();
        for program in ["postgres", "initdb"] {
            std::os::unix::fs::symlink(root.join("v/14/bin").join(program), linked.join(program))
                .unwrap();
        }
        assert_eq!(Installation::at(&linked).unwrap().bin(), root.join("v/14/bin"));

        let old = InstallationSearch { pg_bin: Some(root.join("v/9.6/bin")), ..search };
        assert!(matches!(old.first(), Err(Error::TooOld { .. })));
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let none = InstallationSearch {
            folders: vec![root.path().into()],
            ..InstallationSearch::default()
        }
        .first();
        let error = none.unwrap_err();
        assert!(error.to_string().contains(root.path().to_str().unwrap()), "{error}");
        assert!(error.hint().unwrap().contains("--pg-bin"));

        let named = InstallationSearch {
            pg_bin: Some(root.path().into()),
            ..InstallationSearch::default()
        }
        .first();
        let error = named.unwrap_err();
        assert!(error.to_string().contains("there is no program postgres"), "{error}");

        let bin = root.path().join("bin");
        fake(&bin, "15.1");
        let error = Installation::at(&bin).unwrap().require_extension("no_such_part").unwrap_err();
        assert!(error.to_string().contains("no_such_part is not installed"), "{error}");
        assert!(error.hint().unwrap().contains("--pg-bin"));
    }

    #[test]
    fn this_machine_has_a_postgresql_with_contrib() {
        let installation = find(None).expect("the tests need an installed PostgreSQL");
        assert!(installation.has_extension("pg_stat_statements"));
        assert!(installation.require_library("pg_stat_statements").is_ok());
        assert!(!installation.has_extension("no_such_extension"));
    }
}
