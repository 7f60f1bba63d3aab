//! pgbench's options, in pgbench's order: getopt lists ambiguous names in it.

use super::given::Given;
use super::row::Heading::{Benchmarking, Common, Initialisation, What};
use super::row::{Row, keep, put, set};
use super::values::{
    builtin, definition, is_tpcc, latency_limit_us, max_tries, partition_method, positive,
    protocol, rate, sampling_rate, seed_option, steps, weighted,
};
use super::{LoadProgress, Persistence, Request};
use crate::major::Major;
use crate::number::bounded_int;

const SERVERS: &str = "the sides are given by --a-conninfo and --b-conninfo, or made by pgrig";
const LINES: &str = "a comparison prints its own progress and figures";
const LOGS: &str = "a comparison writes no transaction log";
const LENGTH: &str = "the precision decides how long it takes; see --max-time";

pub(super) static PGBENCH: &[Row] = &[
    Row::value(
        "builtin",
        "NAME[@W]",
        &[(
            What,
            "add the builtin script NAME weighted at W (default: 1)\n(\"-b list\" lists pgbench's; \
             tpcc-like is pgrig's, with -i it makes its tables)",
        )],
        |given, value| {
            if value == "list" {
                return given.at_once(Request::ListScripts);
            }
            let weighted = weighted(value)?;
            given.add_builtin(&weighted.name, weighted.weight)
        },
    )
    .short('b'),
    Row::value(
        "client",
        "NUM",
        &[(Benchmarking, "number of concurrent database clients (default: 1)")],
        |given, value| put(&mut given.clients, positive(value, "-c/--client")),
    )
    .short('c'),
    Row::flag(
        "connect",
        &[(Benchmarking, "establish a new connection for each transaction")],
        |given| set(&mut given.connect_each),
    )
    .short('C')
    .not_compared("sides keep their connections open"),
    Row::value(
        "dbname",
        "DBNAME",
        &[(Common, "database name or connection string to connect to")],
        |given, value| keep(&mut given.server.dbname, value),
    )
    .short('d')
    .in_both_modes()
    .since(Major::V16)
    .not_compared(SERVERS),
    Row::flag("debug", &[(Common, "print debugging output")], |given| set(&mut given.debug))
        .short('d')
        .in_both_modes()
        .until(Major::V15)
        .not_compared(LINES),
    Row::value(
        "define",
        "VARNAME=VALUE",
        &[(Benchmarking, "define a variable for scripts")],
        |given, value| {
            given.variables.push(definition(value)?);
            Ok(())
        },
    )
    .short('D'),
    Row::value(
        "file",
        "FILENAME[@W]",
        &[(What, "add the script FILENAME weighted at W (default: 1)")],
        Given::add_file,
    )
    .short('f'),
    Row::value(
        "fillfactor",
        "NUM",
        &[(Initialisation, "fill factor of the tables (default: 100)")],
        |given, value| put(&mut given.fillfactor, bounded_int(value, "-F/--fillfactor", 10, 100)),
    )
    .short('F')
    .initialises(),
    Row::value(
        "host",
        "HOSTNAME",
        &[(Common, "database server host or socket directory")],
        |given, value| keep(&mut given.server.host, value),
    )
    .short('h')
    .in_both_modes()
    .not_compared(SERVERS),
    Row::flag(
        "initialize",
        &[(Initialisation, "create and fill the tables instead of running a benchmark")],
        |given| set(&mut given.initialise),
    )
    .short('i')
    .in_both_modes(),
    Row::value(
        "init-steps",
        "[dtgGvpf]+ (default \"dtgvp\")",
        &[(
            Initialisation,
            "run these initialization steps, in this order\n\
             d: drop pgbench's tables if they exist\n\
             t: create pgbench's tables\n\
             g: generate the data on the client and send it\n\
             G: generate the data on the server\n\
             v: vacuum pgbench's tables\n\
             p: create their primary keys\n\
             f: create foreign keys between them",
        )],
        |given, value| put(&mut given.steps, steps(value)),
    )
    .short('I')
    .initialises(),
    Row::value(
        "jobs",
        "NUM",
        &[(Benchmarking, "number of threads (default: 1)")],
        |given, value| put(&mut given.lanes, positive(value, "-j/--jobs")),
    )
    .short('j'),
    Row::flag(
        "log",
        &[(Benchmarking, "write the time of each transaction to a log file")],
        |given| set(&mut given.log),
    )
    .short('l')
    .not_compared(LOGS),
    Row::value(
        "latency-limit",
        "NUM",
        &[(Benchmarking, "count transactions that last more than NUM ms as late")],
        |given, value| put(&mut given.latency_limit_us, latency_limit_us(value)),
    )
    .short('L'),
    Row::flag(
        "no-vacuum",
        &[
            (Initialisation, "leave out the step v"),
            (Benchmarking, "do not run VACUUM before tests"),
        ],
        |given| set(&mut given.no_vacuum),
    )
    .short('n')
    .in_both_modes(),
    Row::value("port", "PORT", &[(Common, "database server port number")], |given, value| {
        keep(&mut given.server.port, value)
    })
    .short('p')
    .in_both_modes()
    .not_compared(SERVERS),
    Row::value(
        "progress",
        "NUM",
        &[(Benchmarking, "report progress every NUM seconds")],
        |given, value| put(&mut given.progress_s, positive(value, "-P/--progress")),
    )
    .short('P')
    .not_compared(LINES),
    Row::value(
        "protocol",
        "simple|extended|prepared",
        &[(Benchmarking, "protocol for submitting queries (default: simple)")],
        |given, value| put(&mut given.protocol, protocol(value)),
    )
    .short('M'),
    Row::flag(
        "quiet",
        &[(Initialisation, "report progress every 5 seconds instead of every 100,000 rows")],
        |given| put(&mut given.progress, Ok(LoadProgress::Seconds)),
    )
    .short('q')
    .initialises(),
    Row::flag(
        "report-per-command",
        &[(Benchmarking, "report latencies, failures, and retries per command")],
        |given| set(&mut given.per_command),
    )
    .short('r')
    .not_compared(LINES),
    Row::value(
        "rate",
        "NUM",
        &[(Benchmarking, "target rate in transactions per second")],
        |given, value| {
            given.rate = rate(value)?;
            Ok(())
        },
    )
    .short('R'),
    Row::value(
        "scale",
        "NUM",
        &[
            (Initialisation, "scaling factor: 100,000 accounts each (default: 1)"),
            (Benchmarking, "report this scale factor in output"),
        ],
        |given, value| put(&mut given.scale, positive(value, "-s/--scale")),
    )
    .short('s')
    .in_both_modes(),
    Row::flag("select-only", &[(What, "same as \"-b select-only\"")], |given| {
        given.add_builtin("select-only", 1)
    })
    .short('S'),
    Row::flag("skip-some-updates", &[(What, "same as \"-b simple-update\"")], |given| {
        given.add_builtin("simple-update", 1)
    })
    .short('N'),
    Row::value(
        "time",
        "NUM",
        &[(Benchmarking, "duration in seconds, counted from when all clients are connected")],
        |given, value| put(&mut given.seconds, positive(value, "-T/--time")),
    )
    .short('T')
    .not_compared(LENGTH),
    Row::value(
        "transactions",
        "NUM",
        &[(Benchmarking, "number of transactions each client runs (default: 10)")],
        |given, value| put(&mut given.transactions, positive(value, "-t/--transactions")),
    )
    .short('t')
    .not_compared(LENGTH),
    Row::value(
        "username",
        "USERNAME",
        &[(Common, "connect as specified database user")],
        |given, value| keep(&mut given.server.user, value),
    )
    .short('U')
    .in_both_modes()
    .not_compared(SERVERS),
    Row::flag(
        "vacuum-all",
        &[(Benchmarking, "vacuum all four standard tables before tests")],
        |given| set(&mut given.vacuum_all),
    )
    .short('v'),
    Row::flag(
        "unlogged-tables",
        &[(Initialisation, "create tables as unlogged tables")],
        |given| put(&mut given.persistence, Ok(Persistence::Unlogged)),
    )
    .initialises(),
    Row::value(
        "tablespace",
        "TABLESPACE",
        &[(Initialisation, "where to create tables")],
        |given, value| keep(&mut given.tablespace, value),
    )
    .initialises(),
    Row::value(
        "index-tablespace",
        "TABLESPACE",
        &[(Initialisation, "where to create indexes")],
        |given, value| keep(&mut given.index_tablespace, value),
    )
    .initialises(),
    Row::value(
        "sampling-rate",
        "NUM",
        &[(Benchmarking, "fraction of transactions to log (e.g., 0.01 for 1%)")],
        |given, value| put(&mut given.sampling_rate, sampling_rate(value)),
    ),
    Row::value(
        "aggregate-interval",
        "NUM",
        &[(Benchmarking, "log totals of NUM seconds instead of transactions")],
        |given, value| put(&mut given.aggregate_s, positive(value, "--aggregate-interval")),
    ),
    Row::flag(
        "progress-timestamp",
        &[(Benchmarking, "use Unix epoch timestamps for progress")],
        |given| set(&mut given.progress_timestamp),
    )
    .not_compared(LINES),
    Row::value(
        "log-prefix",
        "PREFIX",
        &[(Benchmarking, "prefix of the log file's name (default: \"pgbench_log\")")],
        |given, value| keep(&mut given.log_prefix, value),
    ),
    Row::flag("foreign-keys", &[(Initialisation, "add the step f")], |given| {
        set(&mut given.foreign_keys)
    })
    .initialises(),
    Row::value(
        "random-seed",
        "SEED",
        &[(Benchmarking, "set random seed (\"time\", \"rand\", integer)")],
        |given, value| put(&mut given.seed, seed_option(value, "--random-seed option")),
    )
    .not_compared("the seed of a comparison is --seed"),
    Row::value(
        "show-script",
        "NAME",
        &[(Benchmarking, "show builtin script code, then exit")],
        |given, value| match is_tpcc(value) {
            true => given.at_once(Request::ShowTpcc),
            false => given.at_once(Request::ShowScript(builtin(value)?)),
        },
    )
    .in_both_modes(),
    Row::value(
        "partitions",
        "NUM",
        &[(Initialisation, "partition pgbench_accounts into NUM parts (default: 0)")],
        |given, value| put(&mut given.partitions, bounded_int(value, "--partitions", 0, i32::MAX)),
    )
    .initialises(),
    Row::value(
        "partition-method",
        "(range|hash)",
        &[(Initialisation, "how to partition pgbench_accounts (default: range)")],
        |given, value| put(&mut given.partition_method, partition_method(value)),
    )
    .initialises(),
    Row::flag("failures-detailed", &[(Benchmarking, "report failures grouped by kind")], |given| {
        set(&mut given.failures_detailed)
    })
    .not_compared(LINES),
    Row::value(
        "max-tries",
        "NUM",
        &[(Benchmarking, "how often to try a transaction (default: 1; 0 is no limit)")],
        |given, value| put(&mut given.max_tries, max_tries(value)),
    ),
    Row::flag("verbose-errors", &[(Benchmarking, "print messages of all errors")], |given| {
        set(&mut given.verbose_errors)
    })
    .not_compared(LINES),
    Row::flag("exit-on-abort", &[(Benchmarking, "exit when any client is aborted")], |given| {
        set(&mut given.exit_on_abort)
    })
    .since(Major::V17),
    Row::flag("debug", &[(Common, "print debugging output")], |given| set(&mut given.debug))
        .in_both_modes()
        .since(Major::V16)
        .not_compared(LINES),
    Row::flag(
        "continue-on-error",
        &[(Benchmarking, "go on with the next transaction after any SQL error")],
        |given| set(&mut given.continue_on_error),
    )
    .since(Major::V19),
];
