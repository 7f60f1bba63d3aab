//! `pgrig bench`: the pgbench room on the real streams, with the user's signals and terminal.

use std::io::{IsTerminal, stderr, stdout};
use std::process::ExitCode;

use pgbench::options::Invocation;
use pgbench::{Colours, Console, Curve, End, Page, Pages, bench_with_pages};
use record::Fact;
use report::SearchEnd;

use crate::served::ServedBench;
use crate::{prompt, signals};

/// Does what `arguments` ask for. `program` is what the user typed for this program, `command` how
/// to call it for benchmarks: `pgrig bench`, or `pgbench` under that name.
pub(crate) fn run(program: &str, command: &str, arguments: &[String]) -> ExitCode {
    let control = signals::quiet_control();
    // Only `--generators` starts this program again, and says so if it cannot be found.
    let generator = std::env::current_exe().unwrap_or_else(|_| program.into());
    let invocation = Invocation {
        schema: None,
        program,
        command,
        arguments,
        environment: &|name| std::env::var(name).ok(),
        generator: &generator,
        ask_password: &|text| prompt::password(text, &|| control.urgency() != load::Urgency::None),
    };
    let (mut out, mut err) = (stdout(), stderr());
    let err_is_terminal = err.is_terminal();
    let colours = Colours::read(invocation.environment, err_is_terminal);
    let mut console = Console::new(&mut out, &mut err, err_is_terminal).coloured(colours);
    console.columns = crate::terminal::columns();
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

    fn observe(&self, event: &load::Event<'_>) {
        self.0.observe(event);
    }

    fn end(&self, page: String) {
        self.0.end(page);
    }
}

fn search(curve: &Curve, words: &str) -> report::Search {
    let windows = curve.windows.iter().map(|window| report::SearchWindow {
        load: window.load,
        seconds: window.seconds,
        confirms: window.confirms,
        rate: window.achieved,
        ms: curve.quantile_ms(window),
        holds: window.holds,
    });
    report::Search {
        axis: match curve.axis {
            "rate" => report::SearchAxis::Rate,
            _ => report::SearchAxis::Clients,
        },
        goal: curve.goal.clone(),
        // 0.999 times 100 is not quite 99.9.
        quantile: format!("p{}", (curve.quantile * 1e8).round() / 1e6),
        limit_ms: curve.limit_ns.map(|ns| ns / 1e6),
        words: words.to_owned(),
        end: match curve.end {
            Some(End::Found { held, low, high }) => {
                SearchEnd::Found { load: held, interval: (low, high) }
            }
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
    let fact = |group: &str, name: &str, value: String| Fact {
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
        let value =
            format!("{} clients, clock {bound}; {}{lost}", host.clients, machine.join(", "));
        facts.push(fact("hosts", &host.name, value));
    }
    let began = jiff::Timestamp::try_from(page.began);
    let began = began.map(|began| began.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    report::Bench {
        command: page.command.clone(),
        words: page.words.to_owned(),
        what: page.what.to_owned(),
        started_at: began.unwrap_or_default(),
        window: outcome.window,
        connecting: outcome.connecting.clone(),
        disconnecting: outcome.disconnecting.clone(),
        workloads: outcome.workloads.clone(),
        generator: outcome.generator.clone(),
        intervals: outcome.intervals.clone(),
        samples: Vec::new(),
        marks: Vec::new(),
        facts,
        search: page.curve.map(|curve| search(curve, page.found)),
    }
    .html()
}
