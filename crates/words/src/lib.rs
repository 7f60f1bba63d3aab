//! Numbers as people read them.

/// `16,384`.
#[must_use]
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

/// `334 MiB`, `23.5 GiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let mib = bytes as f64 / (1024.0 * 1024.0);
    match mib / 1024.0 {
        gib if gib >= 1000.0 => format!("{gib:.0} GiB"),
        gib if gib >= 1.0 => format!("{gib:.1} GiB").replace(".0 ", " "),
        _ => format!("{mib:.0} MiB"),
    }
}

/// `9 s`, `5 min 10 s`, `2 h 5 min`.
#[must_use]
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
        check(32 << 30, "32 GiB");
        check(23_500 << 20, "22.9 GiB");
        assert_eq!(grouped(16_384), "16,384");
        assert_eq!(grouped(64), "64");
    }
}
