//! The two clients that are compared: psql with one libpq or another, and the rig.

use std::path::{Path, PathBuf};
use std::process::Command;

use server::Limits;

use crate::door::Door;

/// How a client left: not let in, or let in and on what channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Refused,
    Plain,
    Tls,
}

/// psql, and the libpq that it runs with.
pub(crate) struct Psql {
    pub(crate) name: &'static str,
    program: PathBuf,
    libraries: Option<PathBuf>,
    /// True if it knows the keywords of PostgreSQL 16 and 17.
    pub(crate) is_new: bool,
}

/// The psql of this machine with its own libpq, and the same with the newest one, where the set-up has
/// brought that.
pub(crate) fn all_psql() -> Vec<Psql> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/psql")))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    let program = found.pop().expect("psql is installed");
    let major: u32 =
        program.iter().nth(4).and_then(|part| part.to_str()?.parse().ok()).unwrap_or(0);
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/libpq/psycopg_binary.libs/libpq.so.5");
    let own = Psql { name: "own", program: program.clone(), libraries: None, is_new: major >= 17 };
    let newest = bundled.exists().then(|| Psql {
        name: "newest",
        program,
        libraries: bundled.parent().map(Path::to_owned),
        is_new: true,
    });
    [Some(own), newest].into_iter().flatten().collect()
}

impl Psql {
    /// Connects: whether it was let in, and what it said.
    pub(crate) fn connect(&self, conninfo: &str, home: &Path) -> (bool, String) {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", home).env("LC_ALL", "C");
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let output = command.args(["-XAt", "-c", "\\q", conninfo]).output().expect("psql runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Connects as a command of the rig does.
pub(crate) fn connect_rig(conninfo: &str) -> (bool, String) {
    let conninfo = match server::own_conninfo(conninfo) {
        Ok(conninfo) => conninfo,
        Err(error) => return (false, error.to_string()),
    };
    match server::connect(&conninfo, &Limits::of_questions()) {
        Ok(client) => {
            client.close();
            (true, String::new())
        }
        Err(error) => (false, error.to_string()),
    }
}

/// What a door saw of a client that was let in or not.
pub(crate) fn outcome(door: &Door, is_in: bool) -> Outcome {
    match (is_in, door.take_logins().last()) {
        (true, Some(true)) => Outcome::Tls,
        (true, Some(false)) => Outcome::Plain,
        _ => Outcome::Refused,
    }
}
