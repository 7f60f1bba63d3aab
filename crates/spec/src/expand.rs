//! From tables to points: every variant × scenario × value of each axis, substituted and typed.

use std::ops::Range;

use terms::OnLoss;

use crate::built::Built;
use crate::check::{self, Check};
use crate::claim::made_in;
use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::named::NamedItem;
use crate::node::{NodeKind, TopologyNode};
use crate::patience;
use crate::phase::{self, ScenarioPhase};
use crate::point::{PointName, TrialPoint, UnfitPolicy};
use crate::problem::Problems;
use crate::requirement::MachineRequirement;
use crate::scenario_workloads;
use crate::tables::Tables;
use crate::timeline;
use crate::topology::Topology;
use crate::value::{Bindings, Is, KeyValue, Table, Value, is_name, names_used, substitute_table};
use crate::whom::SqlTarget;
use crate::workload::Workload;

/// More points than a plan that a person can read; beyond it an axis was mistaken.
const POINTS_MAX: usize = 10_000;

/// All points of the profile.
pub(crate) fn points(tables: &Tables<'_>) -> Vec<TrialPoint> {
    let default = [default_variant()];
    let variants = if tables.variants.is_empty() { &default } else { tables.variants };
    check_use(tables, variants);
    let mut points = Vec::new();
    for scenario in tables.scenarios {
        let Some(frame) = Frame::parse(scenario, tables, variants) else {
            continue;
        };
        // Counted before they are made: a few axes of a few values are billions of combinations.
        let lengths = frame.axes.iter().map(|(_, values)| values.len());
        let combinations = lengths.fold(frame.variants.len(), usize::saturating_mul);
        if points.len().saturating_add(combinations) > POINTS_MAX {
            let message = format!("more than {POINTS_MAX} points");
            tables.problems.add(&scenario.key_span, message);
            return points;
        }
        for variant in &frame.variants {
            for axes in frame.combinations() {
                points.extend(point(tables, &frame, variant, axes));
            }
        }
    }
    points
}

/// The names and descriptions of variants or scenarios, those of other profiles included.
pub(crate) fn named(entries: &[KeyValue]) -> Vec<NamedItem> {
    let named = entries.iter().map(|entry| {
        let says = match &entry.value.is {
            Is::Table(table) => table.find("says").and_then(|says| says.value.scalar_text()),
            _ => None,
        };
        // Without words it is shown by its name.
        NamedItem { name: entry.key.clone(), says: says.unwrap_or_default() }
    });
    named.collect()
}

/// The variant of a study that compares none.
pub(crate) fn default_variant() -> KeyValue {
    let value = Value { span: 0..0, is: Is::Table(Table::default()) };
    KeyValue { key: "default".to_owned(), key_span: 0..0, value }
}

/// A scenario before its axes are given values.
struct Frame<'t> {
    name: &'t str,
    table: &'t Table,
    span: Range<usize>,
    run: &'t [Value],
    axes: Vec<(&'t str, &'t [Value])>,
    variants: Vec<&'t KeyValue>,
}

impl<'t> Frame<'t> {
    /// `None` if this profile leaves the scenario out, or it is no table.
    fn parse(
        entry: &'t KeyValue,
        tables: &Tables<'t>,
        variants: &'t [KeyValue],
    ) -> Option<Frame<'t>> {
        let problems = tables.problems;
        let fields = Fields::of("a scenario", &entry.value, problems)?;
        let Is::Table(table) = &entry.value.is else { return None };
        let axes =
            fields.named("over").iter().map(|axis| (axis.key.as_str(), axis_values(axis, tables)));
        let axes: Vec<(&str, &[Value])> = axes.collect();
        let listed = fields.texts("variants");
        for (name, span) in &listed {
            if !variants.iter().any(|variant| variant.key == *name) {
                problems.unknown(span, "variant", name, variants.iter().map(|v| v.key.as_str()));
            }
        }
        let runs_on = |variant: &&KeyValue| {
            let fields = Fields::of("a variant", &variant.value, problems);
            let here = fields.is_none_or(|fields| made_in(&fields, tables.profile));
            here && (listed.is_empty() || listed.iter().any(|(name, _)| *name == variant.key))
        };
        if !made_in(&fields, tables.profile) {
            return None;
        }
        let run = scenario_workloads::run_of(table);
        if run.is_empty() {
            let message = format!("scenario \"{}\" runs nothing", entry.key);
            problems.hinted(&entry.value.span, message, "add run = [\"WORKLOAD\"]");
        }
        let frame = Frame {
            name: &entry.key,
            run,
            table,
            span: entry.value.span.clone(),
            axes,
            variants: variants.iter().filter(runs_on).collect(),
        };
        frame.check_axes_used(tables, entry);
        Some(frame)
    }

    /// Every combination of a value for each axis, the last axis fastest.
    fn combinations(&self) -> Vec<Vec<(&'t str, &'t Value)>> {
        let mut combinations = vec![Vec::new()];
        for (axis, values) in &self.axes {
            let longer = combinations.iter().flat_map(|before: &Vec<(&'t str, &'t Value)>| {
                values.iter().map(move |value| {
                    let mut combination = before.clone();
                    combination.push((*axis, value));
                    combination
                })
            });
            combinations = longer.collect();
        }
        combinations
    }

    /// An axis that changes nothing multiplies trials for nothing: a name was mistyped.
    fn check_axes_used(&self, tables: &Tables<'_>, entry: &KeyValue) {
        let mut used: Vec<String> = Vec::new();
        let everything = [tables.settings, tables.data].into_iter().flatten();
        everything.for_each(|value| names_used(value, &mut used));
        let groups = [tables.topologies, tables.workloads];
        let entries = groups.into_iter().flatten().chain(self.variants.iter().copied());
        entries.for_each(|entry| names_used(&entry.value, &mut used));
        names_used(&entry.value, &mut used);
        let Some(Value { is: Is::Table(over), .. }) =
            self.table.find("over").map(|entry| &entry.value)
        else {
            // A scenario without axes uses none.
            return;
        };
        for axis in &over.entries {
            let known = Workload::FIELDS.contains(&axis.key.as_str());
            if !known && !used.contains(&axis.key) {
                let message = format!("axis \"{}\" changes nothing", axis.key);
                let hint = format!("write {{{}}} where its value belongs", axis.key);
                tables.problems.hinted(&axis.key_span, message, hint);
            }
        }
    }
}

fn axis_values<'t>(axis: &'t KeyValue, tables: &Tables<'_>) -> &'t [Value] {
    let problems = tables.problems;
    if !is_name(&axis.key) {
        problems.add(&axis.key_span, format!("\"{}\" cannot be the name of an axis", axis.key));
    }
    let values = match &axis.value.is {
        Is::List(values) => values.as_slice(),
        _ => std::slice::from_ref(&axis.value),
    };
    if values.is_empty() {
        problems.add(&axis.value.span, format!("axis \"{}\" has no values", axis.key));
    }
    let mut seen: Vec<String> = Vec::new();
    for value in values {
        let mut names = Vec::new();
        names_used(value, &mut names);
        match value.scalar_text() {
            None => problems.add(&value.span, "an axis runs over single values"),
            Some(_) if !names.is_empty() => {
                problems.add(&value.span, "the value of an axis cannot refer to an axis");
            }
            Some(text) if text.contains([',', '=']) => {
                problems.add(&value.span, "the value of an axis cannot contain , or =");
            }
            Some(text) if seen.contains(&text) => {
                problems.add(&value.span, format!("axis \"{}\" has {text} twice", axis.key));
            }
            Some(text) => seen.push(text),
        }
    }
    values
}

fn point(
    tables: &Tables<'_>,
    frame: &Frame<'_>,
    variant: &KeyValue,
    axes: Vec<(&str, &Value)>,
) -> Option<TrialPoint> {
    let problems = tables.problems;
    let bindings: Bindings =
        axes.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).clone())).collect();
    let axes = axes.iter().map(|(axis, value)| ((*axis).to_owned(), value.scalar_text()));
    let axes = axes.map(|(axis, value)| Some((axis, value?))).collect::<Option<Vec<_>>>()?;
    let built = Built::parse(tables, variant, &bindings)?;
    let first = built.topology.first()?.name.clone();

    // `run` binds names of its own and is substituted entry by entry; `over` is done with.
    let mut table = frame.table.clone();
    table.entries.retain(|entry| entry.key != "run" && entry.key != "over");
    let of_nodes = with_variables(&bindings, &built.topology);
    let (later, mut now): (Vec<_>, Vec<_>) = table
        .entries
        .into_iter()
        .partition(|entry| ["before", "timeline", "phases"].contains(&entry.key.as_str()));
    now = substitute_table(&Table { entries: now }, &bindings, problems).entries;
    now.extend(substitute_table(&Table { entries: later }, &of_nodes, problems).entries);
    let table = Table { entries: now };
    let fields = Fields::new("a scenario", &table, frame.span.clone(), problems);
    let workloads = scenario_workloads::workloads(tables, frame.run, variant, &built, &bindings);
    let made = (tables.profile, tables.folder.files.contains_key(StudyFolder::SET));
    let plan = tables.defaults.or(&fields).at(&axes, &fields, &frame.axes, made);
    let has_rate = workloads.iter().any(|workload| workload.pace.rate().is_some());
    let phase::PhaseEntries { phases, actions } = phase::phases(&fields, has_rate);
    phase::check(&table, &axes, problems);
    let window_ms = phases.last().map_or(plan.window_ms, ScenarioPhase::until_ms);
    let moments = timeline::StretchMoments { window_ms, of_phases: actions };
    for known in ["says", "run", "over", "variants", "profiles"] {
        fields.entry(known);
    }
    let point = TrialPoint {
        name: PointName { variant: variant.key.clone(), scenario: frame.name.to_owned(), axes },
        workloads,
        generators: fields.integer("generators", 1..=GENERATORS_MAX).unwrap_or(1),
        lanes: fields.integer("lanes", 1..=LANES_MAX),
        connect_rate: fields.positive("connect_rate"),
        on_loss: fields.choice("on_loss", ON_LOSS).unwrap_or(OnLoss::Abort),
        before: timeline::steps(&fields, &built.topology, &first, tables.folder),
        warmup: plan.warmup,
        window_ms,
        drain_ms: fields.duration_ms("drain"),
        timeline: timeline::timeline(
            &fields,
            &built.topology,
            built.data.reset,
            &moments,
            tables.folder,
        ),
        checks: check::checks(&fields, &built.topology, tables.folder),
        must_be_steady: fields.boolean("steady").unwrap_or(phases.is_empty()),
        has_tail: fields.boolean("tail").unwrap_or(false),
        needs: [built.needs, MachineRequirement::list(&fields)].concat(),
        unfit: fields.choice("unfit", UNFIT).unwrap_or(UnfitPolicy::Skip),
        rounds: plan.rounds,
        has_own_servers: false,
        phases,
        topology: built.topology,
        data: built.data,
    };
    patience::check_storms(&point.workloads, point.on_loss, point.window_ms, &fields);
    check_ledger(&point, &fields);
    check_history(&point, &fields);
    check_nodes_of_checks(&point, &fields);
    check_poolers(&point, &frame.span, problems);
    fields.finish();
    if let Some(few) = point.workloads.iter().find(|w| w.clients < point.generators) {
        let message = format!("{} generators but only {} clients", point.generators, few.clients);
        problems.add(&frame.span, message);
    }
    Some(point)
}

fn check_ledger(point: &TrialPoint, fields: &Fields<'_>) {
    let checked =
        point.checks.iter().any(|check| matches!(check, Check::Ledger { .. } | Check::Explore(_)));
    if checked && point.workloads.iter().all(|workload| workload.ledger.is_none()) {
        let span = fields.value("checks").map_or(fields.span(), |value| &value.span);
        let hint = "give one ledger = { insert = \"TABLE\" }";
        fields.problems.hinted(span, "no workload of the scenario keeps a ledger", hint);
    }
}

fn check_history(point: &TrialPoint, fields: &Fields<'_>) {
    let checked = point.checks.iter().any(|check| matches!(check, Check::History { .. }));
    let kept = point.workloads.iter().any(|workload| workload.keeps_history);
    let (what, hint) = match (checked, kept) {
        (true, false) => ("no workload of the scenario keeps a history", "give one history = true"),
        (false, true) => (
            "a history is kept and not judged",
            "add checks = [{ history = \"serializable\" }], or another level",
        ),
        _ => return,
    };
    let span = fields.value("checks").map_or(fields.span(), |value| &value.span);
    fields.problems.hinted(span, what, hint);
}

/// The axes, and the variables of machines, which stand for themselves until the machines are there.
fn with_variables(axes: &Bindings, topology: &Topology) -> Bindings {
    let variables = topology.nodes.iter().filter_map(TopologyNode::machine);
    let names = variables.flat_map(|machine| machine.variables.keys());
    let span = 0..0;
    let own = names.map(|name| {
        let is = Is::Text(format!("{{{name}}}"));
        (name.clone(), Value { span: span.clone(), is })
    });
    own.chain(axes.clone()).collect()
}

/// A check that needs something of its server: checksums, or an archive.
fn check_nodes_of_checks(point: &TrialPoint, fields: &Fields<'_>) {
    for check in &point.checks {
        let (node, is_there, lack): (_, fn(&TopologyNode) -> bool, _) = match check {
            Check::Checksums { node: Some(SqlTarget::PrimaryNow) } => continue,
            Check::Checksums { node } => {
                (node.as_ref().and_then(SqlTarget::name), TopologyNode::has_checksums, "checksums")
            }
            Check::Restore(restore) => {
                if let Some((message, hint)) = restore.lacks(point) {
                    let span = fields.value("checks").map_or(fields.span(), |value| &value.span);
                    fields.problems.hinted(span, message, hint);
                }
                (restore.node.as_deref(), |node| node.is_archived, "archive")
            }
            _ => continue,
        };
        let name = node.unwrap_or(&point.data.node);
        if point.topology.node(name).is_some_and(|node| !is_there(node)) {
            let span = fields.value("checks").map_or(fields.span(), |value| &value.span);
            let hint = format!("give it {lack} = true");
            fields.problems.hinted(span, format!("node {name} has no {lack}"), hint);
        }
    }
}

/// A client that a pooler refuses gets no figure.
fn check_poolers(point: &TrialPoint, span: &Range<usize>, problems: &Problems) {
    for node in &point.topology.nodes {
        let NodeKind::Pgbouncer(pooler) = &node.kind else { continue };
        let comes = |workload: &&Workload| workload.to.contains(&node.name);
        let clients: u32 = point.workloads.iter().filter(comes).map(|w| w.clients).sum();
        if clients > pooler.clients {
            let message = format!("{clients} clients, but {} takes {}", node.name, pooler.clients);
            problems.hinted(span, message, format!("raise clients of node {}", node.name));
        }
    }
}

/// Refuses what is defined but used nowhere, in any profile: its name was mistyped somewhere.
fn check_use(tables: &Tables<'_>, variants: &[KeyValue]) {
    let problems = tables.problems;
    for group in [tables.topologies, variants, tables.workloads, tables.scenarios] {
        for entry in group {
            if !is_name(&entry.key) {
                problems.add(&entry.key_span, format!("\"{}\" cannot be a name", entry.key));
            }
        }
    }
    let runs = |workload: &KeyValue| {
        tables.scenarios.iter().any(|scenario| {
            let Is::Table(table) = &scenario.value.is else { return true };
            let mut run = scenario_workloads::run_of(table)
                .iter()
                .filter_map(scenario_workloads::workload_named);
            run.any(|name| name == workload.key || name.contains('{'))
        })
    };
    for workload in tables.workloads.iter().filter(|workload| !runs(workload)) {
        let message = format!("no scenario runs workload \"{}\"", workload.key);
        problems.add(&workload.key_span, message);
    }
}

/// More processes than any machine has use for.
const GENERATORS_MAX: u32 = 64;
/// More threads than any machine has use for.
const LANES_MAX: u32 = 1024;

const ON_LOSS: &[(&str, OnLoss)] = &[("abort", OnLoss::Abort), ("reconnect", OnLoss::Reconnect)];
const UNFIT: &[(&str, UnfitPolicy)] =
    &[("skip", UnfitPolicy::Skip), ("refuse", UnfitPolicy::Refuse)];
