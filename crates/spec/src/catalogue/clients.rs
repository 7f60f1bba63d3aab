//! What the load engine measures: throughput, latency, connecting, fairness, and its own cost.

use super::Better::{Higher, Lower, Neither};
use super::Kind::Total;
use super::Metric;
use super::Scope::{Statement, Trial, Workload};
use super::{quantile, row};

const WAIT: &str =
    "clients, in an open loop from the due time, in a closed loop from the first send";
const SEND: &str = "clients, from the send";
const SERVICE: &str = "clients, open loop, from the first send";
const PACE: &str = "clients, open loop";
const CLIENTS: &str = "clients";
const CONNECT: &str = "clients, connect phase";
const OWN: &str = "generator";

#[rustfmt::skip] // rows read as the table that they are
pub(super) const ROWS: &[Metric] = &[
    row("tps", "1/s", Higher, Workload, Total, CLIENTS,
        "successful transactions a second inside the window"),
    row("tps_published", "1/s", Higher, Workload, Total, CLIENTS,
        "transactions a second as pgbench counts: from all-connected until the last client is \
         done"),

    row("tps_second_min", "1/s", Higher, Workload, Total, CLIENTS,
        "successful transactions in the slowest whole second of the window"),
    row("tps_second_max", "1/s", Neither, Workload, Total, CLIENTS,
        "successful transactions in the fastest whole second of the window"),
    row("tps_cv", "", Lower, Workload, Total, CLIENTS,
        "unsteadiness: coefficient of variation (standard deviation ÷ mean) of the successful \
         transactions of the window's whole seconds"),

    row("standstills", "", Lower, Workload, Total, CLIENTS,
        "how often throughput stood still: runs of whole seconds of the window in which no \
         transaction succeeded"),
    row("standstill_s", "s", Lower, Workload, Total, CLIENTS,
        "whole seconds of the window in which no transaction succeeded"),
    row("standstill_max_s", "s", Lower, Workload, Total, CLIENTS,
        "the longest run of such seconds"),

    row("latency_mean_ms", "ms", Lower, Workload, Total, WAIT,
        "mean latency of the successful transactions that ended inside the window"),
    row("latency_stddev_ms", "ms", Lower, Workload, Total, WAIT,
        "standard deviation of the latency"),
    quantile(0.5, row("latency_p50_ms", "ms", Lower, Workload, Total, WAIT, "median latency")),
    quantile(0.9, row("latency_p90_ms", "ms", Lower, Workload, Total, WAIT, "90th percentile of the latency")),
    quantile(0.95, row("latency_p95_ms", "ms", Lower, Workload, Total, WAIT, "95th percentile of the latency")),
    quantile(0.99, row("latency_p99_ms", "ms", Lower, Workload, Total, WAIT, "99th percentile of the latency")),
    quantile(0.999, row("latency_p999_ms", "ms", Lower, Workload, Total, WAIT, "99.9th percentile of the latency")),
    row("latency_max_ms", "ms", Lower, Workload, Total, WAIT,
        "largest latency; a transaction that is under way at the close is followed to its end"),
    row("service_mean_ms", "ms", Lower, Workload, Total, SERVICE, "mean time that the server took"),
    row("service_stddev_ms", "ms", Lower, Workload, Total, SERVICE,
        "standard deviation of the server's time"),
    quantile(0.5, row("service_p50_ms", "ms", Lower, Workload, Total, SERVICE, "median of the server's time")),
    quantile(0.9, row("service_p90_ms", "ms", Lower, Workload, Total, SERVICE,
        "90th percentile of the server's time")),
    quantile(0.95, row("service_p95_ms", "ms", Lower, Workload, Total, SERVICE,
        "95th percentile of the server's time")),
    quantile(0.99, row("service_p99_ms", "ms", Lower, Workload, Total, SERVICE,
        "99th percentile of the server's time")),
    quantile(0.999, row("service_p999_ms", "ms", Lower, Workload, Total, SERVICE,
        "99.9th percentile of the server's time")),
    row("service_max_ms", "ms", Lower, Workload, Total, SERVICE, "longest time that the server took"),
    row("lag_mean_ms", "ms", Lower, Workload, Total, PACE,
        "mean delay of a transaction's start behind its schedule"),
    quantile(0.99, row("lag_p99_ms", "ms", Lower, Workload, Total, PACE,
        "99th percentile of the delay behind schedule")),
    row("lag_max_ms", "ms", Lower, Workload, Total, PACE, "largest delay behind schedule"),
    row("backlog_max", "", Lower, Workload, Total, PACE,
        "most transactions that were due and not yet started at the end of a second"),
    row("backlog_growth", "", Lower, Workload, Total, PACE,
        "growth of the backlog from the first to the last quarter of the window, as a share of the \
         transactions due in it; above 0.01 latencies depend on how long one measures"),
    row("never_started", "", Lower, Workload, Total, PACE,
        "transactions that were due before the close and never started"),
    row("statement_mean_ms", "ms", Lower, Statement, Total, SEND,
        "mean time of one statement of a script"),
    row("statement_stddev_ms", "ms", Lower, Statement, Total, SEND,
        "standard deviation of the time of one statement"),
    quantile(0.5, row("statement_p50_ms", "ms", Lower, Statement, Total, SEND,
        "median time of one statement of a script")),
    quantile(0.99, row("statement_p99_ms", "ms", Lower, Statement, Total, SEND,
        "99th percentile of the time of one statement")),

    row("statements_ms", "ms", Lower, Workload, Total, SEND,
        "time of all statements of a transaction between its BEGIN and its COMMIT, both left out"),

    row("transactions", "", Neither, Workload, Total, CLIENTS,
        "successful transactions inside the window"),
    row("transactions_total", "", Neither, Workload, Total, CLIENTS,
        "successful transactions over the whole life of the clients"),
    row("failed", "", Lower, Workload, Total, CLIENTS,
        "transactions given up after an error, over the whole life of the clients"),
    row("skipped", "", Lower, Workload, Total, PACE,
        "transactions never started because they were already too late"),
    row("late", "", Lower, Workload, Total, CLIENTS,
        "successful transactions over the latency limit"),
    row("retried", "", Lower, Workload, Total, CLIENTS, "transactions retried at least once"),
    row("retries", "", Lower, Workload, Total, CLIENTS, "retries in all"),
    row("errors", "", Lower, Workload, Total, CLIENTS,
        "errors that the server or the network gave, retried ones included"),
    row("reconnects", "", Lower, Workload, Total, CLIENTS, "connections lost and made again"),
    row("unknown", "", Lower, Workload, Total, CLIENTS,
        "transactions whose outcome nobody knows: connection lost while committing"),

    row("jain", "", Higher, Workload, Total, CLIENTS,
        "Jain's fairness index of the transactions of each client, 1 = all equal"),
    row("client_transactions_min", "", Higher, Workload, Total, CLIENTS,
        "transactions of the client that got the fewest"),
    row("longest_wait_ms", "ms", Lower, Workload, Total, WAIT,
        "longest time that any client waited for one transaction, those open at the close included"),

    row("connect_s", "s", Lower, Trial, Total, CONNECT, "time until every client was connected"),
    row("connect_mean_ms", "ms", Lower, Trial, Total, CONNECT,
        "mean time of one connection attempt that succeeded"),
    quantile(0.99, row("connect_p99_ms", "ms", Lower, Trial, Total, CONNECT,
        "99th percentile of the time of one connection")),
    row("connect_failures", "", Lower, Trial, Total, CONNECT, "connection attempts that failed"),
    row("disconnect_s", "s", Lower, Trial, Total, CONNECT, "time until every client had left"),
    row("connect_generator_cpu_s", "s", Lower, Trial, Total, CONNECT,
        "CPU that the rig spent on connecting"),
    row("warmup_s", "s", Neither, Trial, Total, CLIENTS,
        "time from all-connected until the window opened"),
    row("window_s", "s", Neither, Trial, Total, CLIENTS, "length of the window"),

    row("generator_cpu_us_per_tx", "µs", Lower, Trial, Total, OWN,
        "CPU that the rig spent on one successful transaction"),
    row("generator_cores", "cores", Lower, Trial, Total, OWN,
        "CPU that the rig used inside the window"),
    row("generator_cpu_share", "", Lower, Trial, Total, OWN,
        "the rig's share of the CPU that rig and servers used together: they compete for the same \
         cores"),
    row("generator_busy_max", "", Lower, Trial, Total, OWN,
        "share of the window that the busiest lane spent on the CPU; above 0.8 the rig is the \
         limit"),
    row("loop_lag_p99_ms", "ms", Lower, Trial, Total, OWN,
        "99th percentile of the time between an answer's arrival and its handling"),
    row("loop_lag_max_ms", "ms", Lower, Trial, Total, OWN,
        "largest time between an answer's arrival and its handling"),
    row("generator_run_delay_share", "", Lower, Trial, Total, OWN,
        "share of the clients' waiting that passed while lanes could run and had no CPU; above 0.05 \
         the rig is the limit"),
    row("loop_lag_share", "", Lower, Trial, Total, OWN,
        "share of the clients' waiting that passed between arrival and handling; above 0.05 the rig \
         is the limit"),
];
