//! `\sleep`.

use crate::names::{VariableNames, VariableSlot};
use crate::variables::Variables;

/// Time that `\sleep` waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SleepTime {
    /// Always the same time, in microseconds; not positive means not at all.
    Fixed {
        /// Microseconds.
        time_us: i64,
    },
    /// As many units as the variable says.
    Variable {
        /// The variable.
        slot: VariableSlot,
        /// The name, for messages.
        name: Box<str>,
        /// Number of microseconds in a unit.
        unit_us: i64,
    },
}

/// Reason why the time to sleep is unknown, in pgbench's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SleepError {
    #[error("sleep: undefined variable \"{0}\"")]
    Undefined(Box<str>),
    #[error("sleep: invalid sleep time \"{text}\" for variable \"{name}\"")]
    NotANumber { name: Box<str>, text: Box<str> },
}

impl SleepTime {
    /// `amount` is `:name` or begins with a number; `unit_us` is the unit in microseconds.
    pub(crate) fn new(amount: &[u8], unit_us: i64, names: &mut VariableNames) -> SleepTime {
        match amount {
            [b':', name @ ..] => {
                let slot = names.intern(name);
                SleepTime::Variable { slot, name: names.name(slot).into(), unit_us }
            }
            _ => SleepTime::Fixed { time_us: leading_integer(amount).saturating_mul(unit_us) },
        }
    }

    /// The time to sleep in microseconds; not positive means not at all.
    pub fn time_us(&self, variables: &Variables) -> Result<i64, SleepError> {
        match self {
            SleepTime::Fixed { time_us } => Ok(*time_us),
            SleepTime::Variable { slot, name, unit_us } => {
                let mut text = Vec::with_capacity(24);
                if !variables.write(*slot, &mut text) {
                    return Err(SleepError::Undefined(name.clone()));
                }
                let count = leading_integer(&text);
                if count == 0 && !text.first().is_some_and(u8::is_ascii_digit) {
                    let text = String::from_utf8_lossy(&text).into();
                    return Err(SleepError::NotANumber { name: name.clone(), text });
                }
                Ok(count.saturating_mul(*unit_us))
            }
        }
    }
}

/// The unit that `word` names, in microseconds.
pub(crate) fn unit_us(word: &[u8]) -> Option<i64> {
    [("us", 1), ("ms", 1_000), ("s", 1_000_000)]
        .into_iter()
        .find(|(unit, _)| word.eq_ignore_ascii_case(unit.as_bytes()))
        .map(|(_, unit_us)| unit_us)
}

/// C's atoi: what follows the digits is ignored, no digits are 0.
fn leading_integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let magnitude = digits
        .fold(0_i64, |sum, byte| sum.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    sign * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn multiplies_amount_and_unit() {
        let mut names = VariableNames::new();
        let fixed = |amount: &str, unit: &str, names: &mut VariableNames| {
            let sleep = SleepTime::new(amount.as_bytes(), unit_us(unit.as_bytes()).unwrap(), names);
            sleep.time_us(&Variables::default()).unwrap()
        };
        assert_eq!(fixed("10", "MS", &mut names), 10_000);
        assert_eq!(fixed("-1", "s", &mut names), -1_000_000);
        assert_eq!(fixed("99999999999999999999", "s", &mut names), i64::MAX);
        assert_eq!(unit_us(b"min"), None);
    }

    #[test]
    fn a_variable_must_hold_a_number() {
        let mut names = VariableNames::new();
        let sleep = SleepTime::new(b":t", 1_000, &mut names);
        let slot = names.slot("t").unwrap();
        let mut variables = Variables::new(&names);
        let undefined = sleep.time_us(&variables).unwrap_err();
        assert_eq!(undefined.to_string(), "sleep: undefined variable \"t\"");
        variables.set(slot, Value::Double(2.5));
        assert_eq!(sleep.time_us(&variables), Ok(2_000));
        variables.set_text(slot, "soon");
        let invalid = sleep.time_us(&variables).unwrap_err();
        assert_eq!(invalid.to_string(), "sleep: invalid sleep time \"soon\" for variable \"t\"");
    }
}
