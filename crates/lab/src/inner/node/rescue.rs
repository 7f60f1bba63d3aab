//! Last resorts for data that do not start.

use std::time::Duration;

use os::command::ProcessOutput;

use crate::error::Error;
use crate::files::write_file;
use crate::inner::node::Node;

impl Node {
    pub(crate) fn reset_wal(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("resetting the WAL of")?;
        self.give_power("resetting the WAL of")?;
        self.remove_leftovers()?;
        let output = self.program.file("resetwal.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command("pg_resetwal", self.directory())
            .arg("--force")
            .arg(self.data())
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, RESET_TIMEOUT)?;
        if exit.is_success() {
            return Ok(());
        }
        let why = format!("has no WAL to start from: pg_resetwal {exit}");
        Err(Error::Start { node: self.name().to_owned(), why, log: self.program.tail(&output, 0) })
    }
}

/// It writes two small files.
const RESET_TIMEOUT: Duration = Duration::from_secs(60);
