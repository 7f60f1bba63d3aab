//! Holds ARCHITECTURE.md to the tree: the rooms, the arrows between them, and what must not be in
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A row of the table of rooms.
struct Room {
    name: String,
    uses: String,
}

/// The rooms in the order of the page.
fn rooms() -> Vec<Room> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = page.split("\n## Rooms\n").nth(1).expect("a section on rooms");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
        Some(Room { name: name.to_owned(), uses: (*cells.last()?).to_owned() })
    });
    rows.collect()
}

/// Crates in the tree with their dependencies, those of tests left out.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let crates = entries.filter_map(|entry| {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).ok()?;
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let dependencies = dependencies.into_iter().flat_map(|table| table.keys().cloned());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Some((name, dependencies.collect()))
    });
    crates.collect()
}

/// Rust sources below a crate's `src`, each with its code: comments and unit tests left out.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut pending = vec![root().join("crates").join(name).join("src")];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_tests = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !is_tests {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                found.push((path, lines.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    found
}

#[test]
fn the_map_names_every_room_and_no_other() {
    let named: BTreeSet<String> = rooms().into_iter().map(|room| room.name).collect();
    let there: BTreeSet<String> = crates().into_keys().collect();
    assert_eq!(named, there);
}

#[test]
fn arrows_point_up_the_list_and_nowhere_else() {
    let crates = crates();
    let rooms = rooms();
    for (index, room) in rooms.iter().enumerate() {
        let above: Vec<&str> = rooms[..index].iter().map(|room| room.name.as_str()).collect();
        let excepted = room.uses.split_once("but").map_or("", |(_, names)| names);
        let allowed = |name: &str| match room.uses.as_str() {
            "–" => false,
            "all" => true,
            uses if uses.starts_with("everything above") => {
                above.contains(&name) && !excepted.contains(&format!("`{name}`"))
            }
            uses => uses.split_whitespace().any(|one| one == name),
        };
        for dependency in crates[&room.name].iter().filter(|name| crates.contains_key(*name)) {
            assert!(allowed(dependency), "{} must not use {dependency}", room.name);
        }
    }
}

#[test]
fn serde_is_where_something_is_written_or_read() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rule = page.split("`serde` only").nth(1).expect("a rule on serde");
    let rule = rule.split("\n- ").next().unwrap();
    for (name, dependencies) in crates() {
        if dependencies.contains("serde") {
            assert!(rule.contains(&format!("`{name}`")), "{name} must not use serde");
        }
    }
}

#[test]
fn unsafe_is_in_one_room() {
    for name in crates().into_keys().filter(|name| name != "os") {
        for (path, code) in sources(&name) {
            for word in ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"] {
                assert!(!code.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

#[test]
fn one_room_prints() {
    for name in crates().into_keys().filter(|name| name != "pgrig") {
        for (path, code) in sources(&name) {
            for word in ["println!", "eprintln!", "print!(", "eprint!("] {
                assert!(!code.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

#[test]
fn pure_rooms_have_no_clock_socket_thread_file_or_environment() {
    let page = rooms_that_say("no clock, file or environment");
    let page = page.into_iter().chain(rooms_that_say("no socket, clock, file or environment"));
    for name in page {
        for (path, code) in sources(&name) {
            for word in IMPURE {
                assert!(!code.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// What a function of its arguments has no use for.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::env::",
    "std::thread",
    "SystemTime",
    "Instant",
    "TcpStream",
    "UnixStream",
    "UdpSocket",
    "ToSocketAddrs",
];

fn rooms_that_say(words: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.contains(words));
    rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned())).collect()
}

#[test]
fn no_room_names_a_study() {
    for entry in fs::read_dir(root().join("studies")).unwrap() {
        let study = entry.unwrap().file_name().to_string_lossy().into_owned();
        let place = format!("studies/{study}");
        for name in crates().into_keys() {
            for (path, code) in sources(&name) {
                assert!(!code.contains(&place), "{} names {place}", path.display());
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is_and_is_short_enough_to_be_read() {
    for name in crates().into_keys() {
        for (path, _) in sources(&name) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("//!"), "{} has no module docs", path.display());
            assert!(text.lines().count() <= 800, "{} has more than 800 lines", path.display());
        }
    }
}
