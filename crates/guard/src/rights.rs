//! Rights that the guard's role must have.

use serde::Deserialize;

use server::quote::identifier;

use crate::error::Error;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rights {
    pub(crate) role: String,
    pub(crate) is_superuser: bool,
    /// Sees all sessions' waits and all settings' files.
    pub(crate) monitors: bool,
    pub(crate) reloads: bool,
    /// May change the setting and the guard's own mark by ALTER SYSTEM.
    pub(crate) alters: bool,
}

impl Rights {
    /// Checks them; a guard that only says what it would do needs to see and no more.
    pub(crate) fn check(&self, major: u32, only_looks: bool) -> Result<(), Error> {
        if self.is_superuser {
            return Ok(());
        }
        let role = identifier(&self.role);
        let mut missing = Vec::new();
        if !self.monitors {
            let grant = format!("GRANT pg_monitor TO {role};");
            missing.push(("see what other sessions wait for", grant));
        }
        if !only_looks && !self.reloads {
            let grant = format!("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {role};");
            missing.push(("reload the configuration", grant));
        }
        if !only_looks && !self.alters {
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

/// The guard's mark in `postgresql.auto.conf`: while the setting is lowered, what was asked for.
pub(crate) const MARK: &str = "pgrig.guard_asked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_grant() {
        let rights = |monitors, reloads, alters| Rights {
            role: "g\"d".to_owned(),
            is_superuser: false,
            monitors,
            reloads,
            alters,
        };
        let check = |rights: Rights, major, only_looks, expected: &[&str]| {
            let grants = match rights.check(major, only_looks) {
                Ok(()) => Vec::new(),
                Err(Error::Rights { grants, .. }) => grants,
                Err(other) => panic!("{other}"),
            };
            assert_eq!(grants, expected);
        };
        let monitor = "GRANT pg_monitor TO \"g\"\"d\";";
        let reload = "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO \"g\"\"d\";";
        let alter = "GRANT ALTER SYSTEM ON PARAMETER synchronous_standby_names, pgrig.guard_asked \
                     TO \"g\"\"d\";";
        check(rights(true, true, true), 15, false, &[]);
        check(rights(false, false, false), 15, false, &[monitor, reload, alter]);
        check(rights(false, false, false), 15, true, &[monitor]);
        check(rights(true, true, false), 14, false, &["ALTER ROLE \"g\"\"d\" SUPERUSER;"]);
        check(Rights { is_superuser: true, ..rights(false, false, false) }, 10, false, &[]);
    }
}
