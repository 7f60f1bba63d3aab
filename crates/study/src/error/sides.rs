//! Errors of the two sides of a comparison.

use crate::fit::misfit::PointMisfit;

/// Why two sides cannot be compared.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SidesError {
    #[error("reading the address of side {side}: {source}")]
    Conninfo {
        side: &'static str,
        #[source]
        source: wire::conninfo::ConninfoError,
    },
    #[error("reading the address of --like: {source}")]
    LikeAddress {
        #[source]
        source: wire::conninfo::ConninfoError,
    },
    #[error("side {side} cannot have the collation {locale}, as {source_words} says: {why}")]
    Locale {
        side: &'static str,
        locale: String,
        /// The option or file that says it.
        source_words: String,
        why: String,
    },
    #[error("production preloads a library that cannot be loaded by side {side}: {source}")]
    Library { side: &'static str, source: Box<lab::Error> },
    #[error("production's setting {name} = {value} does not fit side {side}: {source}")]
    OfProduction { side: &'static str, name: String, value: String, source: Box<lab::Error> },
    #[error("--b-upgrade={mode} upgrades A's data, of PostgreSQL {}, to a later major version, and B is {}", .versions[0], .versions[1])]
    NoUpgrade { mode: &'static str, versions: [String; 2] },
    #[error("setting {name} of side {side} has no effect: it is {value} on both sides")]
    SameSetting {
        side: &'static str,
        name: String,
        /// The value on both sides, in the server's form.
        value: String,
    },
    #[error(
        "setting {name} of side {side} has no effect: {value} is the default of its PostgreSQL {version}"
    )]
    DefaultSetting {
        side: &'static str,
        name: String,
        /// The value, in the server's form.
        value: String,
        version: String,
    },
    #[error("setting {name} of side {side} is decided by initdb, which makes the data directory")]
    OfInitdb {
        side: &'static str,
        name: String,
        /// The option of initdb that decides it.
        option: &'static str,
    },
    #[error(
        "the options of initdb have no effect: initdb makes the same data directory for A and B"
    )]
    SameInitdb,
    #[error("filling side {side}: {source}")]
    Data {
        side: &'static str,
        #[source]
        source: Box<site::DataError>,
    },
    #[error("getting the servers of side {side} ready: {why}")]
    Unready { side: &'static str, why: String },
    /// Both addresses lead to the same database, in which both sides would make their data.
    #[error("A and B are the same database of the same server")]
    SameDatabase,
    #[error(
        "two servers need about {} MiB of {what}, and {} MiB are free", .needs >> 20, .has >> 20
    )]
    TooLittle { what: &'static str, needs: u64, has: u64 },
    #[error("the servers cannot start: they need {}, and there are {}", .0.needs, .0.has)]
    HugePages(Box<PointMisfit>),
    #[error("the sides would differ by more than was asked: a comparison {0}")]
    UnevenPages(String),
    #[error("option {option} does not fit a comparison: {why}")]
    Option { option: String, why: &'static str },
    #[error("both sides are the same: nothing but their names would differ")]
    SameSides,
    #[error(
        "--self compares a server with a copy of itself, but side {side} is given {option} of its own"
    )]
    NotSelf { side: &'static str, option: &'static str },
}

impl SidesError {
    /// Says what to do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            SidesError::Conninfo { source, .. } => return source.hint().map(str::to_owned),
            SidesError::LikeAddress { source } => return source.hint().map(str::to_owned),
            SidesError::NoUpgrade { .. } => {
                "name the programs of the old version and of the new one: --a-bin DIR, --b-bin DIR"
            }
            SidesError::Locale { .. } => {
                "install that locale on this machine (locale-gen), or give another one with --locale; what then \
                 depends on the order of texts is not production's"
            }
            SidesError::Library { source, .. } => {
                let install = source.hint().map_or(String::new(), |hint| format!("{hint}; or "));
                return Some(format!("{install}leave it out: --without shared_preload_libraries"));
            }
            SidesError::OfProduction { name, .. } => {
                return Some(format!(
                    "give it another value for this side (--a-set, --b-set) and leave it out of production's, or only \
                     that: --without {name}"
                ));
            }
            SidesError::Data { source, .. } => return source.hint(),
            SidesError::SameSetting { .. } | SidesError::DefaultSetting { .. } => {
                "give the sides different values, or leave the setting out"
            }
            SidesError::OfInitdb { side, option, .. } => {
                return Some(format!("--{}-initdb={option}", side.to_lowercase()));
            }
            SidesError::SameInitdb => {
                "give the sides different options, or leave them out; what initdb does by itself \
                 depends on the version: from 18 on it turns page checksums on"
            }
            SidesError::SameDatabase => {
                "give two databases, or compare on the tables that are there (--no-init), \
                 which may be reached in two ways"
            }
            SidesError::HugePages(misfit) => return misfit.hint.clone(),
            SidesError::UnevenPages(_) => {
                "reserve as many, or give both sides none (--set huge_pages=off)"
            }
            SidesError::TooLittle { what: "memory", .. } => {
                "use smaller buffers (--set shared_buffers=256MB) or fewer clients (-c)"
            }
            SidesError::TooLittle { .. } => {
                "use a smaller scale (-s), or put the servers on another disk (TMPDIR)"
            }
            SidesError::SameSides => {
                "give a side something of its own (--b-bin, --b-set, --b-initdb, --b-sql, \
                 --b-conninfo), or measure what identical servers differ by with --self"
            }
            SidesError::NotSelf { .. } => "leave out --self, or the option",
            SidesError::Option { .. } | SidesError::Unready { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
