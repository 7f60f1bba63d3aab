//! Benchmarking mode, from the first connection to the last line.

mod baseline;
mod capacity;
mod check;
mod drift;
mod figure;
mod files;
mod find;
mod found;
mod hosts;
mod influx;
mod json;
mod metrics;
mod ours;
mod own_server;
mod plan;
mod pooler;
mod pools;
mod progress;
mod results;
mod tables;
mod vacuum;

use std::time::Instant;

use load::{
    LaneFleet, LoadControl, LoadEnd, LoadError, LoadEvent, LoadOutcome, MessageLevel, OnHostLoss,
    UserMessage,
};
use measure::{LoadMeasurement, LoadObserver, PreparedLoad, SampledServer};
use wire::conninfo::{Conninfo, HostAddress, shown_word};

use crate::complaint::Complaint;
use crate::console::Console;
use crate::major::Major;
use crate::options::{Invocation, Length, Origin, RunOptions};
use crate::page::{Page, Pages};
use crate::server::Server;

use drift::DeadRows;
use files::Files;
use metrics::Metrics;
use own_server::OwnServer;
use pooler::PoolerLab;
use progress::Progress;
use results::Results;
use tables::{Look, Tables};

pub use plan::workload;

/// pgbench's exit codes, and the shell's for an interruption.
const DONE: u8 = 0;
const INCOMPLETE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Runs a benchmark. The exit code says whether it is complete.
pub(crate) fn run(
    options: &RunOptions,
    invocation: &Invocation<'_>,
    control: &LoadControl,
    console: &mut Console<'_>,
    pages: Option<&dyn Pages>,
) -> Result<u8, Complaint> {
    if (options.ours.html.is_some() || options.ours.serve) && pages.is_none() {
        return Err(Complaint::error("--html and --serve are for the command line only"));
    }
    let mut own = match options.ours.own_server {
        true => Some(OwnServer::build(options, invocation, control, console)?),
        false => None,
    };
    let (built_options, built_invocation);
    let (options, invocation) = match &own {
        None => (options, invocation),
        Some(own) => {
            built_options = RunOptions { server: own.options(), ..options.clone() };
            built_invocation = own.invocation(invocation, invocation.arguments);
            (&built_options, &built_invocation)
        }
    };
    let (mut server, conninfo) = Server::open(&options.server, invocation, control)
        .map_err(|complaint| complaint.with_error("could not create connection for setup"))?;
    let major = options.spoken_by.major(options.major, server.version_num())?;
    let options = &RunOptions { major, ..options.clone() };
    console.line(version(options.major, server.version(), console.is_pgbenchs()));
    console.debug(setting(options, &conninfo));
    let pools = match options.ours.capacity.as_ref().and_then(|asked| asked.pool_sizes.as_ref()) {
        Some(sizes) => {
            let sizes = pools::sizes(sizes, options.clients, &mut server)?;
            Some((sizes, PoolerLab::open(options, &conninfo)?))
        }
        None => None,
    };
    let seed = plan::seed(options, console)?;
    let tables = look_at_tables(options, invocation, &mut server, &conninfo.dbname, console)?;
    // Before the vacuum, which empties pgbench_history.
    let files = Files::create(&options.ours)?;
    let served = pages.filter(|_| options.ours.serve);
    if let Some(pages) = served {
        let clients = terms::counted(options.clients.into(), "client");
        let what = format!("pgrig bench: {clients}");
        let url = pages.open(&what).map_err(|why| {
            Complaint::error(format_args!("could not serve a page for --serve: {why}"))
        })?;
        console.narrate(format_args!("pgrig: page              {url}"));
    }
    let clock = plan::Clock::start();
    let mut metrics = options.ours.metrics.as_deref().map(Metrics::open).transpose()?;
    if let Some(address) = metrics.as_ref().and_then(Metrics::address) {
        console.narrate(format_args!("pgrig: metrics           http://{address}/metrics"));
    }
    let hosts = match &options.ours.hosts {
        Some(asked) => Some(hosts::reach(asked, options, invocation, control)?),
        None => None,
    };
    vacuum::vacuum(options, &mut server, console);
    let sums = check::Sums::before(options, &mut server)?;
    let horizon = drift::is_long(options).then(|| server.horizon());
    let server_version = server.version().to_owned();
    drop(server);

    // Once, for all windows of a search.
    let mut asked = [plan::workload(options, conninfo.to_keyword_string(), tables.scale)];
    load::fetch_rows(&mut asked, control).map_err(|error| could_not_begin(&error))?;
    let [asked] = asked;
    let options = &RunOptions { rows: asked.rows, ..options.clone() };

    let is_server_here = hosts.is_none() && is_here(&conninfo);
    let mut windows = 0;
    let mut run_on = |options: &RunOptions, conninfo: &Conninfo, console: &mut Console<'_>| {
        let count = hosts.as_ref().map_or(options.ours.generators, |hosts| hosts.len() as u32);
        // The windows of a search draw keys, scripts and arrivals of their own.
        let seed = plan::seed_of_window(seed, windows);
        windows += 1;
        let plan = plan::plan(options, conninfo, &tables, seed, clock, count);
        let metrics = metrics.as_mut();
        let on = On { invocation, hosts: hosts.as_deref(), served };
        drive(options, &on, &plan, control, clock.origin, metrics, console)
    };
    let baseline = match options.ours.baseline {
        true => {
            // In this process, with the threads of all generators.
            let plan = plan::plan(options, &conninfo, &tables, seed, clock, 1);
            Some(baseline::measure(&plan, control)?)
        }
        false => None,
    };
    let mut one =
        |options: &RunOptions, console: &mut Console<'_>| run_on(options, &conninfo, console);
    let (found, measured);
    let (options, measured, search) = match (&options.ours.find, &options.ours.capacity, pools) {
        (None, None, _) => {
            measured = one(options, console)?;
            (options, &measured, None)
        }
        (Some(search), ..) => {
            found = find::find(options, search, is_server_here, control, console, &mut one)?;
            (&found.options, &found.measured, Some(&found))
        }
        (None, Some(asked), Some((sizes, poolers))) => {
            let sweep =
                pools::PoolSweep { options, asked, sizes, poolers, seed, is_server_here, control };
            found = sweep.run(console, &mut run_on)?;
            (&found.options, &found.measured, Some(&found))
        }
        (None, Some(asked), None) => {
            let own = own.as_mut();
            let mut sweep =
                capacity::CapacitySweep { options, asked, seed, is_server_here, control, own };
            found = sweep.run(console, &mut one)?;
            (&found.options, &found.measured, Some(&found))
        }
    };
    hosts.into_iter().for_each(host::end);
    let (outcome, tail) = (&measured.outcome, measured.tails.first());
    let dead_rows = horizon
        .filter(|_| outcome.end == LoadEnd::Completed)
        .map(|before| DeadRows::after(before, options, invocation, control));
    let results = Results {
        options,
        tables: &tables,
        outcome,
        is_server_here,
        search,
        baseline: baseline.as_ref(),
        tail,
        dead_rows: dead_rows.as_ref(),
    };
    let (block, lines) = (results.words().block(), ours::lines(&results));
    // pgbench leaves at once then and says nothing of what it has counted.
    if !matches!(outcome.end, LoadEnd::ExitedOnAbort(_)) {
        console.text(&block);
        console.lines(&lines);
    }
    let words = block + &lines;
    let page = pages.filter(|_| options.ours.html.is_some() || options.ours.serve).map(|pages| {
        pages.make(&Page {
            command: command(invocation),
            words: &words,
            what: results.words().what(),
            server: &server_version,
            scale: tables.scale,
            began: clock.wall,
            outcome,
            tail: tail.and_then(|found| found.tail.as_ref()),
            curve: search.map(|search| &search.curve),
            found: search.map_or("", |search| &search.words),
            details: search.map_or(&[], |search| &search.details),
        })
    });
    files.write(&results, &server_version, clock, page.as_deref())?;
    if let Some((pages, page)) = served.zip(page) {
        pages.end(page);
    }
    metrics.map_or(Ok(()), Metrics::finish)?;
    let mut code = match end(outcome, console) {
        DONE => unexpected(&results, console),
        code => code,
    };
    if options.ours.check && code != INTERRUPTED {
        let (mut server, _) = Server::open(&options.server, invocation, control)?;
        if !check::check(options, sums, &mut server, console)? {
            code = INCOMPLETE;
        }
    }
    hint_at_nine_x(&results, console);
    match search.filter(|search| !search.is_answer) {
        Some(search) if code == DONE => {
            console.error(&search.words);
            Ok(INCOMPLETE)
        }
        Some(search) => {
            console.narrate(format_args!("pgrig: {}", search.words));
            Ok(code)
        }
        None => Ok(code),
    }
}

/// True if every server of a connection string is on this machine.
fn is_here(conninfo: &Conninfo) -> bool {
    let is_loopback = |name: &str| {
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    conninfo.hosts.iter().all(|host| match &host.address {
        HostAddress::Unix { .. } => true,
        HostAddress::Tcp { host, hostaddr } => is_loopback(hostaddr.as_deref().unwrap_or(host)),
    })
}

/// Says if results were not what `\expect` says.
fn unexpected(results: &Results<'_>, console: &mut Console<'_>) -> u8 {
    let Some(count) = results.workload().counts_total.errors.get(EXPECT) else { return DONE };
    let first = results.first_errors().get(EXPECT);
    let first =
        first.map_or(String::new(), |at| format!(", the first at {}:{}", at.script, at.line));
    let (count, were) =
        (terms::counted(*count, "result"), if *count == 1 { "was" } else { "were" });
    console.error(format_args!("{count} {were} not as \\expect says{first}"));
    INCOMPLETE
}

/// The kind of error under which results are counted that are not as expected.
const EXPECT: &str = "\\expect";

/// A syntax error in a script whose lines have no semicolons.
fn hint_at_nine_x(results: &Results<'_>, console: &mut Console<'_>) {
    let is_old = results.options.scripts.iter().any(|script| script.reads_as_nine_x);
    if is_old && results.workload().counts_total.errors.contains_key(SYNTAX_ERROR) {
        console.our_hint(
            "SQL ends at a semicolon, not at the newline; for a script of pgbench 9.5 or older: \
             --syntax 9.x",
        );
    }
}

const SYNTAX_ERROR: &str = "42601";

/// `pgbench (19.0, pgrig 0.1.0, server 15.4)`; without the middle where all is pgbench's.
fn version(major: Major, server: &str, is_pgbenchs: bool) -> String {
    let mut parts = vec![major.version().to_owned()];
    if !is_pgbenchs {
        parts.push(format!("pgrig {}", env!("CARGO_PKG_VERSION")));
    }
    if server.split_whitespace().next() != Some(major.version()) {
        parts.push(format!("server {server}"));
    }
    format!("pgbench ({})", parts.join(", "))
}

/// The server and the length of a run, as `--debug` tells them.
fn setting(options: &RunOptions, conninfo: &Conninfo) -> String {
    let host = &conninfo.hosts[0];
    let name = match &host.address {
        HostAddress::Unix { directory } => directory.as_str(),
        // pgbench shows no name where only an address was given.
        HostAddress::Tcp { .. } => host.certificate_name().unwrap_or_default(),
    };
    let (unit, length) = match options.length {
        Length::Transactions(each) => ("nxacts", each),
        Length::Seconds(seconds) => ("duration", seconds),
    };
    let (port, clients, database) = (host.port, options.clients, &conninfo.dbname);
    format!("pghost: {name} pgport: {port} nclients: {clients} {unit}: {length} dbName: {database}")
}

/// The command line as one could type it again, but for connection strings that may hold a password.
fn command(invocation: &Invocation<'_>) -> String {
    let words = invocation.arguments.iter().map(|word| {
        let word = shown_word(word);
        match word.contains(|c: char| c.is_whitespace() || c == '\'') {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.into_owned(),
        }
    });
    let words: Vec<_> = words.collect();
    format!("{} {}", invocation.command, words.join(" "))
}

/// pgbench's own scripts take their scale from pgbench's tables.
fn look_at_tables(
    options: &RunOptions,
    invocation: &Invocation<'_>,
    server: &mut Server,
    database: &str,
    console: &mut Console<'_>,
) -> Result<Tables, Complaint> {
    let needs = |origin| options.scripts.iter().any(|script| script.origin == origin);
    let mut counted = |scale: i64, table: &str| {
        if options.scale.is_some() && !options.ours.own_server {
            console.warning(format_args!(
                "scale option ignored, using count from {table} table ({scale})"
            ));
        }
    };
    let look = Look { database, command: invocation.command };
    match (needs(Origin::Builtin), needs(Origin::Tpcc)) {
        (false, false) => {
            Ok(Tables { scale: i64::from(options.scale.unwrap_or(1)), partitions: None })
        }
        (true, false) => tables::look(server, &look, |scale| counted(scale, "pgbench_branches")),
        (false, true) => {
            tables::warehouses(server, &look, |scale| counted(scale, "tpcc_warehouse"))
        }
        (true, true) => Err(Complaint::error(
            "tpcc-like cannot run beside other builtin scripts: each has a scale of its own",
        )),
    }
}

/// The machines that generators run on.
struct On<'a> {
    invocation: &'a Invocation<'a>,
    hosts: Option<&'a [host::Host]>,
    /// The page that shows the run meanwhile.
    served: Option<&'a dyn Pages>,
}

fn drive(
    options: &RunOptions,
    on: &On<'_>,
    plan: &load::LoadPlan,
    control: &LoadControl,
    origin: Instant,
    metrics: Option<&mut Metrics>,
    console: &mut Console<'_>,
) -> Result<LoadMeasurement, Complaint> {
    let sampled = if options.ours.tail { vec![sampled(&plan.workloads[0])] } else { Vec::new() };
    let load = PreparedLoad::new(plan, origin, sampled);
    if let Some(why) = load.refusal() {
        let text = format_args!("could not sample the server for --tail: {why}");
        return Err(Complaint::error(text));
    }
    let hosts: Option<Vec<&host::Host>> = on.hosts.map(|hosts| hosts.iter().collect());
    let fleet = match &hosts {
        Some(hosts) => {
            let asked = options.ours.hosts.as_ref();
            let on_loss = asked.map_or(OnHostLoss::Stop, |asked| asked.on_loss);
            LaneFleet::Hosts { hosts, on_loss }
        }
        None => LaneFleet::here(options.ours.generators, on.invocation.generator),
    };
    let mut progress = Progress::new(options);
    let mut narrate = |event: &LoadEvent<'_>| match event {
        LoadEvent::Message(message) => tell(message, console),
        event => progress.observe(event, console),
    };
    let mut serve = on.served.map(|pages| |event: &LoadEvent<'_>| pages.observe(event));
    let mut observers: Vec<&mut dyn LoadObserver> = vec![&mut narrate];
    observers.extend(metrics.map(|metrics| metrics as &mut dyn LoadObserver));
    observers.extend(serve.as_mut().map(|serve| serve as &mut dyn LoadObserver));
    let measured = load.run(fleet, control, &mut observers);
    progress.end(measured.as_ref().ok().map(|measured| &measured.outcome), console);
    measured.map_err(|error| could_not_begin(&error))
}

/// The server of a run, for `--tail`.
fn sampled(workload: &load::ClientGroup) -> SampledServer<'_> {
    SampledServer {
        conninfo: &workload.conninfo,
        database: None,
        postmasters: Vec::new(),
        load: vec![&workload.conninfo],
        workloads: vec![0],
        has_rate: workload.pace.rate().is_some(),
        turns: None,
    }
}

fn tell(message: &UserMessage, console: &mut Console<'_>) {
    match message.level {
        MessageLevel::Error => console.error(&message.text),
        MessageLevel::Info => console.info(&message.text),
        MessageLevel::Debug => console.debug(&message.text),
        MessageLevel::Script => console.narrate(&message.text),
        MessageLevel::Output => console.text(&message.text),
    }
}

fn could_not_begin(error: &LoadError) -> Complaint {
    let complaint = Complaint::error(error);
    match error {
        LoadError::Connect { connected, clients, hint, .. } => {
            let who = format!("could not create connection for client {connected}");
            let count =
                (*clients > 1).then(|| format!("{connected} of {clients} clients were connected"));
            let advice: Vec<String> = count.into_iter().chain(hint.clone()).collect();
            let complaint = complaint.with_error(who);
            match advice.is_empty() {
                true => complaint,
                false => complaint.with_our_hint(advice.join("; ")),
            }
        }
        _ => match error.hint() {
            Some(hint) => complaint.with_our_hint(hint),
            None => complaint,
        },
    }
}

fn end(outcome: &LoadOutcome, console: &mut Console<'_>) -> u8 {
    if outcome.messages_dropped > 0 {
        let dropped = outcome.messages_dropped;
        console.narrate(format_args!("pgrig: {dropped} more messages were left out"));
    }
    if let LoadEnd::ExitedOnAbort(lane) = outcome.end {
        console.error(format_args!("Run was aborted due to an error in thread {lane}"));
        return INCOMPLETE;
    }
    let lost: Vec<_> = outcome.hosts.iter().filter(|host| host.lost.is_some()).collect();
    if let Some(first) = lost.first() {
        let names: Vec<&str> = lost.iter().map(|host| host.name.as_str()).collect();
        let plural = if names.len() == 1 { "host" } else { "hosts" };
        let why = first.lost.as_ref().map_or("", |(_, why)| why);
        let names = names.join(", ");
        console.error(format_args!("{plural} {names} lost: {why}"));
        console.error("Run was aborted; the above results are incomplete.");
        return INCOMPLETE;
    }
    let aborted = outcome.workloads.iter().any(|one| one.counts_total.aborted_clients > 0);
    if outcome.end == LoadEnd::Aborted || aborted {
        console.error("Run was aborted; the above results are incomplete.");
        return INCOMPLETE;
    }
    match outcome.end {
        LoadEnd::Completed if outcome.log_is_cut => {
            console.error("the transaction log is incomplete; the above results are not");
            INCOMPLETE
        }
        LoadEnd::Interrupted => {
            console.narrate("pgrig: interrupted; the above results are of the time until then");
            INTERRUPTED
        }
        _ => DONE,
    }
}
