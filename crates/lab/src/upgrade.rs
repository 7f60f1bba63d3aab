//! pg_upgrade: how it gives the new cluster its files, and what it says.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The way in which pg_upgrade gives the new cluster the files of the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeMode {
    /// They are copied.
    Copy,
    /// They are copied by reference, which the file system must be able to do.
    Clone,
    /// They are the same files: of a copy, so that the old cluster stays what it was.
    Link,
}

impl UpgradeMode {
    const ALL: [UpgradeMode; 3] = [UpgradeMode::Copy, UpgradeMode::Clone, UpgradeMode::Link];

    /// `copy`, `clone` or `link`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            UpgradeMode::Copy => "copy",
            UpgradeMode::Clone => "clone",
            UpgradeMode::Link => "link",
        }
    }

    /// The option of pg_upgrade; none for what it does by itself.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            UpgradeMode::Copy => None,
            UpgradeMode::Clone => Some("--clone"),
            UpgradeMode::Link => Some("--link"),
        }
    }
}

impl FromStr for UpgradeMode {
    type Err = String;

    fn from_str(word: &str) -> Result<UpgradeMode, String> {
        let found = UpgradeMode::ALL.into_iter().find(|mode| mode.word() == word);
        found.ok_or_else(|| "expected copy, clone or link".to_owned())
    }
}

/// What pg_upgrade took and said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// Duration of `pg_upgrade --check`, in seconds.
    pub check_s: f64,
    /// Duration of the upgrade, its own check included, in seconds.
    pub upgrade_s: f64,
    /// Warnings of the check, and what it asks for after the upgrade: its lines.
    pub asks: Vec<String>,
}

/// The lines of pg_upgrade's output that ask for something: warnings, and the commands behind the upgrade. `bin` is the
/// folder of the programs in commands.
pub(crate) fn asked(said: &str, bin: &str) -> Vec<String> {
    let end = said.find(COMPLETE).unwrap_or(said.len());
    let (checked, after) = said.split_at(end);
    let warnings = checked.lines().filter(|line| line.trim_end().ends_with("warning"));
    let commands = after.lines().filter(|line| line.starts_with("    ") && !line.contains(DELETE));
    warnings
        .chain(commands)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .map(|line| line.replace(&format!("{bin}/"), ""))
        .filter(|line| !line.is_empty())
        .collect()
}

/// The heading of what pg_upgrade says in the end.
const COMPLETE: &str = "Upgrade Complete";

/// The script that removes the old cluster's files.
const DELETE: &str = "delete_old_cluster";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_from_what_it_says() {
        let check =
            |said: &str, expected: &[&str]| assert_eq!(asked(said, "/opt/18/bin"), expected);
        let of_18 = "Checking for presence of required libraries                   ok\n\
            Checking for extension updates                                notice\n\
            Checking for roles starting with \"pg_\"                      warning\n\
            Upgrade Complete\n----------------\n\
            Some statistics are not transferred by pg_upgrade.\n\
            Once you start the new server, consider running these two commands:\n    \
            /opt/18/bin/vacuumdb --all --analyze-in-stages --missing-stats-only\n    \
            /opt/18/bin/vacuumdb --all --analyze-only\n\
            Running this script will delete the old cluster's data files:\n    ./delete_old_cluster.sh\n";
        check(
            of_18,
            &[
                "Checking for roles starting with \"pg_\" warning",
                "vacuumdb --all --analyze-in-stages --missing-stats-only",
                "vacuumdb --all --analyze-only",
            ],
        );
        check("Checking cluster versions   ok\n", &[]);
    }
}
