//! The operator's setting, and the mark that keeps it in the server while something weaker is in
//! force.
//!
//! The mark is a parameter of the guard's own, written into `postgresql.auto.conf` by the same
//! `ALTER SYSTEM` and loaded by the same reload as the setting that it explains. So it survives
//! whatever the setting survives (a restart, a crash, a move of the data directory), takes no
//! transaction, is not replicated, and a guard that has lost its files still knows what to restore.

use server::{NotASetting, SyncStandbysSetting};

use crate::error::Error;

/// The setting that the operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedSetting {
    /// As it was written.
    pub(crate) text: String,
    pub(crate) setting: SyncStandbysSetting,
    pub(crate) origin: SettingOrigin,
}

/// Place of the operator's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    /// In `postgresql.auto.conf`: the guard's value replaces it, and is replaced by it.
    AutoConf,
    /// In a file below, or nowhere: the guard's value covers it, and is taken away.
    Below,
}

impl SettingOrigin {
    /// True for the file that ALTER SYSTEM writes.
    pub(crate) fn is_auto_conf(file: &str) -> bool {
        file.ends_with("/postgresql.auto.conf")
    }
}

impl RequestedSetting {
    /// The setting that is asked for while `text` is in force and stands in a place of this origin. A
    /// mark beside something that is not weaker is a leftover, or another session's decision.
    pub(crate) fn of(
        text: &str,
        origin: SettingOrigin,
        mark: &str,
    ) -> Result<RequestedSetting, Error> {
        let now = RequestedSetting::now(text, origin)?;
        match RequestedSetting::from_mark(mark) {
            Some(marked) if marked.is_lowered_to(&now.setting) => Ok(marked),
            _ => Ok(now),
        }
    }

    /// The setting that is asked for now.
    ///
    /// # Errors
    /// A text that the guard does not understand.
    pub(crate) fn now(text: &str, origin: SettingOrigin) -> Result<RequestedSetting, Error> {
        Ok(RequestedSetting { text: text.to_owned(), setting: read(text)?, origin })
    }

    /// True if this is weaker than what is asked for, and one of the guard's.
    pub(crate) fn is_lowered_to(&self, setting: &SyncStandbysSetting) -> bool {
        self.setting.levels()[1..].contains(setting)
    }

    pub(crate) fn from_mark(mark: &str) -> Option<RequestedSetting> {
        let (origin, text) = mark.split_once(' ')?;
        let origin = match origin {
            "auto" => SettingOrigin::AutoConf,
            "below" => SettingOrigin::Below,
            _ => return None,
        };
        Some(RequestedSetting { text: text.to_owned(), setting: read(text).ok()?, origin })
    }

    pub(crate) fn mark(&self) -> String {
        let origin = match self.origin {
            SettingOrigin::AutoConf => "auto",
            SettingOrigin::Below => "below",
        };
        format!("{origin} {}", self.text)
    }
}

/// Reads a value of the setting. The server reads the number into 32 bits, and goes by what is left of
/// a greater one.
pub(crate) fn read(text: &str) -> Result<SyncStandbysSetting, Error> {
    let setting: SyncStandbysSetting =
        text.parse().map_err(|_: NotASetting| Error::Setting { text: text.to_owned() })?;
    match i32::try_from(setting.confirmations()) {
        Ok(_) => Ok(setting),
        Err(_) => Err(Error::Setting { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_what_to_restore_and_how() {
        let check = |text: &str, origin: SettingOrigin, mark: &str| {
            let asked = RequestedSetting::now(text, origin).unwrap();
            assert_eq!(asked.mark(), mark);
            assert_eq!(RequestedSetting::from_mark(mark), Some(asked));
        };
        check("s1, s2", SettingOrigin::AutoConf, "auto s1, s2");
        check("ANY 1 (\"a b\")", SettingOrigin::Below, "below ANY 1 (\"a b\")");
        assert_eq!(RequestedSetting::from_mark("s1"), None);
        assert_eq!(RequestedSetting::from_mark("auto s1,,"), None);
        assert_eq!(RequestedSetting::from_mark(""), None);
    }
    #[test]
    fn a_mark_counts_beside_a_weaker_setting_only() {
        let check = |text: &str, mark: &str, expected: &str| {
            let asked = RequestedSetting::of(text, SettingOrigin::AutoConf, mark).unwrap();
            assert_eq!(asked.text, expected);
        };
        check("", "below s1", "s1");
        check("ANY 1 (s1)", "below s1", "s1");
        check("s1", "below s1", "s1");
        check("s2", "below s1", "s2");
        check("s2", "", "s2");
    }

    #[test]
    fn a_text_that_is_not_understood_is_an_error() {
        let check = |text: &str, expected| assert_eq!(read(text).is_ok(), expected, "{text}");
        check("2147483647 (a)", true);
        check("4294967297 (a)", false);
        check("99999999999999999999 (a)", false);
        check("a,,", false);
    }
}
