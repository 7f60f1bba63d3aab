//! Making pgbench's tables, and finding a rate twice.

use std::process::Stdio;
use std::time::Instant;

use crate::measure::{BOTH, Program, Spread, pairs};
use crate::{Measured, Server, Size};

/// The scale that is loaded.
const SCALE: &str = "200";

/// What pgbench_accounts is to be.
#[derive(Clone, Copy)]
pub(crate) enum Tables {
    /// One table.
    Whole,
    /// As many partitions by range as there are cores.
    Partitioned,
}

/// `-i` on as many connections as there are cores: how many times as fast as pgbench's, which has
/// one. Each load replaces the tables of the last one, in a database of its own.
pub(crate) fn loading(server: &Server, size: &Size, tables: Tables) -> Result<Measured, String> {
    const DATABASE: &str = "goals_load";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    psql(server, &format!("CREATE DATABASE {DATABASE}"))?;
    let seconds = pairs(size.pairs.min(3), BOTH, |program| {
        psql(server, "CHECKPOINT")?;
        let mut command = match program {
            Program::Pgbench => server.command(&server.pgbench),
            Program::Pgrig => {
                let mut command = server.command(env!("CARGO_BIN_EXE_pgrig").as_ref());
                command.args(["bench", &format!("--connections={cores}")]);
                command
            }
        };
        command.args(["-i", "-q", "-s", SCALE, DATABASE]);
        if let Tables::Partitioned = tables {
            command.arg(format!("--partitions={cores}"));
        }
        let began = Instant::now();
        let done = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        match done.status.success() {
            true => Ok(began.elapsed().as_secs_f64()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    });
    let dropped = psql(server, &format!("DROP DATABASE {DATABASE}"));
    // Speed is the reciprocal of time.
    let measured = seconds?.inverted("s");
    dropped.map(|()| measured)
}

/// `--find-rate` twice in a row on a server that can do the same both times, whatever else the
/// machine does: statements sleep, and what 16 clients can do in a second is 8,000 less the time
/// around the sleeping.
pub(crate) fn found_twice_asleep(server: &Server, size: &Size) -> Result<Measured, String> {
    let script = server.script("asleep", "SELECT pg_sleep(0.002);\n")?;
    found_twice(server, size, &["-f", &script, "-c", "16"], "p99 < 5ms")
}

/// `--find-rate` twice in a row on a server that the machine is the limit of.
pub(crate) fn found_twice_busy(server: &Server, size: &Size) -> Result<Measured, String> {
    found_twice(server, size, &["-S", "-c", "32"], "p99 < 2ms")
}

/// How far the larger answer is above the smaller.
fn found_twice(
    server: &Server,
    size: &Size,
    load: &[&str],
    goal: &str,
) -> Result<Measured, String> {
    let mut differences = Vec::new();
    let mut rates = Vec::new();
    for _ in 0..size.pairs.min(2) {
        let (one, other) = (find(server, load, goal)?, find(server, load, goal)?);
        differences.push(one.max(other) / one.min(other) - 1.0);
        rates.extend([format!("{one:.0}"), format!("{other:.0}")]);
    }
    let detail = format!("rates: {}", rates.join(", "));
    Ok(Measured { ratio: Spread::of(&differences), detail })
}

/// The rate that a search finds.
fn find(server: &Server, load: &[&str], goal: &str) -> Result<f64, String> {
    let json = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let done = server
        .command(env!("CARGO_BIN_EXE_pgrig").as_ref())
        .args(["bench", "-n", "-M", "prepared", "-j", "1", "-T", "5", "--find-rate", goal])
        .args(load)
        .arg("--json")
        .arg(json.path())
        .output()
        .map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(json.path()).map_err(|error| error.to_string())?;
    let told: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&done.stderr)))?;
    let found = told.pointer("/search/held").and_then(serde_json::Value::as_f64);
    found.ok_or_else(|| format!("no rate was found: {}", String::from_utf8_lossy(&done.stderr)))
}

fn psql(server: &Server, statement: &str) -> Result<(), String> {
    let psql = server.pgbench.with_file_name("psql");
    let done = server
        .command(&psql)
        .args(["-X", "-q", "-d", "postgres", "-c", statement])
        .output()
        .map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}
