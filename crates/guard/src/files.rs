//! The setting as it stands in the server's configuration files: what the next reload puts in force.
//!
//! A person may have edited `postgresql.conf` below a value of the guard's, which hides the edit, or
//! have called ALTER SYSTEM without a reload, which the guard's own would overwrite. Both stand here.

use serde::Deserialize;
use server::SyncStandbysSetting;

use crate::asked::{self, RequestedSetting, SettingOrigin};
use crate::manager::ManagerTraces;
use crate::rights::MARK;

/// Values of the setting in the files, as `pg_show_all_file_settings()` shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// In `postgresql.conf` or a file that it includes.
    pub(crate) below: Option<FileValue>,
    /// In `postgresql.auto.conf`, which ALTER SYSTEM writes.
    pub(crate) auto: Option<FileValue>,
    /// The guard's mark; empty without one.
    pub(crate) mark: String,
    /// Why a reload would not put the setting of the files in force.
    pub(crate) fault: Option<String>,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileValue {
    pub(crate) text: String,
    /// The file and the line.
    pub(crate) place: String,
}

impl FileValue {
    /// A value that ALTER SYSTEM has written.
    pub(crate) fn of_alter_system(text: &str) -> FileValue {
        FileValue { text: text.to_owned(), place: "postgresql.auto.conf".to_owned() }
    }
}

/// Difference between the files that a guard knows and those that it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// None that matters.
    Nothing,
    /// A person has set this, which is to be in force.
    Person {
        text: String,
        /// The file and the line; none where the setting has been removed.
        place: Option<String>,
        origin: SettingOrigin,
        /// A value of the guard's hides it.
        is_hidden: bool,
    },
    /// Another guard has lowered the setting, and has left its mark.
    Guard,
}

#[derive(Deserialize)]
struct Answer {
    /// False if an error makes a reload skip all files.
    is_applied: bool,
    rows: Vec<Row>,
    traces: ManagerTraces,
}

#[derive(Deserialize)]
struct Row {
    file: Option<String>,
    line: Option<i32>,
    /// In lower case.
    name: Option<String>,
    value: Option<String>,
    /// False for one that a later one covers, which the server does not check.
    applied: bool,
    error: Option<String>,
}

impl Row {
    fn place(&self) -> String {
        let file = self.file.as_deref().unwrap_or("an unknown file");
        self.line.map_or_else(|| file.to_owned(), |line| format!("{file}, line {line}"))
    }

    /// True for the setting, with a value that the server takes.
    fn is_valid(&self) -> bool {
        let is_read = || self.value.as_deref().is_some_and(|text| asked::read(text).is_ok());
        self.error.is_none() && (self.applied || is_read())
    }

    fn is_auto(&self) -> bool {
        self.file.as_deref().is_some_and(SettingOrigin::is_auto_conf)
    }
}

impl Files {
    /// Reads the server's answer.
    pub(crate) fn read(text: &str) -> Result<(Files, ManagerTraces), String> {
        let answer: Answer = serde_json::from_str(text).map_err(|why| why.to_string())?;
        let is_setting = |row: &&Row| row.name.as_deref() == Some(SETTING);
        let value = |is_auto: bool| {
            let mut valid = answer.rows.iter().filter(is_setting).filter(|row| row.is_valid());
            let last = valid.rfind(|row| row.is_auto() == is_auto)?;
            Some(FileValue { text: last.value.clone()?, place: last.place() })
        };
        let marks = answer.rows.iter().filter(|row| row.name.as_deref() == Some(MARK));
        let mark = marks.filter_map(|row| row.value.clone()).next_back();
        let is_fault = |row: &&Row| match is_setting(row) {
            true => !row.is_valid(),
            false => !answer.is_applied && row.error.is_some(),
        };
        let mut fault = answer.rows.iter().filter(is_fault).map(|row| {
            let error = row.error.as_deref().unwrap_or("the server does not take this value");
            format!("{}: {error}", row.place())
        });
        let files = Files {
            below: value(false),
            auto: value(true),
            mark: mark.unwrap_or_default(), // As the server shows a parameter that nothing sets.
            fault: fault.next_back(),
        };
        Ok((files, answer.traces))
    }

    /// The value that a reload puts in force; none where nothing sets it.
    pub(crate) fn pending(&self) -> Option<&FileValue> {
        self.auto.as_ref().or(self.below.as_ref())
    }

    pub(crate) fn origin(&self) -> SettingOrigin {
        if self.auto.is_some() { SettingOrigin::AutoConf } else { SettingOrigin::Below }
    }

    /// What has happened to the files that `self` was before. A guard that only looks (`is_in_charge` is
    /// false) sees the work of one that is in charge.
    pub(crate) fn edit(&self, now: &Files, is_in_charge: bool) -> Edit {
        if now.fault.is_some() {
            return Edit::Nothing;
        }
        let text = |value: &Option<FileValue>| value.as_ref().map(|value| value.text.clone());
        let person = |value: Option<&FileValue>, origin, is_hidden| Edit::Person {
            text: value.map_or_else(String::new, |value| value.text.clone()),
            place: value.map(|value| value.place.clone()),
            origin,
            is_hidden,
        };
        let is_rewritten = text(&self.auto) != text(&now.auto);
        let is_guards = self.mark != now.mark || (is_rewritten && !is_in_charge);
        if is_guards && now.hides().is_some() {
            return Edit::Guard;
        }
        if is_rewritten {
            return person(now.pending(), now.origin(), false);
        }
        match (text(&self.below) != text(&now.below), now.hides()) {
            (false, _) => Edit::Nothing,
            (true, Some(asked)) if asked.origin == SettingOrigin::Below => {
                person(now.below.as_ref(), SettingOrigin::Below, true)
            }
            // ALTER SYSTEM's covers it, as it would without a guard.
            (true, _) if now.auto.is_some() => Edit::Nothing,
            (true, _) => person(now.below.as_ref(), SettingOrigin::Below, false),
        }
    }

    /// An edit below a value that an earlier guard has left: the mark tells what stood there.
    pub(crate) fn edit_since_mark(&self) -> Edit {
        let Some(asked) = self.hides().filter(|asked| asked.origin == SettingOrigin::Below) else {
            return Edit::Nothing;
        };
        let below = Some(FileValue { text: asked.text, place: String::new() });
        let then = Files { below: below.filter(|value| !value.text.is_empty()), ..self.clone() };
        then.edit(self, true)
    }

    /// The operator's setting, where the value in `postgresql.auto.conf` is a lowered one.
    fn hides(&self) -> Option<RequestedSetting> {
        let in_force: SyncStandbysSetting = self.auto.as_ref()?.text.parse().ok()?;
        RequestedSetting::from_mark(&self.mark).filter(|asked| asked.is_lowered_to(&in_force))
    }
}

/// The name of the setting.
const SETTING: &str = "synchronous_standby_names";

#[cfg(test)]
mod tests {
    use super::*;

    fn files(below: Option<&str>, auto: Option<&str>, mark: &str) -> Files {
        let at = |place: &str| {
            let place = place.to_owned();
            move |text: &str| FileValue { text: text.to_owned(), place }
        };
        Files {
            below: below.map(at("/c/postgresql.conf, line 7")),
            auto: auto.map(at("/c/postgresql.auto.conf, line 3")),
            mark: mark.to_owned(),
            fault: None,
        }
    }

    #[test]
    fn an_edit_is_told_from_what_a_guard_has_written() {
        let (below, auto) = (SettingOrigin::Below, SettingOrigin::AutoConf);
        let check = |known: &Files, now: &Files, expected: Option<(&str, SettingOrigin, bool)>| {
            let found = match known.edit(now, true) {
                Edit::Person { text, origin, is_hidden, .. } => Some((text, origin, is_hidden)),
                Edit::Nothing => None,
                Edit::Guard => panic!("{now:?}"),
            };
            let expected = expected.map(|(text, origin, hid)| (text.to_owned(), origin, hid));
            assert_eq!(found, expected, "{known:?} {now:?}");
        };
        let plain = files(Some("a"), None, "");
        check(&plain, &plain, None);
        check(&plain, &files(Some("b"), None, ""), Some(("b", below, false)));
        check(&plain, &files(None, None, ""), Some(("", below, false)));
        check(&plain, &files(Some("a"), Some("b"), ""), Some(("b", auto, false)));
        // While the guard's value covers the file's.
        let lowered = files(Some("a"), Some(""), "below a");
        check(&lowered, &lowered, None);
        check(&lowered, &files(Some("b"), Some(""), "below a"), Some(("b", below, true)));
        check(&lowered, &files(None, Some(""), "below a"), Some(("", below, true)));
        check(&lowered, &files(Some("a"), Some("b"), "below a"), Some(("b", auto, false)));
        check(&lowered, &files(Some("a"), None, ""), Some(("a", below, false)));
        // An edit that ALTER SYSTEM's value covers with or without a guard.
        let system = files(Some("a"), Some("s"), "");
        check(&system, &files(Some("b"), Some("s"), ""), None);
        let lowered = files(Some("a"), Some(""), "auto s");
        check(&lowered, &files(Some("b"), Some(""), "auto s"), None);
        // A file that cannot be read says nothing.
        let fault = Some("line 3: syntax error".to_owned());
        check(&plain, &Files { fault, ..files(None, None, "") }, None);
        // Another guard's work.
        let guards = files(Some("a"), Some(""), "below a");
        assert_eq!(plain.edit(&guards, true), Edit::Guard);
        let raised = files(Some("a"), Some("ANY 1 (a)"), "below a");
        assert_eq!(guards.edit(&raised, false), Edit::Guard);
        assert!(matches!(guards.edit(&raised, true), Edit::Person { .. }));
    }

    #[test]
    fn an_edit_below_a_value_that_was_left_is_found() {
        let check = |now: Files, expected: Option<&str>| {
            let found = match now.edit_since_mark() {
                Edit::Person { text, is_hidden: true, .. } => Some(text),
                _ => None,
            };
            assert_eq!(found.as_deref(), expected, "{now:?}");
        };
        check(files(Some("a"), None, ""), None);
        check(files(Some("a"), Some(""), "below a"), None);
        check(files(Some("b"), Some(""), "below a"), Some("b"));
        check(files(None, Some(""), "below a"), Some(""));
        check(files(Some("b"), Some(""), "auto a"), None);
        check(files(Some("b"), Some("c"), "below a"), None);
    }

    #[test]
    fn the_last_value_of_each_place_counts() {
        let row = |file: &str, line: u32, name: &str, value: &str, error: &str| {
            let error = if error.is_empty() { "null".to_owned() } else { format!("{error:?}") };
            let applied = !value.contains(",,");
            format!(
                r#"{{"file":"/c/{file}","line":{line},"name":{name:?},"value":{value:?},
                "applied":{applied},"error":{error}}}"#
            )
        };
        let check = |rows: &[String], is_applied: bool, expected: &Files| {
            let traces = r#"{"files":[],"libraries":"","extensions":[],"applications":[]}"#;
            let rows = rows.join(",");
            let answer =
                format!(r#"{{"is_applied":{is_applied},"rows":[{rows}],"traces":{traces}}}"#);
            assert_eq!(&Files::read(&answer).unwrap().0, expected, "{answer}");
        };
        let conf = "postgresql.conf";
        let rows = [
            row(conf, 3, SETTING, "x", ""),
            row(conf, 7, SETTING, "a", ""),
            row("postgresql.auto.conf", 2, MARK, "below a", ""),
            row("postgresql.auto.conf", 3, SETTING, "", ""),
        ];
        check(&rows, true, &files(Some("a"), Some(""), "below a"));
        check(&[], true, &Files::default());
        let wrong = "setting could not be applied";
        let fault = Some(format!("/c/postgresql.conf, line 9: {wrong}"));
        let rows = [row(conf, 7, SETTING, "a", ""), row(conf, 9, SETTING, "a,,", wrong)];
        check(&rows, true, &Files { fault, ..files(Some("a"), None, "") });
        // One that ALTER SYSTEM's value covers is not checked by the server.
        let fault =
            Some("/c/postgresql.conf, line 9: the server does not take this value".to_owned());
        let auto = "postgresql.auto.conf";
        let rows = [row(conf, 9, SETTING, "a,,", ""), row(auto, 3, SETTING, "b", "")];
        check(&rows, true, &Files { fault, ..files(None, Some("b"), "") });
        // An error of another parameter matters only if it stops the reload.
        let rows = [row(conf, 7, SETTING, "a", ""), row(conf, 9, "port", "1", wrong)];
        check(&rows, true, &files(Some("a"), None, ""));
        let fault = Some(format!("/c/postgresql.conf, line 9: {wrong}"));
        check(&rows, false, &Files { fault, ..files(Some("a"), None, "") });
    }
}
