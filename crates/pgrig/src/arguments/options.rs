//! pgbench's options as clap describes them, and reads them among others.

use clap::{Arg, ArgAction, ArgMatches, Command};
use pgbench::options::{OptionName, option_names};

const DBNAME: &str = "DBNAME";

/// Every option and the operand, as a part of `command`; what it has itself is left as it is. The help of another
/// command leaves them out.
pub(super) fn of_pgbench(command: Command) -> Command {
    with_options(command, option_names(pgbench::Major::default()))
}

/// The same with those options that a comparison follows.
pub(super) fn of_compared(command: Command) -> Command {
    let options = option_names(pgbench::Major::default()).into_iter();
    with_options(command, options.filter(|option| option.is_compared).collect())
}

fn with_options(command: Command, options: Vec<OptionName>) -> Command {
    let is_hidden = is_other(&command);
    let command = options.into_iter().fold(command, |command, option| {
        let has = |one: &Arg| one.get_long() == Some(option.long);
        // clap's own help is not among them.
        let is_help = option.long == "help" && command.get_name() != "bench";
        if is_help || command.get_arguments().any(has) {
            return command;
        }
        let argument = Arg::new(option.long).long(option.long).help(option.about).hide(is_hidden);
        let argument = match option.short.filter(|letter| *letter != 'h' || !is_other(&command)) {
            Some(short) => argument.short(short),
            None => argument,
        };
        command.arg(match option.argument {
            Some(name) => {
                argument.action(ArgAction::Append).value_name(name).allow_hyphen_values(true)
            }
            None => argument.action(ArgAction::Append).num_args(0).default_missing_value(""),
        })
    });
    // A bisection makes all servers itself, and has other operands.
    match command.get_name() == "bisect" {
        true => command,
        false => command.arg(
            Arg::new(DBNAME)
                .action(ArgAction::Append)
                .help("The database, or a connection string")
                .hide(is_hidden),
        ),
    }
}

/// True if this is not `bench`: then `-h` is help, too.
fn is_other(command: &Command) -> bool {
    command.get_name() != "bench"
}

/// pgbench's options among those that were given, in their order.
pub(super) fn words(matches: &ArgMatches) -> Vec<String> {
    let options = option_names(pgbench::Major::default());
    let mut found = Vec::new();
    for option in options {
        // Those of the command's own have other types.
        let (Ok(Some(values)), Some(places)) = (
            matches.try_get_many::<String>(option.long),
            matches.try_contains_id(option.long).ok().and_then(|_| matches.indices_of(option.long)),
        ) else {
            continue;
        };
        for (place, value) in places.zip(values) {
            let word = match option.argument {
                Some(_) => format!("--{}={value}", option.long),
                None => format!("--{}", option.long),
            };
            found.push((place, word));
        }
    }
    found.sort();
    let operands = matches.try_get_many::<String>(DBNAME).ok().flatten();
    let operands = operands.into_iter().flatten().cloned();
    found.into_iter().map(|(_, word)| word).chain(operands).collect()
}

#[cfg(test)]
mod tests {
    use crate::arguments::{Command, parse};

    #[test]
    fn pgbenchs_options_may_stand_anywhere() {
        let check = |typed: &str, expected: &str| {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            let arguments = parse(&words).unwrap_or_else(|error| panic!("{typed}: {error}"));
            let Command::Compare(compare) = arguments.command else { panic!("{typed}") };
            assert_eq!(compare.workload.join(" "), expected, "{typed}");
        };
        check(
            "pgrig compare -c 4 --b-set jit=on -S --gate -Mprepared --precision=2% -f a.sql@3 -D x=-1",
            "--client=4 --select-only --protocol=prepared --file=a.sql@3 --define=x=-1",
        );
        check("pgrig compare -nSc8 --self", "--no-vacuum --select-only --client=8");
        check("pgrig compare mydb --json out.json", "mydb");
        check("pgrig compare --gate throughput,p50 -S", "--select-only");
        check("pgrig compare", "");
        let typed = "pgrig bisect v1 main -c 4 --data x.sql -S -- make -C src";
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let arguments = parse(&words).unwrap_or_else(|error| panic!("{typed}: {error}"));
        let Command::Bisect(bisect) = arguments.command else { panic!("{typed}") };
        assert_eq!(bisect.workload.join(" "), "--client=4 --select-only");
        assert_eq!((bisect.good.as_str(), bisect.bad.as_str()), ("v1", "main"));
        assert_eq!(bisect.build.join(" "), "make -C src");
    }
}
