//! pg_rewind: the data of a server that was a primary become those of a standby of another one.

use std::time::Duration;

use os::command::ProcessOutput;

use crate::error::Error;
use crate::files::write_file;
use crate::inner::node::Node;
use crate::verb::{Backup, Upstream};

impl Node {
    /// As [`crate::Node::rewind`]. The slot is there.
    pub(crate) fn rewind(&mut self, from: &Backup, upstream: Upstream) -> Result<String, Error> {
        self.program.expect_stopped("rewinding")?;
        // A crash is recovered by pg_rewind itself, with the settings of this server.
        self.write_settings()?;
        let output = self.program.file("rewind.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command("pg_rewind", self.directory())
            .arg("--target-pgdata")
            .arg(self.data())
            .args(["--source-server", &from.at.without_password().to_string()])
            // Arguments show in process lists.
            .env("PGPASSWORD", from.at.password.as_ref().map_or("", |password| password.reveal()))
            // As with initdb: Lab::sync writes everything.
            .arg("--no-sync")
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        let said = self.program.tail(&output, 0);
        if !exit.is_success() {
            let (node, primary) = (self.name().to_owned(), from.of.clone());
            return Err(Error::Rewind { node, primary, exit, output: said });
        }
        let signal = self.data_here()?.join("standby.signal");
        write_file(&signal, "", self.program.shared.user)?;
        self.upstream = Some(upstream);
        Ok(said)
    }
}

/// It copies what differs, at most a data directory, at the speed of the disk.
const TIMEOUT: Duration = Duration::from_secs(1800);
