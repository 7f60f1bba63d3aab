//! The catalogue: every metric that pgrig knows, once.
//!
//! A metric exists only here. Probes and the load engine record under these names, claims ask for
//! them, the report takes labels, units and "which way is better" from them. The rows are grouped
//! by who measures them: [`clients`](self::clients) the load engine, [`proof`](self::proof) the checks
//! after a trial, [`server`](self::server) the server's own statistics, [`machine`](self::machine) the
//! operating system.
//!
//! Each row has a handle, a static of the metric's name in capitals: code asks for a metric by its
//! handle, so that a wrong name does not compile. Names in texts (studies, records) are looked up
//! with [`metric`].
//!
//! Limits: no values, no arithmetic; how a figure is computed from intervals and samples is the
//! runner's part, the text in `says` is its definition.

/// The rows of a part of the catalogue, each under its handle, and `ROWS`, all of them in order.
macro_rules! metrics {
    ($($handle:ident = $row:expr,)*) => {
        $(
            #[doc = concat!("The metric `", stringify!($handle), "`, in small letters.")]
            pub static $handle: Metric = $row;
        )*

        /// Every row, in the order in which a person wants to read them.
        pub(super) static ROWS: &[&Metric] = &[$(&$handle),*];
    };
}

mod clients;
mod histories;
mod machine;
mod plans;
mod power;
mod proof;
mod server;
mod ways;

/// The handles of all metrics.
pub mod metrics {
    pub use super::clients::*;
    pub use super::histories::*;
    pub use super::machine::*;
    pub use super::plans::*;
    pub use super::power::*;
    pub use super::proof::*;
    pub use super::server::*;
    pub use super::ways::*;
}

/// One metric: what it is called and how to read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The name in records, claims and files; snake case, the unit last where it has one.
    pub name: &'static str,
    /// Unit of its value; empty for a plain number or a ratio.
    pub unit: &'static str,
    /// Direction that is better.
    pub better: MetricDirection,
    /// Scope of one value.
    pub scope: MetricScope,
    /// The way it is recorded.
    pub kind: MetricKind,
    /// Kind of object that a label within it names (a device, a wait event); empty if it has no
    /// labels.
    pub label: &'static str,
    /// Which percentile it is, 0 to 1; none of another figure.
    pub quantile: Option<f64>,
    /// The source.
    pub source: MetricOrigin,
    /// The definition, one line.
    pub says: &'static str,
}

/// The percentile of a row is a number.
impl Eq for Metric {}

impl Metric {
    /// True if the clients measured it: then it is worth no more than the clients were fast enough
    /// to see.
    pub fn is_from_clients(&self) -> bool {
        self.source.by == MetricSource::Clients
    }

    /// True if a value of it says nothing where some of the clients were lost with their machine: it counts
    /// what clients did, or depends on how much they did. What a check has found wrong stays wrong.
    pub fn needs_every_client(&self) -> bool {
        let is_finding =
            matches!(self.source.by, MetricSource::LedgerAndRows | MetricSource::Check);
        !is_finding && self.name != metrics::UNASKED_CRASHES.name
    }

    /// What becomes of it when a machine of the rig stands still, is cut off or has a full disk for a while.
    pub fn effect_of_host_gaps(&self) -> HostGapEffect {
        use self::metrics as m;
        let is_one_of = |some: &[&Metric]| some.iter().any(|metric| metric.name == self.name);
        // What was done in the time that was left.
        let done = [
            &m::TPS,
            &m::TPS_PUBLISHED,
            &m::GOODPUT_TPS,
            &m::TRANSACTIONS,
            &m::TRANSACTIONS_TOTAL,
            &m::SERVER_TRANSACTIONS,
            &m::SERVER_CALLS,
            &m::LEDGER_INTENDED,
            &m::LEDGER_ACKNOWLEDGED,
        ];
        // A connection that is cut, or a standby that is missed.
        let caused = [
            &m::LEDGER_FAILED,
            &m::LEDGER_UNKNOWN,
            &m::LEDGER_ACKNOWLEDGED_ALONE,
            &m::LEDGER_ACKNOWLEDGED_COVER_UNKNOWN,
            &m::READ_BEHIND_P50,
            &m::READ_BEHIND_P99,
            &m::READ_BEHIND_MAX,
            &m::READ_STALE_SHARE,
        ];
        // Before the window, or proven by answers of two servers at once.
        let apart = [
            &m::LEDGER_SPLIT_MS,
            &m::TWO_PRIMARIES_MS,
            &m::WARMUP_S,
            &m::WINDOW_S,
            &m::CAPACITY_TPS,
            &m::CONNECT_FAILURES,
        ];
        let is_time = ["ms", "s"].contains(&self.unit);
        match (self.source.by, self.better) {
            _ if is_one_of(&apart) => HostGapEffect::None,
            _ if is_one_of(&done) => HostGapEffect::TakesTime,
            _ if is_one_of(&caused) => HostGapEffect::Causes,
            _ if self.is_age_of_reads() => HostGapEffect::Lengthens,
            _ if self.name == m::UNASKED_CRASHES.name => HostGapEffect::CausesByFullDisk,
            (MetricSource::Clients | MetricSource::Ledger | MetricSource::Server, _) if is_time => {
                HostGapEffect::Lengthens
            }
            // Counts and shares: of what should not be, and of what should.
            (MetricSource::Clients, MetricDirection::Lower) if self.unit.is_empty() => {
                HostGapEffect::Causes
            }
            (MetricSource::Clients, MetricDirection::Higher) => HostGapEffect::Hides,
            _ => HostGapEffect::None,
        }
    }

    /// True if it is the age of what clients read.
    pub fn is_age_of_reads(&self) -> bool {
        use self::metrics as m;
        let ages = [&m::READ_AGE_P50_MS, &m::READ_AGE_P99_MS, &m::READ_AGE_MAX_MS];
        ages.iter().any(|metric| metric.name == self.name)
    }

    /// True if it rests on which of two clients was first, or on when a client heard something that a server tells of: then
    /// it says nothing where the clock of a client's machine is not known.
    pub fn compares_moments_of_clients(&self) -> bool {
        use self::metrics as m;
        let those = [
            &m::LEDGER_SPLIT,
            &m::LEDGER_SPLIT_MS,
            &m::LEDGER_SPLIT_MAX_MS,
            &m::LEDGER_ACKNOWLEDGED_ALONE,
            &m::LEDGER_ACKNOWLEDGED_COVER_UNKNOWN,
            &m::LEDGER_LOST_ALONE,
            &m::LEDGER_LOST_COVER_UNKNOWN,
            &m::LEDGER_LOST_COVERED,
            &m::LEDGER_LOST_SPAN_MS,
        ];
        those.iter().any(|metric| metric.name == self.name)
    }

    /// True if it is a time that clients waited.
    pub fn is_latency(&self) -> bool {
        self.is_from_clients() && self.unit == "ms"
    }

    /// True if it is a time or a rate that the clients measured.
    pub fn is_speed(&self) -> bool {
        self.is_from_clients() && ["ms", "s", "1/s"].contains(&self.unit)
    }

    /// True of what grows with the time that the load lasts: then two figures of it compare only
    /// where both loads lasted as long.
    pub fn grows_with_time(&self) -> bool {
        use self::metrics::{
            SERVER_CALLS, SERVER_STATEMENT_CALLS, SERVER_STATEMENT_S, SERVER_TRANSACTIONS,
            TRANSACTIONS, TRANSACTIONS_TOTAL,
        };
        let sums = [
            &TRANSACTIONS,
            &TRANSACTIONS_TOTAL,
            &SERVER_TRANSACTIONS,
            &SERVER_CALLS,
            &SERVER_STATEMENT_CALLS,
            &SERVER_STATEMENT_S,
        ];
        sums.iter().any(|sum| sum.name == self.name)
    }

    /// True if a trial whose scenario has phases has a value of it for each of them: what clients count second by
    /// second, and what is read once a second.
    pub fn has_phases(&self) -> bool {
        use self::metrics as m;
        let of_clients = [
            &m::TPS,
            &m::TPS_SECOND_MIN,
            &m::TPS_SECOND_MAX,
            &m::TPS_CV,
            &m::TPS_SLOPE_PCT,
            &m::TPS_SLOPE_LOW_PCT,
            &m::TPS_SLOPE_HIGH_PCT,
            &m::LATENCY_SLOPE_PCT,
            &m::LATENCY_SLOPE_LOW_PCT,
            &m::LATENCY_SLOPE_HIGH_PCT,
            &m::TPS_RECOVERY_S,
            &m::TPS_RECOVERED,
            &m::STANDSTILLS,
            &m::STANDSTILL_S,
            &m::STANDSTILL_MAX_S,
            &m::LATENCY_MEAN_MS,
            &m::LATENCY_STDDEV_MS,
            &m::LATENCY_P50_MS,
            &m::LATENCY_P90_MS,
            &m::LATENCY_P95_MS,
            &m::LATENCY_P99_MS,
            &m::LATENCY_P999_MS,
            &m::BACKLOG_MAX,
            &m::TRANSACTIONS,
            &m::FAILED,
            &m::SKIPPED,
            &m::LATE,
            &m::GOODPUT_TPS,
            &m::GOODPUT_SHARE,
            &m::GOODPUT_RECOVERY_S,
            &m::GOODPUT_RECOVERED,
            &m::MISSED,
            &m::RETRIES,
            &m::DEAD_TUPLES_SLOPE,
            &m::DEAD_TUPLES_SLOPE_LOW,
            &m::DEAD_TUPLES_SLOPE_HIGH,
            &m::HOT_SHARE,
            &m::AUTOVACUUM_RUNS,
            &m::AUTOVACUUM_S,
        ];
        self.kind != MetricKind::Total || of_clients.iter().any(|metric| metric.name == self.name)
    }

    /// True if it states the fate of acknowledged transactions: then it says nothing if none was
    /// acknowledged.
    pub fn is_about_acknowledged(&self) -> bool {
        self.source.by == MetricSource::LedgerAndRows
    }
}

/// What becomes of a metric when a machine of the rig stands still, is cut off or has a full disk for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGapEffect {
    /// Nothing: what it says is so whatever the machines did.
    None,
    /// It is a time for which somebody waited or saw nothing: longer by as much.
    Lengthens,
    /// It is a rate or a count of what was done: less by the share of the time that was taken.
    TakesTime,
    /// It counts what should not be: the machine may be the cause of all of it.
    Causes,
    /// It counts what should not be: a full disk may be the cause of all of it.
    CausesByFullDisk,
    /// It says how well something went: without that, it may be anything better.
    Hides,
}

/// Source of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricOrigin {
    /// The part that measures it.
    pub by: MetricSource,
    /// Method of measurement, for people.
    pub says: &'static str,
}

/// The part that measures a metric, on which the worth of a figure depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricSource {
    /// The clients.
    Clients,
    /// The load engine, of itself.
    Generator,
    /// The clients' ledger alone.
    Ledger,
    /// The clients' ledger, compared with what the servers have: what became of acknowledged
    /// transactions.
    LedgerAndRows,
    /// Another check after the load.
    Check,
    /// The server, or what stands in front of it.
    Server,
    /// The operating system.
    Machine,
}

/// Direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricDirection {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it explains, it does not judge.
    Neither,
}

/// Scope of one value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricScope {
    /// A whole trial.
    Trial,
    /// One workload of a trial, the trial as a whole where that has a meaning, and of some metrics
    /// also each generator process where several share the load.
    Workload,
    /// One statement of a workload or of a server, named by [`statement_label`].
    Statement,
    /// One node.
    Node,
    /// The machine that everything runs on.
    Machine,
}

/// The way a metric is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricKind {
    /// One figure for a trial, computed once from everything that was measured in it.
    Total,
    /// Read once a second, stored as it is.
    Gauge,
    /// A counter read once a second, stored as its rate per second since the reading before. A share
    /// of time is a rate as well: seconds a second.
    Rate,
}

/// Every metric, in the order in which a person wants to read them.
pub fn catalogue() -> impl Iterator<Item = &'static Metric> {
    clients::ROWS
        .iter()
        .chain(proof::ROWS)
        .chain(histories::ROWS)
        .chain(plans::ROWS)
        .chain(power::ROWS)
        .chain(server::ROWS)
        .chain(ways::ROWS)
        .chain(machine::ROWS)
        .copied()
}

/// The metric of that name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    catalogue().find(|metric| metric.name == name)
}

/// Label of a statement in records and published figures: its verb and the first relation that it
/// names, `UPDATE pgbench_accounts`; the verb alone where it names none.
pub fn statement_label(text: &str) -> String {
    let mut words = text.split(|c: char| c.is_whitespace() || c == ';' || c == '(');
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let Some(verb) = words.next() else {
        return String::new();
    };
    let verb = verb.to_ascii_uppercase();
    let before_relation = match verb.as_str() {
        "SELECT" | "DELETE" | "WITH" => "FROM",
        "INSERT" | "MERGE" => "INTO",
        "UPDATE" => "UPDATE",
        _ => return verb,
    };
    let relation = if verb == before_relation {
        words.find(|word| !word.eq_ignore_ascii_case("only"))
    } else {
        words.find(|word| word.eq_ignore_ascii_case(before_relation));
        words.next()
    };
    match relation {
        Some(relation) => format!("{verb} {}", relation.trim_matches([',', ')', '"'])),
        None => match text.split(|c: char| c.is_whitespace() || c == '(').nth(1) {
            Some(function) if verb == "SELECT" && !function.is_empty() => {
                format!("{verb} {}", function.trim_end_matches(';'))
            }
            _ => verb,
        },
    }
}

/// A row without labels.
const fn row(
    name: &'static str,
    unit: &'static str,
    better: MetricDirection,
    scope: MetricScope,
    kind: MetricKind,
    source: MetricOrigin,
    says: &'static str,
) -> Metric {
    Metric { name, unit, better, scope, kind, label: "", quantile: None, source, says }
}

const fn by(by: MetricSource, says: &'static str) -> MetricOrigin {
    MetricOrigin { by, says }
}

/// The same row, of a percentile.
const fn quantile(quantile: f64, metric: Metric) -> Metric {
    Metric { quantile: Some(quantile), ..metric }
}

/// The same row with labels.
const fn labelled(label: &'static str, metric: Metric) -> Metric {
    Metric { label, ..metric }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_stands_once_and_can_be_a_function_in_a_claim() {
        let mut seen = BTreeSet::new();
        for metric in catalogue() {
            assert!(seen.insert(metric.name), "{} stands twice", metric.name);
            assert!(
                metric
                    .name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{} is not snake case",
                metric.name
            );
            assert!(!metric.says.is_empty() && !metric.source.says.is_empty(), "{}", metric.name);
        }
    }

    #[test]
    fn a_unit_in_the_name_is_the_unit_of_the_value() {
        for metric in catalogue() {
            for (suffix, unit) in [("_ms", "ms"), ("_s", "s"), ("_pct", "%"), ("_mb", "MiB")] {
                if metric.name.ends_with(suffix) {
                    assert!(metric.unit.starts_with(unit), "{} in {}", metric.name, metric.unit);
                }
            }
        }
    }

    #[test]
    fn a_statement_is_called_by_its_verb_and_relation() {
        let check = |text: &str, label: &str| assert_eq!(statement_label(text), label);
        check("UPDATE pgbench_accounts SET abalance = 1;", "UPDATE pgbench_accounts");
        check("update only t set a = 1", "UPDATE t");
        check("SELECT abalance\n FROM pgbench_accounts WHERE aid = $1", "SELECT pgbench_accounts");
        check("INSERT INTO pgbench_history(tid) VALUES (1)", "INSERT pgbench_history");
        check("SELECT transfer(1, 2)", "SELECT transfer");
        check("DELETE FROM t;", "DELETE t");
        check("BEGIN;", "BEGIN");
        check("END", "END");
        check("", "");
    }
}
