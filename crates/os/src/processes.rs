//! The process table, read from a mounted `/proc`: who is whose child, in which state, at work in
//! which directory.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::proc_files;

/// One row of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    /// The process id, as the mounted `/proc` counts.
    pub pid: i32,
    /// The parent's process id.
    pub parent: i32,
    /// The state's letter: R, S, D, T (stopped), Z (ended, not reaped) and so on.
    pub state: char,
}

impl ProcessRow {
    /// True if it has ended and only waits to be reaped.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// True if it is stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// True if it waits for something that only a fatal signal may interrupt, or none.
    pub fn is_uninterruptible(&self) -> bool {
        self.state == 'D'
    }

    /// The directory it works in, where this process may know it.
    pub fn directory(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// True if it works in `directory` or below it.
    pub fn is_under(&self, directory: &Path) -> bool {
        self.directory().is_some_and(|own| own.starts_with(directory))
    }
}

/// Every process that `/proc` shows now.
///
/// # Errors
/// The system's error of listing `/proc`; a process that ends meanwhile is left out.
pub fn all() -> io::Result<Vec<ProcessRow>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        processes.extend(of(pid));
    }
    Ok(processes)
}

/// The process `pid`, if there is one.
pub fn of(pid: i32) -> Option<ProcessRow> {
    parse_stat(&proc_files::read(&format!("{pid}/stat")).ok()?)
}

/// True if a process has mapped this file, as a program does with its libraries.
pub fn has_mapped(pid: i32, file: &Path) -> io::Result<bool> {
    let maps = proc_files::read(&format!("{pid}/maps"))?;
    // The path is the sixth word, and may have spaces.
    Ok(maps.lines().any(|line| line.find('/').is_some_and(|at| Path::new(&line[at..]) == file)))
}

/// `root` and everything descended from it, parents before children.
pub fn tree(processes: &[ProcessRow], root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut seen = HashSet::from([root]);
    let mut order = vec![root];
    let mut next = 0;
    while let Some(&pid) = order.get(next) {
        next += 1;
        for &child in children.get(&pid).map_or(&[][..], Vec::as_slice) {
            if seen.insert(child) {
                order.push(child);
            }
        }
    }
    order
}

/// Kills everything descended from this process that runs a program of this name (SIGKILL), and returns
/// how many processes that were.
pub fn kill_descendants(name: &str) -> io::Result<usize> {
    let table = all()?;
    let own = std::process::id().cast_signed();
    let is_it = |pid: &i32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        *pid != own && comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    let pids = tree(&table, own).into_iter().filter(is_it);
    let kill = |pid: i32| {
        let pid = rustix::process::Pid::from_raw(pid)?;
        // One that has ended meanwhile needs nothing.
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok()
    };
    Ok(pids.filter_map(kill).count())
}

/// The id by which this process sees the child of `parent` that calls itself `inner` in its own
/// PID namespace (the last `NSpid` of its status file); `None` while there is none.
pub fn outer_pid(parent: i32, inner: i32) -> Option<i32> {
    let processes = all().ok()?;
    processes.iter().filter(|process| process.parent == parent).map(|process| process.pid).find(
        |pid| {
            fs::read_to_string(format!("/proc/{pid}/status"))
                .is_ok_and(|status| innermost_pid(&status) == Some(inner))
        },
    )
}

/// Field 2 of `/proc/PID/stat` may contain anything, so what follows is counted from its last `)`.
fn parse_stat(stat: &str) -> Option<ProcessRow> {
    let (pid, rest) = stat.split_once(' ')?;
    let (_, fields) = rest.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(ProcessRow { pid: pid.parse().ok()?, parent, state })
}

fn innermost_pid(status: &str) -> Option<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_parse_whatever_the_command_is_called() {
        let check = |stat, expected| assert_eq!(parse_stat(stat), expected, "{stat}");
        let process = |pid, parent, state| Some(ProcessRow { pid, parent, state });
        check("12 (postgres) S 1 12 12 0 -1", process(12, 1, 'S'));
        check("12 (a) b (c)) T 7 12 12 0 -1", process(12, 7, 'T'));
        check("12 (postgres)", None);
        check("", None);
    }

    #[test]
    fn a_tree_is_everything_below_its_root() {
        let row = |pid, parent| ProcessRow { pid, parent, state: 'S' };
        let table = [row(1, 0), row(5, 1), row(6, 5), row(7, 6), row(8, 1)];
        assert_eq!(tree(&table, 5), [5, 6, 7]);
        assert_eq!(tree(&table, 9), [9]);
    }

    #[test]
    fn the_innermost_pid_is_the_last_one() {
        assert_eq!(innermost_pid("Name:\tx\nNSpid:\t4711\t12\nx"), Some(12));
        assert_eq!(innermost_pid("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = of(std::process::id().cast_signed()).unwrap();
        assert!(all().unwrap().iter().any(|process| process.pid == own.pid));
        assert!(own.is_under(&std::env::current_dir().unwrap()));
    }
}
