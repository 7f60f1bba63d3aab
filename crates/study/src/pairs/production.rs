//! What servers that pgrig makes are given of production: the locale of its databases, and its settings.

use std::path::PathBuf;

use import::{BaseBackup, ImportSource, read_configuration};
use lab::machine::Machine;
use lab::{DatabaseLocale, Installation, Settings, Target};
use load::LoadControl;
use measure::SIDES;
use record::comparison::{ChangedSetting, GivenOfProduction};
use server::Client;
use site::outside;
use spec::InitdbOption;

use crate::error::{Error, SidesError};
use crate::pairs::settings;
use crate::pairs::side::SideOptions;

/// Where the user says that production is described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductionOptions {
    /// A server that the servers of pgrig's are to be like.
    pub like: Option<String>,
    /// Files of settings; later ones win.
    pub configuration: Vec<PathBuf>,
    /// The locale of the databases, whatever the others say.
    pub locale: Option<DatabaseLocale>,
    /// Settings of production that are left out.
    pub without: Vec<String>,
}

/// What the servers of each side are given, and what is said of it.
#[derive(Clone, Debug, Default)]
pub(super) struct ProductionSetup {
    /// Settings of A's servers and of B's.
    pub(super) settings: [Settings; 2],
    /// Options of initdb, in the order of the sides.
    pub(super) initdb: [Vec<InitdbOption>; 2],
    /// For the record.
    pub(super) given: GivenOfProduction,
}

/// What is asked of production before anything is built.
pub(super) struct ProductionSearch<'a> {
    pub(super) options: &'a ProductionOptions,
    pub(super) sides: &'a [SideOptions; 2],
    pub(super) installations: &'a [Option<Installation>; 2],
    /// The file of data.
    pub(super) data: Option<&'a ImportSource>,
    /// The base backup that is the data.
    pub(super) backup: Option<BaseBackup>,
    /// Connections that the load needs; none where a study says what its servers have.
    pub(super) connections: Option<u32>,
    /// None where no server is to be asked.
    pub(super) control: Option<&'a LoadControl>,
}

/// Settings that say where a server is, who logs in and where it logs; those that need another server or another
/// machine; and formats of messages, whose locales may not be here. Names, or their beginnings before `*`.
const OF_THE_PLACE: [&str; 46] = [
    "archive_*",
    "authentication_timeout",
    "bonjour*",
    "cluster_name",
    "config_file",
    "data_directory*",
    "db_user_namespace",
    "default_tablespace",
    "dynamic_library_path",
    "event_source",
    "external_pid_file",
    "extension_control_path",
    "gss_accept_delegation",
    "hba_file",
    "ident_file",
    "krb_*",
    "lc_*",
    "listen_addresses",
    "log_destination",
    "log_directory",
    "log_file*",
    "log_line_prefix",
    "log_rotation_*",
    "log_timezone",
    "log_truncate_on_rotation",
    "logging_collector",
    "oauth_*",
    "port",
    "primary_conninfo",
    "primary_slot_name",
    "promote_trigger_file",
    "recovery_*",
    "restore_command",
    "restart_after_crash",
    "ssl",
    "ssl_*",
    "stats_temp_directory",
    "synchronized_standby_slots",
    "synchronous_standby_names",
    "syslog_*",
    "temp_tablespaces",
    "unix_socket_*",
    "update_process_title",
    "wal_receiver_*",
    "include_dir",
    "superuser_reserved_connections",
];

/// Settings under the names that they had before, with the major version that renamed them.
const RENAMED: [(&str, &str, u32); 1] = [("force_parallel_mode", "debug_parallel_query", 16)];

/// Settings that a major version no longer has, and that change nothing there. The value is the version.
const REMOVED: [(&str, u32); 6] = [
    ("operator_precedence_warning", 14),
    ("vacuum_cleanup_index_scale_factor", 14),
    ("vacuum_defer_cleanup_age", 16),
    ("old_snapshot_threshold", 17),
    ("trace_recovery_messages", 17),
    ("db_user_namespace", 17),
];

/// The part of this machine's memory that the buffers of one server may take.
const BUFFERS_SHARE: u64 = 4;

impl ProductionSearch<'_> {
    /// Asks the files, and the server where one is to be asked.
    pub(super) fn find(&self) -> Result<ProductionSetup, Error> {
        let mut found = ProductionSetup::default();
        if self.installations.iter().all(Option::is_none) {
            return Ok(found);
        }
        let like = self.like()?;
        let mut client = like.as_ref().map(Target::connect).transpose()?;
        self.find_locale(like.as_ref(), client.as_mut(), &mut found)?;
        self.find_settings(like.as_ref(), client.as_mut(), &mut found)?;
        Ok(found)
    }

    /// The server that pgrig's are to be like: the one that is named, or the other side's.
    fn like(&self) -> Result<Option<Target>, Error> {
        let others = || self.sides.iter().find_map(|side| side.conninfo.as_deref());
        let Some((conninfo, control)) =
            self.options.like.as_deref().or_else(others).zip(self.control)
        else {
            return Ok(None);
        };
        match outside::open(conninfo, control) {
            Ok(target) => Ok(Some(target)),
            Err(site::Error::Target(source)) => Err(SidesError::LikeAddress { source }.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn find_locale(
        &self,
        like: Option<&Target>,
        client: Option<&mut Client>,
        found: &mut ProductionSetup,
    ) -> Result<(), Error> {
        if let Some(backup) = &self.backup {
            let (name, major) = (backup.name(), backup.major());
            found.given.sentences.push(format!(
                "The data are a copy of {name}, of PostgreSQL {major}, with its locale and its statistics."
            ));
            return Ok(());
        }
        let installation = self.installations.iter().flatten().next();
        let (locale, source) = match (&self.options.locale, client, self.data, installation) {
            (Some(locale), ..) => (Some(locale.clone()), "--locale".to_owned()),
            (None, Some(client), ..) => {
                let place = like.map(Target::place).unwrap_or_else(|| "the server".to_owned());
                let locale = DatabaseLocale::of_server(client)
                    .map_err(|source| asking(&place, DatabaseLocale::QUESTION, source))?;
                (Some(locale), place)
            }
            (None, None, Some(data), Some(installation)) => {
                (data.database_locale(installation)?, data.name().to_owned())
            }
            _ => return Ok(()),
        };
        let words = match &locale {
            Some(locale) => {
                let encoding = locale.encoding.as_ref();
                let encoding = encoding.map_or(String::new(), |name| format!(", encoding {name}"));
                format!(
                    "Databases of pgrig's servers have the collation {}{encoding}, as {source} says.",
                    locale.words()
                )
            }
            None if self.sides.iter().all(|side| side.initdb.iter().any(is_of_locale)) => {
                return Ok(());
            }
            None => format!(
                "{source} does not say which collation production has. Databases of pgrig's servers have C, \
                 where an index finds LIKE 'x%' and texts are sorted by byte; --locale or --like give another."
            ),
        };
        found.given.sentences.push(words);
        // The sentence says that nothing is known.
        let Some(locale) = locale else { return Ok(()) };
        for (side, installation) in self.installations.iter().enumerate() {
            let Some(installation) = installation else { continue };
            let unfit = |why: String| SidesError::Locale {
                side: SIDES[side],
                locale: locale.words(),
                source_words: source.clone(),
                why,
            };
            let options = locale.initdb_options(installation.version().major);
            let options = options.map_err(|error| unfit(error.to_string()))?;
            let options = options.iter().map(|word| InitdbOption::parse(word));
            let options = options.collect::<Result<Vec<_>, _>>().map_err(unfit)?;
            super::initdb::properties(installation, SIDES[side], &options)
                .map_err(|error| unfit(error.to_string()))?;
            found.initdb[side] = options;
        }
        Ok(())
    }

    fn find_settings(
        &self,
        like: Option<&Target>,
        client: Option<&mut Client>,
        found: &mut ProductionSetup,
    ) -> Result<(), Error> {
        let mut settings = Settings::new();
        let mut sources = Vec::new();
        if let (Some(like), Some(client)) = (like, client) {
            let own: Vec<&str> = DEFAULTS.iter().map(|(name, _)| *name).collect();
            let rows = client.query(CHOSEN, &[&own]);
            for row in rows.map_err(|source| asking(&like.place(), CHOSEN, source))? {
                settings.set(row.get::<_, String>(0), row.get::<_, String>(1));
            }
            sources.push(like.place());
        }
        for path in &self.options.configuration {
            if sources.is_empty() {
                settings.extend(DEFAULTS);
            }
            settings.extend(read_configuration(path)?);
            sources.push(path.display().to_string());
        }
        if let (Some(backup), []) = (&self.backup, sources.as_slice()) {
            match backup.settings()? {
                Some(own) => {
                    settings.extend(DEFAULTS);
                    settings.extend(own);
                    sources.push(backup.name().to_owned());
                }
                None => found.given.sentences.push(format!(
                    "{} has no postgresql.conf: --conf gives production's settings.",
                    backup.name()
                )),
            }
        }
        if sources.is_empty() {
            return Ok(());
        }
        found.given.settings_of = sources;
        // A server of the user's is changed by nobody, and the other side is to be as it is.
        let are_both_made = self.installations.iter().all(Option::is_some);
        let kept = self.kept(&settings, are_both_made, &mut found.given.changed);
        for (side, installation) in self.installations.iter().enumerate() {
            let Some(installation) = installation else { continue };
            let own = self.known(SIDES[side], installation, &kept, &mut found.given.changed)?;
            found.settings[side] = own;
        }
        Ok(())
    }

    /// The settings that servers of pgrig's can have on this machine.
    fn kept(
        &self,
        settings: &Settings,
        are_both_made: bool,
        changed: &mut Vec<ChangedSetting>,
    ) -> Settings {
        let memory = Machine::here().memory.total_bytes;
        // The servers of a study have the connections that it sets.
        let own = settings::of_pgrig(self.connections.unwrap_or(0), memory);
        let own =
            |name: &str| own.iter().find(|(one, _)| one == name).map(|(_, value)| value.clone());
        let mut kept = Settings::new();
        for (name, value) in settings.iter() {
            let (here, why) = match name {
                _ if self.options.without.iter().any(|one| one.eq_ignore_ascii_case(name)) => {
                    (None, "--without")
                }
                _ if is_of_the_place(name) => (None, "of its place"),
                "huge_pages" if value == "on" => {
                    (Some("try".to_owned()), "pages may not be reserved here")
                }
                "shared_buffers"
                    if bytes(value).is_none_or(|bytes| bytes > memory / BUFFERS_SHARE) =>
                {
                    (own(name), "the memory of this machine")
                }
                "max_connections" if is_too_few(value, self.connections) => {
                    (own(name), "the clients of the load")
                }
                // A study's servers keep what it says of them.
                "max_wal_size" | "checkpoint_timeout" if are_both_made => {
                    (own(name), "checkpoints happen between segments")
                }
                _ => {
                    kept.set(name, value);
                    continue;
                }
            };
            kept.extend(here.iter().map(|value| (name, value.as_str())));
            let (name, there, why) = (name.to_owned(), value.to_owned(), why.to_owned());
            changed.push(ChangedSetting { name, there, here, why });
        }
        kept
    }

    /// The settings as a version calls them.
    fn known(
        &self,
        side: &'static str,
        installation: &Installation,
        settings: &Settings,
        changed: &mut Vec<ChangedSetting>,
    ) -> Result<Settings, Error> {
        let major = installation.version().major;
        let mut known = Settings::new();
        for (name, value) in settings.iter() {
            let renamed = RENAMED.iter().find_map(|(before, after, since)| match major >= *since {
                true => (*before == name).then_some(*after),
                false => (*after == name).then_some(*before),
            });
            let removed = REMOVED.iter().any(|(one, since)| *one == name && major >= *since);
            let there = value.to_owned();
            match renamed {
                _ if removed => {
                    let why = format!("PostgreSQL {major} no longer has it");
                    changed.push(ChangedSetting { name: name.to_owned(), there, here: None, why });
                }
                Some(now) => {
                    let (why, here) = (format!("{now} in PostgreSQL {major}"), Some(there.clone()));
                    changed.push(ChangedSetting { name: name.to_owned(), there, here, why });
                    known.set(now, value);
                }
                None => known.set(name, value),
            }
        }
        let preloaded = known.value("shared_preload_libraries").unwrap_or("").to_owned();
        for library in preloaded.split(',').map(|name| name.trim().trim_matches('"')) {
            if !library.is_empty() {
                let missing = |source| SidesError::Library { side, source: Box::new(source) };
                installation.require_library(library).map_err(missing)?;
            }
        }
        // One question where all is well.
        if lab::effective(installation, &known, &["port"]).is_err() {
            for (name, value) in known.iter().filter(|(name, _)| !name.contains('.')) {
                let alone = Settings::from_iter([(name, value)]);
                lab::effective(installation, &alone, &["port"]).map_err(|source| {
                    let (name, value) = (name.to_owned(), value.to_owned());
                    SidesError::OfProduction { side, name, value, source: Box::new(source) }
                })?;
            }
        }
        Ok(known)
    }
}

/// Settings that pgrig sets by itself where nothing is known of production, and their defaults since PostgreSQL 13.
const DEFAULTS: [(&str, &str); 4] = [
    ("checkpoint_timeout", "5min"),
    ("max_connections", "100"),
    ("max_wal_size", "1GB"),
    ("shared_buffers", "128MB"),
];

/// Settings that somebody has chosen, for the server or for all sessions of a role or a database, and those of [`DEFAULTS`].
const CHOSEN: &str = "SELECT name, current_setting(name) FROM pg_settings
    WHERE name = ANY ($1) OR (context <> 'internal' AND source IN
        ('configuration file', 'command line', 'environment variable', 'global', 'database', 'user', 'database user'))";

fn asking(place: &str, statement: &str, source: postgres::Error) -> Error {
    lab::Error::Query { server: place.to_owned(), statement: statement.to_owned(), source }.into()
}

fn is_of_locale(option: &InitdbOption) -> bool {
    ["locale", "lc-collate"].iter().any(|part| option.word().contains(part))
}

fn is_of_the_place(name: &str) -> bool {
    OF_THE_PLACE.iter().any(|one| match one.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => *one == name,
    })
}

fn is_too_few(connections: &str, clients: Option<u32>) -> bool {
    // Without a number of clients no limit is too low.
    let needed = clients.map_or(0, |clients| clients + settings::SPARE_CONNECTIONS);
    connections.parse::<u32>().is_ok_and(|connections| connections < needed)
}

/// The bytes of a value of `shared_buffers`: a number of blocks, or with a unit.
fn bytes(value: &str) -> Option<u64> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..end].parse().ok()?;
    let unit = match value[end..].trim() {
        "" => 8 << 10,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_cannot_have_is_changed_and_said() {
        let (options, sides) = (
            ProductionOptions { without: vec!["Jit".to_owned()], ..ProductionOptions::default() },
            [SideOptions::default(), SideOptions::default()],
        );
        let search = ProductionSearch {
            options: &options,
            sides: &sides,
            installations: &[None, None],
            data: None,
            backup: None,
            connections: Some(8),
            control: None,
        };
        let check = |name: &str, value: &str, expected: Option<&str>, why: &str| {
            let mut changed = Vec::new();
            let settings = Settings::from_iter([(name, value)]);
            let kept = search.kept(&settings, true, &mut changed);
            match changed.as_slice() {
                [] => assert_eq!((kept.value(name), ""), (expected, why), "{name}"),
                [one] => {
                    assert_eq!((one.here.as_deref(), one.why.as_str()), (expected, why));
                    assert_eq!((kept.value(name), one.there.as_str()), (expected, value));
                }
                more => panic!("{more:?}"),
            }
        };
        check("work_mem", "64MB", Some("64MB"), "");
        check("port", "5433", None, "of its place");
        check("unix_socket_directories", "/run", None, "of its place");
        check("lc_time", "de_DE.UTF-8", None, "of its place");
        check("jit", "off", None, "--without");
        check("huge_pages", "on", Some("try"), "pages may not be reserved here");
        check("huge_pages", "off", Some("off"), "");
        check("shared_buffers", "64MB", Some("64MB"), "");
        let memory = Machine::here().memory.total_bytes;
        let own = settings::of_pgrig(8, memory)[0].1.clone();
        check("shared_buffers", "99TB", Some(&own), "the memory of this machine");
        check("shared_buffers", "9999999999", Some(&own), "the memory of this machine");
        check("max_connections", "10", Some("100"), "the clients of the load");
        check("max_connections", "500", Some("500"), "");
        check("max_wal_size", "1GB", Some("16GB"), "checkpoints happen between segments");
    }

    #[test]
    fn a_version_has_its_own_names_and_says_what_it_does_not_take() {
        let installation = lab::find::find(None).expect("the tests need an installed PostgreSQL");
        let (options, sides) =
            (ProductionOptions::default(), [SideOptions::default(), SideOptions::default()]);
        let search = ProductionSearch {
            options: &options,
            sides: &sides,
            installations: &[None, None],
            data: None,
            backup: None,
            connections: None,
            control: None,
        };
        let check = |name: &str, value: &str, expected: Result<&[&str], &str>| {
            let mut changed = Vec::new();
            let settings = Settings::from_iter([(name, value)]);
            let known = search.known("A", &installation, &settings, &mut changed);
            match (known, expected) {
                (Ok(known), Ok(names)) => {
                    assert_eq!(known.iter().map(|(name, _)| name).collect::<Vec<_>>(), names);
                    assert_eq!(changed.is_empty(), names == [name], "{name}: {changed:?}");
                }
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{error}");
                    assert!(error.hint().is_some(), "{error}");
                }
                (seen, _) => panic!("{name}: {seen:?}"),
            }
        };
        check("work_mem", "64MB", Ok(&["work_mem"]));
        check("pg_stat_statements.max", "5000", Ok(&["pg_stat_statements.max"]));
        check("operator_precedence_warning", "on", Ok(&[]));
        let parallel = match installation.version().major >= 16 {
            true => ["force_parallel_mode", "debug_parallel_query"],
            false => ["debug_parallel_query", "force_parallel_mode"],
        };
        check(parallel[0], "off", Ok(&parallel[1..]));
        check("no_such", "1", Err("production's setting no_such = 1 does not fit side A"));
        check("work_mem", "much", Err("production's setting work_mem = much does not fit side A"));
        check("shared_preload_libraries", "nowhere", Err("side A: nowhere is not installed"));
    }
}
