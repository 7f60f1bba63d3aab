//! The text: families of samples, each family with its type and its help.

use std::fmt::{self, Write as _};

use terms::foreign::openmetrics_label;

/// Content type of the format.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyType {
    /// A value that goes up and down.
    Gauge,
    /// A sum that only grows; the names of its samples end with `_total`.
    Counter,
    /// Quantiles with their count and their sum.
    Summary,
    /// A 1 with labels that say something; the name of its sample ends with `_info`.
    Info,
}

/// A text under construction.
#[derive(Clone, Debug, Default)]
pub struct MetricsText(String);

/// A family of the text.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    text: &'a mut String,
    name: String,
    kind: FamilyType,
}

impl MetricsText {
    /// Begins a family. Its name gets the prefix `pgrig_`.
    pub fn family(&mut self, name: &str, kind: FamilyType, help: &str) -> MetricFamily<'_> {
        let word = match kind {
            FamilyType::Gauge => "gauge",
            FamilyType::Counter => "counter",
            FamilyType::Summary => "summary",
            FamilyType::Info => "info",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# TYPE pgrig_{name} {word}\n# HELP pgrig_{name} {help}");
        MetricFamily { text: &mut self.0, name: format!("pgrig_{name}"), kind }
    }

    /// A gauge with one sample, or with none if its value is unknown.
    pub fn gauge(&mut self, name: &str, help: &str, value: Option<impl fmt::Display>) {
        let mut family = self.family(name, FamilyType::Gauge, help);
        if let Some(value) = value {
            family.sample(&[], value);
        }
    }

    /// A counter with one sample.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, FamilyType::Counter, help).sample(&[], value);
    }

    /// The whole text.
    pub fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

impl MetricFamily<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        let suffix = match self.kind {
            FamilyType::Gauge | FamilyType::Summary => "",
            FamilyType::Counter => "_total",
            FamilyType::Info => "_info",
        };
        self.suffixed(suffix, labels, value);
    }

    /// Adds the count and the sum of a summary.
    pub fn count_and_sum(&mut self, count: u64, sum: f64) {
        self.suffixed("_count", &[], count);
        self.suffixed("_sum", &[], sum);
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        let MetricFamily { text, name, .. } = self;
        let _ = write!(text, "{name}{suffix}");
        for (index, (label, content)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{label}=\"{}\"", openmetrics_label(content));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}

/// The names of metrics in another text, such as the queries of a dashboard.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("pgrig_"))
}

/// True if a sample of this name belongs to a family of the exposition.
pub fn has(exposition: &str, name: &str) -> bool {
    exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")).any(|line| {
        let (family, kind) = line.split_once(' ').unwrap_or((line, ""));
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        name.strip_prefix(family) == Some(suffix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_below_their_family() {
        let mut text = MetricsText::default();
        text.gauge("clients", "Clients.", Some(3));
        text.gauge("lag", "Unknown.", None::<f64>);
        text.counter("tries", "Tries.", 41);
        let mut failed = text.family("failed", FamilyType::Counter, "By kind.");
        failed.sample(&[("kind", "a \"b\"\\\n"), ("node", "s1")], 2);
        text.family("setting", FamilyType::Info, "Setting.").sample(&[("asked", "")], 1);
        let mut latency = text.family("latency_seconds", FamilyType::Summary, "Latency.");
        latency.sample(&[("quantile", "0.5")], 0.002);
        latency.count_and_sum(1, 0.002);
        let expected = r#"# TYPE pgrig_clients gauge
# HELP pgrig_clients Clients.
pgrig_clients 3
# TYPE pgrig_lag gauge
# HELP pgrig_lag Unknown.
# TYPE pgrig_tries counter
# HELP pgrig_tries Tries.
pgrig_tries_total 41
# TYPE pgrig_failed counter
# HELP pgrig_failed By kind.
pgrig_failed_total{kind="a \"b\"\\\n",node="s1"} 2
# TYPE pgrig_setting info
# HELP pgrig_setting Setting.
pgrig_setting_info{asked=""} 1
# TYPE pgrig_latency_seconds summary
# HELP pgrig_latency_seconds Latency.
pgrig_latency_seconds{quantile="0.5"} 0.002
pgrig_latency_seconds_count 1
pgrig_latency_seconds_sum 0.002
# EOF
"#;
        assert_eq!(text.end(), expected);
        let asked = "rate(pgrig_tries_total{a=\"b\"}[5m]) / pgrig_clients + pgrig_tries";
        let known: Vec<bool> = names(asked).map(|name| has(expected, name)).collect();
        assert_eq!(known, [true, true, false]);
    }
}
