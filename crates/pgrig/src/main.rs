//! pgrig: a test rig for PostgreSQL.
//!
//! This crate is the user's side: arguments, progress, words, exit codes. It prints by `console`.
//!
//! Reading order: `arguments` parses the command line, `command` runs it, `exit` has the exit codes.

mod arguments;
mod assistant;
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
mod namesake;
mod otava;
mod progress;
mod prompt;
mod records;
mod scraped;
mod serve;
mod served;
mod shelf;
mod studies;
mod study_tables;
mod summary;

use std::process::ExitCode;

use crate::arguments::Command;
use crate::exit::ProgramExit;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = words.first().map_or("pgrig", String::as_str);
    // Under pgbench's name every argument is pgbench's own.
    if called(program) == "pgbench" {
        return bench::as_pgbench(program, &words[1..]);
    }
    let arguments = match arguments::parse(&words) {
        Ok(arguments) => arguments,
        Err(asked) => return arguments::answer(&asked, &words).code(),
    };
    if let Command::Bench(arguments) = &arguments.command {
        return bench::as_command(program, &arguments.arguments);
    }
    let exit = execute(&arguments.command)
        .unwrap_or_else(|complaint| complaint.hiding_passwords(&words).show());
    exit.code()
}

fn execute(command: &Command) -> Result<ProgramExit, complaint::Complaint> {
    match command {
        // It ends with pgbench's exit codes, and has been done.
        Command::Bench(_) => Ok(ProgramExit::Done),
        Command::Run(arguments) => match arguments.state {
            Some(number) => command::state::state(arguments, number),
            None => command::run::run(arguments),
        },
        Command::Search(arguments) => command::search::search(arguments),
        Command::Check(arguments) => command::check::check(arguments),
        Command::Studies(arguments) => command::studies::studies(arguments),
        Command::Metrics(arguments) => command::glossary::metrics(arguments),
        Command::Words(arguments) => command::glossary::words(arguments),
        Command::New(arguments) => command::new::new(arguments),
        Command::Show(arguments) => command::show::show(arguments),
        Command::View(arguments) => command::view::view(arguments),
        Command::Report(arguments) => command::report::report(&arguments.directory),
        Command::Compare(arguments) => command::compare::compare(arguments),
        Command::Bisect(arguments) => command::bisect::bisect(arguments),
        Command::History(arguments) => command::history::history(arguments),
        Command::Isolation(arguments) => command::isolation::isolation(arguments),
        Command::Workload(arguments) => command::workload::workload(arguments),
        Command::Diff(arguments) => command::diff::diff(arguments),
        Command::Verify(arguments) => command::verify::verify(arguments),
        Command::Guard(arguments) => Ok(pgrig_guard::guard(arguments)?),
        Command::Shard(arguments) => Ok(pgrig_shard::shard(arguments)?),
        Command::Mcp(arguments) => command::mcp::mcp(arguments),
        Command::Inventory(arguments) => command::inventory::inventory(arguments),
        Command::Clean(arguments) => command::clean::clean(arguments),
        Command::Completions(arguments) => command::completions::completions(arguments.shell),
        Command::Man(arguments) => command::man::man(&arguments.directory),
        Command::Generator => command::roles::generator(),
        Command::Lab => command::roles::lab(),
        Command::Probe => command::roles::probe(),
        Command::Host(arguments) => command::host::host(arguments),
        Command::Link(arguments) => command::roles::link(&arguments.words),
        Command::Disk(arguments) => command::roles::disk(&arguments.words),
    }
}

/// The name under which the program was called.
fn called(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
