//! The program pgrig-shard: reads its command line, does what was asked, and ends with its exit code.

use std::process::ExitCode;

use clap::FromArgMatches;
use console::{CommandComplaint, ProgramExit};
use pgrig_shard::ShardArguments;

fn main() -> ExitCode {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let mut command = pgrig_shard::command();
    let matches = command.try_get_matches_from_mut(&words);
    let arguments = matches.and_then(|matches| {
        ShardArguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    });
    let exit = match arguments {
        Ok(arguments) => {
            pgrig_shard::shard(&arguments).unwrap_or_else(|complaint: CommandComplaint| {
                complaint.hiding_passwords(&words).show()
            })
        }
        Err(asked) => console::show_answer(&asked, &words, ProgramExit::CouldNotStart),
    };
    exit.code()
}
