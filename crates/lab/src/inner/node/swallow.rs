//! A node some of whose flushes do nothing: a fault for checks to find. A library that is loaded
//! before the C library answers them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use terms::SwallowedFlushes;

use crate::error::Error;
use crate::files::failed;
use crate::inner::node::Node;
use crate::machine;

impl Node {
    /// The environment that has its flushes swallowed; empty where none is.
    pub(super) fn swallowing(&self) -> Result<Vec<(String, String)>, Error> {
        let Some(swallowed) = self.config.swallow_fsync else { return Ok(Vec::new()) };
        let library = self.swallower();
        if !library.exists() {
            let source = library.with_extension("c");
            fs::write(&source, SOURCE).map_err(failed("writing", &source))?;
            let mut compiler = Command::new(COMPILER);
            compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
            let output = compiler.output();
            let output = output.map_err(failed("running cc, which gcc brings, on", &source))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                let failure = std::io::Error::other(said);
                return Err(failed("compiling", &source)(failure));
            }
            // The servers' user loads it. Without that the loader says so, and the server starts all the same.
            let open = fs::set_permissions(&library, Permissions::from_mode(0o755));
            open.map_err(failed("opening", &library))?;
        }
        let kind = match swallowed {
            SwallowedFlushes::Control => "control",
            SwallowedFlushes::Wal => "wal",
            SwallowedFlushes::Relation => "relation",
            SwallowedFlushes::CommitLog => "commit_log",
            SwallowedFlushes::Directory => "directory",
            SwallowedFlushes::All => "all",
        };
        let own = library.to_string_lossy().into_owned();
        let libraries = [own].into_iter().chain(machine::preloaded());
        Ok(vec![
            (machine::PRELOAD.to_owned(), libraries.collect::<Vec<_>>().join(":")),
            ("PGRIG_SWALLOW".to_owned(), kind.to_owned()),
        ])
    }

    /// Fails where flushes of the server that has just started should be swallowed, and are not.
    pub(super) fn expect_swallowing(&self) -> Result<(), Error> {
        let Some(pid) = self.host_pid().filter(|_| self.config.swallow_fsync.is_some()) else {
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
