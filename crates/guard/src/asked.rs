//! The operator's setting, and the mark that keeps it in the server while something weaker is in
//! force.
//!
//! The mark is a parameter of the guard's own, written into `postgresql.auto.conf` by the same
//! `ALTER SYSTEM` and loaded by the same reload as the setting that it explains. So it survives
//! whatever the setting survives (a restart, a crash, a move of the data directory), takes no
//! transaction, is not replicated, and a guard that has lost its files still knows what to restore.

use server::Setting;

use crate::row::Facts;

/// The setting that the operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As it was written.
    pub(crate) text: String,
    pub(crate) setting: Setting,
    pub(crate) origin: Origin,
}

/// Place of the operator's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In `postgresql.auto.conf`: the guard's value replaces it, and is replaced by it.
    AutoConf,
    /// In a file below, or nowhere: the guard's value covers it, and is taken away.
    Below,
}

impl Asked {
    /// The setting that is asked for while `in_force` is. A mark beside something that is not weaker
    /// is a leftover, or another session's decision.
    pub(crate) fn of(facts: &Facts, in_force: Setting) -> Asked {
        match Asked::from_mark(&facts.mark) {
            Some(marked) if marked.setting.levels()[1..].contains(&in_force) => marked,
            _ => Asked::now(&facts.setting, in_force, facts.file.as_deref()),
        }
    }

    /// The setting that is asked for now.
    pub(crate) fn now(text: &str, setting: Setting, file: Option<&str>) -> Asked {
        let is_auto = file.is_some_and(|file| file.ends_with("/postgresql.auto.conf"));
        let origin = if is_auto { Origin::AutoConf } else { Origin::Below };
        Asked { text: text.to_owned(), setting, origin }
    }

    pub(crate) fn from_mark(mark: &str) -> Option<Asked> {
        let (origin, text) = mark.split_once(' ')?;
        let origin = match origin {
            "auto" => Origin::AutoConf,
            "below" => Origin::Below,
            _ => return None,
        };
        Some(Asked { text: text.to_owned(), setting: text.parse().ok()?, origin })
    }

    pub(crate) fn mark(&self) -> String {
        let origin = match self.origin {
            Origin::AutoConf => "auto",
            Origin::Below => "below",
        };
        format!("{origin} {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_what_to_restore_and_how() {
        let check = |text: &str, file: Option<&str>, mark: &str| {
            let asked = Asked::now(text, text.parse().unwrap(), file);
            assert_eq!(asked.mark(), mark);
            assert_eq!(Asked::from_mark(mark), Some(asked));
        };
        check("s1, s2", Some("/data/postgresql.auto.conf"), "auto s1, s2");
        check("ANY 1 (\"a b\")", Some("/etc/postgresql.conf"), "below ANY 1 (\"a b\")");
        assert_eq!(Asked::from_mark("s1"), None);
        assert_eq!(Asked::from_mark("auto s1,,"), None);
        assert_eq!(Asked::from_mark(""), None);
    }
}
