//! `/proc/pressure/*`: how long tasks stood still for want of a resource.

use spec::metrics;

use crate::reading::Reading;

/// The time in which at least one task waited for `resource`, in percent-seconds: the `some` line
/// (Documentation/accounting/psi.rst). Its averages decay, the total does not.
pub(super) fn from_pressure(resource: &str, text: &str) -> Option<Reading> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    let total_us: u64 = total.parse().ok()?;
    Some(Reading::new(&metrics::PRESSURE_PCT, resource, total_us as f64 / 1e4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_some_is_what_counts() {
        let check = |text: &str, expected: Option<f64>| {
            let got = from_pressure("io", text);
            assert_eq!(got.as_ref().map(|r| r.value), expected);
            assert!(got.is_none_or(|r| r.label == "io"));
        };
        check(
            "some avg10=0.29 avg60=0.37 avg300=0.30 total=4387459\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            Some(438.7459),
        );
        check("some avg10=0.00\n", None);
        check("some total=x", None);
        check("", None);
    }
}
