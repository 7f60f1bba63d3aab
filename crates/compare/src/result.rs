//! What a comparison came to: as data and in words.

use serde::Serialize;
use stats::Interval;

use crate::answer::{Stop, Verdict, half_width};
use crate::figure::{Figure, Metric};
use crate::run::Request;
use crate::side::Side;

/// What a comparison came to.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// A, then B.
    pub sides: [SideFacts; 2],
    /// Whether B was a copy of A on purpose.
    pub is_self: bool,
    /// Whether B's files were copied from A's; else both loaded the same data.
    pub copied: bool,
    /// Clients of each side.
    pub clients: u32,
    /// Length of a block, rest included, in milliseconds.
    pub block_ms: u64,
    /// The rest at its end, in milliseconds.
    pub rest_ms: u64,
    /// Pairs of neighbouring blocks that count.
    pub pairs: usize,
    /// How long measuring took, pilot included.
    pub seconds: f64,
    /// A difference below this share counts as none.
    pub threshold: f64,
    /// The deciding figures' intervals hold together at this level, the others each by itself.
    pub confidence: f64,
    /// Of the order of blocks and of the keys.
    pub seed: u64,
    /// Why it ended.
    pub stop: Stop,
    /// What was compared.
    pub figures: Vec<Figure>,
    /// What stands against the answer.
    pub doubts: Vec<String>,
}

/// What is known of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideFacts {
    /// Its PostgreSQL.
    pub version: String,
    /// Where its programs are.
    pub bin: String,
    /// Settings of its own.
    pub settings: Vec<(String, String)>,
    /// The script that was run on it alone.
    pub sql: Option<String>,
}

impl SideFacts {
    pub(crate) fn of(side: &Side, request: &Request, index: usize) -> SideFacts {
        let options = &request.sides[index];
        SideFacts {
            version: side.version.clone(),
            bin: side.node.installation().bin().display().to_string(),
            settings: options.settings.clone(),
            sql: options.sql.as_ref().map(|path| path.display().to_string()),
        }
    }
}

impl Comparison {
    /// What is said of a figure.
    #[must_use]
    pub fn verdict(&self, metric: Metric) -> Verdict {
        let figure = self.figures.iter().find(|figure| figure.metric == metric);
        Verdict::of(metric, figure.and_then(|one| one.ratio.as_ref()), self.threshold)
    }

    /// The answer, in a sentence or two.
    #[must_use]
    pub fn answer(&self) -> String {
        let throughput = self.figures.iter().find(|one| one.metric == Metric::Throughput);
        let pairs = format!("{} pairs, {}", self.pairs, span(self.seconds));
        let Some(ratio) = throughput.and_then(|figure| figure.ratio) else {
            return format!(
                "Cannot tell: {pairs} are too few. An interval takes {} pairs.",
                2 * stats::sequence::OBSERVATIONS_MIN
            );
        };
        let seen = format!("{} of A's throughput ({pairs})", times(&ratio));
        let percent = self.threshold * 100.0;
        let first = match self.verdict(Metric::Throughput) {
            Verdict::Better => format!("B is faster: {seen}."),
            Verdict::Worse => format!("B is slower: {seen}."),
            Verdict::Equal => format!("B is as fast as A within {percent} %: {seen}."),
            Verdict::CannotTell => format!(
                "Cannot tell whether B is faster or slower: {seen}. The interval is ±{:.1} % wide.",
                half_width(&ratio) * 100.0
            ),
        };
        let p99 = self.figures.iter().find(|one| one.metric == Metric::P99);
        let second = p99.and_then(|one| one.ratio).map(|ratio| {
            let words = match self.verdict(Metric::P99) {
                Verdict::Better => "is lower on B",
                Verdict::Worse => "is higher on B",
                Verdict::Equal | Verdict::CannotTell => return String::new(),
            };
            format!(" The {} {words}: {}.", Metric::P99.words(), times(&ratio))
        });
        first + &second.unwrap_or_default()
    }

    /// As JSON, with lower and upper bounds.
    #[must_use]
    pub fn json(&self) -> String {
        let figure = |figure: &Figure| {
            let ratio = figure.ratio.map(|ratio| {
                serde_json::json!({
                    "value": ratio.point, "lower": ratio.low, "upper": ratio.high,
                    "confidence": ratio.confidence, "n": ratio.n, "method": ratio.method.name(),
                })
            });
            serde_json::json!({
                "metric": figure.metric, "unit": figure.metric.unit(),
                "a": figure.sides[0], "b": figure.sides[1], "b_over_a": ratio,
                "verdict": self.verdict(figure.metric),
                "deciding": Metric::DECIDING.contains(&figure.metric),
            })
        };
        let value = serde_json::json!({
            "format": 1,
            "answer": self.answer(),
            "a": self.sides[0], "b": self.sides[1],
            "self": self.is_self, "same_files": self.copied,
            "clients": self.clients, "block_ms": self.block_ms, "rest_ms": self.rest_ms,
            "pairs": self.pairs, "seconds": self.seconds, "threshold": self.threshold,
            "confidence": self.confidence, "seed": self.seed, "stop": self.stop,
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
            "doubts": self.doubts,
        });
        format!("{value:#}")
    }
}

/// `0.968× [0.957, 0.979]`
#[must_use]
pub fn times(ratio: &Interval) -> String {
    format!("{:.3}× [{:.3}, {:.3}]", ratio.point, ratio.low, ratio.high)
}

/// `9 min 4 s`
fn span(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 60, whole % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(tps: Option<(f64, f64)>, p99: Option<(f64, f64)>) -> Comparison {
        let interval = |(low, high): (f64, f64)| {
            let point = (low * high).sqrt();
            Interval { low, high, ..Interval::exact(point, 100) }
        };
        let side = || SideFacts {
            version: "15.20".to_owned(),
            bin: "/usr/lib/postgresql/15/bin".to_owned(),
            settings: Vec::new(),
            sql: None,
        };
        let figure = |metric, ratio: Option<(f64, f64)>| Figure {
            metric,
            sides: [1.0, 1.0],
            ratio: ratio.map(interval),
        };
        Comparison {
            sides: [side(), side()],
            is_self: false,
            copied: true,
            clients: 8,
            block_ms: 200,
            rest_ms: 5,
            pairs: 212,
            seconds: 544.0,
            threshold: 0.03,
            confidence: 0.95,
            seed: 1,
            stop: Stop::Precision,
            figures: vec![figure(Metric::Throughput, tps), figure(Metric::P99, p99)],
            doubts: Vec::new(),
        }
    }

    #[test]
    fn the_answer_is_a_sentence() {
        let check = |tps, p99, expected: &str| {
            assert_eq!(comparison(tps, p99).answer(), expected);
        };
        check(
            Some((0.957, 0.979)),
            None,
            "B is slower: 0.968× [0.957, 0.979] of A's throughput (212 pairs, 9 min 4 s).",
        );
        check(
            Some((1.057, 1.079)),
            Some((0.95, 1.05)),
            "B is faster: 1.068× [1.057, 1.079] of A's throughput (212 pairs, 9 min 4 s).",
        );
        check(
            Some((0.99, 1.01)),
            Some((1.05, 1.15)),
            "B is as fast as A within 3 %: 1.000× [0.990, 1.010] of A's throughput (212 pairs, \
             9 min 4 s). The 99th percentile of latency is higher on B: 1.099× [1.050, 1.150].",
        );
        check(
            Some((0.95, 1.05)),
            None,
            "Cannot tell whether B is faster or slower: 0.999× [0.950, 1.050] of A's throughput \
             (212 pairs, 9 min 4 s). The interval is ±5.0 % wide.",
        );
        check(
            None,
            None,
            "Cannot tell: 212 pairs, 9 min 4 s are too few. An interval takes 32 pairs.",
        );
    }

    #[test]
    fn json_has_bounds_and_verdicts() {
        let json = comparison(Some((0.957, 0.979)), None).json();
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let tps = &value["figures"][0];
        assert_eq!(tps["metric"], "throughput");
        assert_eq!(tps["verdict"], "worse");
        assert_eq!(tps["b_over_a"]["upper"], 0.979);
        assert_eq!(value["figures"][1]["b_over_a"], serde_json::Value::Null);
    }
}
