//! pg_checksums on a node's data.

use std::time::Duration;

use os::command::ProcessOutput;

use crate::checksums::Checksums;
use crate::error::Error;
use crate::files::write_file;
use crate::inner::node::Node;

impl Node {
    pub(crate) fn check_checksums(&mut self) -> Result<Checksums, Error> {
        self.program.expect_stopped("checking the checksums of")?;
        let output = self.program.file("checksums.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command("pg_checksums", self.directory())
            .args(["--check", "--pgdata"])
            .arg(self.data())
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, CHECK_TIMEOUT)?;
        let said = self.program.text(&output);
        Checksums::parse(&said).ok_or_else(|| {
            let output = self.program.tail(&output, 0);
            Error::Checksums { node: self.name().to_owned(), exit, output }
        })
    }
}

/// It reads a data directory at the speed of the disk.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1800);
