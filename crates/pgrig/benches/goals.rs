//! The generator beside pgbench: the goals that `make bench` measures.
//!
//! Every comparison runs both programs on the same server in turn, ours first in one pair and
//! pgbench first in the next, and shows the median of the pairs' ratios with their range. CPU is
//! what the kernel accounts to the finished process, user and system. Nothing here fails a build:
//! a goal that is missed is a line in a table.
//!
//! `cargo bench --bench goals -- [PATTERN]`; GOALS_SECONDS and GOALS_PAIRS change the size.

#[path = "goals/bare.rs"]
mod bare;
#[path = "goals/capture.rs"]
mod capture;
#[path = "goals/data.rs"]
mod data;
#[path = "goals/hosts.rs"]
mod hosts;
#[path = "goals/ledger.rs"]
mod ledger;
#[path = "goals/measure.rs"]
mod measure;
#[path = "goals/server.rs"]
mod server;

use std::process::Command;

use pgbench::null_server::{NullServer, PORT};

use crate::measure::{BOTH, Program, Spread, pairs, run};
use capture::Loop;
use server::Server;

/// One line of the table.
struct Goal {
    name: &'static str,
    goal: f64,
    better: Better,
    measure: fn(&Server, &Size) -> Result<Measured, String>,
}

enum Better {
    Lower,
    Higher,
}

/// What a goal's measurement came to.
struct Measured {
    ratio: Spread,
    detail: String,
}

/// How much to measure.
struct Size {
    seconds: u32,
    pairs: usize,
}

const GOALS: &[Goal] = &[
    Goal {
        name: "generator CPU a transaction, select-only prepared, 8 clients, ÷ pgbench's",
        goal: 0.75,
        better: Better::Lower,
        measure: cpu_per_transaction,
    },
    Goal {
        name: "generator CPU a transaction, select-only prepared, 8 clients, one core, ÷ a bare epoll loop's",
        goal: 1.08,
        better: Better::Lower,
        measure: bare::against_bare_loop,
    },
    Goal {
        name: "transactions a second, select-only prepared, 8 clients, ÷ pgbench's",
        goal: 1.1,
        better: Better::Higher,
        measure: throughput,
    },
    Goal {
        name: "most transactions a second against a null server, 64 clients, 1 thread, ÷ pgbench's",
        goal: 1.5,
        better: Better::Higher,
        measure: |server, size| against_nothing(server, size, "1"),
    },
    Goal {
        name: "most transactions a second against a null server, 64 clients, 2 threads, ÷ pgbench's",
        goal: 1.5,
        better: Better::Higher,
        measure: |server, size| against_nothing(server, size, "2"),
    },
    Goal {
        name: "CPU an active transaction, 1 active and 999 idle on one thread, ÷ pgbench's",
        goal: 0.08,
        better: Better::Lower,
        measure: one_of_a_thousand,
    },
    Goal {
        name: "own CPU a transaction, 8 active of 8,192 ÷ 8 of 8",
        goal: 1.3,
        better: Better::Lower,
        measure: eight_of_eight_thousand,
    },
    Goal {
        name: "client CPU to connect 4,096 clients with SCRAM ÷ pgbench's",
        goal: 0.05,
        better: Better::Lower,
        measure: connecting_with_scram,
    },
    Goal {
        name: "p99 of select-only prepared, 8 clients, with --tail ÷ without",
        goal: 1.05,
        better: Better::Lower,
        measure: sampled_p99,
    },
    Goal {
        name: "CPU that a ledger adds to a transaction, 32 clients, null server, µs (goal: at most 5)",
        goal: 5.0,
        better: Better::Lower,
        measure: |_, size| ledger::cost(size),
    },
    Goal {
        name: "generator memory an idle connection, KiB (goal: at most 4)",
        goal: 4.0,
        better: Better::Lower,
        measure: memory_per_connection,
    },
    Goal {
        name: "latency against a packet capture, closed loop, p50: difference ÷ the capture's",
        goal: 0.02,
        better: Better::Lower,
        measure: |server, size| capture::deviation(server, size, Loop::Closed, 0.50),
    },
    Goal {
        name: "latency against a packet capture, closed loop, p99: difference ÷ the capture's",
        goal: 0.05,
        better: Better::Lower,
        measure: |server, size| capture::deviation(server, size, Loop::Closed, 0.99),
    },
    Goal {
        name: "latency against a packet capture, open loop, p50: difference ÷ the capture's",
        goal: 0.02,
        better: Better::Lower,
        measure: |server, size| capture::deviation(server, size, Loop::Open, 0.50),
    },
    Goal {
        name: "latency against a packet capture, open loop, p99: difference ÷ the capture's",
        goal: 0.05,
        better: Better::Lower,
        measure: |server, size| capture::deviation(server, size, Loop::Open, 0.99),
    },
    Goal {
        name: "loading scale 200 with -i --connections=CORES, speed ÷ pgbench's",
        goal: 1.5,
        better: Better::Higher,
        measure: |server, size| data::loading(server, size, data::Tables::Whole),
    },
    Goal {
        name: "loading scale 200 with -i --partitions=CORES --connections=CORES, speed ÷ pgbench's \
               with the same partitions",
        goal: 1.5,
        better: Better::Higher,
        measure: |server, size| data::loading(server, size, data::Tables::Partitioned),
    },
    Goal {
        name: "--find-rate twice on the same server, statements that sleep, difference",
        goal: 0.05,
        better: Better::Lower,
        measure: data::found_twice_asleep,
    },
    Goal {
        name: "--find-rate twice on the same server, select-only, difference",
        goal: 0.05,
        better: Better::Lower,
        measure: data::found_twice_busy,
    },
    Goal {
        name: "a study's wall time ÷ its windows, warm-ups and data builds",
        goal: 1.1,
        better: Better::Lower,
        measure: study_overhead,
    },
    Goal {
        name: "hosts: wall time of the replication study, smoke, on four hosts ÷ on one machine",
        goal: 1.5,
        better: Better::Lower,
        measure: hosts::study,
    },
    Goal {
        name: "hosts: generator CPU a transaction on two hosts ÷ by two processes",
        goal: 1.02,
        better: Better::Lower,
        measure: hosts::generator_cpu,
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((bare::ARGUMENT, rest)) =
        arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        if let Err(error) = bare::serve(rest) {
            eprintln!("error: the bare loop: {error}");
            std::process::exit(1);
        }
        return;
    }
    let pattern = arguments.into_iter().find(|word| !word.starts_with('-')).unwrap_or_default();
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let size = Size { seconds: number("GOALS_SECONDS", 6) as u32, pairs: number("GOALS_PAIRS", 6) };
    let server = match Server::start() {
        Ok(server) => server,
        Err(error) => {
            eprintln!("error: could not start a server to measure with: {error}");
            std::process::exit(1);
        }
    };
    println!("| what | goal | median | lowest – highest | n | met |");
    println!("|---|---|---|---|---|---|");
    for goal in GOALS.iter().filter(|goal| goal.name.contains(&pattern)) {
        match (goal.measure)(&server, &size) {
            Ok(measured) => println!("{}", goal.line(&measured)),
            Err(error) => println!("| {} | | could not be measured: {error} | | | |", goal.name),
        }
    }
}

impl Goal {
    fn line(&self, measured: &Measured) -> String {
        let Spread { median, low, high, n } = measured.ratio;
        let (sign, met) = match self.better {
            Better::Lower => ("≤", median <= self.goal),
            Better::Higher => ("≥", median >= self.goal),
        };
        let met = if met { "yes" } else { "no" };
        let (name, goal, detail) = (self.name, self.goal, &measured.detail);
        format!(
            "| {name}<br>{detail} | {sign} {goal} | {median:.3} | {low:.3} – {high:.3} | {n} | {met} |"
        )
    }
}

const SELECT_ONLY: &[&str] = &["-n", "-S", "-M", "prepared", "-c", "8", "-j", "1"];

fn cpu_per_transaction(server: &Server, size: &Size) -> Result<Measured, String> {
    let time = ["-T".to_owned(), size.seconds.to_string()];
    pairs(size.pairs, BOTH, |program| {
        let done = run(server, program, SELECT_ONLY, &time)?;
        Ok(done.cpu_s / done.transactions * 1e6)
    })
    .map(|pairs| pairs.measured("µs"))
}

/// What --tail adds to the latency that it is to explain.
fn sampled_p99(server: &Server, size: &Size) -> Result<Measured, String> {
    let time = ["-T".to_owned(), size.seconds.to_string()];
    pairs(size.pairs, [true, false], |is_sampled| {
        let tail: &[&str] = if is_sampled { &["--tail"] } else { &[] };
        let done = run(server, Program::Pgrig, &[SELECT_ONLY, tail].concat(), &time)?;
        let p99 = done.told.pointer("/latency/p99_ns").and_then(serde_json::Value::as_f64);
        p99.map(|ns| ns / 1e3).ok_or_else(|| "the JSON file has no p99".to_owned())
    })
    .map(|pairs| pairs.measured("µs"))
}

fn throughput(server: &Server, size: &Size) -> Result<Measured, String> {
    let time = ["-T".to_owned(), size.seconds.to_string()];
    pairs(size.pairs, BOTH, |program| Ok(run(server, program, SELECT_ONLY, &time)?.tps))
        .map(|pairs| pairs.measured("tps"))
}

/// Both programs against a server that does nothing: what they could send. The null server is one
/// thread, and takes a core of its own.
fn against_nothing(server: &Server, size: &Size, threads: &str) -> Result<Measured, String> {
    let null = NullServer::start().map_err(|error| error.to_string())?;
    let host = null.host().to_owned();
    let script = server.script(
        "null",
        "\\set aid random(1, 100000 * :scale)\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    )?;
    let port = PORT.to_string();
    let time = ["-T".to_owned(), size.seconds.to_string()];
    let options = [
        "-n", "-M", "prepared", "-c", "64", "-j", threads, "-f", &script, "-h", &host, "-p", &port,
    ];
    pairs(size.pairs, BOTH, |program| Ok(run(server, program, &options, &time)?.tps))
        .map(|pairs| pairs.measured("tps"))
}

/// CPU of a long run less that of a short one, over the difference in transactions: what setting
/// up a thousand connections costs drops out.
fn one_of_a_thousand(server: &Server, size: &Size) -> Result<Measured, String> {
    let measure = |program: Program| {
        let at = |seconds: u32| {
            let script = server.script("one", &active_of(1, seconds))?;
            let options = ["-n", "-M", "prepared", "-c", "1000", "-j", "1", "-f", &script];
            run(server, program, &options, &["-T".to_owned(), seconds.to_string()])
        };
        // pgbench counts its connecting into -T, and a thousand connections take seconds.
        let (long, short) = (at(size.seconds + 14)?, at(10)?);
        Ok((long.cpu_s - short.cpu_s) / (long.transactions - short.transactions) * 1e6)
    };
    pairs(size.pairs.min(4), BOTH, measure).map(|pairs| pairs.measured("µs"))
}

fn eight_of_eight_thousand(server: &Server, size: &Size) -> Result<Measured, String> {
    let script = server.script("eight", &active_of(8, size.seconds))?;
    let at = |clients: &str| {
        let options = ["-n", "-M", "prepared", "-c", clients, "-j", "1", "-f", &script];
        let done =
            run(server, Program::Pgrig, &options, &["-T".to_owned(), size.seconds.to_string()])?;
        Ok::<_, String>(done.window_cpu_us)
    };
    pairs(size.pairs.min(3), ["8192", "8"], at).map(|pairs| pairs.measured("µs"))
}

fn connecting_with_scram(server: &Server, size: &Size) -> Result<Measured, String> {
    let script = server.script("nothing", "SELECT 1;\n")?;
    pairs(size.pairs.min(3), BOTH, |program| {
        let options = ["-n", "-c", "4096", "-j", "1", "-f", &script, "-U", server::SCRAM_USER];
        Ok(run(server, program, &options, &["-t".to_owned(), "1".to_owned()])?.cpu_s)
    })
    .map(|pairs| pairs.measured("s"))
}

fn memory_per_connection(server: &Server, size: &Size) -> Result<Measured, String> {
    let script = server.script("sleep", "SELECT pg_sleep(1);\n")?;
    let mut each = Vec::new();
    for _ in 0..size.pairs.min(3) {
        let at = |clients: &str| {
            let options = ["-n", "-M", "prepared", "-c", clients, "-j", "1", "-f", &script];
            run(server, Program::Pgrig, &options, &["-t".to_owned(), "1".to_owned()])
        };
        let (many, few) = (at("4096")?, at("8")?);
        each.push((many.peak_kib - few.peak_kib) / 4088.0);
    }
    Ok(Measured { ratio: Spread::of(&each), detail: "peak resident memory".to_owned() })
}

/// One round of the `pgbench` study in its quick profile: what a run costs once weighs the most.
fn study_overhead(_: &Server, size: &Size) -> Result<Measured, String> {
    let mut ratios = Vec::new();
    for _ in 0..size.pairs.min(3) {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let out = home.path().join("record");
        let done = Command::new(env!("CARGO_BIN_EXE_pgrig"))
            .args(["run", "pgbench", "--rounds", "1", "--out"])
            .arg(&out)
            .output()
            .map_err(|error| error.to_string())?;
        let record = record::RecordReader::open(&out)
            .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&done.stderr)))?;
        let mut facts = record.header().facts.iter();
        let overhead = facts.find(|fact| fact.name.starts_with("wall time ÷"));
        let ratio = overhead.and_then(|fact| fact.value.parse().ok());
        ratios.push(ratio.ok_or("the record does not tell its wall time")?);
    }
    Ok(Measured { ratio: Spread::of(&ratios), detail: "pgbench, quick, one round".to_owned() })
}

/// The first `n` clients query, the others sleep on the server until the run is over.
fn active_of(n: u32, seconds: u32) -> String {
    format!(
        "\\if :client_id < {n}\nSELECT 1;\n\\else\nSELECT pg_sleep({seconds});\n\\endif\n",
        seconds = seconds + 1
    )
}
