//! What happens during a trial besides load: steps before it, actions in it, checks after it.

use std::ops::Range;

use history::Level;

use crate::action::{self, Action, TopologyState};
use crate::data::{Reset, script_file};
use crate::duration;
use crate::fields::{self, Fields, Settings};
use crate::folder::Folder;
use crate::problem::Problems;
use crate::topology::Topology;
use crate::value::{Is, Value};

/// SQL that runs on a node before the clients come, outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node it runs on.
    pub node: String,
    /// The command, or the script.
    pub sql: String,
}

/// An action and its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Earliest moment, in milliseconds since the window opened.
    pub earliest_ms: u64,
    /// Latest moment; equal to the earliest unless it is drawn at random.
    pub latest_ms: u64,
    /// What is done.
    pub action: Action,
}

/// A check after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// The server counts as many transactions as the clients: `count_difference` is 0.
    Counts,
    /// Every acknowledged transaction of the workloads that keep a ledger is there, and nothing
    /// that nobody wrote.
    Ledger {
        /// The server that is read; none for the one that the data were built on.
        node: Option<String>,
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
        node: Option<String>,
    },
    /// pg_checksums finds nothing; the server is shut down for it.
    Checksums {
        /// The server; none for the one that the data were built on.
        node: Option<String>,
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
}

/// What a check looks at: it runs, and has replayed what it can get, when the check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksAt<'c> {
    /// No running server.
    Nothing,
    /// The rows of a server's tables, none for the one that the data were built on; where they are
    /// a cluster's, every server of it.
    Rows(Option<&'c str>),
    /// Every server of a cluster.
    Cluster,
    /// A server; none for the one that the data were built on.
    Server(Option<&'c str>),
}

impl Check {
    /// What it looks at.
    #[must_use]
    pub fn looks_at(&self) -> LooksAt<'_> {
        match self {
            Check::Counts | Check::Restore { .. } | Check::History { .. } | Check::Explore(_) => {
                LooksAt::Nothing
            }
            Check::Placement => LooksAt::Cluster,
            Check::Ledger { node } => LooksAt::Rows(node.as_deref()),
            Check::Amcheck { node } | Check::Checksums { node } => LooksAt::Server(node.as_deref()),
            Check::Explain(explain) => LooksAt::Server(explain.node.as_deref()),
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
            | Check::Explain(_) => None,
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
}

/// A query that is explained after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Explain {
    /// The server that runs it; none for the one that the data were built on.
    pub node: Option<String>,
    /// What its figures are called.
    pub name: String,
    /// The query.
    pub sql: String,
    /// Settings of the session that runs it.
    pub session: Settings,
}

/// `before`: commands, file names ending in `.sql`, or `{ on = NODE, sql = … }`.
pub(crate) fn steps(
    fields: &Fields<'_>,
    topology: &Topology,
    first_node: &str,
    folder: &Folder,
) -> Vec<Step> {
    let problems = fields.problems;
    let values = fields.list("before").iter();
    let steps = values.filter_map(|value| match &value.is {
        Is::Text(_) => {
            let sql = sql_text(value, folder, problems)?;
            Some(Step { node: first_node.to_owned(), sql })
        }
        _ => {
            let fields = Fields::of("a step", value, problems)?;
            let node = action::server(&fields, "on", topology);
            let node = node.map_or(first_node, |node| &node.name).to_owned();
            let sql = fields.required("sql");
            let sql = sql.and_then(|sql| sql_text(sql, folder, problems));
            fields.finish();
            Some(Step { node, sql: sql? })
        }
    });
    steps.collect()
}

/// `timeline`: `{ at = "20s", kill = "standby1" }`.
pub(crate) fn timeline(
    fields: &Fields<'_>,
    topology: &Topology,
    reset: Reset,
    window_ms: u64,
    folder: &Folder,
) -> Vec<Timed> {
    let problems = fields.problems;
    let values = fields.list("timeline").iter();
    let timed: Vec<(&Range<usize>, Timed)> = values
        .filter_map(|value| {
            Some((&value.span, timed(value, topology, window_ms, folder, problems)?))
        })
        .collect();
    let mut in_order: Vec<&(&Range<usize>, Timed)> = timed.iter().collect();
    in_order.sort_by_key(|(_, timed)| (timed.earliest_ms, timed.latest_ms));
    let mut course = TopologyState::default();
    for (span, timed) in in_order {
        if let Err(why) = course.follow(&timed.action, topology) {
            problems.add(span, format!("{}: {why}", timed.action.verb()));
        }
        if let (Action::Promote { node }, Reset::Keep) = (&timed.action, reset) {
            let message = format!("promote: the next trial would find no standby {node}");
            problems.hinted(span, message, "data.reset = \"clone\" begins each trial anew");
        }
    }
    timed.into_iter().map(|(_, timed)| timed).collect()
}

/// `checks`: `"counts"`, `"ledger"`, `{ amcheck = "standby1" }`, `{ history = "serializable" }`,
/// `{ explore = "primary", states = 500, second_cuts = 20 }`
fn explore(fields: &Fields<'_>, topology: &Topology) -> Option<Explore> {
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
    Some(Explore { node: Some(node.name.clone()), states: states?, second_cuts })
}

/// `{ explore = "primary", states = … }`, `{ explain = "SELECT …", as = … }`.
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
        let check = explore(&fields, topology);
        fields.finish();
        return check.map(Check::Explore);
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
            let node = action::server(&fields, key, topology);
            node.map(|node| word.of(Some(node.name.clone())))
        }
        _ => {
            let named = CHECKS.iter().filter(|(_, word)| word.has_a_node());
            let named: Vec<String> =
                named.map(|(key, _)| format!("{{ {key} = \"NODE\" }}")).collect();
            let hint =
                format!("write {} or {{ explain = \"QUERY\", as = \"NAME\" }}", named.join(" or "));
            problems.hinted(fields.span(), "one check at a time", hint);
            None
        }
    };
    fields.finish();
    check
}

/// `{ explain = "SELECT …", as = "sequential", session = { enable_indexscan = "off" } }`
fn explain(fields: &Fields<'_>, topology: &Topology, folder: &Folder) -> Option<Explain> {
    let sql = fields.required("explain");
    let sql = sql.and_then(|value| sql_text(value, folder, fields.problems));
    fields.required("as");
    let name = fields.text("as").map(str::to_owned);
    let session = fields.settings("session");
    let node = match fields.value("on") {
        Some(_) => Some(action::server(fields, "on", topology)?.name.clone()),
        None => None,
    };
    Some(Explain { node, name: name?, sql: sql?, session })
}

fn timed(
    value: &Value,
    topology: &Topology,
    window_ms: u64,
    folder: &Folder,
    problems: &Problems,
) -> Option<Timed> {
    let fields = Fields::of("an action", value, problems)?;
    let at = fields.required("at").and_then(|at| moment(at, window_ms, problems));
    let action = Action::parse(&fields, topology, folder);
    fields.finish();
    let (earliest_ms, latest_ms) = at?;
    Some(Timed { earliest_ms, latest_ms, action: action? })
}

/// `20s`, or `random(5s,20s)`.
fn moment(value: &Value, window_ms: u64, problems: &Problems) -> Option<(u64, u64)> {
    let text = fields::text("at", value, problems)?;
    let inner = text.trim().strip_prefix("random(").and_then(|rest| rest.strip_suffix(')'));
    let (low, high) = match inner {
        Some(inner) => inner.split_once(',').unwrap_or((inner, "")),
        None => (text, text),
    };
    let moment = duration::parse_ms(low).and_then(|low| Ok((low, duration::parse_ms(high)?)));
    match moment {
        Err(why) => {
            let hint = "write at = \"20s\" or at = \"random(5s,20s)\", counted from the window's \
                        opening";
            problems.hinted(&value.span, format!("at: {why}"), hint);
            None
        }
        Ok((low, high)) if low > high => {
            problems.add(&value.span, "at: the earliest moment is later than the latest");
            None
        }
        Ok((_, high)) if high >= window_ms => {
            let window_s = window_ms as f64 / 1e3;
            let message = format!("at: the window closes after {window_s} s");
            let hint = "lengthen the window or move the action; every profile may have its own: \
                        { smoke = \"300ms\", quick = \"5s\" }";
            problems.hinted(&value.span, message, hint);
            None
        }
        Ok(moment) => Some(moment),
    }
}

/// SQL itself, or the text of a `.sql` file of the folder.
pub(crate) fn sql_text(value: &Value, folder: &Folder, problems: &Problems) -> Option<String> {
    let text = fields::text("sql", value, problems)?;
    if text.ends_with(".sql") && !text.contains(char::is_whitespace) {
        return script_file(value, folder, problems).map(|script| script.text);
    }
    Some(text.to_owned())
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
    /// Whether it can be asked of a server by its name.
    fn has_a_node(self) -> bool {
        !matches!(self, Word::Counts | Word::Placement)
    }

    fn of(self, node: Option<String>) -> Check {
        match self {
            Word::Counts => Check::Counts,
            Word::Ledger => Check::Ledger { node },
            Word::Amcheck => Check::Amcheck { node },
            Word::Checksums => Check::Checksums { node },
            Word::Placement => Check::Placement,
            Word::Restore => Check::Restore { node },
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
