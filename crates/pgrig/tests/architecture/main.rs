//! Holds ARCHITECTURE.md to the tree: the rooms, the arrows between them, and what must not be in
//! them.

mod circles;
mod defaults;
mod house;
mod pages;

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

/// The folders of all packages, those of the rig and those of the tools.
fn packages() -> BTreeMap<String, (PathBuf, toml::Table)> {
    let folders = ["crates", "tools"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let packages = folders.into_iter().flatten().filter_map(|entry| {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).ok()?;
        let manifest: toml::Table = manifest.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        Some((name, (path, manifest)))
    });
    packages.collect()
}

/// Crates in the tree with their dependencies, those of tests left out.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let crates = packages().into_iter().map(|(name, (_, manifest))| {
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let dependencies = dependencies.into_iter().flat_map(|table| table.keys().cloned());
        (name, dependencies.collect())
    });
    crates.collect()
}

/// The folder of a crate.
fn folder(name: &str) -> PathBuf {
    packages().remove(name).unwrap_or_else(|| panic!("no crate {name}")).0
}

/// Rust sources below a crate's `src`, each with its code: comments and unit tests left out.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    files(&folder(name).join("src"))
        .into_iter()
        .filter(|path| !is_test(path))
        .map(|path| {
            let code = code_of(&fs::read_to_string(&path).unwrap());
            (path, code)
        })
        .collect()
}

/// Whether a file below `src` holds unit tests: `tests.rs`, or one in a folder `tests`.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

/// Rust files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// A file without its comments and without the items behind `#[cfg(test)]`.
fn code_of(text: &str) -> String {
    let lines = lines_of(text).into_iter().map(|(_, line)| line);
    lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The lines of a file, from 1, without the items behind `#[cfg(test)]`. Such an item ends, as rustfmt lays it out, with
/// the first line that closes it at its own indentation.
fn lines_of(text: &str) -> Vec<(usize, &str)> {
    let mut lines = (1..).zip(text.lines());
    let mut kept = Vec::new();
    while let Some((number, line)) = lines.next() {
        let indentation = line.strip_suffix("#[cfg(test)]").filter(|it| it.trim().is_empty());
        let Some(indentation) = indentation else {
            kept.push((number, line));
            continue;
        };
        let is_end = |line: &str| match line.strip_prefix(indentation) {
            Some(rest) if rest.starts_with([' ', '#', '/']) => false,
            Some(rest) => rest.starts_with(['}', ')']) || rest.ends_with([';', '}', ',']),
            None => false,
        };
        lines.by_ref().find(|(_, line)| is_end(line)).expect("the end of an item");
    }
    kept
}

#[test]
fn only_tests_and_comments_are_left_out() {
    let check = |text: &str, expected: &str| assert_eq!(code_of(text), expected, "{text}");
    check("a;\n// b\nc;", "a;\nc;");
    check("#[cfg(test)]\nmod tests;\nfn f() {}", "fn f() {}");
    check("#[cfg(test)]\nmod tests {\n    fn g() {\n    }\n}\nfn f() {}", "fn f() {}");
    check("impl A {\n    #[cfg(test)]\n    fn g() {\n        h();\n    }\n}", "impl A {\n}");
    check("#[cfg(test)]\n#[allow(x)]\nuse a::{\n    b,\n};\nfn f() {}", "fn f() {}");
}

#[test]
fn the_map_names_every_room_and_no_other() {
    let named: BTreeSet<String> = rooms().into_iter().map(|room| room.name).collect();
    let there: BTreeSet<String> = crates().into_keys().collect();
    assert_eq!(named, there);
}

#[test]
fn the_map_shows_every_arrow_and_no_other() {
    let crates = crates();
    let mut above = BTreeSet::new();
    for room in rooms() {
        let used = crates[&room.name].iter().filter(|name| crates.contains_key(*name));
        let used: BTreeSet<String> = used.cloned().collect();
        let uses = room.uses.split_whitespace().filter(|name| *name != "–");
        let uses: BTreeSet<String> = uses.map(str::to_owned).collect();
        assert_eq!(used, uses, "what {} uses, and what the page says", room.name);
        assert!(used.is_subset(&above), "{} uses rooms below it", room.name);
        above.insert(room.name);
    }
}

/// Holds the rooms for which the page states a rule to those for which a test checks it, so that
/// a reworded page does not switch the test off.
fn assert_page_says(words: &[&str], rooms: &[&str]) {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.filter(|line| words.iter().any(|words| line.contains(words)));
    let named: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(named, rooms, "the rooms whose row says {words:?}");
}

#[test]
fn serde_is_where_something_is_written_or_read() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rule =
        page.split("\n- ").find(|rule| rule.starts_with("`serde`")).expect("a rule on serde");
    for (name, used) in crates() {
        let is_used = used.contains("serde") || used.contains("serde_json");
        assert_eq!(is_used, rule.contains(&format!("`{name}`")), "serde in {name}");
    }
}

#[test]
fn unsafe_is_in_one_room() {
    assert_page_says(&["`unsafe`"], &["os"]);
    for name in crates().into_keys().filter(|name| name != "os") {
        for (path, code) in sources(&name) {
            for word in ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"] {
                assert!(!code.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// `/proc/self/exe` is the name of a program; the catalogue in `spec` names the files that metrics
/// come from.
#[test]
fn one_room_reads_proc() {
    assert_page_says(&["reads `/proc`"], &["os"]);
    for name in crates().into_keys().filter(|name| !["os", "spec"].contains(&name.as_str())) {
        for (path, code) in sources(&name) {
            let code = code.replace("\"/proc/self/exe\"", "");
            assert!(!code.contains("\"/proc"), "{} reads /proc", path.display());
        }
    }
}

#[test]
fn one_room_prints() {
    assert_page_says(&["the only one that prints"], &["console"]);
    for name in crates().into_keys().filter(|name| name != "console") {
        for (path, code) in sources(&name) {
            for word in ["println!", "print!(", "anstream::"] {
                assert!(!code.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// Whoever runs a tool on a production server has no program there that loads, breaks or kills.
#[test]
fn tools_have_nothing_of_the_rig() {
    let crates = crates();
    for tool in ["pgrig-guard", "pgrig-shard"] {
        let (mut reached, mut next) = (BTreeSet::new(), vec![tool.to_owned()]);
        while let Some(name) = next.pop() {
            next.extend(crates[&name].iter().filter(|name| crates.contains_key(*name)).cloned());
            reached.insert(name);
        }
        for room in ["lab", "fault", "load", "host", "os", "study"] {
            assert!(!reached.contains(room), "{tool} contains {room}");
        }
        assert!(reached.len() > 3, "{reached:?}");
    }
}

#[test]
fn pure_rooms_have_no_clock_socket_thread_file_or_environment() {
    let words = ["no clock, file or environment", "no socket, clock, file or environment"];
    assert_page_says(&words, &PURE);
    for name in PURE {
        for (path, code) in sources(name) {
            for word in IMPURE {
                assert!(!code.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// Rooms that compute from their arguments alone.
const PURE: [&str; 9] =
    ["wire", "script", "stats", "history", "crash", "nemesis", "tail", "spec", "verdict"];

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
fn modules_use_each_other_in_one_direction() {
    for name in crates().into_keys() {
        let root = folder(&name).join("src");
        let circles = circles::circles(&root, &sources(&name), CIRCLE_MAX);
        assert!(circles.is_empty(), "{name} has circles of modules: {circles:?}");
    }
}

/// More modules than these that all use each other are one thing in too many places.
const CIRCLE_MAX: usize = 3;

#[test]
fn every_file_says_what_it_is_and_is_short_enough_to_be_read() {
    for name in crates().into_keys() {
        for (path, _) in sources(&name) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("//!"), "{} has no module docs", path.display());
        }
        for path in files(&folder(&name)) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            let path = path.strip_prefix(root()).unwrap().display().to_string();
            assert!(lines <= LINES_MAX, "{path} has {lines} lines, more than {LINES_MAX}");
        }
    }
}

/// A longer file holds more than one type. A lower limit cuts a type apart.
const LINES_MAX: usize = 900;
