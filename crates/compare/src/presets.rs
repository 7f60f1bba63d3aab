//! Settings that the servers' builds and initdb have decided, and that differ without being asked
//! for.

use std::collections::BTreeMap;

use server::Client;

use crate::contest::Ground;

/// By name, as `pg_settings` shows them.
type Presets = BTreeMap<String, String>;

/// Settings that are fixed when a server is built or initialised, and that cost time.
const NAMES: [&str; 6] = [
    "block_size",
    "data_checksums",
    "debug_assertions",
    "segment_size",
    "wal_block_size",
    "wal_segment_size",
];

/// Those that an option of initdb decides, and what it contains.
const OPTIONS: [(&str, &str); 2] =
    [("data_checksums", "data-checksums"), ("wal_segment_size", "wal-segsize")];

/// Sentences about those that differ without being asked for, and about a server that checks
/// assertions. Nothing where a side cannot be asked.
pub(crate) fn doubts(grounds: [&dyn Ground; 2]) -> Vec<String> {
    let initdb = grounds.map(Ground::initdb).concat();
    match grounds.map(read) {
        [Some(a), Some(b)] => told(grounds.map(Ground::name), &a, &b, &initdb),
        _ => Vec::new(),
    }
}

fn read(ground: &dyn Ground) -> Option<Presets> {
    let mut client: Client = ground.connect().ok()?;
    let names: &[&str] = &NAMES;
    let rows = client
        .query("SELECT name, setting FROM pg_settings WHERE name = ANY ($1)", &[&names])
        .ok()?;
    Some(rows.into_iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn told([a_name, b_name]: [&str; 2], a: &Presets, b: &Presets, initdb: &[String]) -> Vec<String> {
    let is_asked_for = |name: &str| {
        let of_name = OPTIONS.iter().find(|(preset, _)| *preset == name);
        of_name.is_some_and(|(_, option)| initdb.iter().any(|one| one.contains(option)))
    };
    let mut doubts = Vec::new();
    for name in NAMES {
        let [Some(a), Some(b)] = [a.get(name), b.get(name)] else { continue };
        if a != b {
            if !is_asked_for(name) {
                doubts.push(format!(
                    "{name} is {a} on {a_name} and {b} on {b_name}: the difference may come from \
                     that"
                ));
            }
        } else if name == "debug_assertions" && a == "on" {
            doubts.push(
                "both servers are built with assertions (debug_assertions), which cost time"
                    .to_owned(),
            );
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_and_so_are_assertions() {
        let presets = |checksums: &str, assertions: &str| -> Presets {
            [("data_checksums", checksums), ("debug_assertions", assertions)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        let told = |a: &Presets, b: &Presets, initdb: &[&str]| {
            let initdb: Vec<String> = initdb.iter().map(|word| (*word).to_owned()).collect();
            super::told(["A", "B"], a, b, &initdb)
        };
        let check = |a: Presets, b: Presets, expected: &[&str]| {
            let doubts = told(&a, &b, &["--wal-segsize=64"]);
            assert_eq!(doubts.len(), expected.len(), "{doubts:?}");
            for (doubt, words) in doubts.iter().zip(expected) {
                assert!(doubt.starts_with(words), "{doubt}");
            }
        };
        check(presets("on", "off"), presets("on", "off"), &[]);
        check(
            presets("off", "on"),
            presets("on", "off"),
            &["data_checksums is off on A and on on B", "debug_assertions is on on A"],
        );
        check(presets("on", "on"), presets("on", "on"), &["both servers are built with"]);
        check(presets("on", "on"), Presets::new(), &[]);
        let (off, on) = (presets("off", "off"), presets("on", "off"));
        assert_eq!(told(&off, &on, &["--data-checksums"]), [""; 0]);
    }
}
