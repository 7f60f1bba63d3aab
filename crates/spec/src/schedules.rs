//! Schedules of faults beside study.toml: each is a scenario like the one that it was searched with, with a timeline of
//! its own.
//!
//! They are a file of the folder, `schedules.toml`, so that a record of a search has them and is judged with them, and
//! so that `pgrig run` runs one of them by its name.

use crate::folder::StudyFolder;
use crate::point::PointName;
use crate::problem::{Problems, StudyProblem};
use crate::set::placed;
use crate::value::{self, Is, KeyValue, Table, Value};

impl StudyFolder {
    /// The schedules of a search, if the folder has any.
    pub const SCHEDULES: &'static str = "schedules.toml";

    /// The text of [`StudyFolder::SCHEDULES`]: the point whose scenario they are like, the promises, and each schedule by its
    /// name, with its timeline as [`crate::NemesisPlan::timeline`] writes it.
    pub fn schedules_text<'s>(
        of: &PointName,
        promises: &[String],
        schedules: impl IntoIterator<Item = (&'s str, &'s [String])>,
    ) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let list = promises.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", ");
        let axes = of.axes.iter().map(|(axis, value)| format!("{axis} = {}", quoted(value)));
        let mut text = format!(
            "# Schedules of pgrig search. Each is a scenario: pgrig run FOLDER --only NAME\n\
             variant = {}\nscenario = {}\naxes = {{ {} }}\npromises = [{list}]\n\n[timelines]\n",
            quoted(&of.variant),
            quoted(&of.scenario),
            axes.collect::<Vec<_>>().join(", ")
        );
        for (name, timeline) in schedules {
            let lines = timeline.iter().map(|action| format!("  {action},\n"));
            text += &format!("{name} = [\n{}]\n", lines.collect::<String>());
        }
        text
    }
}

/// Puts the folder's schedules into the table of study.toml, as scenarios, and their promises, as invariants.
pub(crate) fn apply(table: &mut Table, folder: &StudyFolder) -> Vec<StudyProblem> {
    let Some(text) = folder.files.get(StudyFolder::SCHEDULES) else { return Vec::new() };
    let problems = Problems::of(StudyFolder::SCHEDULES);
    let file = value::parse(text, &problems);
    if problems.is_empty() {
        add(table, &file, &problems);
    }
    problems.into_sorted()
}

fn add(table: &mut Table, file: &Table, problems: &Problems) {
    let text = |key: &str| match file.find(key).map(|entry| &entry.value.is) {
        Some(Is::Text(text)) => Some(text.as_str()),
        _ => {
            problems.add(&(0..0), format!("the schedules have no {key}"));
            None
        }
    };
    let (Some(variant), Some(scenario)) = (text("variant"), text("scenario")) else {
        // Said above.
        return;
    };
    let entries = |key: &str| match file.find(key).map(|entry| &entry.value.is) {
        Some(Is::Table(table)) => table.entries.as_slice(),
        _ => &[],
    };
    let promises = match file.find("promises").map(|entry| &entry.value.is) {
        Some(Is::List(list)) => list.as_slice(),
        _ => &[],
    };
    let Some(Value { is: Is::Table(scenarios), .. }) =
        table.entries.iter_mut().find(|entry| entry.key == "scenarios").map(|it| &mut it.value)
    else {
        problems.add(&(0..0), "the study has no scenarios");
        return;
    };
    let Some(Value { is: Is::Table(base), .. }) =
        scenarios.find(scenario).map(|entry| entry.value.clone())
    else {
        problems.add(&(0..0), format!("the study has no scenario \"{scenario}\""));
        return;
    };
    let frame = framed(base, variant, entries("axes"));
    for KeyValue { key, value, .. } in entries("timelines") {
        let mut one = frame.clone();
        one.set(entry("timeline", value.is.clone()));
        one.set(entry("says", Is::Text(key.replace('_', " "))));
        scenarios.set(entry(key, Is::Table(one)));
    }
    let names = entries("timelines").iter().map(|entry| format!("{variant}/{}*", entry.key));
    let names = names.collect::<Vec<_>>().join("|");
    let claims = promises.iter().filter(|_| !names.is_empty()).map(|promise| {
        let says = promise.scalar_text().map(|text| format!("promise: {text}"));
        let claim = [
            entry("says", Is::Text(says.unwrap_or_else(|| "promise".to_owned()))),
            entry("every", promise.is.clone()),
            entry("trials", Is::Text(names.clone())),
            entry("kind", Is::Text("invariant".to_owned())),
        ];
        Value { span: 0..0, is: Is::Table(Table { entries: claim.to_vec() }) }
    });
    let claims: Vec<Value> = claims.collect();
    match table.entries.iter_mut().find(|entry| entry.key == "claims").map(|it| &mut it.value.is) {
        Some(Is::List(list)) => list.extend(claims),
        _ => table.set(entry("claims", Is::List(claims))),
    }
}

/// A scenario for one point of it: one variant, one value of each axis, clients that connect again.
fn framed(mut base: Table, variant: &str, axes: &[KeyValue]) -> Table {
    base.entries.retain(|entry| !["profiles", "phases", "points"].contains(&entry.key.as_str()));
    base.set(entry(
        "variants",
        Is::List(vec![Value { span: 0..0, is: Is::Text(variant.to_owned()) }]),
    ));
    if base.find("on_loss").is_none() {
        base.set(entry("on_loss", Is::Text("reconnect".to_owned())));
    }
    base.set(entry("steady", Is::Bool(false)));
    if let Some(Value { is: Is::Table(over), .. }) =
        base.entries.iter_mut().find(|entry| entry.key == "over").map(|entry| &mut entry.value)
    {
        for axis in &mut over.entries {
            let wanted = axes.iter().find(|one| one.key == axis.key);
            let wanted = wanted.and_then(|one| one.value.scalar_text());
            if let (Is::List(values), Some(wanted)) = (&mut axis.value.is, wanted) {
                values.retain(|value| value.scalar_text().as_ref() == Some(&wanted));
            }
        }
    }
    base
}

fn entry(key: &str, is: Is) -> KeyValue {
    let value = placed(&Value { span: 0..0, is }, &(0..0));
    KeyValue { key: key.to_owned(), key_span: 0..0, value }
}
