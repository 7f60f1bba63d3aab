//! The servers of a run, as somebody sees them who has nothing to do with the rig: processes, files,
//! sockets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};

/// A server that runs below a process.
#[derive(Clone, Debug)]
pub(crate) struct Victim {
    pub(crate) postmaster: i32,
    /// Its data directory as this process may open it, whatever is mounted where.
    pub(crate) data: PathBuf,
}

/// One row of the process table.
struct Row {
    parent: i32,
    name: String,
}

fn table() -> BTreeMap<i32, Row> {
    let mut table = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((before, after)) = stat.rsplit_once(") ") else { continue };
        let name = before.split_once('(').map_or("", |(_, name)| name).to_owned();
        let parent = after.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
        table.insert(pid, Row { parent, name });
    }
    table
}

/// Every server below this process.
pub(crate) fn victims(root: i32) -> Vec<Victim> {
    let table = table();
    let is_below = |pid: i32| {
        let mut at = pid;
        while let Some(row) = table.get(&at) {
            if row.parent == root {
                return true;
            }
            at = row.parent;
        }
        false
    };
    let is_postgres = |pid: &i32| table.get(pid).is_some_and(|row| row.name == "postgres");
    let postmasters =
        table.iter().filter(|(pid, row)| is_postgres(pid) && !is_postgres(&row.parent));
    let victims = postmasters.filter(|(pid, _)| is_below(**pid)).filter_map(|(pid, _)| {
        let data = PathBuf::from(format!("/proc/{pid}/cwd"));
        data.join("PG_VERSION").exists().then_some(Victim { postmaster: *pid, data })
    });
    victims.collect()
}

impl Victim {
    /// Its processes whose title begins so, behind `postgres: `.
    pub(crate) fn processes(&self, title: &str) -> Vec<i32> {
        let children = table().into_iter().filter(|(_, row)| row.parent == self.postmaster);
        let has_title = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            // `postgres: CLUSTER: TITLE`.
            let rest = line.strip_prefix("postgres: ").unwrap_or_default();
            let rest = rest.split_once(": ").map_or(rest, |(_, rest)| rest);
            !rest.is_empty() && rest.starts_with(title)
        };
        children.map(|(pid, _)| pid).filter(has_title).collect()
    }

    /// Its clients' processes, the rig's own left out as far as they idle.
    pub(crate) fn backends(&self) -> Vec<i32> {
        self.processes("postgres ")
    }

    /// A session on its socket, as the superuser.
    pub(crate) fn connect(&self) -> Option<Client> {
        let (directory, port) = self.socket()?;
        let place = format!("host={} port={port} user=postgres", directory.display());
        Client::connect(&place, NoTls).ok()
    }

    /// The directory of its socket, and its port.
    pub(crate) fn socket(&self) -> Option<(PathBuf, u16)> {
        let text = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = text.lines().collect();
        let directory = lines.get(4).filter(|directory| !directory.is_empty())?;
        Some((Path::new(directory).to_owned(), lines.get(3)?.parse().ok()?))
    }

    pub(crate) fn is_primary(&self) -> bool {
        !self.data.join("standby.signal").exists()
    }
}

pub(crate) fn signal(pid: i32, signal: Signal) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}
