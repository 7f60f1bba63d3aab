//! A session's variables: an array by slot.
//!
//! 24 bytes a slot and one allocation, plus one for each text that came from outside (`-D`,
//! `\gset`); clones share those texts.

use std::sync::Arc;

use crate::names::{VariableNames, VariableSlot};
use crate::number;
use crate::row_table::RowTable;
use crate::template::TemplateParameter;
use crate::value::Value;

/// One variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Variable {
    /// Never set: stays `:name` in simple mode, is bound as NULL in the other modes.
    Undefined,
    /// Set by an expression.
    Value(Value),
    /// Text from `-D`, `\gset` or `\aset` other than a plain integer: it is put into SQL as it
    /// came and gets a type only when an expression asks for one.
    Text(Arc<[u8]>),
    /// A text of the rows that `\setrow` draws from, by the number of their table and of the cell. A NULL
    /// there is the value [`Value::Null`].
    Cell(u32, u32),
}

const _: () = assert!(size_of::<Variable>() <= 24);

/// All variables of one session.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    slots: Vec<Variable>,
    tables: Arc<[Arc<RowTable>]>,
}

impl Variables {
    /// Room for every slot of `names`, all undefined.
    pub fn new(names: &VariableNames) -> Variables {
        Variables { slots: vec![Variable::Undefined; names.len()], tables: Arc::default() }
    }

    /// The same with the tables that each [`crate::RowPicker`] refers to by its number.
    #[must_use]
    pub fn with_tables(self, tables: Arc<[Arc<RowTable>]>) -> Variables {
        Variables { tables, ..self }
    }

    /// Sets variables to a row of the table with this number: `columns` are those of the variables.
    pub(crate) fn set_row(
        &mut self,
        slots: &[VariableSlot],
        table: usize,
        row: usize,
        columns: &[usize],
    ) {
        for (slot, column) in slots.iter().zip(columns) {
            let rows = &self.tables[table];
            let place = rows.place(row, *column);
            let variable = match rows.cell_at(place) {
                Some(_) => Variable::Cell(table as u32, place),
                None => Variable::Value(Value::Null),
            };
            *self.place(*slot) = variable;
        }
    }

    /// The variable in `slot`.
    pub fn get(&self, slot: VariableSlot) -> &Variable {
        self.slots.get(slot.index()).unwrap_or(&Variable::Undefined)
    }

    /// Give `slot` a value.
    pub fn set(&mut self, slot: VariableSlot, value: Value) {
        *self.place(slot) = Variable::Value(value);
    }

    /// Give `slot` a text whose type is found when it is needed. An integer in its plain form is
    /// kept as the number, which is the same to every reader and needs no allocation.
    pub fn set_text(&mut self, slot: VariableSlot, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        *self.place(slot) = match plain_integer(text) {
            Some(number) => Variable::Value(Value::Int(number)),
            None => Variable::Text(text.into()),
        };
    }

    /// The value that an expression sees; `None` where the text is neither null, a boolean, an
    /// integer nor a double. Undefined is `None` too.
    pub fn value(&self, slot: VariableSlot) -> Option<Value> {
        match self.get(slot) {
            Variable::Undefined => None,
            Variable::Value(value) => Some(*value),
            Variable::Text(text) => typed(text),
            Variable::Cell(table, cell) => typed(self.cell(*table, *cell)),
        }
    }

    /// The text of a variable that has no other value.
    pub(crate) fn text(&self, slot: VariableSlot) -> Option<&[u8]> {
        match self.get(slot) {
            Variable::Undefined | Variable::Value(_) => None,
            Variable::Text(text) => Some(text),
            Variable::Cell(table, cell) => Some(self.cell(*table, *cell)),
        }
    }

    /// True if a parameter of this variable is bound as NULL: it is undefined, or its use is quoted and its
    /// value null.
    pub fn is_null(&self, parameter: TemplateParameter) -> bool {
        match self.get(parameter.slot) {
            Variable::Undefined => true,
            Variable::Value(Value::Null) => parameter.is_quoted,
            _ => false,
        }
    }

    /// Append the variable's value as a string constant, or `NULL`. False and nothing appended if the
    /// variable is undefined.
    pub fn write_constant(&self, slot: VariableSlot, out: &mut Vec<u8>) -> bool {
        match self.get(slot) {
            Variable::Undefined => return false,
            Variable::Value(Value::Null) => out.extend_from_slice(b"NULL"),
            Variable::Value(value) => {
                out.push(b'\'');
                value.write(out);
                out.push(b'\'');
            }
            Variable::Text(text) => write_constant(text, out),
            Variable::Cell(table, cell) => write_constant(self.cell(*table, *cell), out),
        }
        true
    }

    fn cell(&self, table: u32, cell: u32) -> &[u8] {
        let text = self.tables.get(table as usize).and_then(|table| table.cell_at(cell));
        text.expect("a variable is set to a cell that is there")
    }

    /// Append the variable's text as SQL or as a parameter (a NULL value is the text `NULL`).
    /// False and nothing appended if the variable is undefined.
    pub fn write(&self, slot: VariableSlot, out: &mut Vec<u8>) -> bool {
        match self.get(slot) {
            Variable::Undefined => return false,
            Variable::Value(value) => value.write(out),
            Variable::Text(text) => out.extend_from_slice(text),
            Variable::Cell(table, cell) => out.extend_from_slice(self.cell(*table, *cell)),
        }
        true
    }

    fn place(&mut self, slot: VariableSlot) -> &mut Variable {
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, Variable::Undefined);
        }
        &mut self.slots[slot.index()]
    }
}

/// A string constant as libpq's `PQescapeLiteral` writes it: with a backslash, an escape string behind a blank,
/// in case a word stands before it.
fn write_constant(text: &[u8], out: &mut Vec<u8>) {
    let has_backslash = text.contains(&b'\\');
    if has_backslash {
        out.extend_from_slice(b" E");
    }
    out.push(b'\'');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\'' | b'\\')) {
        // A quote is doubled, and so is a backslash.
        out.extend_from_slice(&rest[..=at]);
        out.push(rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}

/// pgbench's rules for a text that an expression reads: `null`; prefixes of true, yes, false, no;
/// `on`, `off`, `of`; an integer; else it must be a double. An integer that does not fit is an
/// error rather than a double.
fn typed(text: &[u8]) -> Option<Value> {
    let is_prefix_of =
        |word: &[u8]| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    if text.is_empty() {
        None
    } else if text.eq_ignore_ascii_case(b"null") {
        Some(Value::Null)
    } else if is_prefix_of(b"true") || is_prefix_of(b"yes") || text.eq_ignore_ascii_case(b"on") {
        Some(Value::Bool(true))
    } else if is_prefix_of(b"false")
        || is_prefix_of(b"no")
        || text.eq_ignore_ascii_case(b"off")
        || text.eq_ignore_ascii_case(b"of")
    {
        Some(Value::Bool(false))
    } else if let Some(digits) = integer_text(text) {
        digits.parse().ok().map(Value::Int)
    } else {
        number::parse_double(text).map(Value::Double)
    }
}

/// The integer that is printed as `text`, if there is one.
fn plain_integer(text: &[u8]) -> Option<i64> {
    match text {
        [b'0'] => Some(0),
        [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// True if `text` is an integer, of any size.
pub(crate) fn is_integer(text: &[u8]) -> bool {
    integer_text(text).is_some_and(|text| text.ends_with(|c: char| c.is_ascii_digit()))
}

/// `text` without leading white space if the rest is a sign and digits only.
fn integer_text(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gets_its_type_when_an_expression_asks() {
        let check = |text: &str, expected: Option<Value>| {
            let mut variables = Variables::default();
            variables.set_text(VariableSlot::SCALE, text);
            assert_eq!(variables.value(VariableSlot::SCALE), expected, "{text:?}");
            let mut out = Vec::new();
            assert!(variables.write(VariableSlot::SCALE, &mut out));
            assert_eq!(out, text.as_bytes(), "SQL gets the text as it came");
        };
        check("null", Some(Value::Null));
        check("NULL", Some(Value::Null));
        for yes in ["t", "TRUE", "y", "ye", "Yes", "on", "ON"] {
            check(yes, Some(Value::Bool(true)));
        }
        for no in ["f", "false", "n", "no", "NO", "of", "off"] {
            check(no, Some(Value::Bool(false)));
        }
        check("007", Some(Value::Int(7)));
        check(" -12", Some(Value::Int(-12)));
        check("+3", Some(Value::Int(3)));
        check("-9223372036854775808", Some(Value::Int(i64::MIN)));
        check("9223372036854775808", None);
        check("1.5", Some(Value::Double(1.5)));
        check("1e3", Some(Value::Double(1000.0)));
        for bad in ["", "o", "12 ", "truee", "abc", "+"] {
            check(bad, None);
        }
    }

    #[test]
    fn plain_integers_are_kept_as_numbers() {
        let check = |text: &str, expected: bool| {
            let mut variables = Variables::default();
            variables.set_text(VariableSlot::SCALE, text);
            let is_number = matches!(variables.get(VariableSlot::SCALE), Variable::Value(_));
            assert_eq!(is_number, expected, "{text:?}");
            let mut out = Vec::new();
            variables.write(VariableSlot::SCALE, &mut out);
            assert_eq!(out, text.as_bytes());
        };
        for plain in ["0", "7", "-12", "9223372036854775807", "-9223372036854775808"] {
            check(plain, true);
        }
        for other in ["-0", "007", "+7", " 7", "7 ", "9223372036854775808", "1.0", "", "-"] {
            check(other, false);
        }
    }

    #[test]
    fn a_row_is_read_by_expressions_and_by_sql() {
        let table = RowTable::from_csv("n,t,z\n007,it's \\,\n-2,x,y\n").unwrap();
        let mut names = VariableNames::new();
        let slots = ["n", "t", "z"].map(|name| names.intern(name));
        let mut variables = Variables::new(&names).with_tables([Arc::new(table)].into());
        variables.set_row(&slots, 0, 0, &[0, 1, 2]);
        let written = |write: &dyn Fn(VariableSlot, &mut Vec<u8>) -> bool| {
            slots.map(|slot| {
                let mut out = Vec::new();
                assert!(write(slot, &mut out));
                String::from_utf8(out).unwrap()
            })
        };
        assert_eq!(written(&|slot, out| variables.write(slot, out)), ["007", "it's \\", "NULL"]);
        assert_eq!(
            written(&|slot, out| variables.write_constant(slot, out)),
            ["'007'", r" E'it''s \\'", "NULL"]
        );
        let values = slots.map(|slot| variables.value(slot));
        assert_eq!(values, [Some(Value::Int(7)), None, Some(Value::Null)]);
        let is_null = |slot, is_quoted| variables.is_null(TemplateParameter { slot, is_quoted });
        assert_eq!(slots.map(|slot| is_null(slot, true)), [false, false, true]);
        assert_eq!(slots.map(|slot| is_null(slot, false)), [false; 3]);
        variables.set_row(&slots[..1], 0, 1, &[2]);
        assert_eq!(variables.text(slots[0]), Some(&b"y"[..]));
    }

    #[test]
    fn undefined_writes_nothing() {
        let variables = Variables::new(&VariableNames::new());
        let mut out = Vec::new();
        assert!(!variables.write(VariableSlot::SCALE, &mut out));
        assert!(out.is_empty());
    }
}
