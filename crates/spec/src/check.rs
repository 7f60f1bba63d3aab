//! The checks after a trial.

use std::collections::BTreeMap;

use history::IsolationLevel;

use crate::action;
use terms::Settings;

use crate::fields::{self, Fields};
use crate::folder::StudyFolder;
use crate::problem::Problems;
use crate::restore::RestoreCheck;
use crate::same::{self, SameRows};
use crate::sql_check::SqlCheck;
use crate::timeline::sql_text;
use crate::topology::Topology;
use crate::value::{Is, Value};
use crate::whom::SqlTarget;

/// A check after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// The server counts as many transactions as the clients: `count_difference` is 0.
    Counts,
    /// Every acknowledged transaction of the workloads that keep a ledger is there, and nothing
    /// that nobody wrote.
    Ledger {
        /// The server that is read; none for the one that the data were built on.
        node: Option<SqlTarget>,
    },
    /// The history that clients keep shows nothing that this isolation level forbids.
    History {
        /// The level.
        level: IsolationLevel,
    },
    /// Every row of a PL/Proxy cluster is in the bucket of its key's hash, on the node that the
    /// mapping names, and none that was there is missing: `rows_misplaced` and `rows_lost` are 0.
    Placement,
    /// pg_amcheck finds nothing.
    Amcheck {
        /// The server that is looked through; none for the one that the data were built on.
        node: Option<SqlTarget>,
    },
    /// pg_amcheck finds nothing on any server that answers when the check is made.
    AmcheckEverywhere,
    /// pg_checksums finds nothing; the server is shut down for it.
    Checksums {
        /// The server; none for the one that the data were built on.
        node: Option<SqlTarget>,
    },
    /// Base backups and the WAL archive are restored, and what is missing then, or is there too early, is counted. It
    /// comes last.
    Restore(RestoreCheck),
    /// States that a power cut could have left at any moment of the load are made from the log of a
    /// disk, and each is recovered and looked through.
    Explore(StateExploration),
    /// A query is explained, and how long it took and what it read is recorded.
    Explain(ExplainedQuery),
    /// A query of the study's own gives the value that the study expects.
    Sql(SqlCheck),
    /// Two servers have the same rows: `rows_different` is 0.
    SameRows(SameRows),
    /// Two servers have the same owners, grants, replica identities, indexes, constraints and triggers, and no
    /// sequence of the second is behind: `objects_different` and `sequences_behind` are 0.
    SameObjects {
        /// The two servers.
        nodes: [String; 2],
    },
}

/// The object of a check: it runs, and has replayed what it can get, when the check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksAt<'c> {
    /// No running server.
    Nothing,
    /// The rows of a server's tables, none for the one that the data were built on; where they are
    /// a cluster's, every server of it.
    Rows(Option<&'c SqlTarget>),
    /// Every server of a cluster.
    Cluster,
    /// A server; none for the one that the data were built on.
    Server(Option<&'c SqlTarget>),
    /// Two servers.
    Two(&'c [String; 2]),
}

impl Check {
    /// The object of the check.
    pub fn looks_at(&self) -> LooksAt<'_> {
        match self {
            Check::Counts
            | Check::Restore(_)
            | Check::History { .. }
            | Check::Explore(_)
            | Check::AmcheckEverywhere => LooksAt::Nothing,
            Check::Placement => LooksAt::Cluster,
            Check::Ledger { node } => LooksAt::Rows(node.as_ref()),
            Check::Amcheck { node } | Check::Checksums { node } => LooksAt::Server(node.as_ref()),
            Check::Explain(explain) => LooksAt::Server(explain.node.as_ref()),
            Check::Sql(check) => LooksAt::Server(check.on.as_ref()),
            Check::SameRows(SameRows { nodes, .. }) | Check::SameObjects { nodes } => {
                LooksAt::Two(nodes)
            }
        }
    }

    /// The name under which a query's figures stand; none of other checks.
    pub(crate) fn query(&self) -> Option<&str> {
        match self {
            Check::Explain(explain) => Some(&explain.name),
            Check::Sql(check) => Some(&check.name),
            _ => None,
        }
    }

    /// True if a trial can have this metric: figures of a check are there only where it is made.
    pub(crate) fn can_give(checks: &[Check], metric: &str) -> bool {
        let gives = |row: &&Row| row.figures.iter().any(|begin| metric.starts_with(begin));
        ROWS.iter().find(gives).is_none_or(|row| checks.iter().any(row.is))
    }

    /// The program of PostgreSQL's that makes it, on a server that the rig may change and stop.
    pub fn program(&self) -> Option<&'static str> {
        match self {
            Check::Amcheck { .. } | Check::AmcheckEverywhere => Some("pg_amcheck"),
            Check::Checksums { .. } => Some("pg_checksums"),
            Check::Restore(_) => Some("pg_basebackup"),
            Check::Counts
            | Check::Placement
            | Check::Ledger { .. }
            | Check::History { .. }
            | Check::Explore(_)
            | Check::Explain(_)
            | Check::SameRows(_)
            | Check::SameObjects { .. }
            | Check::Sql(_) => None,
        }
    }
}

/// An exploration of the states that a power cut could have left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateExploration {
    /// The server whose disk kept the log; none for the one that the data were built on.
    pub node: Option<String>,
    /// States to look at.
    pub states: u32,
    /// The least number of states without a failure that says anything.
    pub least: u32,
    /// In the recovery of how many of them the power is cut once more.
    pub second_cuts: u32,
    /// A query that is asked in every state; each row of its answer is a complaint.
    pub complaints: Option<String>,
    /// Tables that the load writes beside its ledger, each with a query that compares it with what the ledger's
    /// tables say; each row of its answer is damage.
    pub followed: BTreeMap<String, String>,
}

/// A query that is explained after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExplainedQuery {
    /// The server that runs it; none for the one that the data were built on.
    pub node: Option<SqlTarget>,
    /// The name of its figures.
    pub name: String,
    /// The query.
    pub sql: String,
    /// Settings of the session that runs it.
    pub session: Settings,
}

/// `checks`: `"counts"`, `"ledger"`, `{ amcheck = "standby1" }`, `{ history = "serializable" }`,
/// `{ explain = "SELECT …", as = … }`, `{ sql = "SELECT …", as = …, expect = … }`.
pub(crate) fn checks(fields: &Fields<'_>, topology: &Topology, folder: &StudyFolder) -> Vec<Check> {
    let values = fields.list("checks").iter();
    values.filter_map(|value| check(value, topology, folder, fields.problems)).collect()
}

/// Reads a check from the fields of a table; none is a mistake that has been noted.
type Parse = fn(&Fields<'_>, &Topology, &StudyFolder) -> Option<Check>;

/// A check as a table of rows has it.
pub(crate) struct Row {
    pub(crate) word: &'static str,
    /// The check as study.toml writes it.
    pub(crate) form: &'static str,
    /// A clause of a sentence that explains it.
    pub(crate) says: &'static str,
    /// The check that its name alone stands for.
    plain: Option<Check>,
    /// Reads the check from a table that has its name as a key.
    parse: Option<Parse>,
    /// True for such a check.
    pub(crate) is: fn(&Check) -> bool,
    /// The names of metrics that no trial has without it begin so.
    pub(crate) figures: &'static [&'static str],
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        word: "counts",
        form: "\"counts\"",
        says: "the server counted as many transactions as the clients",
        plain: Some(Check::Counts),
        parse: None,
        is: |check| *check == Check::Counts,
        figures: &["count_difference"],
    },
    Row {
        word: "ledger",
        form: "\"ledger\" or { ledger = NODE }",
        says: "every acknowledged transaction is there, and nothing that nobody wrote",
        plain: Some(Check::Ledger { node: None }),
        parse: Some(|fields, topology, _| {
            Some(Check::Ledger { node: Some(SqlTarget::parse(fields, "ledger", topology)?) })
        }),
        is: |check| matches!(check, Check::Ledger { .. }),
        figures: &["ledger_"],
    },
    Row {
        word: "history",
        form: "{ history = \"serializable\" }",
        says: "what the clients read shows nothing that the level forbids",
        plain: None,
        parse: Some(|fields, _, _| {
            Some(Check::History { level: fields.choice("history", LEVELS)? })
        }),
        is: |check| matches!(check, Check::History { .. }),
        figures: &["history_", "read_"],
    },
    Row {
        word: "amcheck",
        form: "\"amcheck\" or { amcheck = NODE } or { amcheck = \"every server now\" }",
        says: "pg_amcheck finds nothing",
        plain: Some(Check::Amcheck { node: None }),
        parse: Some(|fields, topology, _| match fields.text("amcheck") {
            Some(EVERY_SERVER) => Some(Check::AmcheckEverywhere),
            _ => {
                Some(Check::Amcheck { node: Some(SqlTarget::parse(fields, "amcheck", topology)?) })
            }
        }),
        is: |check| matches!(check, Check::Amcheck { .. } | Check::AmcheckEverywhere),
        figures: &["amcheck_"],
    },
    Row {
        word: "checksums",
        form: "\"checksums\" or { checksums = NODE }",
        says: "pg_checksums finds nothing",
        plain: Some(Check::Checksums { node: None }),
        parse: Some(|fields, topology, _| {
            Some(Check::Checksums { node: Some(SqlTarget::parse(fields, "checksums", topology)?) })
        }),
        is: |check| matches!(check, Check::Checksums { .. }),
        figures: &["checksum_"],
    },
    Row {
        word: "placement",
        form: "\"placement\"",
        says: "every row of a cluster is where the hash of its key says",
        plain: Some(Check::Placement),
        parse: None,
        is: |check| *check == Check::Placement,
        figures: &["rows_misplaced", "rows_lost"],
    },
    Row {
        word: "restore",
        form: "\"restore\" or { restore = NODE } or { restore = NODE, to = [\"time\", \"lsn\", \"name\", \"xid\", \"immediate\", \"latest\"], timeline = \"latest\" }",
        says: "a base backup and the WAL archive are restored and compared with the ledger; with to, to each restore point of the timeline",
        plain: Some(Check::Restore(RestoreCheck::IN_PLACE)),
        parse: Some(|fields, topology, _| {
            RestoreCheck::parse(fields, topology).map(Check::Restore)
        }),
        is: |check| matches!(check, Check::Restore(_)),
        figures: &["restore_"],
    },
    Row {
        word: "explore",
        form: "{ explore = NODE, states = 500, second_cuts = 10, complaints = \"SELECT …\", followed = { TABLE = \"SELECT …\" } }",
        says: "states that a power cut could have left are recovered and looked through",
        plain: None,
        parse: Some(|fields, topology, folder| {
            explore(fields, topology, folder).map(Check::Explore)
        }),
        is: |check| matches!(check, Check::Explore(_)),
        figures: &["explore_"],
    },
    Row {
        word: "explain",
        form: "{ explain = \"SELECT …\", as = \"NAME\", on = NODE }",
        says: "a query is explained with ANALYZE and BUFFERS",
        plain: None,
        parse: Some(|fields, topology, folder| {
            explain(fields, topology, folder).map(Check::Explain)
        }),
        is: |check| matches!(check, Check::Explain(_)),
        figures: &["plan_"],
    },
    Row {
        word: "sql",
        form: "{ sql = \"SELECT …\", as = \"NAME\", expect = \"0\", on = NODE }",
        says: "a query gives the value that the study expects",
        plain: None,
        parse: Some(|fields, topology, folder| {
            SqlCheck::parse(fields, topology, folder).map(Check::Sql)
        }),
        is: |check| matches!(check, Check::Sql(_)),
        figures: &["sql_check_"],
    },
    Row {
        word: "same_rows",
        form: "{ same_rows = [NODE, NODE], tables = [\"stock\"], extra = NODE }",
        says: "two servers have the same rows",
        plain: None,
        parse: Some(|fields, topology, _| SameRows::parse(fields, topology).map(Check::SameRows)),
        is: |check| matches!(check, Check::SameRows(_)),
        figures: &["rows_compared", "rows_compare_s", "rows_different", "rows_extra"],
    },
    Row {
        word: "same_objects",
        form: "{ same_objects = [NODE, NODE] }",
        says: "two servers have the same owners, grants, replica identities, indexes, constraints and triggers, and no sequence of the second is behind",
        plain: None,
        parse: Some(|fields, topology, _| {
            Some(Check::SameObjects { nodes: same::two(fields, "same_objects", topology)? })
        }),
        is: |check| matches!(check, Check::SameObjects { .. }),
        figures: &["objects_", "sequences_behind"],
    },
];

fn check(
    value: &Value,
    topology: &Topology,
    folder: &StudyFolder,
    problems: &Problems,
) -> Option<Check> {
    if let Is::Text(_) = value.is {
        let plain = ROWS.iter().filter_map(|row| Some((row.word, row.plain.as_ref()?)));
        return fields::choice("checks", value, &plain.collect::<Vec<_>>(), problems).cloned();
    }
    let fields = Fields::of("a check", value, problems)?;
    let mut named = ROWS.iter().filter(|row| fields.entry(row.word).is_some());
    let parse = match (named.next(), named.next()) {
        (Some(row), None) => row.parse,
        _ => None,
    };
    let check = match parse {
        Some(parse) => parse(&fields, topology, folder),
        None => {
            let forms = ROWS.iter().filter(|row| row.parse.is_some()).map(|row| row.form);
            let hint = format!("write {}", forms.collect::<Vec<_>>().join(" or "));
            problems.hinted(fields.span(), "one check at a time", hint);
            None
        }
    };
    fields.finish();
    check
}

/// All that answer, for pg_amcheck; no node can have the name.
const EVERY_SERVER: &str = "every server now";

/// `{ explore = "primary", states = 500, second_cuts = 20, least = 100, complaints = "SELECT …",
/// followed = { accounts = "accounts.sql" } }`
fn explore(
    fields: &Fields<'_>,
    topology: &Topology,
    folder: &StudyFolder,
) -> Option<StateExploration> {
    let node = action::server(fields, "explore", topology)?;
    if !node.disk.has_log() {
        let span = fields.value("explore").map_or(fields.span(), |value| &value.span);
        let hint = "give it disk = { cut = \"block\", log = \"256MB\" }";
        fields.problems.hinted(span, format!("the disk of {} keeps no log", node.name), hint);
    }
    fields.required("states");
    let states = fields.integer("states", 1..=STATES_MAX);
    let second_cuts = fields.integer("second_cuts", 0..=states.unwrap_or(STATES_MAX));
    let second_cuts = second_cuts.unwrap_or(0); // Only where a study asks for them.
    let complaints = fields.value("complaints");
    let complaints = complaints.and_then(|value| sql_text(value, folder, fields.problems));
    let least = fields.integer("least", 1..=STATES_MAX).unwrap_or(LEAST_STATES);
    let followed = fields.named("followed").iter().filter_map(|entry| {
        Some((entry.key.clone(), sql_text(&entry.value, folder, fields.problems)?))
    });
    let (node, followed) = (Some(node.name.clone()), followed.collect());
    Some(StateExploration { node, states: states?, least, second_cuts, complaints, followed })
}

/// `{ explain = "SELECT …", as = "sequential", session = { enable_indexscan = "off" } }`
fn explain(
    fields: &Fields<'_>,
    topology: &Topology,
    folder: &StudyFolder,
) -> Option<ExplainedQuery> {
    let sql = fields.required("explain");
    let sql = sql.and_then(|value| sql_text(value, folder, fields.problems));
    fields.required("as");
    let name = fields.text("as").map(str::to_owned);
    let session = fields.settings("session");
    let node = match fields.value("on") {
        Some(_) => Some(SqlTarget::parse(fields, "on", topology)?),
        None => None,
    };
    Some(ExplainedQuery { node, name: name?, sql: sql?, session })
}

/// Without a failure among so many states, a share of failing ones above 3 % is ruled out at 95 % (Hanley
/// and Lippman-Hand, 1983).
const LEAST_STATES: u32 = 100;

/// More than a week of looking at them.
const STATES_MAX: u32 = 1_000_000;

/// The levels at which a history is judged.
const LEVELS: &[(&str, IsolationLevel)] = &[
    ("read committed", IsolationLevel::ReadCommitted),
    ("repeatable read", IsolationLevel::RepeatableRead),
    ("serializable", IsolationLevel::Serializable),
    ("strict serializable", IsolationLevel::StrictSerializable),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_checks_are_metrics() {
        for begin in ROWS.iter().flat_map(|row| row.figures) {
            let mut known = crate::catalogue::catalogue();
            assert!(known.any(|metric| metric.name.starts_with(begin)), "{begin}");
        }
    }
}
