//! From numbers as they are read to samples: counters become rates.

use std::collections::BTreeMap;

use record::{Moment, Sample};
use spec::{Metric, MetricKind};

/// One number as some probe read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) metric: &'static Metric,
    pub(crate) label: String,
    pub(crate) value: f64,
}

impl Reading {
    pub(crate) fn new(metric: &'static Metric, label: impl Into<String>, value: f64) -> Reading {
        Reading { metric, label: label.into(), value }
    }
}

/// Remembers the counters of one source (a node, the machine) between two readings.
///
/// A counter's first reading gives no sample, and neither does one that went backwards: the
/// server was restarted or its statistics were reset, and the increase is not known.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    before: BTreeMap<(&'static str, String), (Moment, f64)>,
}

impl Rates {
    /// The samples that `readings`, taken at `at`, give for `node`.
    pub(crate) fn samples(
        &mut self,
        node: &str,
        at: Moment,
        readings: Vec<Reading>,
    ) -> Vec<Sample> {
        readings
            .into_iter()
            .filter_map(|reading| {
                let value = match reading.metric.kind {
                    MetricKind::Gauge | MetricKind::Total => reading.value,
                    MetricKind::Rate => self.rate(at, &reading)?,
                };
                value.is_finite().then(|| Sample {
                    at,
                    node: node.to_owned(),
                    metric: reading.metric.name.to_owned(),
                    label: reading.label,
                    value,
                })
            })
            .collect()
    }

    fn rate(&mut self, at: Moment, reading: &Reading) -> Option<f64> {
        let key = (reading.metric.name, reading.label.clone());
        let (then, before) = self.before.insert(key, (at, reading.value))?;
        let elapsed_ns = at.since(then);
        let increase = reading.value - before;
        (elapsed_ns > 0 && increase >= 0.0).then(|| increase * 1e9 / elapsed_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::metrics::{DB_COMMITS, SESSIONS};

    fn second(n: u64) -> Moment {
        Moment(n * 1_000_000_000)
    }

    fn values(rates: &mut Rates, at: Moment, readings: Vec<Reading>) -> Vec<f64> {
        rates.samples("n", at, readings).into_iter().map(|sample| sample.value).collect()
    }

    #[test]
    fn a_counter_becomes_its_increase_per_second() {
        let mut rates = Rates::default();
        let commits = |n: f64| vec![Reading::new(&DB_COMMITS, "", n)];
        assert_eq!(values(&mut rates, second(1), commits(100.0)), Vec::<f64>::new());
        assert_eq!(values(&mut rates, second(3), commits(300.0)), [100.0]);
        assert_eq!(values(&mut rates, second(4), commits(300.0)), [0.0]);
    }

    #[test]
    fn a_counter_that_went_backwards_gives_nothing_and_starts_again() {
        let mut rates = Rates::default();
        let commits = |n: f64| vec![Reading::new(&DB_COMMITS, "", n)];
        values(&mut rates, second(1), commits(100.0));
        assert_eq!(values(&mut rates, second(2), commits(5.0)), Vec::<f64>::new());
        assert_eq!(values(&mut rates, second(3), commits(25.0)), [20.0]);
    }

    #[test]
    fn gauges_and_labels_are_kept_apart() {
        let mut rates = Rates::default();
        let readings =
            vec![Reading::new(&SESSIONS, "active", 3.0), Reading::new(&SESSIONS, "idle", 4.0)];
        assert_eq!(values(&mut rates, second(1), readings), [3.0, 4.0]);
    }
}
