//! The name by which a guard's session goes at the server: whoever finds the session finds the guard, and
//! a guard finds a session of its own that a broken connection has left behind.

use std::fmt;

/// Name of a guard's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuardName {
    /// Random, and kept in the state directory, which one process at a time has.
    pub(crate) id: String,
    /// The guard's process.
    pub(crate) pid: u32,
    /// The guard's machine.
    pub(crate) host: String,
}

impl GuardName {
    /// The name of this process.
    pub(crate) fn of_process(id: String) -> GuardName {
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        let is_plain = |c: &char| c.is_ascii_graphic();
        let host = host.chars().filter(is_plain).take(HOST_MAX).collect();
        GuardName { id, pid: std::process::id(), host }
    }

    /// Reads the `application_name` of a session; none if it is none of a guard's.
    pub(crate) fn read(application: &str) -> Option<GuardName> {
        let (id, process) = application.strip_prefix(APPLICATION)?.trim().split_once(' ')?;
        let (pid, host) = process.split_once('@')?;
        Some(GuardName { id: id.to_owned(), pid: pid.parse().ok()?, host: host.to_owned() })
    }

    /// True if it is a guard of the same state directory, which is gone if this one is there.
    pub(crate) fn precedes(&self, newer: &GuardName) -> bool {
        (&self.id, &self.host) == (&newer.id, &newer.host)
    }
}

/// As the `application_name`, of which the server keeps 63 bytes.
impl fmt::Display for GuardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{APPLICATION} {} {}@{}", self.id, self.pid, self.host)
    }
}

/// The session that holds a guard's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockHolder {
    /// Its backend.
    pub(crate) backend: i32,
    pub(crate) application: String,
    /// The address that it is connected from.
    pub(crate) from: String,
    pub(crate) since: String,
}

impl LockHolder {
    pub(crate) fn name(&self) -> Option<GuardName> {
        GuardName::read(&self.application)
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "process {} on {}", name.pid, name.host)?,
            None => write!(f, "process {} of the server", self.backend)?,
        }
        write!(f, ", connected from {} since {}", self.from, self.since)
    }
}

/// The first words of every name; a session that only looks has no more.
pub(crate) const APPLICATION: &str = "pgrig guard";

const HOST_MAX: usize = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_from_the_session_and_fits() {
        let name = GuardName::of_process("0123456789abcdef".to_owned());
        assert_eq!(GuardName::read(&name.to_string()), Some(name.clone()));
        let long = GuardName { host: "h".repeat(HOST_MAX), pid: u32::MAX, ..name.clone() };
        assert!(long.to_string().len() <= 63, "{long}");
        for other in ["pgrig guard", "psql", "pgrig guard a b", "pgrig guard a 1"] {
            assert_eq!(GuardName::read(other), None, "{other}");
        }
        let check = |other: GuardName, expected| assert_eq!(other.precedes(&name), expected);
        check(GuardName { pid: 1, ..name.clone() }, true);
        check(GuardName { id: "f".to_owned(), ..name.clone() }, false);
        check(GuardName { host: "other".to_owned(), ..name.clone() }, false);
    }
}
