//! `--help`, and what shells and manual pages say of the options: made from their rows.

use super::read::rows;
use super::row::{Heading, Row};
use crate::major::Major;

/// The text of `--help`, for a program that is called `command` and speaks this pgbench.
pub fn help(command: &str, major: Major) -> String {
    let rows = rows(major).concat();
    let part = |heading: Heading| {
        let mut listed: Vec<_> =
            rows.iter().filter_map(|row| Some((*row, about(row, heading)?))).collect();
        listed.sort_by_key(|(row, _)| order(row));
        let lines: String = listed.into_iter().map(|(row, about)| entry(row, about)).collect();
        format!("{}:\n{lines}\n", heading.text())
    };
    let options = Heading::ALL.map(part).concat();
    format!(
        "{command} is a benchmarking tool for PostgreSQL.\n\nUsage:\n  {command} [OPTION]... \
         [DBNAME]\n\n{options}\
         Report bugs to the maintainers of pgrig; it is not part of PostgreSQL. Include the output of\n\
         \"{command} --version\" and \"pgrig check\", the whole command, and all that it printed.\n"
    )
}

fn about(row: &Row, heading: Heading) -> Option<&'static str> {
    row.help.iter().find(|(under, _)| *under == heading).map(|(_, about)| *about)
}

/// Letters first, without regard to case, then the long names.
fn order(row: &Row) -> (bool, Option<char>, Option<char>, &'static str) {
    let folded = row.short.map(|letter| letter.to_ascii_lowercase());
    // A lower-case letter comes before its capital.
    let capital = row.short.filter(char::is_ascii_uppercase);
    (row.short.is_none(), folded, capital, row.long)
}

/// The column at which `--help` begins to say what an option does, and the one at which it ends.
const ABOUT_COLUMN: usize = 27;
const COLUMNS: usize = 100;

fn entry(row: &Row, about: &str) -> String {
    let short = row.short.map_or(String::new(), |letter| format!("-{letter}, "));
    let argument = row.argument().map_or(String::new(), |argument| format!("={argument}"));
    let name = format!("  {short}--{}{argument}", row.long);
    let lines = about.split('\n').flat_map(wrapped);
    let (mut text, mut is_beside) = (name.clone(), name.len() < ABOUT_COLUMN);
    for line in lines {
        match std::mem::take(&mut is_beside) {
            true => text.push_str(&" ".repeat(ABOUT_COLUMN - name.len())),
            false => text.push_str(&format!("\n{:ABOUT_COLUMN$}", "")),
        }
        text.push_str(&line);
    }
    text + "\n"
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.len() - 1;
        let columns = lines[line].len() + usize::from(!lines[line].is_empty()) + word.len();
        match lines[line].is_empty() || columns <= COLUMNS - ABOUT_COLUMN {
            true if lines[line].is_empty() => lines[line].push_str(word),
            true => lines[line].push_str(&format!(" {word}")),
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

/// An option as shells complete it and manual pages list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionName {
    /// The one-letter name.
    pub short: Option<char>,
    /// The long name.
    pub long: &'static str,
    /// The name of its argument in `--help`, if it has one.
    pub argument: Option<&'static str>,
    /// Its text in `--help`.
    pub about: &'static str,
    /// True if a comparison follows it.
    pub is_compared: bool,
}

/// Every option of `bench`, pgbench's first.
pub fn option_names(major: Major) -> Vec<OptionName> {
    let rows = rows(major).concat();
    let named = rows.into_iter().map(|row| OptionName {
        short: row.short,
        long: row.long,
        argument: row.argument(),
        about: row.help.first().map_or("", |(_, about)| about),
        is_compared: row.not_compared.is_none(),
    });
    named.collect()
}
