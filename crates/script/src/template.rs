//! An SQL command with the places of its variables.
//!
//! Made once per script. The simple protocol gets the text with values spliced in; the extended
//! protocols get the text with `$1`, `$2`, … and the slots to bind. Quotes are not respected, as
//! in pgbench: `':name'` is a use of the variable. `:'name'`, which is pgrig's own, is one outside quotes
//! only: its value is a string constant, or a parameter that may be NULL.

use std::ops::Range;

use crate::names::{VariableNames, VariableSlot, variable_name_length};
use crate::number;
use crate::sql;
use crate::variables::Variables;

/// Most variable uses in a statement that is sent with parameters.
pub const MAX_PARAMETERS: usize = 255;

/// An SQL command and where its variables stand.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlTemplate {
    text: Box<[u8]>,
    uses: Box<[(Range<usize>, VariableSlot)]>,
    slots: Box<[VariableSlot]>,
    parameters: Box<[TemplateParameter]>,
    /// True if a use is quoted.
    is_quoted: bool,
    /// The text with `$n`; empty if there are too many uses for that.
    numbered: Box<[u8]>,
    statements: u32,
}

/// A command as the extended protocols send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterizedSql<'a> {
    /// SQL with `$1`, `$2`, ….
    pub text: &'a [u8],
    /// The variable of `$1`, of `$2`, ….
    pub parameters: &'a [TemplateParameter],
}

/// A variable where a statement uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateParameter {
    /// The variable.
    pub slot: VariableSlot,
    /// True for `:'name'`: a value that is null is bound as NULL, and not as its text.
    pub is_quoted: bool,
}

/// The uses of variables that are read in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uses {
    /// `:name`, as pgbench reads it.
    Plain,
    /// `:'name'` too.
    PlainAndQuoted,
}

/// More variable uses than a parameterized statement can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("statement has too many arguments (maximum is {MAX_PARAMETERS}): {0}")]
pub struct TooManyParameters(
    /// The statement.
    pub String,
);

impl SqlTemplate {
    /// Find the variables of `text`; `statements` is how many commands the server will see in it.
    pub(crate) fn new(
        text: &[u8],
        statements: u32,
        which: Uses,
        names: &mut VariableNames,
    ) -> SqlTemplate {
        let quoted = match which {
            Uses::PlainAndQuoted if text.windows(2).any(|pair| pair == b":'") => {
                sql::quoted_uses(text)
            }
            _ => Vec::new(),
        };
        let is_quoted = !quoted.is_empty();
        let mut quoted = quoted.into_iter().peekable();
        let mut uses = Vec::new();
        let mut parameters = Vec::new();
        let mut numbered = Vec::with_capacity(text.len());
        let mut copied = 0;
        let mut at = 0;
        while let Some(colon) = text[at..].iter().position(|byte| *byte == b':') {
            at += colon;
            let (end, name, is_quoted) = match quoted.next_if(|place| place.start == at) {
                Some(place) => (place.end, &text[at + 2..place.end - 1], true),
                None => {
                    let length = variable_name_length(&text[at + 1..]);
                    if length == 0 {
                        // `::type` is a cast, however many colons there are.
                        let colons = text[at..].iter().take_while(|byte| **byte == b':').count();
                        at += colons;
                        continue;
                    }
                    let end = at + 1 + length;
                    (end, &text[at + 1..end], false)
                }
            };
            let slot = names.intern(name);
            uses.push((at..end, slot));
            parameters.push(TemplateParameter { slot, is_quoted });
            numbered.extend_from_slice(&text[copied..at]);
            numbered.push(b'$');
            number::write_int(uses.len() as i64, &mut numbered);
            copied = end;
            at = end;
        }
        numbered.extend_from_slice(&text[copied..]);
        if uses.len() > MAX_PARAMETERS {
            numbered.clear();
        }
        SqlTemplate {
            text: text.into(),
            slots: uses.iter().map(|(_, slot)| *slot).collect(),
            uses: uses.into(),
            parameters: parameters.into(),
            is_quoted,
            numbered: numbered.into(),
            statements,
        }
    }

    /// The SQL as it stands in the script.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The variables in it, in order, each as often as it stands there.
    pub fn slots(&self) -> &[VariableSlot] {
        &self.slots
    }

    /// Append the SQL with every defined variable replaced by its text. What is undefined stays
    /// `:name`.
    pub fn write_simple(&self, variables: &Variables, out: &mut Vec<u8>) {
        if self.is_quoted {
            return self.write_quoted(variables, out);
        }
        let mut copied = 0;
        for (range, slot) in &self.uses {
            out.extend_from_slice(&self.text[copied..range.start]);
            copied = range.end;
            if !variables.write(*slot, out) {
                out.extend_from_slice(&self.text[range.start..range.end]);
            }
        }
        out.extend_from_slice(&self.text[copied..]);
    }

    /// The same where a use is quoted: apart from the other, so that scripts without one pay nothing for it.
    fn write_quoted(&self, variables: &Variables, out: &mut Vec<u8>) {
        let mut copied = 0;
        for ((range, slot), parameter) in self.uses.iter().zip(&self.parameters) {
            out.extend_from_slice(&self.text[copied..range.start]);
            copied = range.end;
            let is_written = match parameter.is_quoted {
                true => variables.write_constant(*slot, out),
                false => variables.write(*slot, out),
            };
            if !is_written {
                out.extend_from_slice(&self.text[range.start..range.end]);
            }
        }
        out.extend_from_slice(&self.text[copied..]);
    }

    /// The SQL with numbered parameters.
    ///
    /// # Errors
    /// If it uses variables more than [`MAX_PARAMETERS`] times. The simple protocol has no such
    /// limit, so this is found when another one is chosen.
    pub fn parameterized(&self) -> Result<ParameterizedSql<'_>, TooManyParameters> {
        if self.uses.len() > MAX_PARAMETERS {
            return Err(TooManyParameters(String::from_utf8_lossy(&self.text).into_owned()));
        }
        Ok(ParameterizedSql { text: &self.numbered, parameters: &self.parameters })
    }

    /// Number of statements in the command: more than one if they are joined by `\;`. Only the
    /// simple protocol can send such a command.
    pub fn statements(&self) -> u32 {
        self.statements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn splices_values_and_numbers_parameters() {
        let check = |sql: &str, simple: &str, numbered: &str| {
            let mut names = VariableNames::new();
            let template = SqlTemplate::new(sql.as_bytes(), 1, Uses::PlainAndQuoted, &mut names);
            let mut variables = Variables::new(&names);
            let mut set = |name: &str, value| variables.set(names.intern(name), value);
            set("x", Value::Int(-5));
            set("n", Value::Null);
            variables.set_text(names.intern("s"), "it's");
            variables.set_text(names.intern("b"), "a\\'b");
            let mut out = Vec::new();
            template.write_simple(&variables, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), simple);
            let parameterized = template.parameterized().unwrap();
            assert_eq!(String::from_utf8_lossy(parameterized.text), numbered);
        };
        check("SELECT :x, ':x', :y;", "SELECT -5, '-5', :y;", "SELECT $1, '$2', $3;");
        check("SELECT :n::int:x", "SELECT NULL::int-5", "SELECT $1::int$2");
        check(
            "SELECT '12:34', :::x, a::x, :",
            "SELECT '12:34', :::x, a::x, :",
            "SELECT '12:34', :::x, a::x, :",
        );
        check(":x1:x", ":x1-5", "$1$2");
        check(
            "f(:'x', :'n',:'s',:'b', :'y')",
            r"f('-5', NULL,'it''s', E'a\\''b', :'y')",
            "f($1, $2,$3,$4, $5)",
        );
        check(
            "a[1:'x'] = :'x'::int -- :'x'\n",
            "a[1'-5'] = '-5'::int -- :'x'\n",
            "a[1$1] = $2::int -- :'x'\n",
        );
        let none = "':' || ':''s' /* :'s' */ E'\\':' \":'s'\" -- :'s'";
        check(none, none, none);
        check(":'1' :'' :'a b' $$:'x'$$", ":'1' :'' :'a b' $$:'x'$$", ":'1' :'' :'a b' $$:'x'$$");
    }

    #[test]
    fn quoted_uses_are_pgrigs_own() {
        let mut names = VariableNames::new();
        let template = SqlTemplate::new(b"SELECT :'x', :x", 1, Uses::Plain, &mut names);
        assert_eq!(template.slots().len(), 1);
        let template = SqlTemplate::new(b"SELECT :'x', :x", 1, Uses::PlainAndQuoted, &mut names);
        let parameters = template.parameterized().unwrap().parameters;
        assert_eq!(parameters.iter().map(|one| one.is_quoted).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn two_hundred_and_fifty_five_uses_at_most() {
        let mut names = VariableNames::new();
        let fits = SqlTemplate::new(":x".repeat(255).as_bytes(), 1, Uses::Plain, &mut names);
        assert_eq!(fits.parameterized().unwrap().parameters.len(), 255);
        let too_many = SqlTemplate::new(":x".repeat(256).as_bytes(), 1, Uses::Plain, &mut names);
        let message = too_many.parameterized().unwrap_err().to_string();
        assert!(message.starts_with("statement has too many arguments (maximum is 255): :x:x"));
    }
}
