//! pg_basebackup: the data of a running server, for a standby of it or to be kept.

use std::path::Path;
use std::time::Duration;

use os::command::Output;

use crate::copy::write_file;
use crate::error::Error;
use crate::log;
use crate::node::Node;

impl Node {
    /// Copies the data of `primary`, which runs and may be this node itself, to `directory`; by a
    /// replication slot, where a standby goes on from there.
    ///
    /// # Errors
    /// [`Error::Backup`] with what pg_basebackup said.
    pub(super) fn base_backup(
        &self,
        primary: &Node,
        directory: &Path,
        slot: Option<&str>,
    ) -> Result<(), Error> {
        let output = self.program.file("backup.log");
        write_file(&output, "", self.program.shared.user)?;
        let slot: Vec<&str> = slot.into_iter().flat_map(|slot| ["--slot", slot]).collect();
        let command = self
            .program
            .shared
            .command("pg_basebackup", self.directory())
            .arg("--pgdata")
            .arg(directory)
            .args(["--dbname", &primary.admin_endpoint().to_string()])
            .args(slot)
            .args(["--wal-method=stream", "--checkpoint=fast"])
            // As with initdb: Lab::sync writes everything.
            .args(["--no-sync", "--no-password"])
            .stdout(Output::File(output.clone()))
            .stderr(Output::File(output.clone()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        if exit.is_success() {
            return Ok(());
        }
        let (node, primary) = (self.name().to_owned(), primary.name().to_owned());
        Err(Error::Backup { node, primary, exit, output: log::tail(&output, 0) })
    }
}

/// It copies a data directory at the speed of the disk.
const TIMEOUT: Duration = Duration::from_secs(1800);
