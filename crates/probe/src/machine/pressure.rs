//! `/proc/pressure/*`: how long tasks stood still for want of a resource.

use crate::{metric, reading::Reading};

/// Stall time of `resource`, in percent of the time once it is a rate, labelled `cpu some`.
/// `some`: at least one task waited; `full`: all of them did (Documentation/accounting/psi.rst).
pub(super) fn from_pressure(resource: &str, text: &str) -> Vec<Reading> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let share = words.next().filter(|share| ["some", "full"].contains(share))?;
        let total_us: u64 = words.find_map(|word| word.strip_prefix("total="))?.parse().ok()?;
        let percent_seconds = total_us as f64 / 1e4;
        Some(Reading::new(metric::PRESSURE, format!("{resource} {share}"), percent_seconds))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_what_counts() {
        let text = "some avg10=0.29 avg60=0.37 avg300=0.30 total=4387459\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let got: Vec<_> =
            from_pressure("cpu", text).into_iter().map(|r| (r.label, r.value)).collect();
        assert_eq!(got, [("cpu some".to_owned(), 438.7459), ("cpu full".to_owned(), 0.0)]);
        assert!(from_pressure("io", "some avg10=0.00\nsome total=x\nmost total=1").is_empty());
    }
}
