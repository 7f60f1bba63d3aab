//! `--metrics`: what has been counted so far, as OpenMetrics text, in a file or over HTTP.

use std::io;
use std::net::SocketAddr;

use load::LoadEvent;
use measure::LoadObserver;
use openmetrics::{FamilyType, MetricsDestination, MetricsText, Publisher};
use record::{LoadInterval, TransactionCounts};
use stats::LatencyHistogram;

use crate::complaint::{Complaint, system_error};

/// Sums up a run and shows the sums.
pub(super) struct Metrics {
    publisher: Publisher,
    sums: Sums,
    failed: Option<Complaint>,
}

/// Everything since the load began.
#[derive(Default)]
struct Sums {
    clients: u32,
    counts: TransactionCounts,
    latency: LatencyHistogram,
    backlog: u64,
}

impl Metrics {
    /// Opens the file or the port, so that a wrong one is known before time is spent.
    pub(super) fn open(target: &str) -> Result<Self, Complaint> {
        let place: MetricsDestination = target.parse().map_err(|hint| {
            let text = format!("invalid address for --metrics: \"{target}\"");
            Complaint::error(text).with_our_hint(hint)
        })?;
        let sums = Sums::default();
        let publisher = Publisher::open(&place, sums.text()).map_err(|error| complaint(&error))?;
        Ok(Metrics { publisher, sums, failed: None })
    }

    /// Address at which it is served, with the port that the system chose for 0.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.publisher.address()
    }

    /// Ends it, and returns the first error, if there was one.
    pub(super) fn finish(self) -> Result<(), Complaint> {
        self.failed.map_or(Ok(()), Err)
    }
}

/// Takes what happens into the sums. What goes wrong is told at the end.
impl LoadObserver for Metrics {
    fn observe(&mut self, event: &LoadEvent<'_>) {
        match event {
            LoadEvent::Connecting { done, .. } => self.sums.clients = *done,
            LoadEvent::Interval(intervals) => {
                intervals.iter().for_each(|interval| self.sums.add(interval));
            }
            _ => return,
        }
        if self.failed.is_none() {
            let published = self.publisher.publish(self.sums.text());
            self.failed = published.err().map(|error| complaint(&error));
        }
    }
}

fn complaint(error: &openmetrics::Error) -> Complaint {
    let reason = |source: &io::Error| system_error(source);
    let text = match error {
        openmetrics::Error::Listen { address, source } => {
            format!("could not listen on {address} for --metrics: {}", reason(source))
        }
        openmetrics::Error::Write { path, source } => {
            format!("could not write file \"{}\": {}", path.display(), reason(source))
        }
    };
    let complaint = Complaint::error(text);
    match error.hint() {
        Some(hint) => complaint.with_our_hint(hint),
        None => complaint,
    }
}

impl Sums {
    fn add(&mut self, interval: &LoadInterval) {
        self.counts.add(&interval.counts);
        self.latency.merge(&interval.latency);
        self.backlog = interval.backlog;
    }

    fn text(&self) -> String {
        let mut text = MetricsText::default();
        let counts = &self.counts;
        text.gauge("clients", "Clients that are connected.", Some(self.clients));
        text.counter("transactions", "Successful transactions.", counts.transactions);
        let help = "Transactions that failed, by kind.";
        let mut failed = text.family("failed_transactions", FamilyType::Counter, help);
        for (kind, count) in [
            ("serialization", counts.serialization_failures),
            ("deadlock", counts.deadlock_failures),
            ("other", counts.other_failures),
        ] {
            failed.sample(&[("kind", kind)], count);
        }
        let help = "Transactions of a schedule that were too late to be started.";
        text.counter("skipped_transactions", help, counts.skipped);
        text.counter("late_transactions", "Transactions above -L.", counts.late);
        text.counter("retries", "Tries after the first.", counts.retries);
        let help = "Errors of servers and connections, retried or not.";
        let mut errors = text.family("errors", FamilyType::Counter, help);
        for (state, count) in &counts.errors {
            errors.sample(&[("sqlstate", state)], count);
        }
        text.counter("reconnects", "Connections made again.", counts.reconnects);
        text.gauge("aborted_clients", "Clients that gave up.", Some(counts.aborted_clients));
        let help = "Transactions due but not started at the end of the last interval.";
        text.gauge("backlog", help, Some(self.backlog));
        let help = "Latency of successful transactions, from the intended start.";
        let mut latency = text.family("latency_seconds", FamilyType::Summary, help);
        for (name, quantile) in
            [("0.5", 0.5), ("0.9", 0.9), ("0.95", 0.95), ("0.99", 0.99), ("0.999", 0.999)]
        {
            if let Some(ns) = self.latency.quantile_ns(quantile) {
                latency.sample(&[("quantile", name)], ns as f64 / 1e9);
            }
        }
        latency.count_and_sum(self.latency.count(), self.latency.sum_ns() as f64 / 1e9);
        text.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_an_exposition() {
        let mut sums = Sums { clients: 3, ..Sums::default() };
        sums.counts.transactions = 41;
        sums.counts.deadlock_failures = 2;
        sums.counts.errors.insert("40P01".to_owned(), 5);
        sums.latency.record_ns(2_000_000);
        let text = sums.text();
        for line in [
            "# TYPE pgrig_transactions counter",
            "pgrig_transactions_total 41",
            "pgrig_clients 3",
            "pgrig_failed_transactions_total{kind=\"deadlock\"} 2",
            "pgrig_errors_total{sqlstate=\"40P01\"} 5",
            "# TYPE pgrig_latency_seconds summary",
            "pgrig_latency_seconds_count 1",
            "pgrig_latency_seconds_sum 0.002",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line:?} in {text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        // Samples stand with their family, and each family stands once.
        let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names: Vec<_> = families.filter_map(|line| line.split(' ').next()).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let text = Sums::default().text();
        let board = include_str!("../../../../docs/grafana/pgrig-load.json");
        let names = openmetrics::names(board);
        let others = ["pgrig_run", "pgrig_compare"];
        let ours: Vec<&str> =
            names.filter(|name| !others.iter().any(|other| name.starts_with(other))).collect();
        assert!(ours.len() >= 6, "{ours:?}");
        for name in ours {
            assert!(openmetrics::has(&text, name), "{name} is not exposed");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_told_as_pgbench_tells_errors() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let check = |target: &str, expected: &str| {
            let complaint = Metrics::open(target).err().expect("it fails").to_string();
            assert!(complaint.contains(expected), "{complaint}");
        };
        check("localhost:9187", "invalid address for --metrics");
        let expected = "for --metrics: Address already in use";
        check(&address, &format!("could not listen on {address} {expected}"));
        check("none/file", "could not write file \"none/file\": No such file");
    }
}
