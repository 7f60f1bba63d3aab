//! pg_upgrade of another node's data.

use std::path::Path;
use std::time::{Duration, Instant};

use os::command::{ProcessCommand, ProcessOutput};

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{read_file, remove_tree, write_file};
use crate::find::Installation;
use crate::inner::initdb::{self, SUPERUSER};
use crate::inner::node::Node;
use crate::upgrade::{self, UpgradeMode, UpgradeReport};

impl Node {
    /// Makes its data from those of a server of an earlier version, which is stopped.
    pub(crate) fn upgrade_data(
        &mut self,
        from: &Path,
        old: &Installation,
        mode: UpgradeMode,
    ) -> Result<UpgradeReport, Error> {
        self.program.expect_stopped("upgrading")?;
        self.installation().require_program(PROGRAM)?;
        self.make_room()?;
        let (data, user) = (self.data_here()?, self.program.shared.user);
        let mut options = self.config.initdb.clone();
        options.extend(like(&self.said_of(old, from)?, self.installation().version().major));
        initdb::initialise(&self.program.shared, self.name(), &options, &data)?;
        self.write_settings()?;
        // The old cluster would be lost with the first start of the new one.
        let copy = self.program.file("old");
        remove_tree(&copy)?;
        let from = match mode {
            UpgradeMode::Link => {
                copy_tree(from, &copy, user)?;
                copy.as_path()
            }
            UpgradeMode::Copy | UpgradeMode::Clone => from,
        };
        let began = Instant::now();
        let checked = self.pg_upgrade(from, old, &["--check"])?;
        let check_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let mode: Vec<&str> = mode.option().into_iter().collect();
        let said = self.pg_upgrade(from, old, &mode)?;
        let upgrade_s = began.elapsed().as_secs_f64();
        remove_tree(&copy)?;
        let mut asks = upgrade::asked(&checked, "");
        asks.extend(upgrade::asked(&said, &self.installation().bin().display().to_string()));
        asks.dedup();
        Ok(UpgradeReport { check_s, upgrade_s, asks })
    }

    /// Runs pg_upgrade to its end; what it said.
    fn pg_upgrade(
        &self,
        from: &Path,
        old: &Installation,
        options: &[&str],
    ) -> Result<String, Error> {
        let output = self.program.file("upgrade.log");
        let port = self.port.number.to_string();
        let command = self
            .program
            .shared
            .command(PROGRAM, self.directory())
            .arg("--old-datadir")
            .arg(from)
            .arg("--new-datadir")
            .arg(self.data())
            .arg("--old-bindir")
            .arg(old.bin())
            .arg("--new-bindir")
            .arg(self.installation().bin())
            .args(["--username", SUPERUSER, "--old-port", &port, "--new-port", &port])
            .arg("--socketdir")
            .arg(self.program.shared.sockets())
            .args(options);
        self.output_of(command, &output, "upgrading").map_err(|error| match error {
            Error::Start { node, why, log } => {
                let log = format!("{}\n{}", last(&log), self.causes(&log));
                Error::Upgrade { node, why, log: log.trim_end().to_owned() }
            }
            error => error,
        })
    }

    /// The errors in the logs that pg_upgrade names.
    fn causes(&self, said: &str) -> String {
        let logs = said.split('"').filter(|word| word.ends_with(".log"));
        let texts = logs.filter_map(|path| read_file(path.as_ref(), self.program.shared.user).ok());
        let errors = |text: String| -> Vec<String> {
            let is_error = |line: &&str| line.contains("error:") || line.contains("ERROR:");
            text.lines().filter(is_error).take(CAUSES_MAX).map(str::to_owned).collect()
        };
        texts.flat_map(errors).collect::<Vec<_>>().join("\n")
    }

    /// What pg_controldata of an installation says of a data directory.
    fn said_of(&self, installation: &Installation, data: &Path) -> Result<String, Error> {
        let output = self.program.file("controldata.log");
        let program = installation.program("pg_controldata");
        let command = self.program.shared.command_of(&program, self.directory()).arg(data);
        self.output_of(command, &output, "reading the data to upgrade")
    }

    fn output_of(
        &self,
        command: ProcessCommand,
        output: &Path,
        doing: &'static str,
    ) -> Result<String, Error> {
        write_file(output, "", self.program.shared.user)?;
        let command = command
            .stdout(ProcessOutput::File(output.to_owned()))
            .stderr(ProcessOutput::File(output.to_owned()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        let said = self.program.text(output);
        match exit.is_success() {
            true => Ok(said),
            false => {
                let why = format!("{doing}: {} {exit}", command.program.display());
                Err(Error::Start { node: self.name().to_owned(), why, log: said.trim().to_owned() })
            }
        }
    }
}

/// The last lines of a text.
fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

/// Lines of pg_upgrade's output, and errors of each of its logs, that a message has at most.
const LINES_MAX: usize = 6;
const CAUSES_MAX: usize = 3;

/// The options of initdb that make the new cluster as the old one is, where pg_upgrade demands it.
fn like(said: &str, major: u32) -> Vec<String> {
    let value = |name: &str| said.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
    let mut options = Vec::new();
    let wal: Option<u64> = value("Bytes per WAL segment:").and_then(|bytes| bytes.parse().ok());
    options.extend(wal.map(|bytes| format!("--wal-segsize={}", bytes >> 20)));
    match value("Data page checksum version:") {
        Some("0") if major >= CHECKSUMS_SINCE => options.push("--no-data-checksums".to_owned()),
        Some("0") | None => {}
        Some(_) => options.push("--data-checksums".to_owned()),
    }
    options
}

/// From this version on initdb turns checksums on by itself.
const CHECKSUMS_SINCE: u32 = 18;

const PROGRAM: &str = "pg_upgrade";

/// It copies all files at the speed of the disk.
const TIMEOUT: Duration = Duration::from_secs(4 * 3600);
