//! What the comparisons with the real pgbench need: where it is, a real server that is thrown
//! away, a server that only listens, and a session that runs our side.

pub(crate) mod listener;
pub(crate) mod session;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, Weak};

use lab::{Lab, Node};
use testing::servers;

/// A running server that listens on a Unix socket only.
pub(crate) struct Postgres {
    pub(crate) node: Node,
    _lab: Lab,
}

impl Postgres {
    /// The server that all tests of this process share.
    pub(crate) fn shared() -> Arc<Postgres> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        servers::shared(&SHARED, || {
            let (node, lab) = servers::server(&[("fsync", "off"), ("shared_buffers", "16MB")]);
            Postgres { node, _lab: lab }
        })
    }

    /// The directory of its socket.
    pub(crate) fn directory(&self) -> PathBuf {
        servers::socket_directory(&self.node)
    }
}

/// pgbench, connecting through the socket in `directory`.
pub(crate) fn pgbench(directory: &Path) -> Command {
    let mut command = Command::new(servers::installation().program("pgbench"));
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
