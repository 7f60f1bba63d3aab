//! Metrics of the load engine: throughput, latency, connecting, fairness, and its own cost.

use super::MetricDirection::{Higher, Lower, Neither};
use super::MetricKind::Total;
use super::MetricScope::{Statement, Trial, Workload};
use super::{Metric, MetricOrigin, MetricSource, by, labelled, quantile, row};

const WAIT: MetricOrigin = by(
    MetricSource::Clients,
    "clients, in an open loop from the due time, in a closed loop from the first send",
);
const SEND: MetricOrigin = by(MetricSource::Clients, "clients, from the send");
const SERVICE: MetricOrigin = by(MetricSource::Clients, "clients, open loop, from the first send");
const PACE: MetricOrigin = by(MetricSource::Clients, "clients, open loop");
const CLIENTS: MetricOrigin = by(MetricSource::Clients, "clients");
const CONNECT: MetricOrigin = by(MetricSource::Clients, "clients, connect phase");
const CAPACITY: MetricOrigin = by(MetricSource::Clients, "clients, closed loops before the load");
const OWN: MetricOrigin = by(MetricSource::Generator, "generator");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    TPS = row("tps", "1/s", Higher, Workload, Total, CLIENTS,
        "successful transactions a second inside the window"),
    TPS_PUBLISHED = row("tps_published", "1/s", Higher, Workload, Total, CLIENTS,
        "transactions a second as pgbench counts: from all-connected until the last client is \
         done"),

    TPS_SECOND_MIN = row("tps_second_min", "1/s", Higher, Workload, Total, CLIENTS,
        "successful transactions in the slowest whole second of the window"),
    TPS_SECOND_MAX = row("tps_second_max", "1/s", Neither, Workload, Total, CLIENTS,
        "successful transactions in the fastest whole second of the window"),
    TPS_CV = row("tps_cv", "", Lower, Workload, Total, CLIENTS,
        "unsteadiness: coefficient of variation (standard deviation ÷ mean) of the successful \
         transactions of the window's whole seconds"),

    TPS_SLOPE_PCT = row("tps_slope_pct", "%/h", Neither, Workload, Total, CLIENTS,
        "change of throughput an hour, in per cent of its mean: the line through the seconds of a phase"),
    TPS_SLOPE_LOW_PCT = row("tps_slope_low_pct", "%/h", Neither, Workload, Total, CLIENTS,
        "lower end of the 95 % interval of tps_slope_pct"),
    TPS_SLOPE_HIGH_PCT = row("tps_slope_high_pct", "%/h", Neither, Workload, Total, CLIENTS,
        "upper end of the 95 % interval of tps_slope_pct"),
    LATENCY_SLOPE_PCT = row("latency_slope_pct", "%/h", Neither, Workload, Total, WAIT,
        "change of the mean latency an hour, in per cent of its mean"),
    LATENCY_SLOPE_LOW_PCT = row("latency_slope_low_pct", "%/h", Neither, Workload, Total, WAIT,
        "lower end of the 95 % interval of latency_slope_pct"),
    LATENCY_SLOPE_HIGH_PCT = row("latency_slope_high_pct", "%/h", Neither, Workload, Total, WAIT,
        "upper end of the 95 % interval of latency_slope_pct"),
    TPS_RECOVERY_S = row("tps_recovery_s", "s", Lower, Workload, Total, CLIENTS,
        "from the beginning of a phase until throughput was at 95 % of the first phase's and stayed \
         there; at least the length of the phase where it never was"),
    TPS_RECOVERED = row("tps_recovered", "", Higher, Workload, Total, CLIENTS,
        "1 if throughput was at 95 % of the first phase's again before the phase ended, 0 if it \
         never was"),

    CAPACITY_TPS = row("capacity_tps", "1/s", Higher, Workload, Total, CAPACITY,
        "the highest throughput of closed loops of more and more clients before the load, on the same servers; rates in \
         multiples of the capacity are multiples of it"),
    CAPACITY_CLIENTS = row("capacity_clients", "", Neither, Workload, Total, CAPACITY,
        "clients of the closed loop with that throughput"),
    GOODPUT_TPS = row("goodput_tps", "1/s", Higher, Workload, Total, CLIENTS,
        "successful transactions a second that ended within their deadline, counted from when they were due; all \
         successful ones of a workload without a deadline"),
    GOODPUT_SHARE = row("goodput_share", "", Higher, Workload, Total, CLIENTS,
        "goodput of a phase ÷ that of the phase of the same trial with the most"),
    GOODPUT_RECOVERY_S = row("goodput_recovery_s", "s", Lower, Workload, Total, CLIENTS,
        "hysteresis: from the beginning of a phase until goodput was at 95 % of the first phase's and stayed there; at \
         least the length of the phase where it never was; of the trial as a whole, that of its last phase"),
    GOODPUT_RECOVERED = row("goodput_recovered", "", Higher, Workload, Total, CLIENTS,
        "1 if goodput was at 95 % of the first phase's again before the phase ended, 0 if it never was"),
    GOODPUT_JAIN = row("goodput_jain", "", Higher, Workload, Total, CLIENTS,
        "Jain's fairness index of the transactions of each client that met their deadline, 1 = all equal"),
    MISSED = row("missed", "", Lower, Workload, Total, CLIENTS,
        "successful transactions that ended after their deadline"),
    STARVED_CLIENTS = row("starved_clients", "", Lower, Workload, Total, CLIENTS,
        "clients of which no transaction succeeded inside the window"),
    COLLAPSED = row("collapsed", "", Lower, Workload, Total, CLIENTS,
        "1 if the workload collapsed, 0 if not: a client got nothing in a window in which clients had two transactions and \
         more on average, or goodput fell below half of an earlier phase's in a phase in which no less was asked for"),
    SERVED_FIRST_S = row("served_first_s", "s", Lower, Workload, Total, CLIENTS,
        "shortest time of a client from the loss of its connection, in the window, until a transaction of it succeeded"),
    SERVED_LAST_S = row("served_last_s", "s", Lower, Workload, Total, CLIENTS,
        "longest such time; at least that where a client had none until the close"),
    UNSERVED = row("unserved", "", Lower, Workload, Total, CLIENTS,
        "clients that lost their connections and had no successful transaction afterwards until the close"),

    STANDSTILLS = row("standstills", "", Lower, Workload, Total, CLIENTS,
        "how often throughput stood still: runs of whole seconds of the window in which no \
         transaction succeeded"),
    STANDSTILL_S = row("standstill_s", "s", Lower, Workload, Total, CLIENTS,
        "whole seconds of the window in which no transaction succeeded"),
    STANDSTILL_MAX_S = row("standstill_max_s", "s", Lower, Workload, Total, CLIENTS,
        "the longest run of such seconds"),

    LATENCY_MEAN_MS = row("latency_mean_ms", "ms", Lower, Workload, Total, WAIT,
        "mean latency of the successful transactions that ended inside the window"),
    LATENCY_STDDEV_MS = row("latency_stddev_ms", "ms", Lower, Workload, Total, WAIT,
        "standard deviation of the latency"),
    LATENCY_P50_MS = quantile(0.5, row("latency_p50_ms", "ms", Lower, Workload, Total, WAIT, "median latency")),
    LATENCY_P90_MS = quantile(0.9, row("latency_p90_ms", "ms", Lower, Workload, Total, WAIT, "90th percentile of the latency")),
    LATENCY_P95_MS = quantile(0.95, row("latency_p95_ms", "ms", Lower, Workload, Total, WAIT, "95th percentile of the latency")),
    LATENCY_P99_MS = quantile(0.99, row("latency_p99_ms", "ms", Lower, Workload, Total, WAIT, "99th percentile of the latency")),
    LATENCY_P999_MS = quantile(0.999, row("latency_p999_ms", "ms", Lower, Workload, Total, WAIT, "99.9th percentile of the latency")),
    LATENCY_MAX_MS = row("latency_max_ms", "ms", Lower, Workload, Total, WAIT,
        "largest latency; a transaction that is under way at the close is followed to its end"),
    SERVICE_MEAN_MS = row("service_mean_ms", "ms", Lower, Workload, Total, SERVICE, "mean time that the server took"),
    SERVICE_STDDEV_MS = row("service_stddev_ms", "ms", Lower, Workload, Total, SERVICE,
        "standard deviation of the server's time"),
    SERVICE_P50_MS = quantile(0.5, row("service_p50_ms", "ms", Lower, Workload, Total, SERVICE, "median of the server's time")),
    SERVICE_P90_MS = quantile(0.9, row("service_p90_ms", "ms", Lower, Workload, Total, SERVICE,
        "90th percentile of the server's time")),
    SERVICE_P95_MS = quantile(0.95, row("service_p95_ms", "ms", Lower, Workload, Total, SERVICE,
        "95th percentile of the server's time")),
    SERVICE_P99_MS = quantile(0.99, row("service_p99_ms", "ms", Lower, Workload, Total, SERVICE,
        "99th percentile of the server's time")),
    SERVICE_P999_MS = quantile(0.999, row("service_p999_ms", "ms", Lower, Workload, Total, SERVICE,
        "99.9th percentile of the server's time")),
    SERVICE_MAX_MS = row("service_max_ms", "ms", Lower, Workload, Total, SERVICE, "longest time that the server took"),
    LAG_MEAN_MS = row("lag_mean_ms", "ms", Lower, Workload, Total, PACE,
        "mean delay of a transaction's start behind its schedule"),
    LAG_P99_MS = quantile(0.99, row("lag_p99_ms", "ms", Lower, Workload, Total, PACE,
        "99th percentile of the delay behind schedule")),
    LAG_MAX_MS = row("lag_max_ms", "ms", Lower, Workload, Total, PACE, "largest delay behind schedule"),
    BACKLOG_MAX = row("backlog_max", "", Lower, Workload, Total, PACE,
        "most transactions that were due and not yet started at the end of a second"),
    BACKLOG_GROWTH = row("backlog_growth", "", Lower, Workload, Total, PACE,
        "growth of the backlog from the first to the last quarter of the window, as a share of the \
         transactions due in it; above 0.01 latencies depend on how long one measures"),
    NEVER_STARTED = row("never_started", "", Lower, Workload, Total, PACE,
        "transactions that were due before the close and never started"),
    STATEMENT_MEAN_MS = row("statement_mean_ms", "ms", Lower, Statement, Total, SEND,
        "mean time of one statement of a script"),
    STATEMENT_STDDEV_MS = row("statement_stddev_ms", "ms", Lower, Statement, Total, SEND,
        "standard deviation of the time of one statement"),
    STATEMENT_P50_MS = quantile(0.5, row("statement_p50_ms", "ms", Lower, Statement, Total, SEND,
        "median time of one statement of a script")),
    STATEMENT_P99_MS = quantile(0.99, row("statement_p99_ms", "ms", Lower, Statement, Total, SEND,
        "99th percentile of the time of one statement")),

    STATEMENTS_MS = row("statements_ms", "ms", Lower, Workload, Total, SEND,
        "time of all statements of a transaction between its BEGIN and its COMMIT, both left out"),
    LATENCY_INSIDE_MS = row("latency_inside_ms", "ms", Lower, Workload, Total, SEND,
        "mean latency without the mean times of BEGIN and COMMIT: the statements between them and \
         what passes between one statement and the next"),

    TRANSACTIONS = row("transactions", "", Neither, Workload, Total, CLIENTS,
        "successful transactions inside the window"),
    TRANSACTIONS_TOTAL = row("transactions_total", "", Neither, Workload, Total, CLIENTS,
        "successful transactions over the whole life of the clients"),
    FAILED = row("failed", "", Lower, Workload, Total, CLIENTS,
        "transactions given up after an error, over the whole life of the clients"),
    SKIPPED = row("skipped", "", Lower, Workload, Total, PACE,
        "transactions never started because they were already too late"),
    LATE = row("late", "", Lower, Workload, Total, CLIENTS,
        "successful transactions over the latency limit"),
    RETRIED = row("retried", "", Lower, Workload, Total, CLIENTS, "transactions retried at least once"),
    RETRIES = row("retries", "", Lower, Workload, Total, CLIENTS, "retries in all"),
    ERRORS = row("errors", "", Lower, Workload, Total, CLIENTS,
        "errors that the server or the network gave, retried ones included"),
    SQLSTATE_ERRORS = labelled("SQLSTATE", row("sqlstate_errors", "", Lower, Workload, Total, CLIENTS,
        "errors that the server or the network gave, retried ones included, by SQLSTATE")),
    RECONNECTS = row("reconnects", "", Lower, Workload, Total, CLIENTS, "connections lost and made again"),
    ABORTED_CLIENTS = row("aborted_clients", "", Lower, Workload, Total, CLIENTS,
        "clients that gave up before the load was over"),
    UNKNOWN = row("unknown", "", Lower, Workload, Total, CLIENTS,
        "transactions with an unknown outcome: the connection was lost while committing"),

    JAIN = row("jain", "", Higher, Workload, Total, CLIENTS,
        "Jain's fairness index of the transactions of each client, 1 = all equal"),
    CLIENT_TRANSACTIONS_MIN = row("client_transactions_min", "", Higher, Workload, Total, CLIENTS,
        "transactions of the client that got the fewest"),
    LONGEST_WAIT_MS = row("longest_wait_ms", "ms", Lower, Workload, Total, WAIT,
        "longest time that any client waited for one transaction, those open at the close included"),
    HUNG = row("hung", "", Lower, Workload, Total, WAIT,
        "transactions that had waited for 5 s or longer when the window closed, and had not ended"),

    CONNECT_S = row("connect_s", "s", Lower, Trial, Total, CONNECT, "time until every client was connected"),
    CONNECT_MEAN_MS = row("connect_mean_ms", "ms", Lower, Trial, Total, CONNECT,
        "mean time of one connection attempt that succeeded"),
    CONNECT_P99_MS = quantile(0.99, row("connect_p99_ms", "ms", Lower, Trial, Total, CONNECT,
        "99th percentile of the time of one connection")),
    CONNECT_FAILURES = row("connect_failures", "", Lower, Trial, Total, CONNECT, "connection attempts that failed"),
    DISCONNECT_S = row("disconnect_s", "s", Lower, Trial, Total, CONNECT, "time until every client had left"),
    CONNECT_GENERATOR_CPU_S = row("connect_generator_cpu_s", "s", Lower, Trial, Total, CONNECT,
        "CPU that the rig spent on connecting"),
    WARMUP_S = row("warmup_s", "s", Neither, Trial, Total, CLIENTS,
        "time from all-connected until the window opened"),
    WINDOW_S = row("window_s", "s", Neither, Trial, Total, CLIENTS, "length of the window"),

    GENERATOR_CPU_US_PER_TX = row("generator_cpu_us_per_tx", "µs", Lower, Trial, Total, OWN,
        "CPU that the rig spent on one successful transaction"),
    GENERATOR_CORES = row("generator_cores", "cores", Lower, Trial, Total, OWN,
        "CPU that the rig used inside the window"),
    GENERATOR_CPU_SHARE = row("generator_cpu_share", "", Lower, Trial, Total, OWN,
        "the rig's share of the CPU that rig and servers used together: they compete for the same \
         cores"),
    GENERATOR_BUSY_MAX = row("generator_busy_max", "", Lower, Trial, Total, OWN,
        "share of the window that the busiest lane spent on the CPU; above 0.8 the rig is the \
         limit"),
    LOOP_LAG_P99_MS = row("loop_lag_p99_ms", "ms", Lower, Trial, Total, OWN,
        "99th percentile of the time between an answer's arrival and its handling"),
    LOOP_LAG_MAX_MS = row("loop_lag_max_ms", "ms", Lower, Trial, Total, OWN,
        "largest time between an answer's arrival and its handling"),
    GENERATOR_RUN_DELAY_SHARE = row("generator_run_delay_share", "", Lower, Trial, Total, OWN,
        "share of the clients' waiting that passed while lanes could run and had no CPU; above 0.05 \
         the rig is the limit"),
    LOOP_LAG_SHARE = row("loop_lag_share", "", Lower, Trial, Total, OWN,
        "share of the clients' waiting that passed between arrival and handling; above 0.05 the rig \
         is the limit"),
}
