//! An SQL command with the places of its variables.
//!
//! Made once per script. The simple protocol gets the text with values spliced in; the extended
//! protocols get the text with `$1`, `$2`, … and the slots to bind. Quotes are not respected, as
//! in pgbench: `':name'` is a use of the variable.

use std::ops::Range;

use crate::names::{Names, Slot, variable_name_length};
use crate::number;
use crate::variables::Variables;

/// Most variable uses in a statement that is sent with parameters.
pub const MAX_PARAMETERS: usize = 255;

/// An SQL command and where its variables stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    text: Box<[u8]>,
    uses: Box<[(Range<usize>, Slot)]>,
    slots: Box<[Slot]>,
    /// The text with `$n`; empty if there are too many uses for that.
    numbered: Box<[u8]>,
    statements: u32,
}

/// A command as the extended protocols send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameterized<'a> {
    /// SQL with `$1`, `$2`, ….
    pub text: &'a [u8],
    /// The variable of `$1`, of `$2`, …; one that is undefined is bound as NULL.
    pub slots: &'a [Slot],
}

/// More variable uses than a parameterized statement can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("statement has too many arguments (maximum is {MAX_PARAMETERS}): {0}")]
pub struct TooManyParameters(
    /// The statement.
    pub String,
);

impl Template {
    /// Find the variables of `text`; `statements` is how many commands the server will see in it.
    pub(crate) fn new(text: &[u8], statements: u32, names: &mut Names) -> Template {
        let mut uses = Vec::new();
        let mut numbered = Vec::with_capacity(text.len());
        let mut copied = 0;
        let mut at = 0;
        while let Some(colon) = text[at..].iter().position(|byte| *byte == b':') {
            at += colon;
            let length = variable_name_length(&text[at + 1..]);
            if length == 0 {
                // `::type` is a cast, however many colons there are.
                at += text[at..].iter().take_while(|byte| **byte == b':').count();
                continue;
            }
            let end = at + 1 + length;
            uses.push((at..end, names.intern(&text[at + 1..end])));
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
        Template {
            text: text.into(),
            slots: uses.iter().map(|(_, slot)| *slot).collect(),
            uses: uses.into(),
            numbered: numbered.into(),
            statements,
        }
    }

    /// The SQL as it stands in the script.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The variables in it, in order, each as often as it stands there.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Append the SQL with every defined variable replaced by its text. What is undefined stays
    /// `:name`.
    pub fn write_simple(&self, variables: &Variables, out: &mut Vec<u8>) {
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

    /// The SQL with numbered parameters.
    ///
    /// # Errors
    /// If it uses variables more than [`MAX_PARAMETERS`] times. The simple protocol has no such
    /// limit, so this is found when another one is chosen.
    pub fn parameterized(&self) -> Result<Parameterized<'_>, TooManyParameters> {
        if self.uses.len() > MAX_PARAMETERS {
            return Err(TooManyParameters(String::from_utf8_lossy(&self.text).into_owned()));
        }
        Ok(Parameterized { text: &self.numbered, slots: &self.slots })
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
            let mut names = Names::new();
            let template = Template::new(sql.as_bytes(), 1, &mut names);
            let mut variables = Variables::new(&names);
            let mut set = |name: &str, value| variables.set(names.intern(name), value);
            set("x", Value::Int(-5));
            set("n", Value::Null);
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
    }

    #[test]
    fn two_hundred_and_fifty_five_uses_at_most() {
        let mut names = Names::new();
        let fits = Template::new(":x".repeat(255).as_bytes(), 1, &mut names);
        assert_eq!(fits.parameterized().unwrap().slots.len(), 255);
        let too_many = Template::new(":x".repeat(256).as_bytes(), 1, &mut names);
        let message = too_many.parameterized().unwrap_err().to_string();
        assert!(message.starts_with("statement has too many arguments (maximum is 255): :x:x"));
    }
}
