//! Numbers as people read them.

/// `16,384`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things, with the noun in the singular or in the regular plural: `1 time`, `0 times`,
/// `2 batches`, `1,200 rows`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with("ch") || noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", grouped(count))
}

/// A number of bytes in the largest unit that leaves 1 or more: `334 MiB`, `23.5 GiB`.
pub fn size(bytes: u64) -> String {
    let (value, unit) = scaled(bytes as f64);
    let places = usize::from(unit != "B" && value < 99.95);
    format!("{value:.places$} {unit}").replace(".0 ", " ")
}

/// A number of bytes in the largest unit that leaves 1 or more, and that unit. Units are powers of
/// 1024, as PostgreSQL's are.
pub fn scaled(bytes: f64) -> (f64, &'static str) {
    let mut units = ["B", "KiB", "MiB", "GiB"].into_iter();
    let mut value = bytes;
    while value.abs() >= 1023.95 {
        let Some(_) = units.next() else { break };
        value /= 1024.0;
    }
    (value, units.next().unwrap_or("TiB"))
}

/// `9 s`, `5 min 10 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, 0) => format!("{min} min"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let check = |seconds, expected| assert_eq!(duration(seconds), expected);
        check(9.2, "9 s");
        check(310.0, "5 min 10 s");
        check(600.0, "10 min");
        check(7_512.0, "2 h 5 min");
        let check = |bytes, expected| assert_eq!(size(bytes), expected);
        check(334 << 20, "334 MiB");
        check(0, "0 B");
        check(812, "812 B");
        check(12_600, "12.3 KiB");
        check(3 << 40, "3 TiB");
        check(3 << 50, "3072 TiB");
        check(32 << 30, "32 GiB");
        check(23_500 << 20, "22.9 GiB");
        assert_eq!(grouped(16_384), "16,384");
        assert_eq!(grouped(64), "64");
        let check = |count, noun, expected| assert_eq!(counted(count, noun), expected);
        check(0, "time", "0 times");
        check(1, "time", "1 time");
        check(2, "batch", "2 batches");
        check(1_200, "row", "1,200 rows");
    }
}
