//! Goal that a server must keep: `p99 < 10ms and failures < 0.1%`.

use stats::LatencyHistogram;

/// Some limits, all of which must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    text: String,
    clauses: Vec<Clause>,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clause {
    what: What,
    /// Nanoseconds, a share or a count, as `what` says.
    limit: f64,
    /// `<=` and not `<`.
    inclusive: bool,
}

/// Quantity that is limited.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// A quantile of latency from the intended start, 0 to 1.
    Quantile(f64),
    /// Mean latency.
    Mean,
    /// Failed and skipped transactions, of all.
    Failures,
    /// Transactions that were due but not begun, at the window's end.
    Backlog,
}

/// Results of a window.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// From the intended start.
    pub latency: &'a LatencyHistogram,
    /// Failed and skipped transactions, 0 to 1.
    pub failures: f64,
    /// Due but not begun at the end.
    pub backlog: u64,
}

/// A goal that can be understood, for messages.
const EXAMPLE: &str = "\"p99 < 10ms and failures < 1%\"";

impl Goal {
    /// Reads limits joined by `and`: `p50`, `p99`, `p99.9` (any percentile), `mean` and `max` with
    /// a time (`10ms`), `failures` with a percentage, `backlog` with a count.
    pub fn parse(text: &str) -> Result<Goal, String> {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.split(' ').any(|word| word == "or") {
            return Err(format!(
                "invalid goal \"{words}\": limits are joined by \"and\", as in {EXAMPLE}"
            ));
        }
        let clauses = words.split(" and ").map(Clause::parse).collect::<Result<_, _>>()?;
        Ok(Goal { text: words, clauses })
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if every limit held. If nothing was done, no limit on a latency holds.
    pub fn holds(&self, observed: &Observed<'_>) -> bool {
        self.clauses.iter().all(|clause| clause.holds(observed))
    }

    /// The value of each limit, in words: `p99 4.21 ms`.
    pub fn values(&self, observed: &Observed<'_>) -> String {
        let values: Vec<_> = self.clauses.iter().map(|clause| clause.value(observed)).collect();
        values.join(", ")
    }

    /// The first quantile of latency that is limited, 0 to 1, and its limit in nanoseconds.
    pub fn quantile(&self) -> Option<(f64, f64)> {
        self.clauses.iter().find_map(|clause| match clause.what {
            What::Quantile(quantile) => Some((quantile, clause.limit)),
            _ => None,
        })
    }
}

impl Clause {
    fn parse(text: &str) -> Result<Clause, String> {
        let wrong = |why: &str| format!("invalid goal \"{}\": {why}, as in {EXAMPLE}", text.trim());
        let at = text.find('<').ok_or_else(|| wrong("expecting < or <= and a limit"))?;
        let (name, rest) = (text[..at].trim(), &text[at + 1..]);
        let inclusive = rest.starts_with('=');
        let value = rest.trim_start_matches('=').trim();
        let digits =
            value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let number: f64 = value[..digits].parse().map_err(|_| wrong("expecting a number"))?;
        let unit = value[digits..].trim();
        let what = match name {
            "mean" => What::Mean,
            "max" => What::Quantile(1.0),
            "failures" => What::Failures,
            "backlog" => What::Backlog,
            _ => {
                let percent = name.strip_prefix('p').and_then(|text| text.parse::<f64>().ok());
                match percent {
                    Some(percent) if percent > 0.0 && percent <= 100.0 => {
                        What::Quantile(percent / 100.0)
                    }
                    _ => {
                        let known = "expecting p50, p99 or another percentile, mean, max, failures \
                                     or backlog";
                        return Err(wrong(known));
                    }
                }
            }
        };
        let limit = match (what, unit) {
            (What::Quantile(_) | What::Mean, "us") => number * 1e3,
            (What::Quantile(_) | What::Mean, "ms") => number * 1e6,
            (What::Quantile(_) | What::Mean, "s") => number * 1e9,
            (What::Quantile(_) | What::Mean, _) => return Err(wrong("expecting us, ms or s")),
            (What::Failures, "%") => number / 100.0,
            (What::Failures, _) => return Err(wrong("expecting a percentage")),
            (What::Backlog, "") => number,
            (What::Backlog, _) => return Err(wrong("expecting a count")),
        };
        Ok(Clause { what, limit, inclusive })
    }

    fn number(&self, observed: &Observed<'_>) -> Option<f64> {
        match self.what {
            What::Quantile(quantile) => observed.latency.quantile_ns(quantile).map(|ns| ns as f64),
            What::Mean => observed.latency.mean_ns(),
            What::Failures => Some(observed.failures),
            What::Backlog => Some(observed.backlog as f64),
        }
    }

    fn holds(&self, observed: &Observed<'_>) -> bool {
        self.number(observed).is_some_and(|value| {
            if self.inclusive { value <= self.limit } else { value < self.limit }
        })
    }

    fn value(&self, observed: &Observed<'_>) -> String {
        let Some(value) = self.number(observed) else { return "nothing was done".to_owned() };
        match self.what {
            What::Quantile(1.0) => format!("max {:.3} ms", value / 1e6),
            What::Quantile(quantile) => {
                // 0.999 times 100 is not quite 99.9.
                let percent = (quantile * 1e8).round() / 1e6;
                format!("p{percent} {:.3} ms", value / 1e6)
            }
            What::Mean => format!("mean {:.3} ms", value / 1e6),
            What::Failures => format!("failures {:.3} %", value * 100.0),
            What::Backlog => format!("backlog {value:.0}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_or_do_not() {
        let mut latency = LatencyHistogram::new();
        (1..=1000).for_each(|n| latency.record_ns(n * 10_000));
        let observed = Observed { latency: &latency, failures: 0.02, backlog: 7 };
        let check = |text: &str, expected: bool| {
            let goal = Goal::parse(text).expect(text);
            assert_eq!(goal.holds(&observed), expected, "{text}: {}", goal.values(&observed));
        };
        check("p99 < 10ms", true);
        check("p50<5010us", true);
        check("p50 < 4ms", false);
        check("p99.9 <= 0.0101s", true);
        check("max < 5ms", false);
        check("mean < 6 ms and failures < 3%", true);
        check("mean < 6 ms and failures < 2%", false);
        check("failures <= 2% and backlog <= 7", true);
        check("backlog < 7", false);
        let none = Observed { latency: &LatencyHistogram::new(), failures: 0.0, backlog: 0 };
        assert!(!Goal::parse("p99 < 10ms").unwrap().holds(&none), "nothing was done");
        assert_eq!(Goal::parse("p99.9  <  1s").unwrap().values(&observed), "p99.9 9.994 ms");
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        let check = |text: &str, why: &str| {
            let error = Goal::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        };
        check("p99", "expecting < or <= and a limit");
        check("p99 > 10ms", "expecting < or <= and a limit");
        check("p99 < 10ms or failures < 1%", "joined by \"and\"");
        check("p99 < 10", "expecting us, ms or s");
        check("p101 < 10ms", "expecting p50");
        check("speed < 10ms", "expecting p50");
        check("p99 < ms", "expecting a number");
        check("failures < 3", "expecting a percentage");
        check("backlog < 3ms", "expecting a count");
        check("p99 < 10ms and", "expecting");
    }
}
