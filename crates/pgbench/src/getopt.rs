//! The conventions of GNU `getopt_long`, which pgbench's users know: bundled short options
//! (`-nSc10`), `--name=value`, abbreviated long names, operands anywhere, `--` before the rest.
//!
//! No argument parser for Rust speaks these exactly (abbreviations and the words of its
//! complaints are getopt's own), and whatever calls pgbench may rely on them.

use crate::complaint::Complaint;

/// An option that a program knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<Id: 'static> {
    pub(crate) short: Option<char>,
    pub(crate) long: Option<&'static str>,
    /// Says if it has an argument.
    pub(crate) takes: Takes,
    /// Its identifier in the program.
    pub(crate) id: Id,
}

/// Says if an option has an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Always.
    Value,
    /// Never.
    Nothing,
}

/// Parts of a command line, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument<Id> {
    /// An option, with its argument if it takes one.
    Option(Id, String),
    /// Anything else.
    Operand(String),
}

/// Splits a command line (without the program's name) into options and operands. Each of `tables`
/// is searched only if those before it do not know the name, so that a later table takes away
/// no abbreviation from an earlier one.
///
/// Operands come after all options, as getopt permutes them. What was found before a mistake is
/// handed over first: pgbench acts on options as it meets them.
pub(crate) fn split<Id: Copy + 'static>(
    program: &str,
    arguments: &[String],
    tables: &[&[Known<Id>]],
    mut take: impl FnMut(Argument<Id>) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            operands.extend(rest.cloned());
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            take(long_option(program, long, tables, &mut rest)?)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            short_options(program, &argument[1..], tables, &mut rest, &mut take)?;
        } else {
            operands.push(argument.clone());
        }
    }
    operands.into_iter().try_for_each(|operand| take(Argument::Operand(operand)))
}

fn long_option<'a, Id: Copy + 'static>(
    program: &str,
    text: &str,
    tables: &[&[Known<Id>]],
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<Argument<Id>, Complaint> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let known = long_name(program, text, name, tables)?;
    let long = known.long.expect("it was found by its long name");
    match (known.takes, value) {
        (Takes::Nothing, None) => Ok(Argument::Option(known.id, String::new())),
        (Takes::Nothing, Some(_)) => Err(Complaint::bare(format_args!(
            "{program}: option '--{long}' doesn't allow an argument"
        ))),
        (Takes::Value, Some(value)) => Ok(Argument::Option(known.id, value.to_owned())),
        (Takes::Value, None) => match rest.next() {
            Some(value) => Ok(Argument::Option(known.id, value.clone())),
            None => Err(Complaint::bare(format_args!(
                "{program}: option '--{long}' requires an argument"
            ))),
        },
    }
}

fn long_name<Id: Copy + 'static>(
    program: &str,
    text: &str,
    name: &str,
    tables: &[&[Known<Id>]],
) -> Result<Known<Id>, Complaint> {
    let exact = |known: &&Known<Id>| known.long == Some(name);
    if let Some(known) = tables.iter().flat_map(|table| table.iter()).find(exact) {
        return Ok(*known);
    }
    for table in tables {
        let begins = |known: &&Known<Id>| known.long.is_some_and(|long| long.starts_with(name));
        let candidates: Vec<_> = table.iter().filter(begins).collect();
        match candidates[..] {
            [] => {}
            [one] => return Ok(*one),
            _ => {
                let names = candidates.iter().filter_map(|known| known.long);
                let names: String = names.map(|long| format!(" '--{long}'")).collect();
                return Err(Complaint::bare(format_args!(
                    "{program}: option '--{text}' is ambiguous; possibilities:{names}"
                )));
            }
        }
    }
    Err(Complaint::bare(format_args!("{program}: unrecognized option '--{text}'")))
}

fn short_options<'a, Id: Copy + 'static>(
    program: &str,
    bundle: &str,
    tables: &[&[Known<Id>]],
    rest: &mut impl Iterator<Item = &'a String>,
    take: &mut impl FnMut(Argument<Id>) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let mut letters = bundle.chars();
    while let Some(letter) = letters.next() {
        let is_it = |known: &&Known<Id>| known.short == Some(letter);
        let Some(known) = tables.iter().flat_map(|table| table.iter()).find(is_it) else {
            return Err(Complaint::bare(format_args!("{program}: invalid option -- '{letter}'")));
        };
        if known.takes == Takes::Nothing {
            take(Argument::Option(known.id, String::new()))?;
            continue;
        }
        let glued = letters.as_str();
        let value = if glued.is_empty() { rest.next().map(String::as_str) } else { Some(glued) };
        return match value {
            Some(value) => take(Argument::Option(known.id, value.to_owned())),
            None => Err(Complaint::bare(format_args!(
                "{program}: option requires an argument -- '{letter}'"
            ))),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn known(short: Option<char>, long: &'static str, takes: Takes) -> Known<&'static str> {
        Known { short, long: Some(long), takes, id: long }
    }

    const FIRST: &[Known<&str>] = &[
        known(Some('c'), "client", Takes::Value),
        known(Some('C'), "connect", Takes::Nothing),
        known(Some('n'), "no-vacuum", Takes::Nothing),
        known(None, "partitions", Takes::Value),
        known(None, "partition-method", Takes::Value),
    ];
    const SECOND: &[Known<&str>] = &[known(None, "connect-rate", Takes::Value)];

    #[test]
    fn command_lines_split_as_getopt_splits_them() {
        let check = |line: &str, expected: Result<&str, &str>| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let mut words = Vec::new();
            let result = split("pgbench", &arguments, &[FIRST, SECOND], |found| {
                words.push(match found {
                    Argument::Option(name, value) => format!("{name}={value}"),
                    Argument::Operand(operand) => operand,
                });
                Ok(())
            });
            let result = result.map(|()| words.join(" ")).map_err(|error| error.to_string());
            assert_eq!(result, expected.map(str::to_owned).map_err(str::to_owned), "{line}");
        };
        check("-c10", Ok("client=10"));
        check("-c 10", Ok("client=10"));
        check("-nCc10", Ok("no-vacuum= connect= client=10"));
        check("--client=10", Ok("client=10"));
        check("--client=", Ok("client="));
        check("--cl 10", Ok("client=10"));
        check("db -n", Ok("no-vacuum= db"));
        check("-n -- -c", Ok("no-vacuum= -c"));
        check("- -n", Ok("no-vacuum= -"));
        check("--conn", Ok("connect="));
        check("--connect-r 5", Ok("connect-rate=5"));
        check("--partition-method hash", Ok("partition-method=hash"));
        check(
            "--part=3",
            Err("pgbench: option '--part=3' is ambiguous; \
                 possibilities: '--partitions' '--partition-method'"),
        );
        check("--bad", Err("pgbench: unrecognized option '--bad'"));
        check("--bad=1", Err("pgbench: unrecognized option '--bad=1'"));
        check("-nx", Err("pgbench: invalid option -- 'x'"));
        check("-n -c", Err("pgbench: option requires an argument -- 'c'"));
        check("--cl", Err("pgbench: option '--client' requires an argument"));
        check("--conn=1", Err("pgbench: option '--connect' doesn't allow an argument"));
    }
}
