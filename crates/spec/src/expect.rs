//! Syntax of the range in which a claim expects its value.

use stats::Expectation;

pub(crate) fn parse(text: &str) -> Result<Expectation, String> {
    let text = text.trim();
    let bounds: [(&str, Bounded); 5] = [
        (">=", Expectation::AtLeast),
        ("<=", Expectation::AtMost),
        ("==", Expectation::Equal),
        (">", Expectation::MoreThan),
        ("<", Expectation::LessThan),
    ];
    for (operator, expect) in bounds {
        if let Some(bound) = text.strip_prefix(operator) {
            return Ok(expect(number(bound).ok_or_else(|| shape(text))?));
        }
    }
    if let Some((low, high)) = text.split_once("..") {
        let (low, high) = number(low).zip(number(high)).ok_or_else(|| shape(text))?;
        if low > high {
            return Err(format!("the interval {text} is empty"));
        }
        return Ok(Expectation::Between { low, high });
    }
    let (value, percent) = text.split_once('±').ok_or_else(|| shape(text))?;
    let percent = percent.trim().strip_suffix('%').ok_or_else(|| shape(text))?;
    let (value, percent) = number(value).zip(number(percent)).ok_or_else(|| shape(text))?;
    if percent < 0.0 {
        return Err(format!("the tolerance of {text} is negative"));
    }
    Ok(Expectation::Approximately { value, tolerance: percent / 100.0 })
}

/// An expectation with one bound.
type Bounded = fn(f64) -> Expectation;

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

fn shape(text: &str) -> String {
    format!("\"{text}\" is not an expectation")
}

/// Syntax of a range, as a hint.
pub(crate) const HINT: &str =
    "write \">= 0.9\", \"< 1\", \"== 0\", \"0.95 .. 1.05\" or \"1.14 ± 5 %\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_is_an_interval() {
        let check = |text: &str, expected: &str| {
            let shown = parse(text).map_or_else(|error| error, |e| e.to_string());
            assert_eq!(shown, expected);
        };
        check(">= 0.9", "≥ 0.9");
        check("> 1", "> 1");
        check(" <=1.05 ", "≤ 1.05");
        check("< -1e3", "< -1000");
        check("== 0", "= 0");
        check("0.95 .. 1.05", "0.95 … 1.05");
        check("1.144 ± 5 %", "1.144 ± 5 %");
        check("", "\"\" is not an expectation");
        check("0.9", "\"0.9\" is not an expectation");
        check(">= x", "\">= x\" is not an expectation");
        check(">= inf", "\">= inf\" is not an expectation");
        check("1 ± 5", "\"1 ± 5\" is not an expectation");
        check("1 ± -5 %", "the tolerance of 1 ± -5 % is negative");
        check("2 .. 1", "the interval 2 .. 1 is empty");
    }
}
