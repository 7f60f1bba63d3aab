//! A node some of whose flushes do nothing: a fault for checks to find. A library that is loaded
//! before the C library answers them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use terms::SwallowedFlushes;

use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::machine;

/// A library of the rig that is loaded into a server before the C library.
pub(super) struct PreloadedLibrary {
    pub(super) file: PathBuf,
    /// The environment variable that tells the library what to do, and its value.
    pub(super) variable: (String, String),
}

impl Node {
    /// The environment that has libraries loaded before the C library: one that swallows flushes, one that has a clock
    /// of its own; empty where none is.
    pub(super) fn preloading(&self) -> Result<Vec<(String, String)>, Error> {
        let libraries =
            [self.swallowing()?, self.clock()?].into_iter().flatten().collect::<Vec<_>>();
        if libraries.is_empty() {
            return Ok(Vec::new());
        }
        let own = libraries.iter().map(|library| library.file.to_string_lossy().into_owned());
        let all = own.chain(machine::preloaded()).collect::<Vec<_>>().join(":");
        let variables = libraries.into_iter().map(|library| library.variable);
        Ok(variables.chain([(machine::PRELOAD.to_owned(), all)]).collect())
    }

    /// The library that swallows its flushes, and its variable; none where none is.
    fn swallowing(&self) -> Result<Option<PreloadedLibrary>, Error> {
        let Some(swallowed) = self.config.swallow_fsync else { return Ok(None) };
        let library = self.swallower();
        compile(&library, SOURCE)?;
        let kind = match swallowed {
            SwallowedFlushes::Control => "control",
            SwallowedFlushes::Wal => "wal",
            SwallowedFlushes::Relation => "relation",
            SwallowedFlushes::CommitLog => "commit_log",
            SwallowedFlushes::Directory => "directory",
            SwallowedFlushes::All => "all",
        };
        let variable = ("PGRIG_SWALLOW".to_owned(), kind.to_owned());
        Ok(Some(PreloadedLibrary { file: library, variable }))
    }

    /// Fails where flushes of the server that has just started should be swallowed, and are not.
    pub(super) fn expect_swallowing(&self) -> Result<(), Error> {
        let Some(pid) = self.host_pid().filter(|_| self.config.swallow_fsync.is_some()) else {
            // A node without it, or one that has ended, which its start says, has nothing to show.
            return Ok(());
        };
        match os::processes::has_mapped(pid, &self.swallower()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self
                .program
                .state("starting", "runs without the library that swallows its flushes")),
            Err(source) => {
                let doing = "looking for the library that swallows the flushes of";
                Err(Error::Process { doing, node: self.name().to_owned(), source })
            }
        }
    }

    fn swallower(&self) -> PathBuf {
        self.program.shared.path().join("swallow.so")
    }
}

/// Compiles a library that is loaded before the C library, unless it is there.
pub(super) fn compile(library: &Path, text: &str) -> Result<(), Error> {
    if library.exists() {
        return Ok(());
    }
    let source = library.with_extension("c");
    fs::write(&source, text).map_err(failed("writing", &source))?;
    let mut compiler = Command::new(COMPILER);
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(library).arg(&source);
    let output = compiler.output();
    let output = output.map_err(failed("running cc, which gcc brings, on", &source))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let failure = std::io::Error::other(said);
        return Err(failed("compiling", &source)(failure));
    }
    // The servers' user loads it. Without that the loader says so, and the server starts all the same.
    let open = fs::set_permissions(library, Permissions::from_mode(0o755));
    open.map_err(failed("opening", library))
}

const SOURCE: &str = include_str!("swallow.c");

const COMPILER: &str = "cc";

#[cfg(test)]
mod tests {
    use super::*;

    /// What Debian's libeatmydata 130 defines, but for its own start.
    #[test]
    fn all_calls_of_libeatmydata_are_answered() {
        let calls =
            ["fsync", "fdatasync", "msync", "open", "open64", "sync", "sync_file_range", "syncfs"];
        for call in calls {
            assert!(SOURCE.contains(&format!("\n{call}(")), "{call}");
        }
    }
}
