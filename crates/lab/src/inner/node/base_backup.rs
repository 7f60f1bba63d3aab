//! pg_basebackup: the data of a running server, for a standby of it or to be kept.

use std::path::Path;
use std::time::Duration;

use os::command::ProcessOutput;

use crate::error::Error;
use crate::files::write_file;
use crate::inner::node::Node;
use crate::verb::Backup;

impl Node {
    /// Copies the data of a server that runs to `directory`; by a replication slot, where a standby
    /// goes on from there.
    pub(super) fn base_backup(
        &self,
        from: &Backup,
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
            .args(["--dbname", &from.at.without_password().to_string()])
            // Arguments show in process lists.
            .env("PGPASSWORD", from.at.password.as_ref().map_or("", |password| password.reveal()))
            .args(slot)
            .args(["--wal-method=stream", "--checkpoint=fast"])
            // As with initdb: Lab::sync writes everything.
            .args(["--no-sync", "--no-password"])
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        if exit.is_success() {
            return Ok(());
        }
        let (node, primary) = (self.name().to_owned(), from.of.clone());
        Err(Error::Backup { node, primary, exit, output: self.program.tail(&output, 0) })
    }
}

/// It copies a data directory at the speed of the disk.
const TIMEOUT: Duration = Duration::from_secs(1800);
