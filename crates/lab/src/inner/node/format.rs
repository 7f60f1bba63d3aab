//! The format of a node's files, which decides whether other programs can read them.

use std::io;
use std::time::Duration;

use os::command::ProcessOutput;

use crate::error::Error;
use crate::files::{failed, write_file};
use crate::format::Format;
use crate::inner::node::Node;

impl Node {
    pub(crate) fn format(&self) -> Result<Format, Error> {
        let doing = "reading the format of";
        self.program.expect_stopped(doing)?;
        self.installation().require_program(PROGRAM)?;
        let output = self.program.file("format.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command(PROGRAM, self.directory())
            .arg(self.data())
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        let said = self.program.text(&output);
        let format = exit.is_success().then(|| Format::parse(&said)).flatten();
        format.ok_or_else(|| {
            let why = format!("{PROGRAM} {exit}: {}", said.trim());
            failed(doing, &self.data())(io::Error::other(why))
        })
    }
}

const PROGRAM: &str = "pg_controldata";

/// It reads one small file.
const TIMEOUT: Duration = Duration::from_secs(60);
