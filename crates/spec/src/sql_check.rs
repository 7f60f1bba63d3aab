//! A check that a study writes itself: a query, and the value that it must give.

use std::cmp::Ordering;
use std::fmt;

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::timeline::sql_text;
use crate::topology::Topology;
use crate::value::is_name;
use crate::whom::SqlTarget;

/// A query and the value that it must give after the load.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SqlCheck {
    /// The name of its figures.
    pub name: String,
    /// The query; its value is the first column of its first row.
    pub sql: String,
    /// The server that runs it; none for the one that the data were built on.
    pub on: Option<SqlTarget>,
    /// The value that is expected.
    pub expect: ExpectedValue,
}

/// The value that a query must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpectedValue {
    relation: Relation,
    to: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Operand {
    /// A value as PostgreSQL writes it.
    Value(String),
    /// The value that the same query gave before the load.
    Before,
}

impl SqlCheck {
    /// `{ sql = "SELECT …", as = "orders", on = "the primary now", expect = ">= before" }`
    pub(crate) fn parse(
        fields: &Fields<'_>,
        topology: &Topology,
        folder: &StudyFolder,
    ) -> Option<SqlCheck> {
        let problems = fields.problems;
        let sql = fields.required("sql").and_then(|value| sql_text(value, folder, problems));
        let named = fields.required("as").and_then(|_| fields.text("as"));
        let name = named.filter(|name| is_name(name));
        if let (Some(named), None) = (named, name) {
            problems.add(fields.span(), format!("as: \"{named}\" cannot be a name"));
        }
        let on = match fields.value("on") {
            Some(_) => Some(SqlTarget::parse(fields, "on", topology)?),
            None => None,
        };
        let value = fields.required("expect");
        let text = value.map(|value| (value, value.scalar_text()));
        let expect = text.and_then(|(value, text)| {
            let expect = text.as_deref().and_then(ExpectedValue::parse);
            if expect.is_none() {
                problems.hinted(&value.span, "expect: not a value", ExpectedValue::HINT);
            }
            expect
        });
        Some(SqlCheck { name: name?.to_owned(), sql: sql?, on, expect: expect? })
    }
}

impl ExpectedValue {
    const HINT: &'static str = "write expect = \"0\", \">= 5\", \"before\" or \">= before\"";

    fn parse(text: &str) -> Option<ExpectedValue> {
        let text = text.trim();
        let relations = [
            ("==", Relation::Equal),
            ("!=", Relation::Unequal),
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Less),
            (">", Relation::More),
        ];
        let told = relations.iter().find_map(|(sign, relation)| {
            text.strip_prefix(sign).map(|rest| (*relation, rest.trim()))
        });
        let (relation, operand) = told.unwrap_or((Relation::Equal, text));
        let to = match operand {
            "" => return None,
            ExpectedValue::BEFORE => Operand::Before,
            value => Operand::Value(value.to_owned()),
        };
        Some(ExpectedValue { relation, to })
    }

    /// True if the value from before the load must be known.
    pub fn needs_before(&self) -> bool {
        self.to == Operand::Before
    }

    /// True if `value` is what was expected. `before` is the value from before the load. Two numbers
    /// are compared as numbers, everything else as text; a text is equal or unequal, and nothing else.
    pub fn holds(&self, value: Option<&str>, before: Option<&str>) -> bool {
        let to = match &self.to {
            Operand::Value(text) => Some(text.as_str()),
            Operand::Before => before,
        };
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        let order = match (number(value), number(to)) {
            (Some(value), Some(to)) => value.partial_cmp(&to),
            _ => (value == to).then_some(Ordering::Equal),
        };
        match self.relation {
            Relation::Equal => order == Some(Ordering::Equal),
            Relation::Unequal => order != Some(Ordering::Equal),
            Relation::Less => order == Some(Ordering::Less),
            Relation::AtMost => order.is_some_and(Ordering::is_le),
            Relation::More => order == Some(Ordering::Greater),
            Relation::AtLeast => order.is_some_and(Ordering::is_ge),
        }
    }

    const BEFORE: &'static str = "before";
}

impl fmt::Display for ExpectedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.relation {
            Relation::Equal => "",
            Relation::Unequal => "≠ ",
            Relation::Less => "< ",
            Relation::AtMost => "≤ ",
            Relation::More => "> ",
            Relation::AtLeast => "≥ ",
        };
        let operand = match &self.to {
            Operand::Value(value) => value,
            Operand::Before => "as before the load",
        };
        write!(f, "{sign}{operand}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compared_with_a_text_a_number_or_what_was_before() {
        let check = |expect: &str, value: &str, before: &str, holds: bool| {
            let expected = ExpectedValue::parse(expect).unwrap();
            assert_eq!(expected.holds(Some(value), Some(before)), holds, "{value} {expect}");
        };
        check("0", "0", "", true);
        check("0", "0.0", "", true);
        check("t", "t", "", true);
        check("t", "f", "", false);
        check("!= f", "t", "", true);
        check(">= 5", "10", "", true);
        check("< 5", "10", "", false);
        check("before", "7", "7", true);
        check(">= before", "10", "9", true);
        check("> before", "9", "9", false);
        check("> before", "b", "a", false);
        assert_eq!(ExpectedValue::parse(">="), None);
        assert!(!ExpectedValue::parse("0").unwrap().holds(None, None), "no row is no value");
        assert!(ExpectedValue::parse("before").unwrap().holds(None, None));
    }
}
