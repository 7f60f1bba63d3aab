//! A comparison of the messages in the code with the table of messages on the page: each message has its row, and no
//! row is of a message that is gone. A row shows an example of its message, with numbers and an ellipsis where the
//! code has gaps, so both are compared by the words between their gaps.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that follow one another without a gap.
type Run = Vec<String>;

/// The beginnings of a message in the code; a literal follows.
const MARKS: [&str; 10] = [
    "#[error(",
    "what: format!(",
    "what: ",
    "let what = format!(",
    "let what = ",
    "Anew(format!(",
    "Some(Some(format!(",
    "RAISE EXCEPTION ",
    "THEN format(",
    "ELSE format(",
];

/// A row of the message "{doing} on {server}: …", of which the code has no words.
const EXAMPLE: &str = "fencing on node 1: …";

/// A message and its row have as many words in common that follow one another.
const COMMON_WORDS: usize = 3;

#[test]
fn each_message_has_its_row_on_the_page_and_each_row_its_message() {
    let rows = rows(include_str!("../../../../docs/sharding.md"));
    let read = |folder: &str| -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        sources(root).iter().map(|path| code(path)).collect()
    };
    let sources = read("src");
    let messages: Vec<String> = sources.iter().flat_map(|text| messages(text)).collect();
    assert!(rows.len() > 40 && messages.len() > 40, "{} {}", rows.len(), messages.len());
    let is_covered = |message: &String| {
        let runs = runs(message);
        longest(&runs) < 2 || rows.iter().any(|row| have_in_common(&runs, &self::runs(row)))
    };
    let uncovered: Vec<&String> = messages.iter().filter(|one| !is_covered(one)).collect();
    assert!(uncovered.is_empty(), "docs/sharding.md has no row for {uncovered:#?}");

    // The program has messages of its own.
    let program = read("../../tools/shard/src");
    let said: String =
        sources.iter().chain(&program).flat_map(|text| runs(text)).map(joined).collect();
    let is_said = |row: &String| {
        let runs = runs(row);
        let least = COMMON_WORDS.min(longest(&runs));
        let mut long = runs.into_iter().filter(|run| run.len() >= least);
        row == EXAMPLE || long.any(|run| said.contains(joined(run).trim_matches('|')))
    };
    let gone: Vec<&String> = rows.iter().filter(|row| !is_said(row)).collect();
    assert!(gone.is_empty(), "docs/sharding.md has rows of messages that are gone: {gone:#?}");
}

/// The messages in the first column of the table.
fn rows(page: &str) -> Vec<String> {
    let table = page.split_once("\n| message | meaning and remedy |\n").expect("the table").1;
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).expect("a first column"));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// The files of the code in a folder.
fn sources(root: PathBuf) -> Vec<PathBuf> {
    let mut open = vec![root];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if !path.ends_with("error/page.rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text of a file without its tests, in which a string that goes on in the next line stands in one.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split_once("#[cfg(test)]\nmod tests {").map_or(&*text, |(code, _)| code);
    let lines = code.split("\\\n").enumerate();
    lines.map(|(index, line)| if index == 0 { line } else { line.trim_start() }).collect()
}

/// The literals behind the marks.
fn messages(code: &str) -> Vec<String> {
    let behind = |mark: &'static str| code.match_indices(mark).map(move |(at, _)| at + mark.len());
    let literal = |at: usize| {
        let rest = code[at..].trim_start();
        let quote = rest.chars().next().filter(|quote| "\"'".contains(*quote))?;
        let text = &rest[1..];
        let is_end = |at: usize| !text[..at].ends_with('\\');
        let end = text.match_indices(quote).map(|(at, _)| at).find(|at| is_end(*at))?;
        Some(text[..end].to_owned())
    };
    MARKS.into_iter().flat_map(behind).filter_map(literal).collect()
}

/// The words between the gaps of a text: numbers, ellipses and what is put in.
fn runs(text: &str) -> Vec<Run> {
    let is_gap = |c: char| c.is_ascii_digit() || "{}%…(".contains(c);
    let mut runs = vec![Run::new()];
    for word in text.replace('"', " … ").split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        match word.contains(is_gap) {
            true => runs.push(Run::new()),
            false if bare.is_empty() => {}
            false => runs.last_mut().expect("there is one").push(bare.to_owned()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

fn longest(runs: &[Run]) -> usize {
    runs.iter().map(Vec::len).fold(0, usize::max)
}

fn joined(run: Run) -> String {
    format!("|{}|", run.join(" "))
}

/// True if enough words of both follow one another; of a short one all do.
fn have_in_common(some: &[Run], others: &[Run]) -> bool {
    let length = COMMON_WORDS.min(longest(some)).min(longest(others));
    length >= 2
        && some.iter().flat_map(|run| run.windows(length)).any(|words| {
            others.iter().flat_map(|run| run.windows(length)).any(|other| other == words)
        })
}
