//! Finding PgBouncer: in `PATH`, in the folders of the distributions, and where
//! `scripts/pgbouncer-newest` puts a newer one than theirs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::find::{Version, ask, is_program};

/// One installed PgBouncer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgBouncer {
    program: PathBuf,
    version: Version,
}

/// The newest PgBouncer of this machine; with `version`, the newest whose version begins with it,
/// as in "1.18".
pub fn pgbouncer(version: Option<&str>) -> Result<PgBouncer, Error> {
    pgbouncers().into_iter().find(|one| one.fits(version)).ok_or_else(|| Error::NoPgBouncer {
        version: version.map(str::to_owned),
        searched: folders(),
    })
}

/// Every PgBouncer of this machine that works, the newest first.
pub fn pgbouncers() -> Vec<PgBouncer> {
    let mut found: Vec<PgBouncer> = Vec::new();
    for folder in folders() {
        let Ok(one) = PgBouncer::at(&folder.join(NAME)) else { continue };
        if !found.iter().any(|known| known.program == one.program) {
            found.push(one);
        }
    }
    found.sort_by(|a, b| b.version.cmp(&a.version));
    found
}

impl PgBouncer {
    /// The one whose program is `program`.
    pub fn at(program: &Path) -> Result<Self, Error> {
        let bad = |why: String| Error::BadPgBouncer { program: program.to_owned(), why };
        if !is_program(program) {
            return Err(bad("there is no such program".to_owned()));
        }
        // Links are followed: one program in two folders of the PATH is one installation.
        let program = program.canonicalize().map_err(|error| bad(error.to_string()))?;
        let said = ask(&program, "--version").map_err(bad)?;
        // A program that says nothing has no version, which is refused below.
        let first = said.lines().next().unwrap_or_default();
        let version = first.strip_prefix("PgBouncer ").and_then(Version::of);
        let version = version.ok_or_else(|| bad(format!("--version says {first:?}")))?;
        Ok(Self { program, version })
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// True if its version begins with `wanted`, if any is.
    pub fn fits(&self, wanted: Option<&str>) -> bool {
        wanted.is_none_or(|wanted| self.version.is_of(wanted))
    }

    /// True if prepared statements of the protocol work in its transaction mode
    /// (`max_prepared_statements`, since 1.21).
    pub fn has_prepared_statements(&self) -> bool {
        (self.version.major, self.version.minor) >= (1, 21)
    }
}

fn folders() -> Vec<PathBuf> {
    // Without a PATH, the folders below are looked into.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(OsStr::new(&path))
        .filter(|folder| is_program(&folder.join(NAME)))
        .collect();
    // A plain user's PATH has no sbin.
    folders.extend(["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Into::into));
    // Without a path of its own, the rig has no build beside it.
    let rig = std::env::current_exe().unwrap_or_default();
    let built = rig.ancestors().skip(1).take(BUILD_FOLDERS).map(|folder| folder.join(BUILT));
    folders.extend(built.filter(|folder| is_program(&folder.join(NAME))));
    folders
}

const NAME: &str = "pgbouncer";

/// In cargo's target folder.
const BUILT: &str = "pgbouncer/bin";

/// Number of folders between that one and a program that cargo has built: target/debug/deps.
const BUILD_FOLDERS: usize = 3;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::find::script;

    #[test]
    fn a_program_is_a_pgbouncer_by_what_it_says() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join(NAME);
        let check = |says: &str, expected: Result<(bool, &str), &str>| {
            script::write(&program, &format!("#!/bin/sh\nprintf '{says}\\nlibevent 2\\n'\n"));
            match (PgBouncer::at(&program), expected) {
                (Ok(found), Ok((prepares, version))) => {
                    assert_eq!(found.has_prepared_statements(), prepares);
                    assert_eq!(found.version().text, version);
                }
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().ends_with(expected), "{error}");
                    assert!(error.hint().is_some());
                }
                (found, _) => panic!("{found:?}"),
            }
        };
        check("PgBouncer 1.18.0", Ok((false, "1.18.0")));
        check("PgBouncer 1.25.2", Ok((true, "1.25.2")));
        check("odyssey 1", Err("--version says \"odyssey 1\""));
        fs::remove_file(&program).unwrap();
        let missing = PgBouncer::at(&program).unwrap_err();
        assert!(missing.to_string().ends_with("there is no such program"), "{missing}");
    }

    #[test]
    fn a_version_is_wanted_by_its_beginning() {
        let check = |version: &str, wanted: Option<&str>, expected: bool| {
            let version = Version::of(version).unwrap();
            let one = PgBouncer { program: NAME.into(), version };
            assert_eq!(one.fits(wanted), expected, "{one:?} {wanted:?}");
        };
        check("1.18.0", None, true);
        check("1.18.0", Some("1.18"), true);
        check("1.18.0", Some("1.18.0"), true);
        check("1.18.0", Some("1.1"), false);
        check("1.24.1", Some("1.18"), false);
    }
}
