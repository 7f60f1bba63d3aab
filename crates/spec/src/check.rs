//! The checks after a trial.

use history::Level;

use crate::action;
use crate::fields::{self, Fields, Settings};
use crate::folder::Folder;
use crate::problem::Problems;
use crate::sql_check::SqlCheck;
use crate::timeline::sql_text;
use crate::topology::Topology;
use crate::value::{Is, Value};
use crate::whom::Whom;

/// A check after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// The server counts as many transactions as the clients: `count_difference` is 0.
    Counts,
    /// Every acknowledged transaction of the workloads that keep a ledger is there, and nothing
    /// that nobody wrote.
    Ledger {
        /// The server that is read; none for the one that the data were built on.
        node: Option<Whom>,
    },
    /// The history that clients keep shows nothing that this isolation level forbids.
    History {
        /// The level.
        level: Level,
    },
    /// Every row of a PL/Proxy cluster is in the bucket of its key's hash, on the node that the
    /// mapping names, and none that was there is missing: `rows_misplaced` and `rows_lost` are 0.
    Placement,
    /// pg_amcheck finds nothing.
    Amcheck {
        /// The server that is looked through; none for the one that the data were built on.
        node: Option<Whom>,
    },
    /// pg_checksums finds nothing; the server is shut down for it.
    Checksums {
        /// The server; none for the one that the data were built on.
        node: Option<Whom>,
    },
    /// A base backup, taken before the clients came, and the WAL archive are restored, and what is
    /// missing then is counted. It comes last.
    Restore {
        /// The server; none for the one that the data were built on.
        node: Option<String>,
    },
    /// States that a power cut could have left at any moment of the load are made from the log of a
    /// disk, and each is recovered and looked through.
    Explore(Explore),
    /// A query is explained, and how long it took and what it read is recorded.
    Explain(Explain),
    /// A query of the study's own gives the value that the study expects.
    Sql(SqlCheck),
}

/// The object of a check: it runs, and has replayed what it can get, when the check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksAt<'c> {
    /// No running server.
    Nothing,
    /// The rows of a server's tables, none for the one that the data were built on; where they are
    /// a cluster's, every server of it.
    Rows(Option<&'c Whom>),
    /// Every server of a cluster.
    Cluster,
    /// A server; none for the one that the data were built on.
    Server(Option<&'c Whom>),
}

impl Check {
    /// The object of the check.
    #[must_use]
    pub fn looks_at(&self) -> LooksAt<'_> {
        match self {
            Check::Counts | Check::Restore { .. } | Check::History { .. } | Check::Explore(_) => {
                LooksAt::Nothing
            }
            Check::Placement => LooksAt::Cluster,
            Check::Ledger { node } => LooksAt::Rows(node.as_ref()),
            Check::Amcheck { node } | Check::Checksums { node } => LooksAt::Server(node.as_ref()),
            Check::Explain(explain) => LooksAt::Server(explain.node.as_ref()),
            Check::Sql(check) => LooksAt::Server(check.on.as_ref()),
        }
    }

    /// The program of PostgreSQL's that makes it, on a server that the rig may change and stop.
    #[must_use]
    pub fn program(&self) -> Option<&'static str> {
        match self {
            Check::Amcheck { .. } => Some("pg_amcheck"),
            Check::Checksums { .. } => Some("pg_checksums"),
            Check::Restore { .. } => Some("pg_basebackup"),
            Check::Counts
            | Check::Placement
            | Check::Ledger { .. }
            | Check::History { .. }
            | Check::Explore(_)
            | Check::Explain(_)
            | Check::Sql(_) => None,
        }
    }
}

/// An exploration of the states that a power cut could have left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Explore {
    /// The server whose disk kept the log; none for the one that the data were built on.
    pub node: Option<String>,
    /// States to look at.
    pub states: u32,
    /// Of them, those in whose recovery the power is cut once more.
    pub second_cuts: u32,
    /// A query that is asked in every state; each row of its answer is a complaint.
    pub complaints: Option<String>,
}

/// A query that is explained after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Explain {
    /// The server that runs it; none for the one that the data were built on.
    pub node: Option<Whom>,
    /// The name of its figures.
    pub name: String,
    /// The query.
    pub sql: String,
    /// Settings of the session that runs it.
    pub session: Settings,
}

/// `checks`: `"counts"`, `"ledger"`, `{ amcheck = "standby1" }`, `{ history = "serializable" }`,
/// `{ explain = "SELECT …", as = … }`, `{ sql = "SELECT …", as = …, expect = … }`.
pub(crate) fn checks(fields: &Fields<'_>, topology: &Topology, folder: &Folder) -> Vec<Check> {
    let values = fields.list("checks").iter();
    values.filter_map(|value| check(value, topology, folder, fields.problems)).collect()
}

fn check(
    value: &Value,
    topology: &Topology,
    folder: &Folder,
    problems: &Problems,
) -> Option<Check> {
    if let Is::Text(_) = value.is {
        let word = fields::choice("checks", value, CHECKS, problems)?;
        return Some(word.of(None));
    }
    let fields = Fields::of("a check", value, problems)?;
    if fields.entry("explain").is_some() {
        let check = explain(&fields, topology, folder);
        fields.finish();
        return check.map(Check::Explain);
    }
    if fields.entry("explore").is_some() {
        let check = explore(&fields, topology, folder);
        fields.finish();
        return check.map(Check::Explore);
    }
    if fields.entry("sql").is_some() {
        let check = SqlCheck::parse(&fields, topology, folder);
        fields.finish();
        return check.map(Check::Sql);
    }
    if let Some(value) = fields.value("history") {
        let level = fields::choice("history", value, LEVELS, problems);
        fields.finish();
        return level.map(|level| Check::History { level });
    }
    let of_a_node: Vec<(&'static str, Word)> =
        CHECKS.iter().copied().filter(|(key, _)| fields.entry(key).is_some()).collect();
    let check = match of_a_node[..] {
        [(key, word)] if word.has_a_node() => {
            let whom = match word {
                // Its backup and archive are those of a server that is known beforehand.
                Word::Restore => {
                    action::server(&fields, key, topology).map(|node| Whom::Node(node.name.clone()))
                }
                _ => Whom::parse(&fields, key, topology),
            };
            whom.map(|whom| word.of(Some(whom)))
        }
        _ => {
            let named = CHECKS.iter().filter(|(_, word)| word.has_a_node());
            let named: Vec<String> =
                named.map(|(key, _)| format!("{{ {key} = \"NODE\" }}")).collect();
            let named = named.join(" or ");
            let hint = format!(
                "write {named} or {{ explain = \"QUERY\", as = \"NAME\" }} or {{ sql = \"QUERY\", as = \
                 \"NAME\", expect = \"VALUE\" }}"
            );
            problems.hinted(fields.span(), "one check at a time", hint);
            None
        }
    };
    fields.finish();
    check
}

/// `{ explore = "primary", states = 500, second_cuts = 20, complaints = "SELECT …" }`
fn explore(fields: &Fields<'_>, topology: &Topology, folder: &Folder) -> Option<Explore> {
    let node = action::server(fields, "explore", topology)?;
    if !node.disk.has_log() {
        let span = fields.value("explore").map_or(fields.span(), |value| &value.span);
        let hint = "give it disk = { cut = \"block\", log = \"256MB\" }";
        fields.problems.hinted(span, format!("the disk of {} keeps no log", node.name), hint);
    }
    fields.required("states");
    let states = fields.integer("states", 1..=STATES_MAX);
    let second_cuts = fields.integer("second_cuts", 0..=states.unwrap_or(STATES_MAX));
    let second_cuts = second_cuts.unwrap_or(0);
    let complaints = fields.value("complaints");
    let complaints = complaints.and_then(|value| sql_text(value, folder, fields.problems));
    Some(Explore { node: Some(node.name.clone()), states: states?, second_cuts, complaints })
}

/// `{ explain = "SELECT …", as = "sequential", session = { enable_indexscan = "off" } }`
fn explain(fields: &Fields<'_>, topology: &Topology, folder: &Folder) -> Option<Explain> {
    let sql = fields.required("explain");
    let sql = sql.and_then(|value| sql_text(value, folder, fields.problems));
    fields.required("as");
    let name = fields.text("as").map(str::to_owned);
    let session = fields.settings("session");
    let node = match fields.value("on") {
        Some(_) => Some(Whom::parse(fields, "on", topology)?),
        None => None,
    };
    Some(Explain { node, name: name?, sql: sql?, session })
}

/// More than a week of looking at them.
const STATES_MAX: u32 = 1_000_000;

/// The names of checks.
#[derive(Clone, Copy)]
enum Word {
    Counts,
    Ledger,
    Amcheck,
    Checksums,
    Placement,
    Restore,
}

impl Word {
    /// True if it can be asked of a server by its name.
    fn has_a_node(self) -> bool {
        !matches!(self, Word::Counts | Word::Placement)
    }

    fn of(self, node: Option<Whom>) -> Check {
        match self {
            Word::Counts => Check::Counts,
            Word::Ledger => Check::Ledger { node },
            Word::Amcheck => Check::Amcheck { node },
            Word::Checksums => Check::Checksums { node },
            Word::Placement => Check::Placement,
            Word::Restore => {
                Check::Restore { node: node.and_then(|node| node.name().map(str::to_owned)) }
            }
        }
    }
}

/// The levels at which a history is judged.
const LEVELS: &[(&str, Level)] = &[
    ("read committed", Level::ReadCommitted),
    ("repeatable read", Level::RepeatableRead),
    ("serializable", Level::Serializable),
    ("strict serializable", Level::StrictSerializable),
];

const CHECKS: &[(&str, Word)] = &[
    ("counts", Word::Counts),
    ("ledger", Word::Ledger),
    ("amcheck", Word::Amcheck),
    ("checksums", Word::Checksums),
    ("placement", Word::Placement),
    ("restore", Word::Restore),
];

/// The checks that need no fields.
#[cfg(test)]
pub(crate) fn simple() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, _)| *name)
}
