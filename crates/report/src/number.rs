//! Numbers as a reader wants them: three significant digits, thousands grouped, units beside them.
//!
//! Limits: presentation only; whatever is compared or stored keeps its full precision.

pub(crate) use terms::{figure, figure_with_interval as with_interval, percent};

/// A figure with its unit: `5,873/s`, `3.1 ms`, `21 %`. Without a unit the bare figure.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => figure(value),
        "1/s" => format!("{}/s", figure(value)),
        "B" | "B/s" => bytes(value, unit),
        _ => format!("{} {unit}", figure(value)),
    }
}

/// A duration, scaled to the unit in which it reads well.
pub(crate) fn duration_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        v if v < 1e3 => (ns, "ns"),
        v if v < 1e6 => (ns / 1e3, "µs"),
        v if v < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", figure(value))
}

/// A count, whole and grouped.
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A value with the digits that it was published with: shortest form that reads back the same.
pub(crate) fn as_written(value: f64) -> String {
    let text = value.to_string();
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", group(whole)),
        None => group(&text),
    }
}

fn bytes(value: f64, unit: &str) -> String {
    let per = if unit.ends_with("/s") { "/s" } else { "" };
    let (scaled, unit) = terms::scaled(value);
    format!("{} {unit}{per}", figure(scaled))
}

fn group(whole: &str) -> String {
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("−", digits),
        None => ("", whole),
    };
    let grouped = digits.parse().map_or_else(|_| digits.to_owned(), terms::grouped);
    format!("{sign}{grouped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_beside_the_figure() {
        assert_eq!(with_unit(5873.0, "1/s"), "5,873/s");
        assert_eq!(with_unit(3.21, "ms"), "3.21 ms");
        assert_eq!(with_unit(12_300_000.0, "B/s"), "11.7 MiB/s");
        assert_eq!(duration_ns(812_000.0), "812 µs");
        assert_eq!(percent(0.213), "21 %");
        assert_eq!(as_written(57296.0), "57,296");
        assert_eq!(as_written(1.144), "1.144");
    }
}
