//! `--influx`: Influx line protocol, one line each interval.

use std::fmt::Write;

use record::LoadInterval;
use terms::foreign::influx_tag;

use super::plan::Clock;

/// One point each interval: measurement `pgrig_bench`, counts as integers, times in nanoseconds,
/// the interval's end as the timestamp.
pub(super) fn lines(intervals: &[LoadInterval], clock: Clock, script: &str) -> String {
    let mut text = String::new();
    let script = influx_tag(script);
    for interval in intervals {
        let counts = &interval.counts;
        let end_ns = clock.unix_us() * 1_000 + interval.start.0 + interval.length_ns;
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "pgrig_bench,script={script} transactions={}i,failed={}i,serialization_failures={}i,\
             deadlock_failures={}i,other_failures={}i,skipped={}i,retries={}i,reconnects={}i,\
             backlog={}i,length_ns={}i",
            counts.transactions,
            counts.failed(),
            counts.serialization_failures,
            counts.deadlock_failures,
            counts.other_failures,
            counts.skipped,
            counts.retries,
            counts.reconnects,
            interval.backlog,
            interval.length_ns
        );
        for (name, quantile) in [
            ("p50_ns", 0.5),
            ("p95_ns", 0.95),
            ("p99_ns", 0.99),
            ("p99_9_ns", 0.999),
            ("max_ns", 1.0),
        ] {
            if let Some(ns) = interval.latency.quantile_ns(quantile) {
                let _ = write!(text, ",{name}={ns}i");
            }
        }
        let _ = writeln!(text, " {end_ns}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, UNIX_EPOCH};

    use record::{Moment, TransactionCounts};
    use stats::LatencyHistogram;

    use super::*;

    #[test]
    fn one_point_each_interval() {
        let mut latency = LatencyHistogram::new();
        latency.record_ns(1_000);
        let interval = LoadInterval {
            start: Moment(5),
            length_ns: 1_000,
            workload: 0,
            counts: TransactionCounts {
                transactions: 7,
                serialization_failures: 1,
                deadlock_failures: 2,
                other_failures: 4,
                ..TransactionCounts::default()
            },
            latency,
            service: LatencyHistogram::new(),
            lag: LatencyHistogram::new(),
            backlog: 2,
            ..LoadInterval::default()
        };
        let clock = Clock { origin: Instant::now(), wall: UNIX_EPOCH + Duration::from_secs(3) };
        let text = lines(&[interval], clock, "<builtin: select only>");
        assert_eq!(
            text,
            "pgrig_bench,script=<builtin:\\ select\\ only> transactions=7i,failed=7i,\
             serialization_failures=1i,deadlock_failures=2i,other_failures=4i,skipped=0i,\
             retries=0i,reconnects=0i,backlog=2i,length_ns=1000i,p50_ns=1000i,p95_ns=1000i,\
             p99_ns=1000i,p99_9_ns=1000i,max_ns=1000i 3000001005\n"
        );
        // The dashboard's queries name what is written.
        let board = include_str!("../../../../docs/grafana/pgrig-bench-influx.json");
        let quoted = board.split("\\\"").skip(1).step_by(2);
        let others = ["pgrig_bench", "script"];
        let fields: Vec<&str> = quoted.filter(|name| !others.contains(name)).collect();
        assert!(fields.len() >= 8, "{fields:?}");
        for name in fields {
            assert!(text.contains(&format!("{name}=")), "{name} is not written");
        }
    }
}
