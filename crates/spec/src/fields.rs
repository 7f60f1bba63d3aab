//! Reading a table key by key: types checked, leftovers reported.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use crate::duration;
use crate::problem::{Problems, nearest};
use terms::Settings;

use crate::value::{Is, KeyValue, Table, Value};

/// VariableValues of scripts or of an environment: name → text.
pub type VariableValues = BTreeMap<String, String>;

/// A table being read. Every key that is asked for is thereby known; [`Fields::finish`] reports
/// the others. Reading goes on after a problem, so that one look finds them all.
pub(crate) struct Fields<'t> {
    table: &'t Table,
    span: Range<usize>,
    what: &'static str,
    asked: RefCell<Vec<&'static str>>,
    pub(crate) problems: &'t Problems,
}

impl<'t> Fields<'t> {
    pub(crate) fn new(
        what: &'static str,
        table: &'t Table,
        span: Range<usize>,
        problems: &'t Problems,
    ) -> Fields<'t> {
        Fields { table, span, what, asked: RefCell::default(), problems }
    }

    /// Reads a value that must be a table; `None`, and a problem, if it is not.
    pub(crate) fn of(
        what: &'static str,
        value: &'t Value,
        problems: &'t Problems,
    ) -> Option<Fields<'t>> {
        match &value.is {
            Is::Table(table) => Some(Fields::new(what, table, value.span.clone(), problems)),
            _ => {
                problems.add(&value.span, format!("{what} must be a table, not {}", value.kind()));
                None
            }
        }
    }

    pub(crate) fn span(&self) -> &Range<usize> {
        &self.span
    }

    pub(crate) fn entry(&self, key: &'static str) -> Option<&'t KeyValue> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
        }
        #[cfg(test)]
        trace::note(self.what, key, String::new());
        self.table.find(key)
    }

    pub(crate) fn value(&self, key: &'static str) -> Option<&'t Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn required(&self, key: &'static str) -> Option<&'t Value> {
        let value = self.value(key);
        if value.is_none() {
            self.problems.add(&self.span, format!("{} has no {key}", self.what));
        }
        value
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<&'t str> {
        self.value(key).and_then(|value| text(key, value, self.problems))
    }

    pub(crate) fn integer<N>(&self, key: &'static str, range: RangeInclusive<N>) -> Option<N>
    where
        N: Copy + TryFrom<i64> + PartialOrd + std::fmt::Display,
    {
        #[cfg(test)]
        trace::note(self.what, key, format!("{} to {}", range.start(), range.end()));
        let value = self.value(key)?;
        let n = match &value.is {
            Is::Integer(n) => Some(*n),
            Is::Text(text) => text.parse().ok(),
            _ => None,
        };
        let n = n.and_then(|n| N::try_from(n).ok()).filter(|n| range.contains(n));
        if n.is_none() {
            let (low, high) = (range.start(), range.end());
            let message = format!("{key} must be an integer from {low} to {high}");
            self.problems.add(&value.span, message);
        }
        n
    }

    pub(crate) fn number(&self, key: &'static str) -> Option<f64> {
        let value = self.value(key)?;
        let number = match &value.is {
            Is::Integer(n) => Some(*n as f64),
            Is::Float(x) => Some(*x),
            Is::Text(text) => text.parse::<f64>().ok().filter(|x| x.is_finite()),
            _ => None,
        };
        if number.is_none() {
            let message = format!("{key} must be a number, not {}", value.kind());
            self.problems.add(&value.span, message);
        }
        number
    }

    /// A number above 0.
    pub(crate) fn positive(&self, key: &'static str) -> Option<f64> {
        let number = self.number(key)?;
        if number > 0.0 {
            return Some(number);
        }
        let span = &self.table.find(key)?.value.span;
        self.problems.add(span, format!("{key} must be above 0"));
        None
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Option<bool> {
        #[cfg(test)]
        trace::note(self.what, key, "true or false".to_owned());
        let value = self.value(key)?;
        if let Is::Bool(boolean) = value.is {
            return Some(boolean);
        }
        let message = format!("{key} must be true or false, not {}", value.kind());
        self.problems.add(&value.span, message);
        None
    }

    pub(crate) fn duration_ms(&self, key: &'static str) -> Option<u64> {
        self.value(key).and_then(|value| duration_ms(key, value, self.problems))
    }

    /// One of a closed set of words.
    pub(crate) fn choice<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        #[cfg(test)]
        trace::note(self.what, key, trace::one_of(words.iter().map(|(word, _)| *word)));
        self.value(key).and_then(|value| choice(key, value, words, self.problems))
    }

    /// Names or texts; a single one needs no brackets.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<(String, Range<usize>)> {
        let values = self.list(key).iter();
        let texts = values.filter_map(|value| {
            text(key, value, self.problems).map(|text| (text.to_owned(), value.span.clone()))
        });
        texts.collect()
    }

    /// A command with its arguments: the first word is a program.
    pub(crate) fn command(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.required(key)?;
        let words: Vec<String> = self.texts(key).into_iter().map(|(word, _)| word).collect();
        if words.first().is_none_or(String::is_empty) {
            let hint = format!("write {key} = [\"PROGRAM\", \"ARGUMENT\"]");
            self.problems.hinted(&value.span, format!("{key}: a command has no program"), hint);
            return None;
        }
        Some(words)
    }

    /// The elements of a list; a value that is no list is a list of one.
    pub(crate) fn list(&self, key: &'static str) -> &'t [Value] {
        match self.value(key) {
            None => &[],
            Some(value) => match &value.is {
                Is::List(list) => list,
                _ => std::slice::from_ref(value),
            },
        }
    }

    /// A table of scalars; none where it is not given.
    pub(crate) fn variables(&self, key: &'static str) -> VariableValues {
        self.value(key)
            .map_or_else(VariableValues::new, |value| variables(key, value, self.problems))
    }

    /// A table of settings of a server or a session; none where it is not given.
    pub(crate) fn settings(&self, key: &'static str) -> Settings {
        self.value(key).map_or_else(Settings::new, |value| settings(key, value, self.problems))
    }

    /// A table whose keys are names that the author gives.
    pub(crate) fn named(&self, key: &'static str) -> &'t [KeyValue] {
        match self.value(key) {
            None => &[],
            Some(Value { is: Is::Table(table), .. }) => &table.entries,
            Some(other) => {
                let message = format!("{key} must be a table, not {}", other.kind());
                self.problems.add(&other.span, message);
                &[]
            }
        }
    }

    /// Reports the keys that were not asked for.
    pub(crate) fn finish(self) {
        let asked = self.asked.into_inner();
        for entry in &self.table.entries {
            if !asked.contains(&entry.key.as_str()) {
                let message = format!("{} has no field \"{}\"", self.what, entry.key);
                let hint = nearest(&entry.key, &asked);
                match hint {
                    Some(hint) => self.problems.hinted(&entry.key_span, message, hint),
                    None => self.problems.add(&entry.key_span, message),
                }
            }
        }
    }
}

pub(crate) fn text<'t>(key: &str, value: &'t Value, problems: &Problems) -> Option<&'t str> {
    match &value.is {
        Is::Text(text) => Some(text),
        _ => {
            problems.add(&value.span, format!("{key} must be a string, not {}", value.kind()));
            None
        }
    }
}

pub(crate) fn duration_ms(key: &str, value: &Value, problems: &Problems) -> Option<u64> {
    let Is::Text(text) = &value.is else {
        let message = format!("{key} must be a duration, not {}", value.kind());
        problems.hinted(&value.span, message, duration::HINT);
        return None;
    };
    match duration::parse_ms(text) {
        Ok(ms) => Some(ms),
        Err(why) => {
            problems.hinted(&value.span, format!("{key}: {why}"), duration::HINT);
            None
        }
    }
}

pub(crate) fn choice<T: Copy>(
    key: &str,
    value: &Value,
    words: &[(&str, T)],
    problems: &Problems,
) -> Option<T> {
    let word = text(key, value, problems)?;
    let found = words.iter().find(|(name, _)| *name == word);
    if found.is_none() {
        problems.unknown(&value.span, key, word, words.iter().map(|(name, _)| *name));
    }
    found.map(|(_, choice)| *choice)
}

/// Settings of a table. The server does not tell `JIT` from `jit`: both in one table are a mistake.
pub(crate) fn settings(key: &str, value: &Value, problems: &Problems) -> Settings {
    if let Is::Table(table) = &value.is {
        for (index, entry) in table.entries.iter().enumerate() {
            let is_same = |one: &&KeyValue| one.key.eq_ignore_ascii_case(&entry.key);
            if let Some(before) = table.entries[..index].iter().find(is_same) {
                let message = format!("{} and {} are one setting", before.key, entry.key);
                problems.add(&entry.key_span, message);
            }
        }
    }
    variables(key, value, problems).into()
}

/// Scalars of a table, by name.
pub(crate) fn variables(key: &str, value: &Value, problems: &Problems) -> VariableValues {
    let Is::Table(table) = &value.is else {
        problems.add(&value.span, format!("{key} must be a table, not {}", value.kind()));
        return VariableValues::new();
    };
    let texts = table.entries.iter().filter_map(|entry| {
        let text = entry.value.scalar_text();
        if text.is_none() {
            let message =
                format!("{} must be a single value, not {}", entry.key, entry.value.kind());
            problems.add(&entry.value.span, message);
        }
        Some((entry.key.clone(), text?))
    });
    texts.collect()
}

/// The fields that the parser asks for, to be compared with the schema of study.toml.
#[cfg(test)]
pub(crate) mod trace {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// A table's name in messages, a key of it, and what its value may be; empty where a text or a
    /// table of its own is asked for.
    pub(crate) type ExpectedField = BTreeSet<(&'static str, &'static str, String)>;

    thread_local! {
        static ASKED: RefCell<ExpectedField> = const { RefCell::new(ExpectedField::new()) };
    }

    pub(crate) fn note(what: &'static str, key: &'static str, may_be: String) {
        ASKED.with_borrow_mut(|asked| asked.insert((what, key, may_be)));
    }

    pub(crate) fn one_of<'w>(words: impl Iterator<Item = &'w str>) -> String {
        let mut words: Vec<&str> = words.collect();
        words.sort_unstable();
        words.join(" | ")
    }

    /// Everything that this thread's parsers have asked for.
    pub(crate) fn taken() -> ExpectedField {
        ASKED.take()
    }
}
