//! Moments of logs and snapshots: a date and a time of day, in the time zone in which the source writes them.

use jiff::civil::DateTime;

/// A date and a time in the time zone of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceMoment(DateTime);

impl SourceMoment {
    /// The seconds from an earlier moment of the same source to this one.
    pub fn seconds_since(self, earlier: SourceMoment) -> f64 {
        self.0.duration_since(earlier.0).as_secs_f64()
    }
}

/// The moment with which a text begins, as in `2026-03-01 09:30:00.123 UTC`; seconds may be left out.
pub fn moment(text: &str) -> Option<SourceMoment> {
    let text = text.trim_start();
    let length = text.bytes().take_while(|b| b.is_ascii_digit() || b"-:. T".contains(b)).count();
    let mut text = text.get(..length)?.trim_end();
    // A zone such as -07 follows the time without a blank.
    if let Some(zone) = text.get(11..).and_then(|time| time.find('-')) {
        text = &text[..11 + zone];
    }
    match text.len() {
        10 => format!("{text} 00:00").parse().ok().map(SourceMoment),
        16.. => text.parse().ok().map(SourceMoment),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_sources_write_them() {
        let check =
            |text: &str, is_read: bool| assert_eq!(moment(text).is_some(), is_read, "{text}");
        check("2026-03-01 09:30:00.123 UTC", true);
        check("2026-03-01 09:30:00.123456+00", true);
        check("2026-03-01 09:30:00-07", true);
        check("2026-03-01 09:30", true);
        check("2026-03-01", true);
        check("2026-03-01T09:30:00Z", true);
        check("LOG:  duration", false);
        check("2026-13-01 09:30", false);
        let (early, late) = (moment("2026-03-01 09:30:00+00"), moment("2026-03-01 09:31:30.5+00"));
        assert_eq!(late.unwrap().seconds_since(early.unwrap()), 90.5);
    }
}
