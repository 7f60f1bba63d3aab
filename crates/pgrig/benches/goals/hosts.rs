//! What hosts cost: a study's wall time, and the generators' CPU.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::measure::{Program, pairs, run};
use crate::server::Server;
use crate::{Measured, SELECT_ONLY, Size};

const PGRIG: &str = env!("CARGO_BIN_EXE_pgrig");

/// Hosts of this machine, each with an address of the loopback network, launched by a plain command.
fn inventory(folder: &Path, count: u32, place: &str) -> Result<String, String> {
    let host = |number: u32| {
        let address = format!("address = \"127.0.0.{}\"", number + 1);
        format!("[hosts.node{number}]\nlaunch = \"env\"\nprogram = \"{PGRIG}\"\n{address}\n")
    };
    let text = (1..=count).map(host).collect::<String>() + place;
    let path = folder.join("lab.toml");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    Ok(path.display().to_string())
}

/// The replication study in its smoke profile on four hosts, and on this machine without hosts.
pub(crate) fn study(_: &Server, size: &Size) -> Result<Measured, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = "[place]\nprimary = \"node1\"\nstandby1 = \"node2\"\nstandby2 = \"node3\"\n\
                 generators = \"node4\"\n";
    let file = inventory(folder.path(), 4, place)?;
    let mut number = 0;
    let measured = pairs(size.pairs.min(3), [true, false], |on_hosts| {
        number += 1;
        let out = folder.path().join(format!("out{number}"));
        let mut command = Command::new(PGRIG);
        command.args(["run", "replication", "--profile", "smoke", "--out"]).arg(&out);
        if on_hosts {
            command.args(["--hosts", &file]);
        }
        let began = Instant::now();
        let done = command.output().map_err(|error| error.to_string())?;
        match done.status.success() {
            true => Ok(began.elapsed().as_secs_f64()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    });
    measured.map(|pairs| pairs.measured("s"))
}

/// CPU of the generators in the window for each transaction: on two hosts, and by two processes here.
pub(crate) fn generator_cpu(server: &Server, size: &Size) -> Result<Measured, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let hosts = format!("--hosts={}", inventory(folder.path(), 2, "")?);
    let time = ["-T".to_owned(), size.seconds.to_string()];
    let measured = pairs(size.pairs, [hosts.as_str(), "--generators=2"], |generators| {
        let mut options: Vec<&str> = SELECT_ONLY.to_vec();
        options.extend(["-j", "2", generators]);
        Ok(run(server, Program::Pgrig, &options, &time)?.window_cpu_us)
    });
    measured.map(|pairs| pairs.measured("µs"))
}
