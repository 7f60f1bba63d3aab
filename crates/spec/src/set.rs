//! Values that a run puts in the place of those of study.toml, without a copy of the study.
//!
//! They are a file of the folder, `set.toml`, so that a record has them and is judged with them. Each
//! line is a value's name, which is the way to it in study.toml, and the value:
//! `"workloads.login.clients" = 8`.

use std::fmt::Write as _;

use toml::de::DeTable;

use crate::folder::StudyFolder;
use crate::problem::{Problems, StudyProblem, nearest};
use crate::value::{self, Is, KeyValue, Table, Value};

impl StudyFolder {
    /// The values that a run sets, if any are.
    pub const SET: &'static str = "set.toml";

    /// The same folder with these values set, each a name and a value as text: TOML, or else a string.
    /// The later one of the same name holds.
    pub fn with_set(mut self, set: &[(String, String)]) -> StudyFolder {
        if set.is_empty() {
            return self;
        }
        let text = self.files.entry(StudyFolder::SET.to_owned()).or_default();
        for (name, value) in set {
            let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
            let name = quoted(name);
            let is_toml = |value: &str| {
                !value.contains('\n') && DeTable::parse(&format!("v = {value}")).is_ok()
            };
            let value = if is_toml(value) { value.clone() } else { quoted(value) };
            // A name stands once.
            let kept = text.lines().filter(|line| !line.starts_with(&format!("{name} = ")));
            *text = kept.map(|line| format!("{line}\n")).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} = {value}");
        }
        self
    }
}

/// Puts the folder's set values into the table of study.toml. A value that cannot be set is a problem
/// of `set.toml`.
pub(crate) fn apply(table: &mut Table, folder: &StudyFolder) -> Vec<StudyProblem> {
    let Some(text) = folder.files.get(StudyFolder::SET) else { return Vec::new() };
    let problems = Problems::of(StudyFolder::SET);
    let set = value::parse(text, &problems);
    for KeyValue { key, key_span, value } in set.entries {
        if let Err((message, hint)) = put(table, "study.toml", &key, &value, 0..0) {
            match hint {
                Some(hint) => problems.hinted(&key_span, message, hint),
                None => problems.add(&key_span, message),
            }
        }
    }
    problems.into_sorted()
}

/// The set values in words, and how many claims do not fit it; none where nothing is set.
pub(crate) fn note(folder: &StudyFolder, left_out: usize) -> Option<String> {
    let text = folder.files.get(StudyFolder::SET)?;
    let lines = text.lines().map(|line| line.replace('"', "")).collect::<Vec<_>>().join("; ");
    let left_out = match left_out {
        0 => String::new(),
        1 => " One claim of the study does not fit them and is left out.".to_owned(),
        many => format!(" {many} claims of the study do not fit them and are left out."),
    };
    Some(format!("Set for this run, in the place of the study's own values: {lines}.{left_out}"))
}

/// Why a value cannot be set, and the text to write instead.
type Refused = (String, Option<String>);

/// Puts a value where `way` leads, from a table that is called `within`. What it replaces lends it
/// its place in the file, which problems point at.
fn put(
    table: &mut Table,
    within: &str,
    way: &str,
    value: &Value,
    span: std::ops::Range<usize>,
) -> Result<(), Refused> {
    // Names of settings have dots themselves: the longest key that fits is meant.
    let leads = |key: &str| way.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
    let longest = table.keys().filter(|key| *key == way || leads(key)).max_by_key(|key| key.len());
    let Some(key) = longest.map(str::to_owned) else {
        return add(table, within, way, value, span);
    };
    let entry = table.entries.iter_mut().find(|entry| entry.key == key);
    let entry = entry.expect("the key is one of the table's");
    let place = entry.value.span.clone();
    if key == way {
        entry.value = placed(value, &place);
        return Ok(());
    }
    match &mut entry.value.is {
        Is::Table(inner) => put(inner, &key, &way[key.len() + 1..], value, place),
        _ => Err((format!("{key} is {}, and has no values by name", entry.value.kind()), None)),
    }
}

/// Adds a value that the table does not have: a setting by any name, or a field, of which the study
/// says whether there is one.
fn add(
    table: &mut Table,
    within: &str,
    way: &str,
    value: &Value,
    span: std::ops::Range<usize>,
) -> Result<(), Refused> {
    let is_setting = within == "settings";
    if let (Some((first, rest)), false) = (way.split_once('.'), is_setting) {
        if first != "settings" {
            let known: Vec<&str> = table.keys().collect();
            let hint = nearest(first, &known);
            let hint = hint.or_else(|| Some(format!("there is {}", known.join(", "))));
            return Err((format!("{within} has no \"{first}\""), hint));
        }
        let mut settings = Table::default();
        add(&mut settings, first, rest, value, span.clone())?;
        let is = Is::Table(settings);
        let value = Value { span: span.clone(), is };
        table.set(KeyValue { key: first.to_owned(), key_span: span, value });
        return Ok(());
    }
    let value = placed(value, &span);
    table.set(KeyValue { key: way.to_owned(), key_span: span, value });
    Ok(())
}

/// A value whose parts all stand at this place.
pub(crate) fn placed(value: &Value, span: &std::ops::Range<usize>) -> Value {
    let is = match &value.is {
        Is::List(list) => Is::List(list.iter().map(|item| placed(item, span)).collect()),
        Is::Table(table) => {
            let entries = table.entries.iter().map(|entry| KeyValue {
                key: entry.key.clone(),
                key_span: span.clone(),
                value: placed(&entry.value, span),
            });
            Is::Table(Table { entries: entries.collect() })
        }
        scalar => scalar.clone(),
    };
    Value { span: span.clone(), is }
}
