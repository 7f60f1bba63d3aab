//! study.toml as a tree in which every value knows where it stands.
//!
//! The tree is read in three steps: TOML → values, per-profile values → the profile's own, and,
//! for each point, `{axis}` → the axis's value. Only then are values given their types, so
//! "anywhere" needs no rule of its own in any type.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::problem::Problems;
use crate::profile::StudyProfile;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) span: Range<usize>,
    pub(crate) is: Is,
}

/// Content of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Is {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Value>),
    Table(Table),
}

/// A table, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) entries: Vec<KeyValue>,
}

/// One key of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Value,
}

impl Table {
    pub(crate) fn find(&self, key: &str) -> Option<&KeyValue> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.key.as_str())
    }

    /// Sets a key, replacing what it had.
    pub(crate) fn set(&mut self, entry: KeyValue) {
        match self.entries.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl Value {
    /// Name of the value's kind, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match self.is {
            Is::Text(_) => "a string",
            Is::Integer(_) => "an integer",
            Is::Float(_) => "a number",
            Is::Bool(_) => "true or false",
            Is::List(_) => "a list",
            Is::Table(_) => "a table",
        }
    }

    /// A scalar as a PostgreSQL setting, a variable or an axis writes it.
    pub(crate) fn scalar_text(&self) -> Option<String> {
        match &self.is {
            Is::Text(text) => Some(text.clone()),
            Is::Integer(n) => Some(n.to_string()),
            Is::Float(x) => Some(x.to_string()),
            Is::Bool(true) => Some("on".to_owned()),
            Is::Bool(false) => Some("off".to_owned()),
            Is::List(_) | Is::Table(_) => None,
        }
    }
}

/// Reads the text; every syntax error becomes a problem.
pub(crate) fn parse(text: &str, problems: &Problems) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        problems.add(&span, error.message());
    }
    from_table(table.get_ref(), problems)
}

fn from_table(table: &DeTable<'_>, problems: &Problems) -> Table {
    let mut entries: Vec<KeyValue> = table
        .iter()
        .map(|(key, value)| KeyValue {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            value: from_value(value, problems),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Table { entries }
}

fn from_value(value: &Spanned<DeValue<'_>>, problems: &Problems) -> Value {
    let span = value.span();
    let is = match value.get_ref() {
        DeValue::String(text) => Is::Text(text.to_string()),
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Is::Integer(n),
            Err(_) => {
                problems.add(&span, "integer out of range");
                Is::Integer(0)
            }
        },
        DeValue::Float(x) => match x.as_str().parse::<f64>() {
            Ok(x) if x.is_finite() => Is::Float(x),
            _ => {
                problems.add(&span, "not a finite number");
                Is::Float(0.0)
            }
        },
        DeValue::Boolean(b) => Is::Bool(*b),
        DeValue::Datetime(_) => {
            problems.add(&span, "a study has no use for a date");
            Is::Text(String::new())
        }
        DeValue::Array(list) => {
            Is::List(list.iter().map(|value| from_value(value, problems)).collect())
        }
        DeValue::Table(table) => Is::Table(from_table(table, problems)),
    };
    Value { span, is }
}

/// Replaces every per-profile value by the profile's own.
///
/// A table whose keys are all profile names is a per-profile value, except where keys are names
/// that the author gives: a variant may be called `full`.
pub(crate) fn choose_profile(table: &Table, profile: StudyProfile, problems: &Problems) -> Table {
    choose_in_table(table, profile, problems, &[])
}

fn choose_in_table(
    table: &Table,
    profile: StudyProfile,
    problems: &Problems,
    path: &[&str],
) -> Table {
    let entries = table.entries.iter().map(|entry| {
        let path: Vec<&str> = path.iter().copied().chain([entry.key.as_str()]).collect();
        KeyValue { value: choose(&entry.value, profile, problems, &path), ..entry.clone() }
    });
    Table { entries: entries.collect() }
}

fn choose(value: &Value, profile: StudyProfile, problems: &Problems, path: &[&str]) -> Value {
    let is = match &value.is {
        Is::Table(table) if is_per_profile(table) && !holds_names(path) => {
            // What a study does not shorten for the small machine is as large as printed.
            let full = || {
                (profile == StudyProfile::Published).then(|| table.find(StudyProfile::Full.name()))
            };
            return match table.find(profile.name()).or_else(|| full().flatten()) {
                Some(entry) => choose(&entry.value, profile, problems, path),
                None => {
                    problems.hinted(
                        &value.span,
                        format!("no value for profile {profile}"),
                        format!("add {profile} = …"),
                    );
                    value.clone()
                }
            };
        }
        Is::Table(table) => Is::Table(choose_in_table(table, profile, problems, path)),
        Is::List(list) => {
            Is::List(list.iter().map(|item| choose(item, profile, problems, path)).collect())
        }
        scalar => scalar.clone(),
    };
    Value { span: value.span.clone(), is }
}

fn is_per_profile(table: &Table) -> bool {
    !table.entries.is_empty() && table.keys().all(|key| key.parse::<StudyProfile>().is_ok())
}

fn holds_names(path: &[&str]) -> bool {
    matches!(
        path,
        ["topologies" | "variants" | "workloads" | "scenarios"]
            | ["topologies", _, "nodes" | "links"]
    )
}

/// Values of `{name}` at one point: the axes, and what a scenario's `run` binds.
pub(crate) type Bindings = BTreeMap<String, Value>;

/// Replaces `{name}` in every string below `value`. A string that is nothing but `{name}` becomes
/// the bound value itself, so that a number stays one. `{{` and `}}` are braces; a brace before
/// anything that is no name is itself, so that SQL keeps its array literals.
pub(crate) fn substitute(value: &Value, bindings: &Bindings, problems: &Problems) -> Value {
    let is = match &value.is {
        Is::Text(text) => {
            let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            match whole.and_then(|name| bindings.get(name)) {
                Some(bound) => bound.is.clone(),
                None => Is::Text(substitute_text(text, &value.span, bindings, problems)),
            }
        }
        Is::List(list) => {
            Is::List(list.iter().map(|item| substitute(item, bindings, problems)).collect())
        }
        Is::Table(table) => Is::Table(substitute_table(table, bindings, problems)),
        scalar => scalar.clone(),
    };
    Value { span: value.span.clone(), is }
}

pub(crate) fn substitute_table(table: &Table, bindings: &Bindings, problems: &Problems) -> Table {
    let entries = table.entries.iter().map(|entry| KeyValue {
        value: substitute(&entry.value, bindings, problems),
        ..entry.clone()
    });
    Table { entries: entries.collect() }
}

fn substitute_text(
    text: &str,
    span: &Range<usize>,
    bindings: &Bindings,
    problems: &Problems,
) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Name(name) => match bindings.get(name).and_then(Value::scalar_text) {
                Some(bound) => out.push_str(&bound),
                None => {
                    let known = bindings.keys().map(String::as_str);
                    problems.unknown(span, "axis", name, known);
                }
            },
        }
    }
    out
}

/// Names that `{…}` refers to below this value.
pub(crate) fn names_used(value: &Value, into: &mut Vec<String>) {
    match &value.is {
        Is::Text(text) => into.extend(pieces(text).into_iter().filter_map(|piece| match piece {
            Piece::Name(name) => Some(name.to_owned()),
            Piece::Plain(_) => None,
        })),
        Is::List(list) => list.iter().for_each(|item| names_used(item, into)),
        Is::Table(table) => {
            table.entries.iter().for_each(|entry| names_used(&entry.value, into));
        }
        _ => {}
    }
}

enum Piece<'t> {
    Plain(&'t str),
    Name(&'t str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        pieces.push(Piece::Plain(before));
        if from.starts_with("{{") || from.starts_with("}}") {
            pieces.push(Piece::Plain(&from[..1]));
            rest = &from[2..];
            continue;
        }
        let name = from[1..].split('}').next().expect("a split text has a first part");
        let closed = from.len() > name.len() + 1;
        if from.starts_with('{') && closed && is_name(name) {
            pieces.push(Piece::Name(name));
            rest = &from[name.len() + 2..];
        } else {
            pieces.push(Piece::Plain(&from[..1]));
            rest = &from[1..];
        }
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

/// True if a word can name an axis, a workload, a node: a letter, then letters, digits, `_`, `-`.
pub(crate) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value { span: 0..text.len(), is: Is::Text(text.to_owned()) }
    }

    #[test]
    fn braces_around_an_axis_are_replaced_and_others_stay() {
        let problems = Problems::of("study.toml");
        let mut bindings = Bindings::new();
        bindings.insert("commit".to_owned(), text("local"));
        bindings.insert("n".to_owned(), Value { span: 0..1, is: Is::Integer(8) });
        let check = |from: &str, expected: Is| {
            assert_eq!(substitute(&text(from), &bindings, &problems).is, expected, "{from}");
        };
        check("{commit}", Is::Text("local".to_owned()));
        check("{n}", Is::Integer(8));
        check("at {commit} with {n}", Is::Text("at local with 8".to_owned()));
        check("'{1,2}'::int[]", Is::Text("'{1,2}'::int[]".to_owned()));
        check("{{commit}} }", Is::Text("{commit} }".to_owned()));
        check("{", Is::Text("{".to_owned()));
        assert!(problems.is_empty());
        check("{comit}", Is::Text(String::new()));
        let found = problems.into_sorted();
        assert_eq!(found[0].message, "unknown axis \"comit\"");
        assert_eq!(found[0].hint.as_deref(), Some("did you mean \"commit\"?"));
    }

    #[test]
    fn a_value_per_profile_is_the_profiles_own() {
        let problems = Problems::of("study.toml");
        let source = "scale = { smoke = 1, quick = 50, full = 500 }\n[variants.full]\na = 1\n";
        let table = parse(source, &problems);
        let quick = choose_profile(&table, StudyProfile::Quick, &problems);
        assert_eq!(quick.find("scale").unwrap().value.is, Is::Integer(50));
        let Is::Table(variants) = &quick.find("variants").unwrap().value.is else { panic!() };
        assert!(variants.find("full").is_some(), "a variant may be called like a profile");

        let published = choose_profile(&table, StudyProfile::Published, &problems);
        assert_eq!(published.find("scale").unwrap().value.is, Is::Integer(500), "that of full");
        let table = parse("scale = { published = 100, full = 500 }", &problems);
        let published = choose_profile(&table, StudyProfile::Published, &problems);
        assert_eq!(published.find("scale").unwrap().value.is, Is::Integer(100));

        let table = parse("scale = { smoke = 1 }", &problems);
        choose_profile(&table, StudyProfile::Quick, &problems);
        assert_eq!(problems.into_sorted()[0].message, "no value for profile quick");
    }
}
