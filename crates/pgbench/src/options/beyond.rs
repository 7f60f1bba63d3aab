//! The options that pgbench does not have. To add one: a row here, a field of
//! [`OurOptions`](super::OurOptions) or [`InitialiseOptions`](super::InitialiseOptions), and what it does.
//!
//! pgbench takes `--help` and `--version` as the first argument only. They are rows here, since
//! accepting them anywhere takes nothing away.

use load::OnLoss;

use super::row::Heading::{Beyond, Common};
use super::row::{Row, keep, put, set};
use super::values::{
    above_zero, arrivals, goal, on_host_loss, pool_sizes, positive, server_cpus, syntax, warm_up,
};
use super::{Length, Origin, PoolSizes, Range, Request, Script, ServerOptions};
use crate::number::bounded_int;
use crate::search::capacity::CLIENTS_MIN;

const FILES: &str = "a comparison writes its own files; see --out and --json";
const GENERATOR: &str = "one process on this machine loads both sides";
const ONE_LOAD: &str = "both sides get one load";

pub(super) static BEYOND: &[Row] = &[
    Row::flag("help", &[(Common, "show this help, then exit")], |given| {
        given.at_once(Request::Help(given.major))
    })
    .short('?')
    .in_both_modes(),
    Row::flag("version", &[(Common, "output version information, then exit")], |given| {
        given.at_once(Request::Version(given.major))
    })
    .short('V')
    .in_both_modes(),
    Row::flag(
        "aggregate-last",
        &[(Beyond, "with --aggregate-interval: log the last interval, too, which is not over; pgbench \
            leaves it out")],
        |given| set(&mut given.last_stretch),
    )
    .fits(|given| {
        let why = "--aggregate-last is allowed only with --aggregate-interval";
        given.aggregate_s.is_none().then_some(why)
    }),
    Row::value(
        "arrivals",
        "poisson|constant",
        &[(Beyond, "gaps between transactions under -R (default: poisson)")],
        |given, value| put(&mut given.arrivals, arrivals(value)),
    )
    .fits(|given| {
        let has_rate = given.rate.is_some() || matches!(given.find, Some((Range::Rate, _)));
        (!has_rate).then_some("--arrivals is allowed only with a rate limit (-R)")
    }),
    // The names of the other options depend on it, so it has been read before them.
    Row::value(
        "as",
        "15|16|17|18|19",
        &[(Beyond, "speak as this version of pgbench (default: the server's version, 15 to 19; as a \
            link named pgbench, the version of the programs beside it)")],
        |_, _| Ok(()),
    )
    .in_both_modes(),
    Row::flag(
        "baseline",
        &[(Beyond, "first measure the highest rate and the lowest latency that pgrig itself reaches \
            here, against a server that does nothing")],
        |given| set(&mut given.ours.baseline),
    )
    .fits(|given| {
        given.hosts.is_some().then_some(
            "--baseline measures the rig on this machine, not on the hosts: leave it out with --hosts",
        )
    })
    .not_compared("use pgrig bench --baseline"),
    Row::value(
        "capacity",
        "GOAL",
        &[(Beyond, "measure 1 to -c clients, each three times; say at which most is done while a goal holds, \
            which share of the work waits, and what more clients would give")],
        |given, value| put(&mut given.capacity, goal(value)),
    )
    .fits(|given| {
        if given.find.is_some() {
            return Some("--capacity measures loads of its own: leave out --find-rate and --find-clients");
        }
        if given.rate.is_some() {
            return Some("--capacity measures as fast as the clients can: leave out -R");
        }
        if given.clients.unwrap_or(1) < CLIENTS_MIN {
            return Some("--capacity needs at least 6 clients (-c)");
        }
        if given.ours.tail {
            return Some("--capacity runs many windows and cannot be used with --tail");
        }
        find_fits(given.length(), given.log)
    })
    .not_compared(ONE_LOAD),
    Row::flag(
        "check",
        &[(Beyond, "after the run, check that the tables of the builtin scripts are consistent; exit code \
            2 if they are not")],
        |given| set(&mut given.ours.check),
    )
    .fits(|given| {
        let is_file = |script: &Script| script.origin == Origin::File;
        given.scripts.iter().all(is_file).then_some(
            "--check is for builtin scripts (-b); scripts of your own check results with \\expect",
        )
    })
    .not_compared("run pgrig bench --check on either side"),
    Row::flag(
        "serve",
        &[(Beyond, "show the run in a browser while it lasts: a page on 127.0.0.1")],
        |given| set(&mut given.ours.serve),
    ),
    Row::value(
        "connections",
        "NUM",
        &[(Beyond, "with -i: load the accounts on NUM connections (default: 1); with --partitions, \
            build the keys of partitions on them as well")],
        |given, value| put(&mut given.connections, positive(value, "--connections")),
    )
    .initialises(),
    Row::value(
        "curve",
        "FILE",
        &[(Beyond, "list every window of a search as CSV")],
        |given, value| keep(&mut given.curve, value),
    )
    .fits(|given| (given.find.is_none() && given.capacity.is_none()).then_some(CURVE_ONLY))
    .not_compared(ONE_LOAD),
    Row::value(
        "find-clients",
        "GOAL",
        &[(Beyond, "find how many clients, up to -c, keep a goal")],
        |given, value| given.find(Range::Clients, value),
    )
    .fits(|given| find_fits(given.length(), given.log))
    .not_compared(ONE_LOAD),
    Row::value(
        "find-rate",
        "GOAL",
        &[(Beyond, "find the highest rate that keeps a goal, for example\n\
            p99 < 10ms and failures < 1% and backlog < 100")],
        |given, value| given.find(Range::Rate, value),
    )
    .fits(|given| match given.rate {
        Some(_) => Some("--find-rate looks for the rate itself: leave out -R"),
        None => find_fits(given.length(), given.log),
    })
    .not_compared(ONE_LOAD),
    Row::value(
        "find-seconds",
        "NUM",
        &[(Beyond, "length of the short windows of a search (default: -T / 5, at least 2); the others \
            are as long as -T")],
        |given, value| put(&mut given.find_seconds, positive(value, "--find-seconds")),
    )
    .fits(|given| given.find.is_none().then_some(FIND_ONLY))
    .not_compared(ONE_LOAD),
    Row::value(
        "connect-rate",
        "NUM",
        &[(Beyond, "begin at most NUM connections a second")],
        |given, value| put(&mut given.ours.connect_rate, above_zero(value, "connection rate")),
    )
    .not_compared("all clients connect before anything counts"),
    Row::value(
        "generators",
        "NUM",
        &[(Beyond, "drive the load from NUM processes (default: 1); -c and -j are for all of them \
            together")],
        |given, value| {
            given.ours.generators = positive(value, "--generators")?;
            Ok(())
        },
    )
    .fits(|given| match given.hosts {
        Some(_) => Some("--hosts runs one generator on each host: leave out --generators"),
        None if given.ours.generators > given.clients.unwrap_or(1) => {
            Some("--generators must not be higher than the number of clients (-c)")
        }
        None => None,
    })
    .not_compared(GENERATOR),
    Row::value(
        "hdr",
        "FILE",
        &[(Beyond, "write an HDR histogram log (V2), one line each interval")],
        |given, value| keep(&mut given.ours.hdr, value),
    )
    .not_compared(FILES),
    Row::value(
        "hosts",
        "FILE",
        &[(Beyond, "drive the load from the hosts of an inventory; -c and -j are for all of them \
            together (docs/many-hosts.md)")],
        |given, value| keep(&mut given.hosts, value),
    )
    .not_compared(GENERATOR),
    Row::value(
        "html",
        "FILE",
        &[(Beyond, "write a report that a browser shows")],
        |given, value| keep(&mut given.ours.html, value),
    )
    .not_compared(FILES),
    Row::value(
        "influx",
        "FILE",
        &[(Beyond, "write Influx line protocol, one line each interval")],
        |given, value| keep(&mut given.ours.influx, value),
    )
    .not_compared(FILES),
    Row::value(
        "interval",
        "MS",
        &[(Beyond, "length of an interval in --hdr, --html, --influx, --json and --metrics (default: \
            1000)")],
        |given, value| {
            given.ours.interval_ms = bounded_int(value, "--interval", 10, 3_600_000)?;
            Ok(())
        },
    )
    .not_compared(FILES),
    Row::value(
        "json",
        "FILE",
        &[(Beyond, "write everything that was measured, as JSON")],
        |given, value| keep(&mut given.ours.json, value),
    )
    .not_compared(FILES),
    Row::value(
        "metrics",
        "FILE|IP:PORT[,NAME...]",
        &[(Beyond, "write OpenMetrics text, or serve it while the run lasts")],
        |given, value| keep(&mut given.ours.metrics, value),
    )
    .not_compared(FILES),
    Row::flag(
        "cache-keys",
        &[(Beyond, "with --connect: derive the keys of a SCRAM password once; pgbench derives them for \
            each connection, so the results are not comparable with its")],
        |given| {
            given.ours.caches_keys = true;
            Ok(())
        },
    )
    .fits(|given| (!given.connect_each).then_some("only connections for each transaction derive keys again: add -C"))
    .not_compared("sides keep their connections open"),
    Row::flag(
        "no-describe",
        &[(Beyond, "do not ask for the description of results; libpq always does, so the results are \
            not comparable with pgbench's")],
        |given| {
            given.ours.describe = false;
            Ok(())
        },
    ),
    Row::value(
        "on-host-loss",
        "stop|go-on",
        &[(Beyond, "what to do when a host is lost (default: stop)")],
        |given, value| put(&mut given.on_host_loss, on_host_loss(value)),
    )
    .fits(|given| given.hosts.is_none().then_some(HOSTS_ONLY)),
    Row::flag(
        "own-server",
        &[(Beyond, "build a server with pgbench's tables of scale -s for this run, and remove it afterwards")],
        |given| set(&mut given.ours.own_server),
    )
    .fits(|given| {
        if given.server != ServerOptions::default() {
            return Some("--own-server builds the server: leave out DBNAME, -h, -p and -U");
        }
        if given.hosts.is_some() {
            return Some("--own-server builds the server on this machine, for its clients only: leave out --hosts");
        }
        if given.scripts.iter().any(|script| script.origin == Origin::Tpcc) {
            return Some("--own-server has pgbench's tables only: leave out tpcc-like");
        }
        given.scale.is_none().then_some("--own-server needs the scale of its tables (-s)")
    })
    .not_compared("pgrig builds the servers of both sides"),
    Row::value(
        "pool-sizes",
        "auto|LIST",
        &[(Beyond, "with --capacity: start a PgBouncer on this machine before the server, and measure -c clients \
            with pools of these sizes, as in 5,10,20,40, eight times each; say which is the smallest that is \
            enough (auto: 1, 2, 4, ... up to -c)")],
        |given, value| put(&mut given.pool_sizes, pool_sizes(value)),
    )
    .fits(|given| {
        let more = |size: &u32| *size > given.clients.unwrap_or(1);
        match &given.pool_sizes {
            _ if given.capacity.is_none() => Some("--pool-sizes is allowed only with --capacity"),
            _ if given.server_cpus.is_some() => Some("--pool-sizes and --server-cpus cannot be used together"),
            _ if given.hosts.is_some() => {
                Some("--pool-sizes starts PgBouncer on this machine, beside the load: leave out --hosts")
            }
            Some(PoolSizes::Listed(sizes)) if sizes.iter().any(more) => {
                Some("a pool of --pool-sizes has more connections than there are clients (-c)")
            }
            _ => None,
        }
    })
    .not_compared(ONE_LOAD),
    Row::flag("push", &[(Beyond, "copy this program to the hosts first")], |given| {
        set(&mut given.push)
    })
    .fits(|given| given.hosts.is_none().then_some(HOSTS_ONLY)),
    Row::flag(
        "reconnect",
        &[(Beyond, "connect again where a connection is lost, and go on")],
        |given| {
            given.ours.on_loss = OnLoss::Reconnect;
            Ok(())
        },
    ),
    Row::flag(
        "resume",
        &[(Beyond, "with -i: keep what an earlier -i has loaded, and do the rest")],
        |given| set(&mut given.resume),
    )
    .initialises(),
    Row::value(
        "syntax",
        "9.x",
        &[(Beyond, "read scripts as pgbench before 9.6 did: SQL ends at the newline")],
        |given, value| {
            given.ours.syntax = syntax(value)?;
            Ok(())
        },
    ),
    Row::value(
        "server-cpus",
        "LIST",
        &[(Beyond, "with --capacity: measure the server with each of these numbers of CPUs, as in 2,0.5,0.75,1,1.5; \
            the first is what it has before and after")],
        |given, value| put(&mut given.server_cpus, server_cpus(value)),
    )
    .fits(|given| match (&given.capacity, &given.server_cpus_command) {
        (None, _) => Some(CAPACITY_ONLY),
        (_, None) if !given.ours.own_server => Some(
            "--server-cpus needs the command that changes them (--server-cpus-command), or a server of pgrig's \
             (--own-server)",
        ),
        _ => None,
    })
    .not_compared(ONE_LOAD),
    Row::value(
        "server-cpus-command",
        "COMMAND",
        &[(Beyond, "command for the shell that gives the server {cpus} CPUs, or {percent} of one, as in \
            'systemctl set-property --runtime postgresql@15-main CPUQuota={percent}%'")],
        |given, value| keep(&mut given.server_cpus_command, value),
    )
    .fits(|given| {
        if given.ours.own_server {
            return Some("--server-cpus-command is for a server of yours: leave it out with --own-server");
        }
        if given.server_cpus.is_none() {
            return Some("--server-cpus-command needs the numbers of CPUs (--server-cpus)");
        }
        let command = given.server_cpus_command.as_deref()?;
        let has_place = ["{cpus}", "{percent}"].iter().any(|place| command.contains(place));
        (!has_place).then_some("--server-cpus-command needs {cpus} or {percent} where the number belongs")
    })
    .not_compared(ONE_LOAD),
    Row::flag(
        "tail",
        &[(Beyond, "sample what every backend waits for, and say what the slowest transactions waited for")],
        |given| set(&mut given.ours.tail),
    )
    .fits(|given| {
        given.find.is_some().then_some(
            "a search runs many windows and cannot be used with --tail: run it at the rate found",
        )
    })
    .not_compared("use pgrig compare --tail"),
    Row::value(
        "warmup",
        "auto|SECONDS",
        &[(Beyond, "load before the duration begins; auto: until throughput is steady, 3 to 120 s")],
        |given, value| put(&mut given.ours.warm_up, warm_up(value)),
    )
    .fits(|given| {
        let is_timed = matches!(given.length(), Length::Seconds(_));
        (!is_timed).then_some("--warmup can only be used with a duration (-T)")
    })
    .not_compared("each minute of a comparison warms up by itself"),
];

const FIND_ONLY: &str = "--find-seconds is allowed only with --find-rate or --find-clients";
const CURVE_ONLY: &str = "--curve is allowed only with --find-rate, --find-clients or --capacity";
const CAPACITY_ONLY: &str = "--server-cpus is allowed only with --capacity";
const HOSTS_ONLY: &str = "--on-host-loss and --push are allowed only with --hosts";

fn find_fits(length: Length, has_log: bool) -> Option<&'static str> {
    if !matches!(length, Length::Seconds(_)) {
        return Some(
            "--find-rate, --find-clients and --capacity need the duration of a window (-T)",
        );
    }
    has_log.then_some("a search runs many windows and cannot be used with a log (-l)")
}
