//! pgrig: a test rig for PostgreSQL.
//!
//! This crate is the user's side: arguments, progress, words, exit codes; the only one that
//! prints. Results go to stdout, narration to stderr.
//!
//! Reading order: `arguments` is what can be typed, `command` does it, `exit` says how it ended.

mod arguments;
mod command;
mod exchange;
mod exit;

mod bench;

mod compared;
mod complaint;
mod fit;
mod floor;
mod history;
mod live;
mod otava;
mod progress;
mod prompt;
mod records;
mod serve;
mod served;
mod signals;
mod studies;
mod summary;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = words.first().cloned().unwrap_or_else(|| "pgrig".to_owned());
    // Under pgbench's name, and behind `bench`, every argument is pgbench's own.
    if called(&program) == "pgbench" {
        return bench::run(&program, "pgbench", &words[1..]);
    }
    if words.get(1).is_some_and(|word| word == "bench") {
        return bench::run(&program, "pgrig bench", &words.split_off(2));
    }
    // pgbench's options stand among those of a comparison, in any order.
    if words.get(1).is_some_and(|word| word == "compare") {
        words = command::compare::sorted(words, 2);
    }
    if words.get(1).is_some_and(|word| word == "bisect") {
        words = command::compare::sorted_before_build(words);
    }
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(asked) => return arguments::answer(&asked).code(),
    };
    let exit = execute(&arguments.command).unwrap_or_else(|complaint| complaint.show());
    exit.code()
}

fn execute(command: &Command) -> Result<Exit, complaint::Complaint> {
    match command {
        // Its arguments are pgbench's and were taken before clap saw them.
        Command::Bench(_) => Ok(Exit::Done),
        Command::Run(arguments) => command::run::run(arguments),
        Command::Check(arguments) => command::check::check(arguments),
        Command::Studies(arguments) => command::studies::studies(arguments),
        Command::New(arguments) => command::new::new(arguments),
        Command::Show(arguments) => command::show::show(arguments),
        Command::Report(arguments) => command::report::report(&arguments.directory),
        Command::Compare(arguments) => command::compare::compare(arguments),
        Command::Bisect(arguments) => command::bisect::bisect(arguments),
        Command::History(arguments) => command::history::history(arguments),
        Command::Isolation(arguments) => command::isolation::isolation(arguments),
        Command::Diff(arguments) => command::diff::diff(arguments),
        Command::Guard(arguments) => command::guard::guard(arguments),
        Command::Shard(arguments) => command::shard::shard(arguments),
        Command::Clean(arguments) => command::clean::clean(arguments),
        Command::Completions(arguments) => command::completions::completions(arguments.shell),
        Command::Man(arguments) => command::man::man(&arguments.directory),
        Command::Generator => command::generator::generator(),
        Command::Lab => command::lab::lab(),
        Command::Probe => command::probe::probe(),
        Command::Host(arguments) => command::host::host(arguments),
        Command::Link(arguments) => command::link::link(&arguments.words),
        Command::Disk(arguments) => command::disk::disk(&arguments.words),
    }
}

/// The name under which the program was called.
fn called(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
