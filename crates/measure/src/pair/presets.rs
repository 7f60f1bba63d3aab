//! Defaults of the servers, and what their builds and initdb have decided, as far as these differ without being asked
//! for.

use std::collections::{BTreeMap, BTreeSet};

use record::comparison::ServerDifference;
use server::Client;

use crate::pair::contest::ComparedSide;
use crate::pair::ground::PRESETS;

/// By name, as the server shows them.
type Presets = BTreeMap<String, String>;

/// Those that an option of initdb decides, and what it contains.
const OPTIONS: [(&str, &str); 2] =
    [("data_checksums", "data-checksums"), ("wal_segment_size", "wal-segsize")];

/// Categories of settings that change how fast a server is.
const CATEGORIES: &str = "^(Resource Usage|Query Tuning|Write-Ahead Log|Autovacuum|Vacuuming|Preset Options|\
     Client Connection Defaults / Statement Behavior)";

/// Settings that a new major version has, and the value with which it does as the versions before.
const AS_BEFORE: [(&str, &str); 1] = [("io_method", "sync")];

/// Settings under the names that they had before: debug_parallel_query since 16.
const RENAMED: [(&str, &str); 1] = [("force_parallel_mode", "debug_parallel_query")];

/// What is asked for by no option.
#[derive(Debug, Default)]
pub(crate) struct Unasked {
    /// Sentences about what was fixed when the servers were built or initialised and differs, and about servers that
    /// check assertions.
    pub(crate) doubts: Vec<String>,
    /// Defaults and build options that differ.
    pub(crate) differences: Vec<ServerDifference>,
}

/// What differs without being asked for. Nothing where a side cannot be asked.
pub(crate) fn unasked(grounds: [&dyn ComparedSide; 2]) -> Unasked {
    let initdb = grounds.map(ComparedSide::initdb).concat();
    match grounds.map(read) {
        [Some((mut a, set_on_a)), Some((mut b, set_on_b))] => {
            // What somebody has set on one side is no default that differs.
            a.retain(|name, _| !set_on_b.contains(name));
            b.retain(|name, _| !set_on_a.contains(name));
            let differences = differences(&a, &b, &initdb);
            Unasked { doubts: told(grounds.map(ComparedSide::name), &a, &b, &initdb), differences }
        }
        _ => Unasked::default(),
    }
}

/// Settings, with whether nobody has set them, and what a server was built with.
const READ: &str = "
    SELECT name, current_setting(name), source = 'default' OR name = ANY ($2) FROM pg_settings
    WHERE category ~ $1 AND (category <> 'Preset Options' OR name = ANY ($2))
    UNION ALL SELECT 'JIT is available', CASE WHEN pg_jit_available() THEN 'yes' ELSE 'no' END, true
    UNION ALL SELECT 'compiler', substring(version() FROM 'compiled by (.*), [^,]*$'), true";

/// Defaults and build options of a server, and the names of the settings that somebody has set.
fn read(ground: &dyn ComparedSide) -> Option<(Presets, BTreeSet<String>)> {
    let mut client: Client = ground.connect().ok()?;
    let names: &[&str] = &PRESETS;
    let rows = client.query(READ, &[&CATEGORIES, &names]).ok()?;
    let known = |name: String| {
        let renamed = RENAMED.iter().find(|(before, _)| *before == name);
        renamed.map_or(name, |(_, now)| (*now).to_owned())
    };
    // NULL is the empty text to the server as well.
    let value = |value: Option<String>| value.unwrap_or_default();
    let (mut presets, mut set) = (Presets::new(), BTreeSet::new());
    for row in rows {
        let name = known(row.get(0));
        match row.get(2) {
            true => drop(presets.insert(name, value(row.get(1)))),
            false => drop(set.insert(name)),
        }
    }
    Some((presets, set))
}

/// True if an option of initdb was given that decides a setting.
fn is_asked_for(name: &str, initdb: &[String]) -> bool {
    let of_name = OPTIONS.iter().find(|(preset, _)| *preset == name);
    of_name.is_some_and(|(_, option)| initdb.iter().any(|one| one.contains(option)))
}

fn differences(a: &Presets, b: &Presets, initdb: &[String]) -> Vec<ServerDifference> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differing = names.into_iter().filter(|name| !is_asked_for(name, initdb));
    let differing = differing.filter_map(|name| {
        let (a, b) = (a.get(name).cloned(), b.get(name).cloned());
        (a != b).then(|| {
            let level = level(name, a.as_deref(), b.as_deref());
            ServerDifference { name: name.clone(), a, b, level }
        })
    });
    differing.collect()
}

/// The option that makes the sides alike. Of a setting that both have, A gets B's value.
fn level(name: &str, a: Option<&str>, b: Option<&str>) -> Option<String> {
    let before = AS_BEFORE.iter().find(|(new, _)| *new == name);
    match (name, a, b) {
        ("JIT is available", Some("yes"), _) => Some("--a-set jit=off".to_owned()),
        ("JIT is available", ..) => Some("--b-set jit=off".to_owned()),
        ("data_checksums", Some("off"), _) => Some("--a-initdb=--data-checksums".to_owned()),
        ("data_checksums", ..) => Some("--b-initdb=--data-checksums".to_owned()),
        ("wal_segment_size", _, Some(b)) => {
            Some(format!("--a-initdb=--wal-segsize={}", b.trim_end_matches("MB")))
        }
        ("compiler", ..) => Some("builds of one compiler (--a-bin, --b-bin)".to_owned()),
        (_, Some(_), Some(_)) if PRESETS.contains(&name) => {
            Some("builds with the same options (--a-bin, --b-bin)".to_owned())
        }
        (_, Some(_), Some(b)) => Some(format!("--a-set '{name}={b}'")),
        (_, None, _) => before.map(|(name, value)| format!("--b-set {name}={value}")),
        (_, _, None) => before.map(|(name, value)| format!("--a-set {name}={value}")),
    }
}

fn told([a_name, b_name]: [&str; 2], a: &Presets, b: &Presets, initdb: &[String]) -> Vec<String> {
    let mut doubts = Vec::new();
    for name in PRESETS {
        let [Some(a), Some(b)] = [a.get(name), b.get(name)] else { continue };
        if a != b {
            if !is_asked_for(name, initdb) {
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

    #[test]
    fn a_default_that_differs_has_the_option_that_levels_it() {
        let presets = |list: &[(&str, &str)]| -> Presets {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let check = |name: &str, a: Option<&str>, b: Option<&str>, expected: Option<&str>| {
            let side = |value: Option<&str>| {
                let same = [("work_mem", "4MB")];
                presets(
                    &value.map(|value| (name, value)).into_iter().chain(same).collect::<Vec<_>>(),
                )
            };
            let found = differences(&side(a), &side(b), &["--wal-segsize=64".to_owned()]);
            let [one] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!((one.name.as_str(), one.a.as_deref(), one.b.as_deref()), (name, a, b));
            assert_eq!(one.level.as_deref(), expected);
        };
        let io = "effective_io_concurrency";
        check(io, Some("1"), Some("16"), Some("--a-set 'effective_io_concurrency=16'"));
        check("io_method", None, Some("worker"), Some("--b-set io_method=sync"));
        check("io_workers", None, Some("3"), None);
        check("data_checksums", Some("off"), Some("on"), Some("--a-initdb=--data-checksums"));
        check("JIT is available", Some("yes"), Some("no"), Some("--a-set jit=off"));
        let same = presets(&[("work_mem", "4MB")]);
        assert_eq!(differences(&same, &same, &[]), []);
        // It was asked for.
        let segments = |size| presets(&[("wal_segment_size", size)]);
        assert_eq!(
            differences(&segments("16MB"), &segments("64MB"), &["--wal-segsize=64".to_owned()]),
            []
        );
    }
}
