//! Workloads of clients: their scripts, their number, their protocol, their pace, and their node.

use script::{CommandKind, Protocol, RowSource, ScriptSyntax, VariableNames};
use terms::{Pace, RetryPolicy};

use crate::data::{ScriptText, script_file};
use terms::Settings;

use crate::fields::{Fields, VariableValues};
use crate::folder::StudyFolder;
use crate::patience::{self, CapacitySearch};
use crate::problem::Problems;
use crate::value::{Is, Table, Value};

/// One group of clients that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The name, unique in its scenario.
    pub name: String,
    /// The name in the report; empty for its name in the study.
    pub says: String,
    /// The scripts, one of which is drawn for each transaction.
    pub scripts: Vec<ScriptShare>,
    /// Clients over all generator processes.
    pub clients: u32,
    /// Protocol by which statements cross the wire.
    pub protocol: Protocol,
    /// The protocol in its place behind a pooler that keeps no prepared statements; none leaves such a point out.
    pub fallback: Option<Protocol>,
    /// Why its protocol is the one to fall back to, where that is known of the pooler that it goes to.
    pub fell_back: Option<String>,
    /// Time at which a transaction starts.
    pub pace: Pace,
    /// The rate of its pace is a multiple of its capacity, until that has been searched.
    pub is_rate_of_capacity: bool,
    /// The search of its capacity.
    pub capacity: Option<CapacitySearch>,
    /// Time since it was due within which a transaction must have ended to be good.
    pub deadline_ms: Option<u64>,
    /// Retries by the clients' own rule, in place of `tries_max`; of one without a pause, only when it is given up.
    pub retry: Option<RetryPolicy>,
    /// Moments, in milliseconds since the window opened, at which all its clients drop their connections and connect anew.
    pub storms_ms: Vec<u64>,
    /// The node that it goes to; of several, the first in this order that takes writes.
    pub to: Vec<String>,
    /// The role as which its clients log in; none for the server's superuser.
    pub user: Option<String>,
    /// The database to which its clients connect; none for the one with the data.
    pub database: Option<String>,
    /// Settings of its sessions.
    pub session: Settings,
    /// VariableValues set before the first transaction, as after pgbench's `-D`.
    pub variables: VariableValues,
    /// Tries of a transaction that fails with 40001 or 40P01; 0 for no limit, 1 for no retry.
    pub tries_max: u32,
    /// True if its scripts may fail: else the first statement that fails ends the run.
    pub expects_failures: bool,
    /// Transactions slower than this are counted as late; in open loop, those that are already
    /// later before they start are skipped.
    pub latency_limit_ms: Option<f64>,
    /// Tables in which its scripts write the acts of each client, if it keeps a ledger.
    pub ledger: Option<LedgerLayout>,
    /// True if its clients keep a history, as the notes in its scripts say.
    pub keeps_history: bool,
}

/// The tables of a ledger: before each transaction the script is given `:ledger_client`,
/// `:ledger_seq` and `:ledger_chain`, which it writes into one or both of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLayout {
    /// The table that gets a row from each transaction.
    pub insert: Option<String>,
    /// The table in which each client changes its own row.
    pub update: Option<String>,
    /// The insert table of others, of which its scripts say what they have read.
    pub read: Option<String>,
}

/// A script and its share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptShare {
    /// Source of its text.
    pub source: ScriptSource,
    /// The share is its weight over the sum of weights.
    pub weight: u32,
    /// Form of pgbench's language in which it is written.
    pub syntax: ScriptSyntax,
    /// The files of the study's folder from which it draws rows.
    pub rows: Vec<(RowSource, ScriptText)>,
}

/// Source of a script's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptSource {
    /// A file of the study's folder.
    File(ScriptText),
    /// One of pgbench's own, or of the rig's.
    Builtin(BuiltinWorkload),
}

/// pgbench's own scripts, and those that make a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinWorkload {
    /// Something like TPC-B.
    TpcbLike,
    /// The same without tellers and branches.
    SimpleUpdate,
    /// One account by its key.
    SelectOnly,
    /// Appends to lists and reads them.
    ListAppend,
    /// Reads lists.
    ListRead,
    /// Reads and writes registers.
    RwRegister,
    /// Transfers between accounts, and reads of all of them.
    Bank,
}

impl BuiltinWorkload {
    /// The name; of pgbench's, as after its `-b`.
    pub fn name(self) -> &'static str {
        match self {
            BuiltinWorkload::TpcbLike => "tpcb-like",
            BuiltinWorkload::SimpleUpdate => "simple-update",
            BuiltinWorkload::SelectOnly => "select-only",
            BuiltinWorkload::ListAppend => "list-append",
            BuiltinWorkload::ListRead => "list-read",
            BuiltinWorkload::RwRegister => "rw-register",
            BuiltinWorkload::Bank => "bank",
        }
    }

    /// The text of one that makes a history.
    fn of_history(self) -> Option<&'static str> {
        match self {
            BuiltinWorkload::TpcbLike
            | BuiltinWorkload::SimpleUpdate
            | BuiltinWorkload::SelectOnly => None,
            BuiltinWorkload::ListAppend => Some(include_str!("histories/list-append.sql")),
            BuiltinWorkload::ListRead => Some(include_str!("histories/list-read.sql")),
            BuiltinWorkload::RwRegister => Some(include_str!("histories/rw-register.sql")),
            BuiltinWorkload::Bank => Some(include_str!("histories/bank.sql")),
        }
    }
}

impl ScriptShare {
    /// The text, and its name in messages: of a file its own, of a built-in script pgbench's
    /// description.
    pub fn text(&self) -> ScriptText {
        match &self.source {
            ScriptSource::File(file) => file.clone(),
            ScriptSource::Builtin(builtin) => {
                if let Some(text) = builtin.of_history() {
                    return ScriptText { name: builtin.name().to_owned(), text: text.to_owned() };
                }
                let found = script::BuiltinScript::find(builtin.name());
                let found = found.expect("pgbench's scripts are those of `script`");
                ScriptText { name: found.description.to_owned(), text: found.text.to_owned() }
            }
        }
    }
}

impl Workload {
    /// Has it fall back to its other protocol because its clients cannot have prepared statements here. Nothing changes
    /// where it uses none, or says no other protocol.
    pub fn fall_back(&mut self, why: &str) {
        if let Some(other) = self.fallback
            && self.protocol == Protocol::Prepared
        {
            self.protocol = other;
            self.fell_back = Some(why.to_owned());
        }
    }

    /// The fields of a workload that an axis or a `run` entry may set by their name.
    pub(crate) const FIELDS: [&str; 23] = [
        "says",
        "script",
        "builtin",
        "clients",
        "protocol",
        "fallback",
        "rate",
        "pacing",
        "to",
        "user",
        "database",
        "session",
        "variables",
        "max_tries",
        "expect_failures",
        "latency_limit",
        "capacity",
        "deadline",
        "retry",
        "give_up",
        "storms",
        "ledger",
        "history",
    ];

    pub(crate) fn parse(
        name: &str,
        table: &Table,
        span: &std::ops::Range<usize>,
        first_node: &str,
        folder: &StudyFolder,
        problems: &Problems,
    ) -> Workload {
        let fields = Fields::new("a workload", table, span.clone(), problems);
        let (pace, is_rate_of_capacity) = pace(&fields);
        let workload = Workload {
            name: name.to_owned(),
            // Without words it is shown by its name.
            says: fields.text("says").unwrap_or_default().to_owned(),
            scripts: scripts(&fields, folder),
            clients: fields.integer("clients", 1..=CLIENTS_MAX).unwrap_or(1),
            protocol: fields.choice("protocol", PROTOCOLS).unwrap_or(Protocol::Prepared),
            fallback: fallback(&fields),
            fell_back: None,
            pace,
            is_rate_of_capacity,
            capacity: fields.value("capacity").and_then(|it| patience::capacity(it, problems)),
            deadline_ms: fields.duration_ms("deadline"),
            retry: patience::retry(&fields),
            storms_ms: patience::storms(&fields),
            to: to(&fields, first_node),
            user: login(&fields, "user"),
            database: login(&fields, "database"),
            session: fields.settings("session"),
            variables: fields.variables("variables"),
            tries_max: fields.integer("max_tries", 0..=u32::MAX).unwrap_or(1),
            expects_failures: fields.boolean("expect_failures").unwrap_or(false),
            latency_limit_ms: fields.duration_ms("latency_limit").map(|ms| ms as f64),
            ledger: fields.value("ledger").and_then(|value| ledger(value, problems)),
            keeps_history: fields.boolean("history").unwrap_or(false),
        };
        patience::check(&workload, &fields);
        fields.finish();
        workload
    }
}

/// Twice as many as PostgreSQL can have connections.
const CLIENTS_MAX: u32 = 1 << 19;

fn to(fields: &Fields<'_>, first_node: &str) -> Vec<String> {
    match fields.value("to") {
        None => vec![first_node.to_owned()],
        Some(Value { span, is: Is::List(list) }) if list.is_empty() => {
            fields.problems.add(span, "to names no node");
            Vec::new()
        }
        Some(_) => fields.texts("to").into_iter().map(|(name, _)| name).collect(),
    }
}

/// The protocol to fall back to, which only prepared statements may need.
fn fallback(fields: &Fields<'_>) -> Option<Protocol> {
    let protocol = fields.choice("fallback", FALLBACKS)?;
    let is_prepared = fields.text("protocol").is_none_or(|word| word == "prepared");
    if !is_prepared {
        let message = "fallback is for protocol = \"prepared\": every pooler can do the others";
        fields.problems.add(fields.span(), message);
    }
    Some(protocol)
}

/// The name of a role or a database.
fn login(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    let name = fields.text(key)?;
    if name.is_empty() {
        fields.problems.add(fields.span(), format!("{key} is an empty name"));
    }
    Some(name.to_owned())
}

fn ledger(value: &Value, problems: &Problems) -> Option<LedgerLayout> {
    let fields = Fields::of("a ledger", value, problems)?;
    let table = |key| fields.text(key).map(str::to_owned);
    let (insert, update, read) = (table("insert"), table("update"), table("read"));
    let ledger = LedgerLayout { insert, update, read };
    fields.finish();
    if [&ledger.insert, &ledger.update, &ledger.read].into_iter().all(Option::is_none) {
        let hint =
            "write { insert = \"TABLE\" }, { update = \"TABLE\" } or both, or { read = \"TABLE\" }";
        problems.hinted(&value.span, "a ledger needs a table", hint);
    }
    Some(ledger)
}

/// The pace; and whether its rate is a multiple of the capacity, as `rate = "1x"` says.
fn pace(fields: &Fields<'_>) -> (Pace, bool) {
    let text = fields
        .value("rate")
        .filter(|value| matches!(&value.is, Is::Text(text) if text.trim().ends_with('x')));
    let hint = "write transactions a second, or rate = \"0.5x\", a multiple of the capacity";
    let rate = match text {
        Some(value) => patience::multiple(value, hint, fields.problems),
        None => fields.positive("rate"),
    };
    let pacing = fields.entry("pacing");
    let pace = match (rate, pacing) {
        (None, None) => Pace::Closed,
        (None, Some(entry)) => {
            let hint = "add rate = transactions a second";
            fields.problems.hinted(&entry.key_span, "pacing without a rate", hint);
            Pace::Closed
        }
        (Some(rate), None) => Pace::Poisson(rate),
        (Some(rate), Some(_)) => match fields.choice("pacing", PACINGS) {
            Some(Pacing::Constant) => Pace::Constant(rate),
            Some(Pacing::Poisson) | None => Pace::Poisson(rate),
        },
    };
    (pace, text.is_some())
}

/// `script = "a.sql"`, `script = ["a.sql", { file = "b.sql", weight = 3 }]`, `builtin = "…"`.
fn scripts(fields: &Fields<'_>, folder: &StudyFolder) -> Vec<ScriptShare> {
    let problems = fields.problems;
    let files = fields.list("script").iter();
    let files = files.filter_map(|value| script(value, Named::File, folder, problems));
    let mut scripts: Vec<ScriptShare> = files.collect();
    let builtins = fields.list("builtin").iter();
    scripts.extend(builtins.filter_map(|value| script(value, Named::Builtin, folder, problems)));
    let named = fields.value("script").is_some() || fields.value("builtin").is_some();
    if !named {
        let hint = "add script = \"FILE.sql\" or builtin = \"tpcb-like\"";
        problems.hinted(fields.span(), "a workload needs a script", hint);
    } else if !scripts.is_empty() && scripts.iter().all(|script| script.weight == 0) {
        problems.add(fields.span(), "all scripts have weight 0");
    }
    scripts
}

/// Kind of script that a name means.
#[derive(Clone, Copy)]
enum Named {
    File,
    Builtin,
}

fn script(
    value: &Value,
    named: Named,
    folder: &StudyFolder,
    problems: &Problems,
) -> Option<ScriptShare> {
    let source = |value: &Value| match named {
        Named::File => script_file(value, folder, problems).map(ScriptSource::File),
        Named::Builtin => {
            crate::fields::choice("builtin", value, BUILTINS, problems).map(ScriptSource::Builtin)
        }
    };
    if let Is::Text(_) = value.is {
        let (source, syntax) = (source(value)?, ScriptSyntax::Current);
        let rows = rows(value, &source, syntax, folder, problems);
        return Some(ScriptShare { source, weight: 1, syntax, rows });
    }
    let fields = Fields::of("a script", value, problems)?;
    let named = match named {
        Named::File => fields.required("file"),
        Named::Builtin => fields.required("name"),
    };
    let weight = fields.integer("weight", 0..=i32::MAX as u32).unwrap_or(1);
    let syntax = fields.choice("syntax", SYNTAXES).unwrap_or(ScriptSyntax::Current);
    let named = named?;
    let source = source(named)?;
    let rows = rows(named, &source, syntax, folder, problems);
    fields.finish();
    Some(ScriptShare { source, weight, syntax, rows })
}

/// The files from which a script draws rows. One that cannot be parsed is told of when a run is prepared.
fn rows(
    value: &Value,
    source: &ScriptSource,
    syntax: ScriptSyntax,
    folder: &StudyFolder,
    problems: &Problems,
) -> Vec<(RowSource, ScriptText)> {
    let ScriptSource::File(file) = source else { return Vec::new() };
    let parsed =
        script::ParsedScript::parse(&file.name, &file.text, syntax, &mut VariableNames::new());
    let mut rows: Vec<(RowSource, ScriptText)> = Vec::new();
    for command in parsed.iter().flat_map(|script| &script.commands) {
        let CommandKind::SetRow(row) = &command.kind else { continue };
        if rows.iter().any(|(known, _)| *known == row.source) {
            continue;
        }
        let name = normal(&row.source.path);
        match folder.files.get(&name) {
            Some(text) => {
                rows.push((row.source.clone(), ScriptText { name, text: text.clone() }));
            }
            None => {
                let text = format!(
                    "{}:{}: \\setrow draws from \"{name}\", which is no file of this folder",
                    file.name, command.line
                );
                let hint = "a file of rows lies in the study's folder, is text in UTF-8, and has \
                            16 MiB at most";
                problems.hinted(&value.span, text, hint);
            }
        }
    }
    rows
}

/// A path without its `.` and, where a folder stands before it, its `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            (".", _) => {}
            ("..", Some(before)) if *before != ".." && !before.is_empty() => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Distribution of the gaps of an open loop.
#[derive(Clone, Copy)]
enum Pacing {
    Poisson,
    Constant,
}

const PACINGS: &[(&str, Pacing)] = &[("poisson", Pacing::Poisson), ("constant", Pacing::Constant)];
const PROTOCOLS: &[(&str, Protocol)] = &[
    ("simple", Protocol::Simple),
    ("extended", Protocol::Extended),
    ("prepared", Protocol::Prepared),
];
const FALLBACKS: &[(&str, Protocol)] =
    &[("simple", Protocol::Simple), ("extended", Protocol::Extended)];
const SYNTAXES: &[(&str, ScriptSyntax)] =
    &[("current", ScriptSyntax::Current), ("9.x", ScriptSyntax::NineX)];
const BUILTINS: &[(&str, BuiltinWorkload)] = &[
    ("tpcb-like", BuiltinWorkload::TpcbLike),
    ("simple-update", BuiltinWorkload::SimpleUpdate),
    ("select-only", BuiltinWorkload::SelectOnly),
    ("list-append", BuiltinWorkload::ListAppend),
    ("list-read", BuiltinWorkload::ListRead),
    ("rw-register", BuiltinWorkload::RwRegister),
    ("bank", BuiltinWorkload::Bank),
];
