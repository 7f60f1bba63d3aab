//! Names, comments, tuples and files: figures of the whole tree that can only improve.
//!
//! A bound is lowered with the change that makes it possible. `cargo test -p pgrig --test architecture -- --nocapture
//! house` prints the figures of today.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{crates, files, folder, is_test, lines_of};

/// The lines of all sources, with their room and file; without unit tests and shared test code.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for room in crates().into_keys().filter(|name| name != "testing") {
        let root = folder(&room).join("src");
        for path in files(&root).into_iter().filter(|path| !is_test(path)) {
            let text = fs::read_to_string(&path).unwrap();
            let lines = lines_of(&text).into_iter().map(|(_, line)| line.to_owned()).collect();
            let file = path.strip_prefix(&root).unwrap().display().to_string();
            found.push(Source { room: room.clone(), file, lines });
        }
    }
    found
}

struct Source {
    room: String,
    file: String,
    lines: Vec<String>,
}

/// Holds a figure to its bound, and prints it.
fn at_most(what: &str, most: usize, found: &[String]) {
    println!("house: {what}: {} (at most {most})", found.len());
    assert!(
        found.len() <= most,
        "{what}: {}, more than {most}:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// The name of a public type or trait that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "union "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn no_two_public_types_have_the_same_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Source { room, file, lines } in sources() {
        for name in lines.iter().filter_map(|line| public_type(line)) {
            places.entry(name.to_owned()).or_default().push(format!("{room}/{file}"));
        }
    }
    // Each room has its own `Error`, which is written with its room, as is `std::io::Error`.
    places.remove("Error");
    let total: usize = places.values().map(Vec::len).sum();
    let shared: Vec<String> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    at_most("names that more than one public type has", SHARED_MAX, &shared);

    let is_one_word = |name: &str| name.chars().filter(|c| c.is_uppercase()).count() == 1;
    let one_word: Vec<String> = places.into_keys().filter(|name| is_one_word(name)).collect();
    println!("house: {total} public types and traits");
    at_most("public types of one word", ONE_WORD_MAX, &one_word);
}

const SHARED_MAX: usize = 4;

/// A name of one word is right where the word is the field's own, as `Ledger` and `Verdict`.
const ONE_WORD_MAX: usize = 120;

#[test]
fn comments_begin_with_what_they_are_about() {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Source { room, file, lines } in sources() {
        let mut before = "";
        for line in lines.iter().map(|line| line.trim_start()) {
            let kind = ["///", "//!", "//"].into_iter().find(|kind| line.starts_with(kind));
            let kind = kind.unwrap_or("");
            let begins = |(words, _): &(&'static str, usize)| {
                line[kind.len()..].strip_prefix(' ').is_some_and(|text| text.starts_with(words))
            };
            if !kind.is_empty() && kind != before {
                for (words, _) in OPENINGS.into_iter().filter(begins) {
                    found.entry(words).or_default().push(format!("{room}/{file}: {line}"));
                }
            }
            before = kind;
        }
    }
    for (words, most) in OPENINGS {
        let found = found.remove(words).unwrap_or_default(); // No comment begins so.
        at_most(&format!("comments that begin with \"{words}\""), most, &found);
    }
}

/// Words whose noun stands elsewhere or nowhere, and how many comments begin with them.
const OPENINGS: [(&str, usize); 6] = [
    ("The reason why ", 23),
    ("Its ", 138),
    ("Of ", 44),
    ("They ", 15),
    ("Their ", 20),
    ("Those ", 59),
];

/// A pair of values that are bound by one `let` has no name of its own.
#[test]
fn values_are_bound_one_by_one() {
    let is_tuple = |line: &&String| {
        let rest = line.trim_start().strip_prefix("let (").or_else(|| {
            let line = line.trim_start();
            line.strip_prefix("let mut (")
        });
        rest.is_some_and(|rest| !rest.starts_with(')'))
    };
    let mut found = Vec::new();
    let mut all = 0;
    for Source { room, file, lines } in sources() {
        all += lines.len();
        let tuples = lines.iter().filter(is_tuple);
        found.extend(tuples.map(|line| format!("{room}/{file}: {line}")));
    }
    // 8.3 in 1,000 lines.
    at_most("tuples that are bound by `let`", all * 83 / 10_000, &found);
}

/// A type whose methods stand in many files is read in many places, and its fields are everybody's.
#[test]
fn a_type_and_its_methods_stand_in_three_files() {
    let mut places: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for Source { room, file, lines } in sources() {
        for line in lines.iter().filter(|line| line.starts_with("impl") && !line.contains(" for "))
        {
            let rest = match line.strip_prefix("impl<") {
                Some(rest) => rest.split_once("> ").map_or("", |(_, rest)| rest),
                None => line.strip_prefix("impl ").unwrap_or(""), // No inherent methods.
            };
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(""); // As above.
            if name.starts_with(|c: char| c.is_uppercase()) {
                places.entry((room.clone(), name.to_owned())).or_default().insert(file.clone());
            }
        }
    }
    let found: Vec<String> = places
        .into_iter()
        .filter(|(_, files)| files.len() > 3)
        .map(|((room, name), files)| format!("{room}::{name} in {} files", files.len()))
        .collect();
    at_most("types whose methods stand in more than three files", 5, &found);
}

#[test]
fn no_file_is_so_short_that_it_belongs_to_its_neighbour() {
    let mut found = Vec::new();
    for room in crates().into_keys() {
        for path in files(&folder(&room)) {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().count();
            // The root of a crate, a test program or a folder lists its modules.
            let is_module =
                |line: &str| line.ends_with(';') && line.split(' ').any(|word| word == "mod");
            let is_root = text.lines().any(is_module);
            if lines < LINES_MIN && !is_root {
                let file = path.strip_prefix(folder(&room)).unwrap().display().to_string();
                found.push(format!("{room}/{file} has {lines} lines"));
            }
        }
    }
    at_most("files of less than 20 lines", 21, &found);
}

const LINES_MIN: usize = 20;

/// A room that is given its clock can be tested in virtual time.
#[test]
fn rooms_are_given_their_clock() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Source { room, file, lines } in sources() {
        for line in lines.iter().filter(|line| line.contains("Instant::now()")) {
            found.entry(room.clone()).or_default().push(format!("{file}: {}", line.trim()));
        }
    }
    for (room, most) in [("check", 5), ("measure", 19), ("site", 8), ("study", 18)] {
        let found = found.remove(room).unwrap_or_default(); // The room asks no clock.
        at_most(&format!("direct uses of the clock in {room}"), most, &found);
    }
}

#[test]
fn public_types_are_found_by_their_declaration() {
    let check =
        |line: &str, expected: Option<&str>| assert_eq!(public_type(line), expected, "{line}");
    check("pub struct A<T> {", Some("A"));
    check("    pub enum Bc {", Some("Bc"));
    check("pub trait D: E {", Some("D"));
    check("pub(crate) struct F;", None);
    check("pub fn struct_of() {", None);
    check("/// pub struct G", None);
}
