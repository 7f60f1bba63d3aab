//! `pgrig bench`: the pgbench room on the real streams, with the user's signals and terminal.

use std::fs::File;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

use pgbench::options::Invocation;
use pgbench::{Colours, Console, Curve, End, Major, POOL_SIZE, Page, Pages, bench_with_pages};
use record::MachineFact;
use report::SearchEnd;

use crate::exit::ProgramExit;
use crate::served::ServedBench;
use crate::{namesake, prompt};
use console::terminal;

/// The environment variable that names a file for the lines that pgbench does not have.
const LINES: &str = "PGRIG_LINES";

/// Under the name `pgbench`: whatever reads pgbench's output reads this one. `program` is what the user
/// typed for this program.
pub(crate) fn as_pgbench(program: &str, arguments: &[String]) -> ExitCode {
    run(program, "pgbench", namesake::major(program), arguments, true)
}

pub(crate) fn as_command(program: &str, arguments: &[String]) -> ExitCode {
    run(program, "pgrig bench", Major::default(), arguments, false)
}

fn run(
    program: &str,
    command: &str,
    speaks: Major,
    arguments: &[String],
    is_pgbench: bool,
) -> ExitCode {
    let control = console::quietly_interrupted(lab::end_labs);
    // Only `--generators` starts this program again, and says so if it cannot be found.
    let generator = std::env::current_exe().unwrap_or_else(|_| program.into());
    let invocation = Invocation {
        schema: None,
        program,
        command,
        arguments,
        speaks,
        follows_server: !is_pgbench,
        environment: &|name| std::env::var(name).ok(),
        generator: &generator,
        ask_password: &|text| {
            prompt::password(text, &|| control.urgency() != load::StopUrgency::None)
        },
    };
    let (mut out, mut err) = (stdout(), stderr());
    let mut lines: Option<Box<dyn Write>> = match std::env::var_os(LINES) {
        Some(path) => match File::create(&path) {
            Ok(file) => Some(Box::new(file)),
            Err(error) => {
                let path = path.display();
                terminal::narrate(format_args!(
                    "pgrig: error: creating {path}, which {LINES} names: {error}"
                ));
                return ProgramExit::CouldNotStart.code();
            }
        },
        None => is_pgbench.then(|| Box::new(stderr()) as Box<dyn Write>),
    };
    let err_is_terminal = err.is_terminal();
    let colours = Colours::read(invocation.environment, err_is_terminal);
    let mut console = Console::new(&mut out, &mut err, err_is_terminal).coloured(colours);
    console.columns = terminal::columns();
    if let Some(lines) = &mut lines {
        console = console.with_lines(lines);
    }
    let pages = BenchPages(ServedBench::default());
    ExitCode::from(bench_with_pages(&invocation, &control, &mut console, Some(&pages)))
}

/// The pages of a load.
struct BenchPages(ServedBench);

impl Pages for BenchPages {
    fn make(&self, page: &Page<'_>) -> String {
        self::page(page)
    }

    fn open(&self, what: &str) -> Result<String, String> {
        self.0.open(what)
    }

    fn observe(&self, event: &load::LoadEvent<'_>) {
        self.0.observe(event);
    }

    fn end(&self, page: String) {
        self.0.end(page);
    }
}

fn search(curve: &Curve, words: &str, details: &[(String, String)]) -> report::SearchReport {
    let windows = curve.windows.iter().map(|window| report::SearchWindow {
        load: window.load,
        seconds: window.seconds,
        confirms: window.confirms,
        rate: window.achieved,
        ms: curve.quantile_ms(window),
        holds: window.holds,
    });
    report::SearchReport {
        axis: match curve.axis {
            "rate" => report::SearchAxis::Rate,
            POOL_SIZE => report::SearchAxis::PoolSize,
            _ => report::SearchAxis::Clients,
        },
        goal: curve.goal.clone(),
        // 0.999 times 100 is not quite 99.9.
        quantile: format!("p{}", (curve.quantile * 1e8).round() / 1e6),
        limit_ms: curve.limit_ns.map(|ns| ns / 1e6),
        words: words.to_owned(),
        details: details.to_vec(),
        end: match curve.end {
            Some(End::Found { held, low, high }) => {
                SearchEnd::Found { load: held, interval: (low, high) }
            }
            Some(End::Swept { best }) => SearchEnd::Swept { best },
            Some(End::Everywhere) => SearchEnd::Everywhere,
            Some(End::Nowhere | End::Unconfirmed) => SearchEnd::Nowhere,
            None => SearchEnd::Interrupted,
        },
        knee: curve.knee(),
        fitted: curve.fitted(),
        windows: windows.collect(),
        shown: curve.shown,
    }
}

fn page(page: &Page<'_>) -> String {
    let outcome = page.outcome;
    let fact = |group: &str, name: &str, value: String| MachineFact {
        group: group.to_owned(),
        name: name.to_owned(),
        value,
    };
    let mut facts = vec![
        fact("PostgreSQL", "server", page.server.to_owned()),
        fact("PostgreSQL", "scale", page.scale.to_string()),
        fact("rig", "pgrig", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    if let Ok(cores) = std::thread::available_parallelism() {
        facts.push(fact("rig", "cores", cores.to_string()));
    }
    for host in &outcome.hosts {
        let machine: Vec<&str> = host.facts.iter().map(|(_, value)| value.as_str()).collect();
        let bound = host
            .clock
            .bound_ns
            .map_or("unknown".to_owned(), |ns| format!("± {:.2} ms", ns as f64 / 1e6));
        let lost = host.lost.as_ref().map_or(String::new(), |(_, why)| format!("; lost: {why}"));
        let clients = terms::counted(host.clients.into(), "client");
        let value = format!("{clients}, clock {bound}; {}{lost}", machine.join(", "));
        facts.push(fact("hosts", &host.name, value));
    }
    let began = jiff::Timestamp::try_from(page.began);
    let began = began.map(|began| began.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    report::BenchReport {
        command: page.command.clone(),
        words: page.words.to_owned(),
        what: page.what.to_owned(),
        started_at: began.expect("a run begins in a year that a calendar has"),
        tail: page.tail.cloned(),
        window: outcome.window,
        connecting: outcome.connecting.clone(),
        disconnecting: outcome.disconnecting.clone(),
        workloads: outcome.workloads.clone(),
        generator: outcome.generator.clone(),
        intervals: outcome.intervals.clone(),
        samples: Vec::new(),
        marks: Vec::new(),
        facts,
        search: page.curve.map(|curve| search(curve, page.found, page.details)),
    }
    .html()
}
