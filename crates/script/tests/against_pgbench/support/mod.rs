//! What the comparisons with the real pgbench need: where it is, a real server that is thrown
//! away, a server that only listens, and a session that runs our side.

pub(crate) mod listener;
pub(crate) mod postgres;
pub(crate) mod session;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Where PostgreSQL's programs are: `pg_config` on PATH, or the newest that Debian has installed.
static BIN: LazyLock<PathBuf> = LazyLock::new(|| {
    let configured = Command::new("pg_config")
        .arg("--bindir")
        .output()
        .ok()
        .map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned()));
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<(u32, PathBuf)> = debian
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    installed.sort();
    configured
        .into_iter()
        .chain(installed.into_iter().rev().map(|(_, bin)| bin))
        .find(|bin| bin.join("pgbench").exists() && bin.join("initdb").exists())
        .expect(
            "these tests compare with the real pgbench and need PostgreSQL 15 or later: \
             install postgresql and postgresql-contrib, or put pg_config on PATH",
        )
});

/// A program of PostgreSQL.
pub(crate) fn program(name: &str) -> PathBuf {
    BIN.join(name)
}

/// pgbench, connecting through the socket in `directory`.
pub(crate) fn pgbench(directory: &Path) -> Command {
    let mut command = Command::new(program("pgbench"));
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env("PGHOST", directory)
        .env("PGPORT", "5432")
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres")
        .current_dir(directory)
        .arg("-n");
    command
}

/// Run to the end.
pub(crate) fn finish(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

/// What `debug()` printed, without its `debug(script=…,command=…): `.
pub(crate) fn debugged(output: &Output) -> Vec<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines = stderr.lines().filter(|line| line.starts_with("debug(script="));
    lines.filter_map(|line| Some(line.split_once("): ")?.1.to_owned())).collect()
}

/// The first error and what belongs to it, without `pgbench: error: `.
pub(crate) fn first_error(output: &Output) -> Option<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let start = stderr.find("pgbench: error: ")?;
    let rest = &stderr[start + "pgbench: error: ".len()..];
    let end = rest.find("\npgbench: ").unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('\n').to_owned())
}
