//! "Does it fit?" in words.

use study::Preflight;

use crate::terminal::{STRONG, styled};

/// Why a study cannot run here: what it needs beside what there is, and what to do.
pub(crate) fn refusal(preflight: &Preflight) -> String {
    let mut text = String::from("the study does not fit this machine");
    let misfits = preflight.distinct_misfits();
    let longest = misfits.iter().map(|misfit| misfit.needs.chars().count()).max().unwrap_or(0);
    let width = longest.min(NEEDS_COLUMNS_MAX);
    for misfit in &misfits {
        text.push_str(&format!("\n  needs   {:width$}   has  {}", misfit.needs, misfit.has));
    }
    let mut hints: Vec<&str> = misfits.iter().filter_map(|one| one.hint.as_deref()).collect();
    hints.dedup();
    for hint in hints {
        text.push_str(&format!("\n  {}   {hint}", styled(STRONG, "hint:")));
    }
    text
}

/// How long something takes: `9 s`, `5 min 10 s`, `2 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, 0) => format!("{min} min"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

/// `16,384`.
pub(crate) fn grouped(number: u64) -> String {
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

/// `1.9 GB`.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 / 1e6 {
        mb if mb >= 1_000.0 => format!("{:.1} GB", mb / 1e3),
        mb => format!("{mb:.0} MB"),
    }
}

/// A longer one takes the room of what there is.
const NEEDS_COLUMNS_MAX: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_numbers_are_written_for_people() {
        let check = |seconds, expected| assert_eq!(duration(seconds), expected);
        check(9.2, "9 s");
        check(310.0, "5 min 10 s");
        check(600.0, "10 min");
        check(7_512.0, "2 h 5 min");
        assert_eq!(grouped(16_384), "16,384");
        assert_eq!(bytes(1_900_000_000), "1.9 GB");
    }
}
