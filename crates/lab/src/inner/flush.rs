//! A run of pg_test_fsync, as far as its first table.

use std::time::Duration;

use os::command::ProcessOutput;
use rustix::process::Signal;

use crate::error::Error;
use crate::files::{make_directory_for, read_file, remove_tree, write_file};
use crate::flush::{Flush, first_table};
use crate::inner::lab::Lab;
use crate::wait::wait_until;

impl Lab {
    pub(crate) fn test_flush(&self, seconds: u64) -> Result<Vec<Flush>, Error> {
        let program = self.shared().installation.program(PROGRAM);
        if !program.is_file() {
            let installation = &self.shared().installation;
            return Err(Error::MissingPart {
                name: PROGRAM.to_owned(),
                version: Box::new(installation.version().clone()),
                looked: program,
                pg_config: installation.program("pg_config"),
            });
        }
        let directory = self.directory().join("flush");
        make_directory_for(&directory, self.user())?;
        let output = directory.join("said");
        write_file(&output, "", self.user())?;
        let command = self
            .shared()
            .command(PROGRAM, &directory)
            .args(["-s", &seconds.to_string(), "-f"])
            .arg(directory.join("file"))
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let pid = self.shared().spawn_in(&command, None)?;
        let process =
            |source| Error::Process { doing: "running", node: PROGRAM.to_owned(), source };
        let init = self.shared().init().map_err(process)?;
        let timeout = Duration::from_secs(seconds * METHODS_MAX) + STARTS_WITHIN;
        let flushes = wait_until(timeout, || {
            // Until the program has written something, there is no table to find.
            let said = read_file(&output, self.user()).unwrap_or_default();
            let is_over = init.exit(pid).map_err(process)?.is_some();
            Ok::<_, Error>(match first_table(&said) {
                // The next table goes over the same methods with two blocks.
                Some(flushes) => Some(Ok(flushes)),
                None => is_over.then_some(Err(said)),
            })
        })?;
        let _ = init.signal(pid, Signal::KILL);
        init.wait(pid, STARTS_WITHIN).map_err(process)?;
        // A program that wrote nothing has said nothing, which the error then shows.
        let said = read_file(&output, self.user()).unwrap_or_default();
        remove_tree(&directory)?;
        flushes.unwrap_or(Err(said)).map_err(|said| Error::FlushTest { said })
    }
}

const PROGRAM: &str = "pg_test_fsync";

/// open_datasync, fdatasync, fsync, fsync_writethrough, open_sync.
const METHODS_MAX: u64 = 5;

/// Its start and its end, on a machine that is busy.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
