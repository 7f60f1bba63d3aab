//! Which of pgbench's options a comparison does not follow.

use load::Pace;
use pgbench::options::{Length, OurOptions, RunOptions, ServerOptions};

/// pgbench's own number of transactions where none is given.
const DEFAULT_TRANSACTIONS: u32 = 10;

/// Length of an interval in files where none is given, in milliseconds.
const DEFAULT_INTERVAL_MS: u64 = 1_000;

/// Of the options that were given, the first that a comparison does not follow, and why. Every option
/// is named here, so that a new one is decided on.
pub(crate) fn first(workload: &RunOptions) -> Option<(&'static str, &'static str)> {
    let RunOptions {
        server: ServerOptions { host, port, user, dbname },
        debug,
        length,
        connect_each,
        pace,
        latency_limit_us,
        progress_s,
        progress_timestamp,
        per_command,
        log,
        failures_detailed,
        verbose_errors,
        seed,
        ours,
        // What is compared.
        major: _,
        scripts: _,
        clients: _,
        lanes: _,
        protocol: _,
        variables: _,
        scale: _,
        on_error: _,
        // What happens in any case: tables are vacuumed, and an aborted client ends the comparison.
        vacuum: _,
        exit_on_abort: _,
    } = workload;
    let OurOptions {
        warm_up,
        connect_rate,
        generators,
        interval_ms,
        hdr,
        json,
        html,
        find,
        baseline,
        serve: _,
        metrics,
        influx,
        hosts,
        describe: _,
        syntax: _,
        on_loss: _,
    } = ours;
    let servers = "the sides are given by --a-conninfo and --b-conninfo, or made by pgrig";
    let files = "a comparison writes its own files; see --out and --json";
    let lines = "a comparison prints its own progress and figures";
    let generator = "one process on this machine loads both sides";
    let has_rate = *pace != Pace::Closed;
    let refused = [
        (
            has_rate && latency_limit_us.is_some(),
            "-L",
            "with a rate, transactions that are late are compared, not skipped",
        ),
        (*connect_each, "-C", "sides keep their connections open"),
        (log.is_some(), "-l", "a comparison writes no transaction log"),
        (
            *length != Length::Transactions(DEFAULT_TRANSACTIONS),
            "-t, -T",
            "the precision decides how long it takes; see --max-time",
        ),
        (host.is_some(), "--host", servers),
        (port.is_some(), "-p", servers),
        (user.is_some(), "-U", servers),
        (dbname.is_some(), "DBNAME", servers),
        (*debug, "--debug", lines),
        (progress_s.is_some(), "-P", lines),
        (*progress_timestamp, "--progress-timestamp", lines),
        (*per_command, "-r", lines),
        (*failures_detailed, "--failures-detailed", lines),
        (*verbose_errors, "--verbose-errors", lines),
        (seed.is_some(), "--random-seed", "the seed of a comparison is --seed"),
        (warm_up.is_some(), "--warmup", "each minute of a comparison warms up by itself"),
        (connect_rate.is_some(), "--connect-rate", "all clients connect before anything counts"),
        (*generators > 1, "--generators", generator),
        (hosts.is_some(), "--hosts", generator),
        (*interval_ms != DEFAULT_INTERVAL_MS, "--interval", files),
        (hdr.is_some(), "--hdr", files),
        (json.is_some(), "--json", files),
        (html.is_some(), "--html", files),
        (influx.is_some(), "--influx", files),
        (metrics.is_some(), "--metrics", files),
        (find.is_some(), "--find-rate, --find-clients", "both sides get one load"),
        (*baseline, "--baseline", "use pgrig bench --baseline"),
    ];
    refused.into_iter().find_map(|(is_given, option, why)| is_given.then_some((option, why)))
}
