//! Change an hour in runs of more than ten minutes, and what keeps dead rows where they grow.

use std::fmt::Write;

use probe::VacuumHorizon;
use serde_json::{Value, json};
use stats::{IntervalSummary, TimeSlope};

use crate::options::{Invocation, Length, RunOptions};
use crate::server::Server;
use load::LoadControl;

/// Runs from here on are looked at for what changes slowly, in seconds.
const LONG_FROM_S: u32 = 600;

/// What a long run was asked to show.
pub(super) fn is_long(options: &RunOptions) -> bool {
    let is_as_long = |seconds| seconds >= LONG_FROM_S;
    options.ours.find.is_none()
        && matches!(options.length, Length::Seconds(seconds) if is_as_long(seconds))
}

/// The server before and after a long run; why it could not be asked otherwise.
pub(super) struct DeadRows {
    pub(super) before: Result<VacuumHorizon, String>,
    pub(super) after: Result<VacuumHorizon, String>,
}

impl DeadRows {
    /// Asks the server again after the load.
    pub(super) fn after(
        before: Result<VacuumHorizon, String>,
        options: &RunOptions,
        invocation: &Invocation<'_>,
        control: &LoadControl,
    ) -> DeadRows {
        let after = match Server::open(&options.server, invocation, control) {
            Ok((mut server, _)) => server.horizon(),
            Err(complaint) => Err(complaint.to_string()),
        };
        DeadRows { before, after }
    }

    /// The words for a run with so many transactions; none where dead rows did not grow.
    pub(super) fn words(&self, transactions: u64) -> Option<String> {
        let (before, after) = match (&self.before, &self.after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return Some(format!("not read: {why}")),
        };
        let grown = after.dead_rows - before.dead_rows;
        if grown < GROWN_MIN || grown < before.dead_rows * GROWN_SHARE {
            return None;
        }
        let mut words = format!("{} more than before the run; ", terms::grouped(grown as u64));
        let age = terms::grouped(after.xmin_age as u64);
        let is_old = after.xmin_age >= transactions as f64 * OLD_SHARE && after.xmin_age > 1.0;
        let _ = match &after.holder {
            Some(holder) if is_old => {
                write!(words, "the oldest xmin, {age} transactions old, is held by {holder}")
            }
            _ => write!(words, "nothing holds an old xmin: VACUUM may remove them"),
        };
        Some(words)
    }

    pub(super) fn json(&self) -> Value {
        let one = |read: &Result<VacuumHorizon, String>| match read {
            Ok(read) => json!({
                "dead_rows": read.dead_rows,
                "xmin_age": read.xmin_age,
                "holder": read.holder,
            }),
            Err(_) => Value::Null,
        };
        json!({"before": one(&self.before), "after": one(&self.after)})
    }
}

/// Fewer dead rows more than before are the load's own.
const GROWN_MIN: f64 = 1_000.0;
/// Of the dead rows before, as a share.
const GROWN_SHARE: f64 = 0.5;
/// An xmin is old if it was there when this share of the run's transactions had not begun.
const OLD_SHARE: f64 = 0.1;

/// Change of throughput and of the mean latency, in per cent an hour.
pub(super) struct HourlyDrift {
    throughput: TimeSlope,
    latency: Option<TimeSlope>,
}

impl HourlyDrift {
    /// Of the intervals of a window; none of a window that is not long.
    pub(super) fn of(summaries: &[IntervalSummary], interval_s: f64) -> Option<HourlyDrift> {
        if (summaries.len() as f64) * interval_s < f64::from(LONG_FROM_S) {
            return None;
        }
        let slope = |values: Vec<f64>| {
            TimeSlope::of(&values, interval_s, CONFIDENCE).and_then(|one| one.in_percent())
        };
        let rates = summaries.iter().map(|one| one.transactions / interval_s);
        let ended = summaries.iter().filter(|one| one.transactions > 0.0);
        let latencies = ended.map(|one| one.latency_sum_ns / one.transactions);
        let latency = slope(latencies.collect());
        Some(HourlyDrift { throughput: slope(rates.collect())?, latency })
    }

    pub(super) fn words(&self) -> String {
        let of = |slope: &TimeSlope| {
            let (low, high) = slope.bounds();
            format!("{:+.1} % [{low:+.1}, {high:+.1}]", slope.an_hour)
        };
        let throughput = of(&self.throughput);
        match &self.latency {
            Some(latency) => format!("throughput {throughput} an hour; mean time {}", of(latency)),
            None => format!("throughput {throughput} an hour"),
        }
    }

    pub(super) fn json(&self) -> Value {
        let one = |slope: &TimeSlope| {
            let (low, high) = slope.bounds();
            json!({"percent_an_hour": slope.an_hour, "low": low, "high": high})
        };
        json!({"throughput": one(&self.throughput), "latency": self.latency.as_ref().map(one)})
    }
}

const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dead_rows: f64, xmin_age: f64, holder: Option<&str>) -> Result<VacuumHorizon, String> {
        Ok(VacuumHorizon { dead_rows, xmin_age, holder: holder.map(str::to_owned) })
    }

    #[test]
    fn where_dead_rows_grow_their_holder_is_named() {
        let check = |before, after, expected: Option<&str>| {
            let words = DeadRows { before, after }.words(1_000_000);
            assert_eq!(words.as_deref(), expected);
        };
        let holder = Some("replication slot s1, which nobody uses");
        check(read(500.0, 1.0, None), read(900.0, 900_000.0, holder), None);
        check(read(90_000.0, 1.0, None), read(95_000.0, 900_000.0, holder), None);
        check(
            read(500.0, 1.0, None),
            read(250_500.0, 900_000.0, holder),
            Some(
                "250,000 more than before the run; the oldest xmin, 900,000 transactions old, is \
                 held by replication slot s1, which nobody uses",
            ),
        );
        check(
            read(500.0, 1.0, None),
            read(250_500.0, 12.0, Some("session 7 of me")),
            Some(
                "250,000 more than before the run; nothing holds an old xmin: VACUUM may remove them",
            ),
        );
        check(Err("no privilege".to_owned()), read(1.0, 1.0, None), Some("not read: no privilege"));
    }

    #[test]
    fn the_drift_of_a_run_has_an_interval() {
        let second = |second: u32| {
            let noise = f64::from(second * 7919 % 100) - 50.0;
            let transactions = 10_000.0 - f64::from(second) + noise;
            let latency_sum_ns = transactions * (1e6 + f64::from(second) * 100.0);
            IntervalSummary { transactions, latency_sum_ns, backlog: 0.0 }
        };
        let summaries: Vec<IntervalSummary> = (0..900).map(second).collect();
        let drift = HourlyDrift::of(&summaries, 1.0).unwrap();
        let (low, high) = drift.throughput.bounds();
        assert!((low..=high).contains(&-37.7) && high - low < 2.0, "{}", drift.words());
        assert!(drift.words().starts_with("throughput -37."), "{}", drift.words());
        assert!(drift.words().contains("; mean time +34."), "{}", drift.words());
        assert!(HourlyDrift::of(&summaries[..10], 1.0).is_none());
    }
}
