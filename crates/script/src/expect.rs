//! `\expect`: what a result must be.
//!
//! ```text
//! \expect rows 1          a result of one row, or a command that changed one
//! \expect rows 1..5
//! \expect value :sum      one row, whose first column is this text
//! ```

use crate::names::{VariableNames, VariableSlot, is_variable_name};
use crate::variables::Variables;

/// The condition that the result of a statement must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedResult {
    /// So many rows, returned or changed: at least and at most.
    Rows(ExpectedWord, ExpectedWord),
    /// One row whose first column is this.
    Value(ExpectedWord),
}

/// A word, or the variable whose value it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedWord {
    /// As it is written.
    Text(Box<str>),
    /// `:name`
    Variable(VariableSlot),
}

impl ExpectedWord {
    fn parse(text: &str, names: &mut VariableNames) -> ExpectedWord {
        match text.strip_prefix(':').filter(|name| is_variable_name(name.as_bytes())) {
            Some(name) => ExpectedWord::Variable(names.intern(name)),
            None => ExpectedWord::Text(text.into()),
        }
    }

    fn text(&self, variables: &Variables) -> Vec<u8> {
        match self {
            ExpectedWord::Text(text) => text.as_bytes().to_vec(),
            ExpectedWord::Variable(slot) => {
                let mut text = Vec::new();
                variables.write(*slot, &mut text);
                text
            }
        }
    }

    fn number(&self, variables: &Variables) -> Option<u64> {
        String::from_utf8(self.text(variables)).ok()?.trim().parse().ok()
    }
}

impl ExpectedResult {
    /// The words behind `\expect`, if they are about a result.
    pub(crate) fn parse(
        words: &[&str],
        names: &mut VariableNames,
    ) -> Result<ExpectedResult, &'static str> {
        let is_count = |word: &str| word.starts_with(':') || word.parse::<u64>().is_ok();
        match words {
            ["rows", count] => {
                let (least, most) = count.split_once("..").unwrap_or((count, count));
                match is_count(least) && is_count(most) {
                    true => Ok(ExpectedResult::Rows(
                        ExpectedWord::parse(least, names),
                        ExpectedWord::parse(most, names),
                    )),
                    false => Err("expecting a number of rows, as in \\expect rows 1 or rows 1..5"),
                }
            }
            ["value", value] => Ok(ExpectedResult::Value(ExpectedWord::parse(value, names))),
            _ => Err("expecting one word behind rows or value"),
        }
    }

    /// Compares a result: how many rows it has or has changed, and the first column of its last row (none
    /// without a row, none inside for NULL).
    pub fn check(
        &self,
        variables: &Variables,
        rows: u64,
        value: Option<Option<&[u8]>>,
    ) -> Result<(), String> {
        match self {
            ExpectedResult::Rows(least, most) => {
                let shown = |word: &ExpectedWord| {
                    String::from_utf8_lossy(&word.text(variables)).into_owned()
                };
                match least.number(variables).zip(most.number(variables)) {
                    Some((least, most)) if (least..=most).contains(&rows) => Ok(()),
                    _ if least == most => {
                        Err(format!("expected {} rows, got {rows}", shown(least)))
                    }
                    _ => Err(format!(
                        "expected {} to {} rows, got {rows}",
                        shown(least),
                        shown(most)
                    )),
                }
            }
            ExpectedResult::Value(expected) => {
                let expected = expected.text(variables);
                let lossy = String::from_utf8_lossy;
                match value {
                    Some(Some(value)) if value == expected => Ok(()),
                    found => {
                        let found = match found {
                            None => "no row".to_owned(),
                            Some(None) => "NULL".to_owned(),
                            Some(Some(value)) => format!("\"{}\"", lossy(value)),
                        };
                        Err(format!("expected the value \"{}\", got {found}", lossy(&expected)))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_as_expected_or_told() {
        let mut names = VariableNames::new();
        let slot = names.intern("n");
        let mut parse =
            |text: &str| ExpectedResult::parse(&text.split(' ').collect::<Vec<_>>(), &mut names);
        let cases = [
            ("rows 1", 1, None, Ok(())),
            ("rows 0", 2, None, Err("expected 0 rows, got 2")),
            ("rows 2..4", 4, None, Ok(())),
            ("rows 2..4", 5, None, Err("expected 2 to 4 rows, got 5")),
            ("rows :n", 7, None, Ok(())),
            ("value 42", 1, Some(Some("42")), Ok(())),
            ("value :n", 1, Some(Some("8")), Err("expected the value \"7\", got \"8\"")),
            ("value a", 1, Some(None), Err("expected the value \"a\", got NULL")),
            ("value a", 0, None, Err("expected the value \"a\", got no row")),
        ];
        let parsed: Vec<_> = cases.iter().map(|case| parse(case.0).expect(case.0)).collect();
        for wrong in ["rows", "rows x", "rows 1..", "rows -1", "value", "value a b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let mut variables = Variables::new(&names);
        variables.set_text(slot, "7");
        for (expected, (text, rows, value, result)) in parsed.iter().zip(cases) {
            let value = value.map(|value: Option<&str>| value.map(str::as_bytes));
            let found = expected.check(&variables, rows, value);
            assert_eq!(found, result.map_err(str::to_owned), "{text}");
        }
    }
}
