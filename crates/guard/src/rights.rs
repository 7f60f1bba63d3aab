//! Rights that the guard's role must have.

use serde::Deserialize;

use server::quote::identifier;

use crate::error::Error;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GrantedRights {
    pub(crate) role: String,
    pub(crate) is_superuser: bool,
    /// Sees all sessions' waits and all settings.
    pub(crate) monitors: bool,
    /// Sees the values in the configuration files.
    pub(crate) reads_files: bool,
    /// May read files of the server. It is not needed: a manager is then found by more traces.
    pub(crate) reads_server_files: bool,
    pub(crate) reloads: bool,
    /// May change the setting and the guard's own mark by ALTER SYSTEM.
    pub(crate) alters: bool,
}

impl GrantedRights {
    /// Checks them; a guard that only says what it would do needs to see and no more, and a status less.
    pub(crate) fn check(&self, major: u32, need: RequiredRight) -> Result<(), Error> {
        if self.is_superuser {
            return Ok(());
        }
        let role = identifier(&self.role);
        let mut missing = Vec::new();
        if !self.monitors {
            let grant = format!("GRANT pg_monitor TO {role};");
            missing.push(("see what other sessions wait for", grant));
        }
        if need != RequiredRight::Status && !self.reads_files {
            let grant = format!("GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO {role};");
            missing.push(("see what the configuration files say", grant));
        }
        if need == RequiredRight::Change && !self.reloads {
            let grant = format!("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {role};");
            missing.push(("reload the configuration", grant));
        }
        if need == RequiredRight::Change && !self.alters {
            let grant = match major {
                15.. => format!(
                    "GRANT ALTER SYSTEM ON PARAMETER synchronous_standby_names, {MARK} TO {role};"
                ),
                // Before, no other role can be given the right to ALTER SYSTEM.
                _ => format!("ALTER ROLE {role} SUPERUSER;"),
            };
            missing.push(("change synchronous_standby_names", grant));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let (words, grants): (Vec<&str>, Vec<String>) = missing.into_iter().unzip();
        let missing = format!("it may not {}", words.join(", nor "));
        Err(Error::Rights { role: self.role.clone(), missing, grants })
    }
}

/// What rights are needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredRight {
    /// To say what is in force.
    Status,
    /// To say what would be done.
    Look,
    /// To change the setting.
    Change,
}

/// The guard's mark in `postgresql.auto.conf`: while the setting is lowered, what was asked for.
pub(crate) const MARK: &str = "pgrig.guard_asked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_grant() {
        let rights = |monitors, reads_files, reloads, alters| GrantedRights {
            role: "g\"d".to_owned(),
            is_superuser: false,
            monitors,
            reads_files,
            reads_server_files: false,
            reloads,
            alters,
        };
        let check = |rights: GrantedRights, major, need, expected: &[&str]| {
            let grants = match rights.check(major, need) {
                Ok(()) => Vec::new(),
                Err(Error::Rights { grants, .. }) => grants,
                Err(other) => panic!("{other}"),
            };
            assert_eq!(grants, expected);
        };
        let monitor = "GRANT pg_monitor TO \"g\"\"d\";";
        let files = "GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO \"g\"\"d\";";
        let reload = "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO \"g\"\"d\";";
        let alter = "GRANT ALTER SYSTEM ON PARAMETER synchronous_standby_names, pgrig.guard_asked \
                     TO \"g\"\"d\";";
        let (all, none) = (rights(true, true, true, true), rights(false, false, false, false));
        check(all, 15, RequiredRight::Change, &[]);
        check(none.clone(), 15, RequiredRight::Change, &[monitor, files, reload, alter]);
        check(none.clone(), 15, RequiredRight::Look, &[monitor, files]);
        check(none.clone(), 15, RequiredRight::Status, &[monitor]);
        let superuser = "ALTER ROLE \"g\"\"d\" SUPERUSER;";
        check(rights(true, true, true, false), 14, RequiredRight::Change, &[superuser]);
        check(GrantedRights { is_superuser: true, ..none }, 10, RequiredRight::Change, &[]);
    }
}
