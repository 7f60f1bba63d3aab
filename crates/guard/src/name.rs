//! The name by which a guard's session goes at the server: whoever finds the session finds the guard, and
//! a guard finds a session of its own that a broken connection has left behind.

use std::fmt;

use serde::Deserialize;

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

    /// Reads the `application_name` of a session; none if the session is not a guard's.
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

/// A session that holds a lock of guards.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct LockHolder {
    /// The backend.
    pub(crate) backend: i32,
    pub(crate) application: String,
    pub(crate) role: String,
    /// True if its role may change `synchronous_standby_names`, as each guard's may.
    may_change_setting: bool,
    /// The address that it is connected from.
    pub(crate) from: String,
    pub(crate) since: String,
}

/// The other sessions that hold a lock of guards. Every role can take such a lock and call its session what it
/// wants, so neither makes a guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockHolders {
    /// The first guard.
    pub(crate) guard: Option<LockHolder>,
    /// The first session that is no guard's.
    pub(crate) foreign: Option<LockHolder>,
}

impl LockHolders {
    /// Reads the server's answer, in the order in which the sessions began.
    pub(crate) fn read(text: &str) -> Result<LockHolders, serde_json::Error> {
        let mut holders = LockHolders::default();
        for holder in serde_json::from_str::<Vec<LockHolder>>(text)? {
            let place = if holder.is_guard() { &mut holders.guard } else { &mut holders.foreign };
            place.get_or_insert(holder);
        }
        Ok(holders)
    }
}

impl LockHolder {
    /// The guard's name; none for a session that is no guard's, whatever it calls itself.
    pub(crate) fn name(&self) -> Option<GuardName> {
        self.is_guard().then(|| GuardName::read(&self.application))?
    }

    /// An earlier version of the guard has a shorter name.
    fn is_guard(&self) -> bool {
        self.may_change_setting && self.application.starts_with(APPLICATION)
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "process {} on {}", name.pid, name.host)?,
            None => write!(f, "process {} of the server, role {}", self.backend, self.role)?,
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

    #[test]
    fn a_guard_is_known_by_the_rights_of_its_role_and_not_by_its_words() {
        let name = GuardName::of_process("0123456789abcdef".to_owned()).to_string();
        let row = |backend: i32, application: &str, may_change_setting: bool| {
            serde_json::json!({
                "backend": backend, "application": application, "role": "r", "from": "h",
                "since": "s", "may_change_setting": may_change_setting,
            })
        };
        let check = |rows: &[serde_json::Value], guard: Option<i32>, foreign: Option<i32>| {
            let found = LockHolders::read(&serde_json::json!(rows).to_string()).unwrap();
            let backend = |holder: &Option<LockHolder>| holder.as_ref().map(|one| one.backend);
            assert_eq!((backend(&found.guard), backend(&found.foreign)), (guard, foreign));
        };
        check(&[], None, None);
        check(&[row(1, &name, true)], Some(1), None);
        check(&[row(1, "pgrig guard", true)], Some(1), None);
        check(&[row(1, &name, false)], None, Some(1));
        check(&[row(1, "psql", true)], None, Some(1));
        check(&[row(1, &name, false), row(2, &name, true), row(3, &name, true)], Some(2), Some(1));
        let impostor = LockHolders::read(&serde_json::json!([row(7, &name, false)]).to_string());
        let impostor = impostor.unwrap().foreign.unwrap();
        assert_eq!(
            impostor.to_string(),
            "process 7 of the server, role r, connected from h since s"
        );
        assert_eq!(impostor.name(), None);
    }
}
