//! Other managers of a server. A program that promotes a standby by itself takes
//! synchronous_standby_names for its own, and must not meet a primary that commits alone.
//!
//! Limit: a manager that leaves no trace in the server is not seen; that is why the operator has to
//! say that nothing promotes standbys by itself.

use serde::Deserialize;

/// Traces of other managers in a server.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ManagerTraces {
    /// The files that its settings come from.
    pub(crate) files: Vec<String>,
    pub(crate) libraries: String,
    /// Extensions in the database that the guard is connected to.
    pub(crate) extensions: Vec<String>,
    /// The names of the sessions whose roles could manage a server.
    pub(crate) applications: Vec<String>,
    /// Files of managers in the data directory; none where the guard may not look.
    #[serde(default)]
    pub(crate) state_files: Vec<String>,
    /// The comments at the beginning of its configuration file; none where the guard may not read it.
    #[serde(default)]
    pub(crate) comments: Vec<String>,
}

/// Files that managers keep in a data directory.
pub(crate) fn state_files() -> impl Iterator<Item = &'static str> {
    MANAGERS.iter().filter_map(|manager| manager.state_file)
}

/// The manager in charge, and the evidence of it.
pub(crate) fn in_charge(traces: &ManagerTraces) -> Option<(&'static str, String)> {
    MANAGERS.iter().find_map(|manager| Some((manager.name, manager.evidence(traces)?)))
}

struct Manager {
    name: &'static str,
    /// A file that it puts settings into.
    file: Option<&'static str>,
    /// A file that it keeps in the data directory.
    state_file: Option<&'static str>,
    /// Words of the comment at the beginning of the configuration file that it writes, in lower case.
    comment: Option<&'static str>,
    /// A library or an extension.
    part: Option<&'static str>,
    /// Beginning of the names of its sessions.
    application: Option<&'static str>,
}

const MANAGERS: [Manager; 5] = [
    Manager {
        name: "Patroni",
        // Patroni keeps the configuration it has found under this name and includes it.
        file: Some("postgresql.base.conf"),
        state_file: Some("patroni.dynamic.json"),
        comment: Some("overwritten by patroni"),
        part: None,
        application: Some("patroni"),
    },
    Manager {
        name: "pg_auto_failover",
        file: Some("postgresql-auto-failover.conf"),
        state_file: None,
        comment: None,
        part: Some("pgautofailover"),
        application: Some("pgautofailover"),
    },
    Manager {
        name: "repmgr",
        file: None,
        state_file: None,
        comment: None,
        part: Some("repmgr"),
        application: Some("repmgr"),
    },
    Manager {
        name: "CloudNativePG",
        file: None,
        state_file: None,
        comment: None,
        part: None,
        application: Some("cnpg"),
    },
    Manager {
        name: "Pacemaker",
        // The pgsql resource agent's.
        file: Some("rep_mode.conf"),
        state_file: None,
        comment: None,
        part: None,
        application: None,
    },
];

impl Manager {
    fn evidence(&self, traces: &ManagerTraces) -> Option<String> {
        let is_its = |path: &&String| self.file.is_some() && path.rsplit('/').next() == self.file;
        if let Some(file) = traces.files.iter().find(is_its) {
            return Some(format!("settings come from {file}"));
        }
        if let Some(file) = self.state_file
            && traces.state_files.iter().any(|found| found == file)
        {
            return Some(format!("{file} is in the data directory"));
        }
        if let Some(words) = self.comment {
            let is_its = |comment: &&String| comment.to_ascii_lowercase().contains(words);
            if let Some(comment) = traces.comments.iter().find(is_its) {
                return Some(format!("its configuration file says {:?}", comment.trim()));
            }
        }
        if let Some(part) = self.part {
            let mut libraries = traces.libraries.split(',');
            if libraries.any(|library| library.trim().trim_matches('"').ends_with(part)) {
                return Some(format!("{part} is among shared_preload_libraries"));
            }
            if traces.extensions.iter().any(|extension| extension == part) {
                return Some(format!("the extension {part} is installed"));
            }
        }
        let prefix = self.application?;
        let is_its = |name: &&String| name.to_ascii_lowercase().starts_with(prefix);
        let application = traces.applications.iter().find(is_its)?;
        Some(format!("a session is called {application:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_are_seen_by_their_traces() {
        let plain = ManagerTraces {
            files: vec!["/etc/postgresql/15/main/postgresql.conf".into()],
            libraries: "pg_stat_statements, auto_explain".into(),
            extensions: vec!["plpgsql".into()],
            applications: vec!["psql".into(), "standby1".into(), String::new()],
            state_files: Vec::new(),
            comments: vec!["# PostgreSQL configuration file".into()],
        };
        let check = |change: &dyn Fn(&mut ManagerTraces), expected: Option<(&str, &str)>| {
            let mut traces = plain.clone();
            change(&mut traces);
            let found = in_charge(&traces);
            let found = found.as_ref().map(|(name, evidence)| (*name, evidence.as_str()));
            assert_eq!(found, expected);
        };
        check(&|_| (), None);
        let base = "/var/lib/pg/data/postgresql.base.conf";
        check(
            &|traces| traces.files.push(base.into()),
            Some(("Patroni", "settings come from /var/lib/pg/data/postgresql.base.conf")),
        );
        check(
            &|traces| traces.applications.push("Patroni heartbeat".into()),
            Some(("Patroni", "a session is called \"Patroni heartbeat\"")),
        );
        check(
            &|traces| traces.state_files.push("patroni.dynamic.json".into()),
            Some(("Patroni", "patroni.dynamic.json is in the data directory")),
        );
        let comment = "# It will be overwritten by Patroni!";
        check(
            &|traces| traces.comments.push(comment.into()),
            Some((
                "Patroni",
                "its configuration file says \"# It will be overwritten by Patroni!\"",
            )),
        );
        check(
            &|traces| traces.libraries.push_str(", repmgr"),
            Some(("repmgr", "repmgr is among shared_preload_libraries")),
        );
        check(
            &|traces| traces.extensions.push("repmgr".into()),
            Some(("repmgr", "the extension repmgr is installed")),
        );
        check(
            &|traces| traces.applications.push("pgautofailover_standby_2".into()),
            Some(("pg_auto_failover", "a session is called \"pgautofailover_standby_2\"")),
        );
        check(
            &|traces| traces.files.push("/var/lib/pgsql/tmp/rep_mode.conf".into()),
            Some(("Pacemaker", "settings come from /var/lib/pgsql/tmp/rep_mode.conf")),
        );
    }
}
