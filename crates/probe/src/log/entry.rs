//! One entry of a server's log, whichever format it was written in.

/// The fields of a log entry that a probe needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The server's wall clock in its `log_timezone`.
    pub(crate) at: WallClock,
    pub(crate) severity: String,
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    pub(crate) detail: String,
    pub(crate) application: String,
    pub(crate) backend_type: String,
}

/// Microseconds from 1970-01-01 00:00 on a clock of an unnamed time zone: only differences
/// between two such readings of the same server have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WallClock(pub(crate) i64);

impl WallClock {
    /// Parses `2026-11-21 23:11:33.123 UTC`. What stands after the fraction is not looked at.
    pub(crate) fn parse(text: &str) -> Option<WallClock> {
        let (date, rest) = text.split_once(' ')?;
        let time = rest.split(' ').next()?;
        let [year, month, day] = numbers(date, '-')?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let [hour, minute, second] = numbers(time, ':')?;
        let plausible = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..=60).contains(&second);
        if !plausible {
            return None;
        }
        let seconds =
            days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        Some(WallClock(seconds * 1_000_000 + microseconds(fraction)?))
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, by counting from a 1 March so that
/// the leap day ends the year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    let days_to_march_1 = 365 * year + year / 4 - year / 100 + year / 400;
    const DAYS_TO_1970: i64 = 719_468;
    days_to_march_1 + day_of_year - DAYS_TO_1970
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits =
            !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
        if digits { part.parse().ok() } else { None }
    });
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(found)
}

fn microseconds(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<6}")[..6].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clocks() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(WallClock::parse(text).map(|clock| clock.0), expected, "{text}");
        };
        check("1970-01-01 00:00:00.000 UTC", Some(0));
        check("2026-11-21 23:11:33.123 UTC", Some(1_795_302_693_123_000));
        check("2024-02-29 12:00:00.000001 CET", Some(1_709_208_000_000_001));
        check("2000-03-01 00:00:00 GMT", Some(951_868_800_000_000));
        check("1969-12-31 23:59:59.5", Some(-500_000));
        check("2026-13-21 23:11:33.123 UTC", None);
        check("2026-11-21T23:11:33Z", None);
        check("2026-11-21 23:11", None);
        check("2026-11-21 23:11:33.x UTC", None);
        check("+026-11-21 23:11:33.0 UTC", None);
        check("", None);
    }
}
