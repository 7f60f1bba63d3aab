//! The ground that both sides stand on: collation, encoding, configuration, extensions and statistics. A difference that no
//! option names may be all that a comparison measures.

use std::collections::{BTreeMap, BTreeSet};

use lab::{DatabaseLocale, TARGET_SCHEMA};
use record::comparison::ServerDifference;
use server::Client;
use server::quote::literal;

use crate::pair::contest::ComparedSide;
use crate::pair::error::PairError;

/// Differences of the sides that are meant: what the user's options name, and what a study's variants do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedDifferences {
    /// Properties of the database, settings and extensions, in any case.
    pub names: Vec<String>,
    /// Options of initdb that one side has.
    pub initdb: Vec<String>,
}

impl NamedDifferences {
    fn has(&self, name: &str) -> bool {
        let is_it = |one: &String| one.eq_ignore_ascii_case(name);
        let words = INITDB.iter().filter(|(of, _)| *of == name).flat_map(|(_, words)| *words);
        let mut words = words.copied();
        self.names.iter().any(is_it)
            || words.any(|word| self.initdb.iter().any(|option| option.contains(word)))
            // initdb derives it from the locale.
            || (name == SEARCH_CONFIG && self.has(COLLATION))
    }
}

/// Names of differences that are no setting and no extension.
const COLLATION: &str = "collation";
const COLLATION_VERSION: &str = "collation_version";
const ENCODING: &str = "encoding";
const STATISTICS: &str = "statistics";

const SEARCH_CONFIG: &str = "default_text_search_config";

/// What options of initdb decide, and parts of their names.
const INITDB: [(&str, &[&str]); 6] = [
    (COLLATION, &["locale", "lc-collate", "lc-ctype", "icu-rules"]),
    (ENCODING, &["encoding"]),
    ("data_checksums", &["data-checksums"]),
    ("wal_segment_size", &["wal-segsize"]),
    // initdb sets them to multiples of a segment.
    ("min_wal_size", &["wal-segsize"]),
    ("max_wal_size", &["wal-segsize"]),
];

/// What one side stands on.
#[derive(Clone, Debug, PartialEq)]
struct Ground {
    major: u32,
    locale: DatabaseLocale,
    settings: BTreeMap<String, Setting>,
    /// Versions by name.
    extensions: BTreeMap<String, String>,
    tables: BTreeMap<String, TableStatistics>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Setting {
    value: String,
    /// Nobody has set it.
    is_default: bool,
}

impl Ground {
    fn new(major: u32, locale: DatabaseLocale) -> Ground {
        let (settings, extensions, tables) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ground { major, locale, settings, extensions, tables }
    }
}

/// What the planner knows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
struct TableStatistics {
    /// The columns that have statistics.
    columns: String,
    rows: f64,
    /// Statistics targets and other options of columns.
    targets: String,
    /// Objects of CREATE STATISTICS.
    extended: String,
}

/// Row counts that two ANALYZE of the same rows may give differ by less than this factor, and this number.
const ROWS_FACTOR: f64 = 1.5;
const ROWS_MIN: f64 = 1_000.0;

/// The differences of the two sides that nobody has named. `schemas` are those that hold the data, where the tables of
/// one side are called by the names of the other's.
///
/// # Errors
/// What a server says that cannot be asked.
pub fn unnamed(
    sides: [&dyn ComparedSide; 2],
    schemas: Option<[&str; 2]>,
    named: &NamedDifferences,
) -> Result<Vec<ServerDifference>, PairError> {
    let is_renamed = schemas.is_some_and(|[a, b]| a != b);
    let read = |at: usize| read(sides[at], schemas.map(|schemas| schemas[at]), is_renamed);
    let (a, b) = (read(0)?, read(1)?);
    Ok(differences(&a, &b).into_iter().filter(|one| !named.has(&one.name)).collect())
}

fn differences(a: &Ground, b: &Ground) -> Vec<ServerDifference> {
    let mut found = Vec::new();
    let mut add = |name: &str, [a, b]: [Option<String>; 2], level: Option<String>| {
        found.push(ServerDifference { name: name.to_owned(), a, b, level });
    };
    let both = |a: String, b: String| [Some(a), Some(b)];
    if !a.locale.sorts_as(&b.locale) {
        let level = "--locale".to_owned();
        add(COLLATION, both(a.locale.words(), b.locale.words()), Some(level));
    } else if let (Some(one), Some(other)) = (&a.locale.version, &b.locale.version)
        && one != other
    {
        add(COLLATION_VERSION, both(one.clone(), other.clone()), None);
    }
    let encodings = [&a.locale.encoding, &b.locale.encoding].map(Clone::clone);
    if encodings[0] != encodings[1] {
        add(ENCODING, encodings, Some("--locale".to_owned()));
    }
    for name in names(&a.settings, &b.settings) {
        let [one, other] = [a.settings.get(name), b.settings.get(name)];
        // What a version or a build brings is a part of what was asked for.
        let is_preset = PRESETS.contains(&name.as_str());
        let is_set = [one, other].into_iter().flatten().any(|setting| !setting.is_default);
        let is_told = match [one, other] {
            _ if is_preset => a.major == b.major,
            [Some(_), Some(_)] => is_set,
            _ => is_set && !OF_INITDB.contains(&name.as_str()),
        };
        let [one, other] = [one, other].map(|setting| setting.map(|setting| setting.value.clone()));
        if is_told && one != other {
            let level = other.as_ref().filter(|_| !is_preset && one.is_some());
            let level = level.map(|value| format!("--set '{name}={value}'"));
            add(name, [one, other], level);
        }
    }
    for name in names(&a.extensions, &b.extensions) {
        let versions = [&a.extensions, &b.extensions].map(|side| side.get(name).cloned());
        if versions[0] != versions[1] {
            add(name, versions, None);
        }
    }
    // Tables that one side lacks are no matter of statistics.
    for (name, one) in &a.tables {
        let Some(other) = b.tables.get(name) else { continue };
        if let Some([one, other]) = one.difference(other) {
            let told = [one, other].map(|words| Some(format!("“{words}” of {name}")));
            add(STATISTICS, told, Some("ANALYZE of both".to_owned()));
        }
    }
    found
}

fn names<'a, T>(a: &'a BTreeMap<String, T>, b: &'a BTreeMap<String, T>) -> BTreeSet<&'a String> {
    a.keys().chain(b.keys()).collect()
}

impl TableStatistics {
    /// What differs, in words of each side.
    fn difference(&self, other: &TableStatistics) -> Option<[String; 2]> {
        let texts = [
            ("statistics of columns", &self.columns, &other.columns),
            ("targets", &self.targets, &other.targets),
            ("extended statistics", &self.extended, &other.extended),
        ];
        let differing = texts.into_iter().find(|(_, one, other)| one != other);
        if let Some((what, one, other)) = differing {
            let words = |text: &String| match text.is_empty() {
                true => format!("no {what}"),
                false => format!("{what} {text}"),
            };
            return Some([words(one), words(other)]);
        }
        let (least, most) = (self.rows.min(other.rows).max(0.0), self.rows.max(other.rows));
        let is_other = most > ROWS_FACTOR * least && most - least > ROWS_MIN;
        is_other.then(|| [self, other].map(|side| format!("{:.0} rows", side.rows.max(0.0))))
    }
}

/// Settings that are fixed when a server is built or initialised, and that cost time.
pub(crate) const PRESETS: [&str; 6] = [
    "block_size",
    "data_checksums",
    "debug_assertions",
    "segment_size",
    "wal_block_size",
    "wal_segment_size",
];

/// Settings that one version alone has, and that its initdb sets by itself.
const OF_INITDB: [&str; 1] = ["autovacuum_worker_slots"];

/// Settings without those that say where a server is, who may log in, how it is called and where it writes its log.
const SETTINGS: &str = "
    SELECT name, current_setting(name), source IN ('default', 'override') FROM pg_settings
    WHERE name = ANY ($1) OR (
        category !~ '^(File Locations|Preset Options|Connections and Authentication|Process Title|Error Handling)'
        AND category !~ '(Where to Log|Process Title|Standby Servers|Archive Recovery|Recovery Target|Archiving)$'
        AND source NOT IN ('client', 'session') AND name <> ALL ($2))";

/// Settings that change no plan and no time: names, formats of messages and what sessions of the rig set.
const UNCOUNTED: [&str; 9] = [
    "application_name",
    "cluster_name",
    "log_line_prefix",
    "log_timezone",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "client_encoding",
];

/// Extensions without those that change no plan: the server's own, and those that the rig makes to warm and check.
const EXTENSIONS: &str = "
    SELECT extname::text, extversion FROM pg_extension
    WHERE extname <> ALL (ARRAY['plpgsql', 'amcheck', 'pg_prewarm', 'pg_stat_statements'])";

fn read(
    side: &dyn ComparedSide,
    schema: Option<&str>,
    is_renamed: bool,
) -> Result<Ground, PairError> {
    let mut client: Client = side.connect()?;
    let failed = |statement: &str, source| PairError::failed(side.name(), statement, source);
    let locale = DatabaseLocale::of_server(&mut client)
        .map_err(|source| failed(DatabaseLocale::QUESTION, source))?;
    let major = "SELECT current_setting('server_version_num')::int / 10000";
    let row = client.query_one(major, &[]).map_err(|source| failed(major, source))?;
    let mut ground = Ground::new(row.get::<_, i32>(0) as u32, locale);
    let (presets, uncounted): (&[&str], &[&str]) = (&PRESETS, &UNCOUNTED);
    let rows = client.query(SETTINGS, &[&presets, &uncounted]);
    for row in rows.map_err(|source| failed(SETTINGS, source))? {
        // NULL is the empty text to the server as well.
        let value = row.get::<_, Option<String>>(1).unwrap_or_default();
        ground.settings.insert(row.get(0), Setting { value, is_default: row.get(2) });
    }
    let rows = client.query(EXTENSIONS, &[]).map_err(|source| failed(EXTENSIONS, source))?;
    ground.extensions = rows.into_iter().map(|row| (row.get(0), row.get(1))).collect();
    let list = tables(schema, is_renamed);
    for row in client.query(&list, &[]).map_err(|source| failed(&list, source))? {
        let [columns, targets, extended] = [2, 3, 4].map(|at| row.get::<_, String>(at));
        let statistics = TableStatistics { columns, rows: row.get(1), targets, extended };
        ground.tables.insert(row.get(0), statistics);
    }
    Ok(ground)
}

/// The statement that reads what the planner knows of each table.
fn tables(schema: Option<&str>, is_renamed: bool) -> String {
    let schemas = match schema {
        Some(schema) => format!("= {}", literal(schema)),
        None => format!("NOT IN ('pg_catalog', 'information_schema', {})", literal(TARGET_SCHEMA)),
    };
    let name = match is_renamed {
        true => "c.relname::text",
        false => "format('%I.%I', n.nspname, c.relname)",
    };
    format!(
        "SELECT {name}, c.reltuples::float8,
            coalesce((SELECT string_agg(DISTINCT attname::text, ', ') FROM pg_stats
                      WHERE schemaname = n.nspname AND tablename = c.relname), ''),
            coalesce((SELECT string_agg(concat_ws(' ', attname, nullif(attstattarget, -1), estimates), ', ' ORDER BY attnum)
                      FROM pg_attribute, LATERAL (SELECT string_agg(one, ' ' ORDER BY one) AS estimates
                                                  FROM unnest(attoptions) one WHERE one ~ '^n_distinct') options
                      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
                          AND (coalesce(attstattarget, -1) <> -1 OR estimates IS NOT NULL)), ''),
            coalesce((SELECT string_agg(stxname || ' ' || stxkeys::text || ' ' || stxkind::text, ', ' ORDER BY stxname)
                      FROM pg_statistic_ext WHERE stxrelid = c.oid), '')
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'm', 'p') AND n.nspname {schemas} AND n.nspname !~ '^pg_'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground() -> Ground {
        let locale: DatabaseLocale = "C.UTF-8/UTF8".parse().expect("a locale");
        let version = Some("2.31".to_owned());
        let mut ground = Ground::new(15, DatabaseLocale { version, ..locale });
        let settings = [
            ("work_mem", "4MB", true),
            ("jit", "on", true),
            ("random_page_cost", "4", true),
            ("default_statistics_target", "100", true),
            ("shared_buffers", "128MB", false),
            ("TimeZone", "UTC", false),
            ("data_checksums", "off", true),
            (SEARCH_CONFIG, "pg_catalog.english", false),
        ];
        for (name, value, is_default) in settings {
            set(&mut ground, name, value, is_default);
        }
        ground.extensions = [("postgis", "3.3.2"), ("pg_trgm", "1.6")]
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
            .into();
        let statistics = TableStatistics {
            columns: "id, name".to_owned(),
            rows: 100_000.0,
            ..TableStatistics::default()
        };
        ground.tables = [("public.orders".to_owned(), statistics)].into();
        ground
    }

    fn set(ground: &mut Ground, name: &str, value: &str, is_default: bool) {
        ground.settings.insert(name.to_owned(), Setting { value: value.to_owned(), is_default });
    }

    fn orders(ground: &mut Ground) -> &mut TableStatistics {
        ground.tables.get_mut("public.orders").expect("the table")
    }

    /// Each plant is told under one name, whichever side has it, and is silent once that is named.
    #[test]
    fn what_differs_is_told_until_it_is_named() {
        let check = |name: &str, plant: &dyn Fn(&mut Ground), words: &str| {
            let (plain, mut planted) = (ground(), ground());
            plant(&mut planted);
            for [a, b] in [[&plain, &planted], [&planted, &plain]] {
                let found = differences(a, b);
                let [one] = found.as_slice() else { panic!("{name}: {found:?}") };
                assert_eq!(one.name, name);
                assert!(one.words().contains(words), "{}", one.words());
                let names = vec![name.to_uppercase()];
                let named = NamedDifferences { names, initdb: Vec::new() };
                assert!(named.has(&one.name), "{name}");
            }
        };
        let locale = |text: &'static str| {
            move |ground: &mut Ground| {
                let version = ground.locale.version.clone();
                ground.locale = DatabaseLocale { version, ..text.parse().expect("a locale") };
            }
        };
        check(COLLATION, &locale("C/UTF8"), "C (libc)");
        check(COLLATION, &locale("de_DE.UTF-8/UTF8"), "de_DE.UTF-8 (libc)");
        check(COLLATION, &locale("icu:de-DE/UTF8"), "de-DE (icu)");
        check(COLLATION, &locale("builtin:C.UTF-8/UTF8"), "C.UTF-8 (builtin)");
        check(COLLATION, &|one| one.locale.ctype = C.to_owned(), "character types of C");
        let newer = |one: &mut Ground| one.locale.version = Some("2.36".to_owned());
        check(COLLATION_VERSION, &newer, "2.36");
        check(ENCODING, &locale("C.UTF-8/SQL_ASCII"), "SQL_ASCII");
        check(
            "default_statistics_target",
            &|one| {
                set(one, "default_statistics_target", "1000", false);
            },
            "1000",
        );
        check("work_mem", &|one| set(one, "work_mem", "64MB", false), "64MB");
        check("jit", &|one| set(one, "jit", "off", false), "off");
        check("random_page_cost", &|one| set(one, "random_page_cost", "1.1", false), "1.1");
        check("shared_buffers", &|one| set(one, "shared_buffers", "8GB", false), "8GB");
        check("TimeZone", &|one| set(one, "TimeZone", "Asia/Tokyo", false), "Asia/Tokyo");
        check("data_checksums", &|one| set(one, "data_checksums", "on", true), "on");
        // A setting that one major version alone has.
        check("io_method", &|one| set(one, "io_method", "sync", false), "not there");
        check("postgis", &|one| drop(one.extensions.remove("postgis")), "3.3.2");
        check(
            "pg_trgm",
            &|one| {
                one.extensions.insert("pg_trgm".to_owned(), "1.5".to_owned());
            },
            "1.5",
        );
        let never = |one: &mut Ground| orders(one).columns.clear();
        check(STATISTICS, &never, "“no statistics of columns” of public.orders");
        check(STATISTICS, &|one| orders(one).columns = "id".to_owned(), "statistics of columns id");
        check(STATISTICS, &|one| orders(one).rows = 1_000.0, "1000 rows");
        check(STATISTICS, &|one| orders(one).rows = -1.0, "0 rows");
        check(STATISTICS, &|one| orders(one).targets = "name 1000".to_owned(), "name 1000");
        check(STATISTICS, &|one| orders(one).extended = "s 1 2 {d}".to_owned(), "s 1 2 {d}");
    }

    #[test]
    fn what_is_alike_and_what_a_version_brings_is_not_told() {
        let check = |plant: &dyn Fn(&mut Ground)| {
            let (plain, mut planted) = (ground(), ground());
            plant(&mut planted);
            assert_eq!(differences(&plain, &planted), []);
        };
        check(&|_| {});
        check(&|one| one.locale.collate = "C.utf8".to_owned());
        check(&|one| orders(one).rows = 120_000.0);
        check(&|one| one.tables.clear());
        let of_18 = |one: &mut Ground| {
            one.major = 18;
            set(one, "data_checksums", "on", true);
            set(one, "io_method", "worker", true);
            set(one, "random_page_cost", "3", true);
            set(one, "autovacuum_worker_slots", "16", false);
        };
        check(&of_18);
    }

    #[test]
    fn an_option_of_initdb_names_what_it_decides() {
        let check = |option: &str, names: &[&str]| {
            let named = NamedDifferences { names: Vec::new(), initdb: vec![option.to_owned()] };
            let all = INITDB.iter().map(|(name, _)| *name).chain([SEARCH_CONFIG]);
            for name in all {
                assert_eq!(named.has(name), names.contains(&name), "{option} {name}");
            }
        };
        check("--lc-collate=C.UTF-8", &[COLLATION, SEARCH_CONFIG]);
        check("--icu-locale=de", &[COLLATION, SEARCH_CONFIG]);
        check("--encoding=LATIN1", &[ENCODING]);
        check("--data-checksums", &["data_checksums"]);
        check("--wal-segsize=64", &["wal_segment_size", "min_wal_size", "max_wal_size"]);
        check("--allow-group-access", &[]);
    }

    const C: &str = "C";
}
