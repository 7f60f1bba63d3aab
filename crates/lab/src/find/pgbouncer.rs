//! Finding PgBouncer: what the user names, then `PATH`, then the folders of the distributions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::find::{Version, ask, is_program};

/// One installed PgBouncer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgBouncer {
    program: PathBuf,
    version: Version,
}

/// Finds the PgBouncer to use; `named` is the program or its folder, and must be right.
///
/// # Errors
/// [`Error::NoPgBouncer`]; [`Error::BadPgBouncer`] for what was named.
pub fn pgbouncer(named: Option<&Path>) -> Result<PgBouncer, Error> {
    if let Some(named) = named {
        let inner = named.join(NAME);
        return PgBouncer::at(if named.is_dir() { &inner } else { named });
    }
    let searched = folders();
    let found = searched.iter().find_map(|folder| PgBouncer::at(&folder.join(NAME)).ok());
    found.ok_or(Error::NoPgBouncer { searched })
}

/// Every PgBouncer of this machine that works, in the order in which they are looked for.
pub fn pgbouncers() -> Vec<PgBouncer> {
    let mut found: Vec<PgBouncer> = Vec::new();
    for folder in folders() {
        let Ok(one) = PgBouncer::at(&folder.join(NAME)) else { continue };
        if !found.iter().any(|known| known.program == one.program) {
            found.push(one);
        }
    }
    found
}

impl PgBouncer {
    /// The one whose program is `program`.
    ///
    /// # Errors
    /// [`Error::BadPgBouncer`].
    pub fn at(program: &Path) -> Result<Self, Error> {
        let bad = |why: String| Error::BadPgBouncer { program: program.to_owned(), why };
        if !is_program(program) {
            return Err(bad("there is no such program".to_owned()));
        }
        // Links are followed: one program in two folders of the PATH is one installation.
        let program = program.canonicalize().map_err(|error| bad(error.to_string()))?;
        let said = ask(&program, "--version").map_err(bad)?;
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

    /// Whether prepared statements of the protocol work in its transaction mode
    /// (`max_prepared_statements`, since 1.21).
    pub fn has_prepared_statements(&self) -> bool {
        (self.version.major, self.version.minor) >= (1, 21)
    }
}

fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(OsStr::new(&path))
        .filter(|folder| is_program(&folder.join(NAME)))
        .collect();
    // A plain user's PATH has no sbin.
    folders.extend(["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Into::into));
    folders
}

const NAME: &str = "pgbouncer";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_named_must_be_a_pgbouncer() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join(NAME);
        let check = |says: &str, expected: Result<(bool, &str), &str>| {
            fs::write(&program, format!("#!/bin/sh\nprintf '{says}\\nlibevent 2\\n'\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            for named in [root.path(), &program] {
                match (pgbouncer(Some(named)), expected) {
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
            }
        };
        check("PgBouncer 1.18.0", Ok((false, "1.18.0")));
        check("PgBouncer 1.25.2", Ok((true, "1.25.2")));
        check("odyssey 1", Err("--version says \"odyssey 1\""));
        fs::remove_file(&program).unwrap();
        let missing = pgbouncer(Some(root.path())).unwrap_err();
        assert!(missing.to_string().ends_with("there is no such program"), "{missing}");
    }
}
