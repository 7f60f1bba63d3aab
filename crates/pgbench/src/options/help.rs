//! `--help`

use crate::major::Major;

/// What `--help` prints, for a program that is called `command` and speaks this pgbench.
#[must_use]
pub fn help(command: &str, major: Major) -> String {
    let lines = OPTIONS.split_inclusive('\n');
    let known = |line: &&str| major >= Major::V19 || !line.starts_with(CONTINUE_ON_ERROR);
    let options: String = lines.filter(known).collect();
    format!(
        "{command} is a benchmarking tool for PostgreSQL.\n\nUsage:\n  {command} [OPTION]... \
         [DBNAME]\n\n{options}\n\
         Report bugs to the maintainers of pgrig; it is not part of PostgreSQL. Include the output of\n\
         \"{command} --version\" and \"pgrig check\", the whole command, and all that it printed.\n"
    )
}

/// What `--help` says of the option with this long name: the name of its argument, and the first line
/// about it. Both are empty if it says nothing.
pub(super) fn said_of(long: &str) -> (&'static str, &'static str) {
    let mut lines = OPTIONS.lines();
    while let Some(line) = lines.next() {
        let words = || line.split_whitespace().take_while(|word| word.starts_with('-'));
        let argument = words().find_map(|word| {
            let (name, argument) = word.split_once('=').unwrap_or((word.trim_end_matches(','), ""));
            (name.strip_prefix("--")? == long).then_some(argument)
        });
        let Some(argument) = argument.filter(|_| line.starts_with("  -")) else { continue };
        let is_beside = line.as_bytes().get(ABOUT_COLUMN - 1) == Some(&b' ');
        let about = match line.get(ABOUT_COLUMN..) {
            Some(about) if is_beside => about.trim(),
            _ => lines.next().map_or("", str::trim),
        };
        return (argument, about);
    }
    ("", "")
}

/// Where `--help` begins to say what an option does.
const ABOUT_COLUMN: usize = 27;

/// Came with pgbench 19.
const CONTINUE_ON_ERROR: &str = "  --continue-on-error";

/// The names, arguments and defaults are pgbench's.
const OPTIONS: &str = "\
Initialization options:
  -i, --initialize         create and fill pgbench's tables instead of running a benchmark
  -I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")
                           run these initialization steps, in this order
                           d: drop pgbench's tables if they exist
                           t: create pgbench's tables
                           g: generate the data on the client and send it
                           G: generate the data on the server
                           v: vacuum pgbench's tables
                           p: create their primary keys
                           f: create foreign keys between them
  -F, --fillfactor=NUM     fill factor of the tables (default: 100)
  -n, --no-vacuum          leave out the step v
  -q, --quiet              report progress every 5 seconds instead of every 100,000 rows
  -s, --scale=NUM          scaling factor: 100,000 accounts each (default: 1)
  --foreign-keys           add the step f
  --index-tablespace=TABLESPACE
                           where to create indexes
  --partition-method=(range|hash)
                           how to partition pgbench_accounts (default: range)
  --partitions=NUM         partition pgbench_accounts into NUM parts (default: 0)
  --tablespace=TABLESPACE  where to create tables
  --unlogged-tables        create tables as unlogged tables

Options to select what to run:
  -b, --builtin=NAME[@W]   add the builtin script NAME weighted at W (default: 1)
                           (\"-b list\" lists them)
  -f, --file=FILENAME[@W]  add the script FILENAME weighted at W (default: 1)
  -N, --skip-some-updates  same as \"-b simple-update\"
  -S, --select-only        same as \"-b select-only\"

Benchmarking options:
  -c, --client=NUM         number of concurrent database clients (default: 1)
  -C, --connect            establish a new connection for each transaction
  -D, --define=VARNAME=VALUE
                           define a variable for scripts
  -j, --jobs=NUM           number of threads (default: 1)
  -l, --log                write the time of each transaction to a log file
  -L, --latency-limit=NUM  count transactions that last more than NUM ms as late
  -M, --protocol=simple|extended|prepared
                           protocol for submitting queries (default: simple)
  -n, --no-vacuum          do not run VACUUM before tests
  -P, --progress=NUM       report progress every NUM seconds
  -r, --report-per-command report latencies, failures, and retries per command
  -R, --rate=NUM           target rate in transactions per second
  -s, --scale=NUM          report this scale factor in output
  -t, --transactions=NUM   number of transactions each client runs (default: 10)
  -T, --time=NUM           duration in seconds, counted from when all clients are connected
  -v, --vacuum-all         vacuum all four standard tables before tests
  --aggregate-interval=NUM log totals of NUM seconds instead of transactions
  --continue-on-error      go on with the next transaction after any SQL error
  --exit-on-abort          exit when any client is aborted
  --failures-detailed      report failures grouped by kind
  --log-prefix=PREFIX      prefix of the log file's name (default: \"pgbench_log\")
  --max-tries=NUM          how often to try a transaction (default: 1; 0 is no limit)
  --progress-timestamp     use Unix epoch timestamps for progress
  --random-seed=SEED       set random seed (\"time\", \"rand\", integer)
  --sampling-rate=NUM      fraction of transactions to log (e.g., 0.01 for 1%)
  --show-script=NAME       show builtin script code, then exit
  --verbose-errors         print messages of all errors

Options that pgbench does not have:
  --arrivals=poisson|constant
                           gaps between transactions under -R (default: poisson)
  --as=18|19               speak as this version of pgbench (default: 19)
  --connect-rate=NUM       begin at most NUM connections a second
  --baseline               first measure the highest rate and the lowest latency that pgrig itself
                           reaches here, against a server that does nothing
  --connections=NUM        with -i: load the accounts on NUM connections (default: 1); with
                           --partitions, build the keys of partitions on them as well
  --curve=FILE             list every window of a search as CSV
  --find-clients=GOAL      find how many clients, up to -c, keep a goal
  --find-rate=GOAL         find the highest rate that keeps a goal, for example
                           p99 < 10ms and failures < 1% and backlog < 100
  --find-seconds=NUM       length of the short windows of a search (default: -T / 5, at least 2);
                           the others are as long as -T
  --generators=NUM         drive the load from NUM processes (default: 1); -c and -j are for all
                           of them together
  --hdr=FILE               write an HDR histogram log (V2), one line each interval
  --hosts=FILE             drive the load from the hosts of an inventory; -c and -j are for all
                           of them together (docs/many-hosts.md)
  --html=FILE              write a report that a browser shows
  --influx=FILE            write Influx line protocol, one line each interval
  --interval=MS            length of an interval in --hdr, --html, --influx, --json and --metrics
                           (default: 1000)
  --json=FILE              write everything that was measured, as JSON
  --metrics=FILE|IP:PORT   write OpenMetrics text, or serve it while the run lasts
  --no-describe            do not ask for the description of results; libpq always does, so the
                           results are not comparable with pgbench's
  --on-host-loss=stop|go-on
                           what to do when a host is lost (default: stop)
  --push                   copy this program to the hosts first
  --reconnect              connect again where a connection is lost, and go on
  --resume                 with -i: keep what an earlier -i has loaded, and do the rest
  --serve                  show the run in a browser while it lasts: a page on 127.0.0.1
  --syntax=9.x             read scripts as pgbench before 9.6 did: SQL ends at the newline
  --warmup=auto|SECONDS    load before the duration begins; auto: until throughput is steady,
                           3 to 120 s

Common options:
  --debug                  print debugging output
  -d, --dbname=DBNAME      database name or connection string to connect to
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port number
  -U, --username=USERNAME  connect as specified database user
  -V, --version            output version information, then exit
  -?, --help               show this help, then exit
";
