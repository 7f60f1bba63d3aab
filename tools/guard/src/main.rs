//! The program pgrig-guard: reads its command line, does what was asked, and ends with its exit code.

use std::process::ExitCode;

use clap::FromArgMatches;
use console::{CommandComplaint, ProgramExit};
use pgrig_guard::GuardArguments;

fn main() -> ExitCode {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let mut command = pgrig_guard::command();
    let matches = command.try_get_matches_from_mut(&words);
    let arguments = matches.and_then(|matches| {
        GuardArguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    });
    let exit = match arguments {
        Ok(arguments) => {
            pgrig_guard::guard(&arguments).unwrap_or_else(|complaint: CommandComplaint| {
                complaint.hiding_passwords(&words).show()
            })
        }
        Err(asked) => console::show_answer(&asked, &words, mistake(&words)),
    };
    exit.code()
}

/// The exit code of a mistake in the command line. A monitor must not take it for an exposure.
fn mistake(words: &[String]) -> ProgramExit {
    match words.get(1).is_some_and(|word| word == "status") {
        true => ProgramExit::Unreachable,
        false => ProgramExit::CouldNotStart,
    }
}
