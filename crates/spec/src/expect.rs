//! The interval in which a claim expects its value.

use std::fmt;

/// An interval of numbers, as a claim writes it: `>= 0.9`, `< 1`, `== 0`, `0.95 .. 1.05`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    low: f64,
    high: f64,
    ends: Ends,
    text: String,
}

/// Whether the ends belong to the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Inside,
    Outside,
}

impl Expect {
    /// Reads an expectation.
    ///
    /// # Errors
    /// Says what it should look like.
    pub fn parse(text: &str) -> Result<Expect, String> {
        let operators = [">=", "<=", "==", ">", "<"];
        let trimmed = text.trim();
        let operator = operators.into_iter().find(|operator| trimmed.starts_with(operator));
        let interval = match operator {
            Some(operator) => {
                let bound = number(&trimmed[operator.len()..])?;
                match operator {
                    ">=" => (bound, f64::INFINITY, Ends::Inside),
                    "<=" => (f64::NEG_INFINITY, bound, Ends::Inside),
                    ">" => (bound, f64::INFINITY, Ends::Outside),
                    "<" => (f64::NEG_INFINITY, bound, Ends::Outside),
                    _ => (bound, bound, Ends::Inside),
                }
            }
            None => {
                let (low, high) = trimmed.split_once("..").ok_or_else(|| shape(trimmed))?;
                (number(low)?, number(high)?, Ends::Inside)
            }
        };
        let (low, high, ends) = interval;
        if low > high {
            return Err(format!("the interval {trimmed} is empty"));
        }
        Ok(Expect { low, high, ends, text: trimmed.to_owned() })
    }

    /// Whether a value lies inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        match self.ends {
            Ends::Inside => self.low <= value && value <= self.high,
            Ends::Outside => self.low < value && value < self.high,
        }
    }

    /// The lower end, negative infinity where there is none.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper end, infinity where there is none.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.high
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn number(text: &str) -> Result<f64, String> {
    let parsed = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    parsed.ok_or_else(|| shape(text.trim()))
}

fn shape(text: &str) -> String {
    format!("\"{text}\" is not an expectation")
}

/// How to write one, as a hint.
pub(crate) const HINT: &str = "write \">= 0.9\", \"< 1\", \"== 0\" or \"0.95 .. 1.05\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_is_an_interval() {
        let check = |text: &str, inside: f64, outside: f64| {
            let expect = Expect::parse(text).unwrap();
            assert!(expect.contains(inside), "{inside} in {text}");
            assert!(!expect.contains(outside), "{outside} not in {text}");
        };
        check(">= 0.9", 0.9, 0.899);
        check("> 1", 1.01, 1.0);
        check("<=1.05", 1.05, 1.06);
        check("< 1", 0.99, 1.0);
        check("== 0", 0.0, 1.0);
        check("0.95 .. 1.05", 0.95, 1.06);
        for wrong in ["", "0.9", "~ 1", ">= x", "2 .. 1", ">= inf"] {
            assert!(Expect::parse(wrong).is_err(), "{wrong}");
        }
    }
}
