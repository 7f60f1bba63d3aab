//! `pgrig compare`: two servers side by side.

use std::path::Path;
use std::time::Duration;

use clap::CommandFactory;
use compare::{Comparison, Data, Event, Figure, Metric, Request, SideOptions, Stop, Verdict};
use pgbench::options::{Invocation, RunOptions};
use words::duration;

use crate::arguments::{Arguments, CompareArguments};
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::live::Live;
use crate::signals;
use crate::terminal::{self, BAD, FAINT, GOOD, STRONG, UNSURE, styled};

/// Compares two servers.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<Exit, Complaint> {
    let request = request(arguments)?;
    let control = signals::control();
    let live = Live::new();
    let found = compare::compare(&request, &control, &mut |event| show(&event, &live));
    live.end();
    let found = found?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, found.json() + "\n")
            .map_err(|source| compare::Error::Write { path: path.clone(), source })?;
    }
    print(&found);
    Ok(exit(&found, arguments.gate))
}

/// Puts a comparison's own options first and pgbench's behind `--`, whatever their order was.
pub(crate) fn sorted(words: Vec<String>) -> Vec<String> {
    let command = Arguments::command();
    let Some(own) = command.find_subcommand("compare") else { return words };
    let takes_value = |word: &str| -> Option<bool> {
        let name = word.strip_prefix("--")?;
        let (name, has_value) =
            name.split_once('=').map_or((name, false), |(name, _)| (name, true));
        if name == "help" {
            return Some(false);
        }
        let argument = own.get_arguments().find(|one| one.get_long() == Some(name))?;
        Some(argument.get_action().takes_values() && !has_value)
    };
    let mut words = words.into_iter();
    let mut ours: Vec<String> = words.by_ref().take(2).collect();
    let mut theirs = Vec::new();
    while let Some(word) = words.next() {
        match takes_value(&word) {
            Some(takes_value) => {
                ours.push(word);
                if takes_value {
                    ours.extend(words.next());
                }
            }
            None if word == "-h" => ours.push(word),
            None => theirs.push(word),
        }
    }
    ours.push("--".to_owned());
    ours.extend(theirs);
    ours
}

fn request(arguments: &CompareArguments) -> Result<Request, Complaint> {
    let workload = workload(&arguments.workload)?;
    let side = |bin: &Option<std::path::PathBuf>, own: &[(String, String)], sql| SideOptions {
        bin: bin.clone(),
        settings: arguments.both_set.iter().chain(own).cloned().collect(),
        sql,
    };
    let a = side(&arguments.a_bin, &arguments.a_set, arguments.a_sql.clone());
    let b = side(&arguments.b_bin, &arguments.b_set, arguments.b_sql.clone());
    let data = match &arguments.data {
        Some(path) => Data::Script(path.clone()),
        None => Data::Pgbench(workload.scale.unwrap_or(1)),
    };
    Ok(Request {
        // --self says of one side what holds for both.
        sides: if arguments.is_self && b == SideOptions::default() {
            [a.clone(), a]
        } else {
            [a, b]
        },
        is_self: arguments.is_self,
        data,
        workload: Box::new(workload),
        precision: arguments.precision,
        threshold: arguments.threshold.unwrap_or(THRESHOLD),
        by_threshold: arguments.threshold.is_some(),
        max_time: arguments.max_time,
        seed: arguments.seed.unwrap_or_else(fresh_seed),
    })
}

/// What nobody would act on, as a share.
const THRESHOLD: f64 = 0.03;

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_micros() as u64 % 1_000_000
}

/// pgbench's part of the command line.
fn workload(words: &[String]) -> Result<RunOptions, Complaint> {
    let invocation = Invocation {
        program: "pgrig",
        command: "pgrig compare",
        arguments: words,
        environment: &|_| None,
        generator: Path::new(""),
        schema: None,
        ask_password: &|_| None,
    };
    let unfit = || Complaint::new("a comparison needs pgbench options for a run, not for -i");
    match pgbench::options::Request::read(&invocation) {
        Ok(pgbench::options::Request::Run(options)) => Ok(*options),
        Ok(_) => Err(unfit().hinted(Some("both sides are filled at the scale of -s"))),
        Err(complaint) => Err(compare::Error::Workload(complaint).into()),
    }
}

fn show(event: &Event<'_>, live: &Live) {
    match event {
        Event::Building => live.say("  building        two servers with the same data"),
        Event::Built { versions: [a, b], copied, seconds } => {
            let data = if *copied { "the same files" } else { "the same data, loaded twice" };
            let took = duration(*seconds);
            live.say(&format!(
                "  built           A PostgreSQL {a}, B PostgreSQL {b}, {data}  {took}"
            ));
        }
        Event::Pilot => live.say("  pilot           loading A to find the length of a block"),
        Event::Progress { pairs, figures, seconds } => {
            let mut line = format!("  comparing       {pairs} pairs   B ÷ A ");
            for metric in [Metric::Throughput, Metric::P99, Metric::Cpu] {
                let figure = figures.iter().find(|figure| figure.metric == metric);
                if let Some(ratio) = figure.and_then(|figure| figure.ratio) {
                    let (point, low, high) = (ratio.point, ratio.low, ratio.high);
                    let label = metric.label();
                    line.push_str(&format!(" {label} {point:.3} [{low:.3}, {high:.3}]  "));
                }
            }
            live.now(&format!("{line} {}", duration(*seconds)));
        }
    }
}

/// The answer, then what it rests on.
fn print(found: &Comparison) {
    let style = match found.verdict(Metric::Throughput) {
        Verdict::Better | Verdict::Equal => GOOD,
        Verdict::Worse => BAD,
        Verdict::CannotTell => UNSURE,
    };
    terminal::result(styled(style, found.answer()));
    terminal::result("");
    let head = format!("  {:<34}{:>12}{:>12}   {}", "", "A", "B", "B ÷ A");
    terminal::result(styled(STRONG, head.trim_end()));
    for figure in &found.figures {
        let [a, b] = figure.sides.map(verdict::number);
        let ratio = figure.ratio.as_ref().map_or("too few samples".to_owned(), compare::times);
        let name = format!("{}, {}", figure.metric.words(), figure.metric.unit());
        terminal::result(format_args!(
            "  {name:<34}{a:>12}{b:>12}   {ratio}{}",
            said(found, figure)
        ));
    }
    terminal::result("");
    let (clients, block, rest) = (found.clients, found.block_ms, found.rest_ms);
    let stop = match found.stop {
        Stop::Precision => "the precision is reached",
        Stop::Decided => "the threshold is decided",
        Stop::Time => "the time is over",
        Stop::Interrupted => "interrupted",
    };
    let how = format!(
        "  {clients} clients a side, blocks of {block} ms with {rest} ms of rest, seed {}; ended: {stop}",
        found.seed
    );
    terminal::result(styled(FAINT, how));
    for doubt in &found.doubts {
        terminal::result(format_args!("  {} {doubt}", styled(UNSURE, "doubt:")));
    }
}

fn said(found: &Comparison, figure: &Figure) -> String {
    let word = match Verdict::of(figure.metric, figure.ratio.as_ref(), found.threshold) {
        Verdict::Better => styled(GOOD, "better"),
        Verdict::Worse => styled(BAD, "worse"),
        Verdict::Equal => "equal".to_owned(),
        Verdict::CannotTell => styled(UNSURE, "cannot tell"),
    };
    format!("   {word}")
}

fn exit(found: &Comparison, gate: bool) -> Exit {
    let verdicts = Metric::DECIDING.map(|metric| found.verdict(metric));
    match found.stop {
        Stop::Interrupted => Exit::Interrupted,
        _ if !gate => Exit::Done,
        _ if verdicts.contains(&Verdict::Worse) => Exit::DoesNotHold,
        _ if verdicts[0] == Verdict::CannotTell => Exit::CannotTell,
        _ => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pgbenchs_options_may_stand_anywhere() {
        let check = |typed: &str, expected: &str| {
            let words = typed.split_whitespace().map(str::to_owned).collect();
            assert_eq!(sorted(words).join(" "), expected);
        };
        check(
            "pgrig compare -c 4 --b-set jit=on -S --gate -M prepared --precision=2%",
            "pgrig compare --b-set jit=on --gate --precision=2% -- -c 4 -S -M prepared",
        );
        check("pgrig compare --help", "pgrig compare --help --");
        check("pgrig compare", "pgrig compare --");
    }
}
