//! Workloads of a scenario at one point, with what axes, `run` entries and variants lay over them.

use std::ops::Range;

use crate::built::Built;
use crate::data::TrialData;
use crate::fields;
use crate::node::NodeKind;
use crate::problem::Problems;
use crate::tables::Tables;
use crate::topology::Topology;
use crate::value::{
    Bindings, Is, KeyValue, Table, Value, names_used, substitute, substitute_table,
};
use crate::workload::Workload;

/// The workloads that a scenario runs.
pub(crate) fn workloads(
    tables: &Tables<'_>,
    run: &[Value],
    variant: &KeyValue,
    built: &Built,
    bindings: &Bindings,
) -> Vec<Workload> {
    let repeated = |name: &str| run.iter().filter(|r| workload_named(r) == Some(name)).count() > 1;
    let mut workloads: Vec<Workload> = Vec::new();
    for item in run {
        let item = substitute(item, bindings, tables.problems);
        let Some((entry, laid)) = lay(tables, &item, built, bindings) else {
            continue;
        };
        let name = match laid.name {
            Some(name) => name,
            None if repeated(&entry.key) => {
                std::iter::once(entry.key.clone()).chain(laid.own).collect::<Vec<_>>().join("-")
            }
            None => entry.key.clone(),
        };
        if workloads.iter().any(|workload| workload.name == name) {
            let hint = "give it a name of its own: as = \"NAME\"";
            tables.problems.hinted(&item.span, format!("\"{name}\" runs twice"), hint);
        }
        let (folder, problems) = (tables.folder, tables.problems);
        let table = substitute_table(&laid.table, &laid.bindings, problems);
        let span = &entry.value.span;
        let first = built.topology.first().map_or("", |node| &node.name);
        let mut workload = Workload::parse(&name, &table, span, first, folder, problems);
        add_data_variables(&mut workload, &built.data);
        workload.to = targets(&workload, &table, span, &built.topology, variant, problems);
        check_login(&workload, span, &built.topology, problems);
        workloads.push(workload);
    }
    workloads
}

/// The entries of a scenario's `run`; a single one needs no brackets.
pub(crate) fn run_of(scenario: &Table) -> &[Value] {
    match scenario.find("run").map(|entry| &entry.value) {
        Some(Value { is: Is::List(run), .. }) => run.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    }
}

/// The workload that an entry of `run` names.
pub(crate) fn workload_named(item: &Value) -> Option<&str> {
    match &item.is {
        Is::Text(name) => Some(name),
        Is::Table(table) => match &table.find("workload")?.value.is {
            Is::Text(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Finds the workload of a `run` entry and lays everything over it, the variant's own last: what
/// a variant cannot do no axis makes it do.
fn lay<'t>(
    tables: &Tables<'t>,
    item: &Value,
    built: &Built,
    bindings: &Bindings,
) -> Option<(&'t KeyValue, Overlaid)> {
    let problems = tables.problems;
    let Some(name) = workload_named(item) else {
        let message = "run lists workloads: \"NAME\" or { workload = \"NAME\", … }";
        problems.add(&item.span, message);
        return None;
    };
    let Some(entry) = tables.workloads.iter().find(|entry| entry.key == name) else {
        let known = tables.workloads.iter().map(|entry| entry.key.as_str());
        problems.unknown(&item.span, "workload", name, known);
        return None;
    };
    let Is::Table(base) = &entry.value.is else {
        problems.add(&entry.value.span, "a workload must be a table");
        return None;
    };
    let mut laid = Overlaid::over(base, item, bindings, problems);
    if let Some(Value { is: Is::Table(own), .. }) =
        built.override_.find(name).map(|entry| &entry.value)
    {
        own.entries.iter().for_each(|entry| laid.table.set(entry.clone()));
    }
    Some((entry, laid))
}

/// Scripts know the size of the data: the variables that built them, and pgbench's own `scale`.
fn add_data_variables(workload: &mut Workload, data: &TrialData) {
    let scale = data.pgbench.as_ref().map(|t| ("scale".to_owned(), t.scale.to_string()));
    let known = data.variables.clone().into_iter().chain(scale);
    for (name, value) in known {
        workload.variables.entry(name).or_insert(value);
    }
}

/// A workload's table with an axis's and a `run` entry's fields laid over it.
struct Overlaid {
    table: Table,
    bindings: Bindings,
    /// The name that `as` gives.
    name: Option<String>,
    /// The fields that the `run` entry sets, for a name when a workload runs twice.
    own: Vec<String>,
}

impl Overlaid {
    fn over(base: &Table, item: &Value, axes: &Bindings, problems: &Problems) -> Overlaid {
        let mut laid =
            Overlaid { table: base.clone(), bindings: axes.clone(), name: None, own: Vec::new() };
        let mut used = Vec::new();
        base.entries.iter().for_each(|entry| names_used(&entry.value, &mut used));
        for (axis, value) in axes {
            // An axis that the workload asks for by {name} goes where it asks.
            if Workload::FIELDS.contains(&axis.as_str()) && !used.contains(axis) {
                let (key_span, value) = (value.span.clone(), value.clone());
                laid.table.set(KeyValue { key: axis.clone(), key_span, value });
            }
        }
        let Is::Table(item) = &item.is else { return laid };
        for entry in &item.entries {
            match entry.key.as_str() {
                "workload" => continue,
                "as" => laid.name = fields::text("as", &entry.value, problems).map(str::to_owned),
                key if used.iter().any(|name| name == key) => {
                    laid.bindings.insert(key.to_owned(), entry.value.clone());
                    laid.own.extend(entry.value.scalar_text());
                }
                key if Workload::FIELDS.contains(&key) => {
                    laid.table.set(entry.clone());
                    laid.own.extend(entry.value.scalar_text());
                }
                key => {
                    let known = Workload::FIELDS.into_iter().chain(used.iter().map(String::as_str));
                    problems.unknown(&entry.key_span, "field or name of the workload", key, known);
                }
            }
        }
        laid
    }
}

/// Refuses a login of a workload's own where it cannot work: a pooler and a proxy log in to the server for their
/// clients, and a manager's clients have the connection string of their machine.
fn check_login(workload: &Workload, span: &Range<usize>, topology: &Topology, problems: &Problems) {
    if workload.user.is_none() && workload.database.is_none() {
        return;
    }
    let is_server = |name: &&String| topology.node(name).is_none_or(|node| node.is_postgres());
    if let Some(name) = workload.to.iter().find(|name| !is_server(name)) {
        let message =
            format!("clients of {name} cannot log in with a user or database of their own");
        problems.hinted(span, message, "send the workload to a PostgreSQL server: to = \"NODE\"");
    }
}

/// The nodes that a workload goes to, those of a group by their own names.
fn targets(
    workload: &Workload,
    table: &Table,
    span: &Range<usize>,
    topology: &Topology,
    variant: &KeyValue,
    problems: &Problems,
) -> Vec<String> {
    let span = table.find("to").map_or(span, |entry| &entry.value.span);
    let mut targets = Vec::new();
    for name in &workload.to {
        let called = topology.called(name);
        if called.is_empty() {
            let known = topology.nodes.iter().map(|node| node.name.as_str());
            let what = format!("node of variant \"{}\":", variant.key);
            problems.unknown(span, &what, name, known);
        }
        for name in called {
            if let Some(NodeKind::Guard(_)) = topology.node(name).map(|node| &node.kind) {
                problems.add(span, format!("{name} is a guard: clients cannot connect to it"));
            }
            let is_closed = |node: &crate::node::TopologyNode| {
                node.machine().is_some_and(|it| it.clients.is_none() && it.server.is_none())
            };
            if topology.node(name).is_some_and(is_closed) {
                let message = format!("{name} has no clients = \"CONNECTION STRING\"");
                problems.add(span, message);
            }
            targets.push(name.to_owned());
        }
    }
    targets
}
