//! From tables to points: every variant × scenario × value of each axis, substituted and typed.

use std::ops::Range;

use crate::claim::made_in;
use crate::data::Data;
use crate::fields::{self, Fields, Settings};
use crate::folder::Folder;
use crate::point::{OnLoss, Point, PointName, Unfit, Warmup};
use crate::problem::Problems;
use crate::profile::Profile;
use crate::study::Named;
use crate::timeline;
use crate::topology::{NodeKind, Topology};
use crate::value::{
    Bindings, Entry, Is, Table, Value, is_name, names_used, substitute, substitute_table,
};
use crate::workload::Workload;

/// The tables of a study that points are made of, the profile's values chosen.
pub(crate) struct Tables<'t> {
    pub(crate) profile: Profile,
    pub(crate) folder: &'t Folder,
    pub(crate) problems: &'t Problems,
    pub(crate) settings: Option<&'t Value>,
    pub(crate) data: Option<&'t Value>,
    pub(crate) topologies: &'t [Entry],
    pub(crate) variants: &'t [Entry],
    pub(crate) workloads: &'t [Entry],
    pub(crate) scenarios: &'t [Entry],
    pub(crate) defaults: Defaults,
}

/// What a scenario has unless it says otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) rounds: u32,
    pub(crate) window_ms: u64,
    pub(crate) warmup: Warmup,
}

impl Defaults {
    pub(crate) fn of(profile: Profile) -> Defaults {
        match profile {
            Profile::Smoke => {
                Defaults { rounds: 1, window_ms: 1_000, warmup: Warmup::Fixed { ms: 500 } }
            }
            // Six rounds are the fewest from which a 95 % interval exists.
            Profile::Quick => Defaults {
                rounds: 6,
                window_ms: 10_000,
                warmup: Warmup::Auto { min_ms: 2_000, max_ms: 10_000 },
            },
            Profile::Full => Defaults {
                rounds: 10,
                window_ms: 60_000,
                warmup: Warmup::Auto { min_ms: 10_000, max_ms: 120_000 },
            },
        }
    }

    /// Reads `rounds`, `window`, `warmup` and `warmup_max`, which the study and every scenario
    /// may give.
    pub(crate) fn or(self, fields: &Fields<'_>) -> Defaults {
        let max_ms = fields.duration_ms("warmup_max");
        let warmup = match fields.value("warmup") {
            None => self.warmup,
            Some(Value { is: Is::Text(text), .. }) if text == "auto" => match self.warmup {
                auto @ Warmup::Auto { .. } => auto,
                Warmup::Fixed { ms } => Warmup::Auto { min_ms: ms, max_ms: ms * 5 },
            },
            Some(value) => fields::duration_ms("warmup", value, fields.problems)
                .map_or(self.warmup, |ms| Warmup::Fixed { ms }),
        };
        let warmup = match (warmup, max_ms) {
            (Warmup::Auto { min_ms, .. }, Some(max_ms)) => {
                Warmup::Auto { min_ms: min_ms.min(max_ms), max_ms }
            }
            (warmup, _) => warmup,
        };
        let window_ms = fields.duration_ms("window").unwrap_or(self.window_ms);
        if window_ms == 0 {
            fields.problems.add(fields.span(), "the window must be longer than 0 s");
        }
        let rounds = fields.integer("rounds", 1..=ROUNDS_MAX).unwrap_or(self.rounds);
        Defaults { rounds, window_ms, warmup }
    }
}

/// More rounds than anybody waits for; beyond it a figure was mistaken.
const ROUNDS_MAX: u32 = 10_000;
/// More points than a plan that a person can read; beyond it an axis was mistaken.
const POINTS_MAX: usize = 10_000;

/// All points of the profile.
pub(crate) fn points(tables: &Tables<'_>) -> Vec<Point> {
    let default = [default_variant()];
    let variants = if tables.variants.is_empty() { &default } else { tables.variants };
    check_use(tables, variants);
    let mut points = Vec::new();
    for scenario in tables.scenarios {
        let Some(frame) = Frame::parse(scenario, tables, variants) else {
            continue;
        };
        for variant in &frame.variants {
            for axes in frame.combinations() {
                if points.len() == POINTS_MAX {
                    let message = format!("more than {POINTS_MAX} points");
                    tables.problems.add(&scenario.key_span, message);
                    return points;
                }
                points.extend(point(tables, &frame, variant, axes));
            }
        }
    }
    points
}

/// The names and descriptions of variants or scenarios, those of other profiles included.
pub(crate) fn named(entries: &[Entry]) -> Vec<Named> {
    let named = entries.iter().map(|entry| {
        let says = match &entry.value.is {
            Is::Table(table) => table.find("says").and_then(|says| says.value.scalar_text()),
            _ => None,
        };
        Named { name: entry.key.clone(), says: says.unwrap_or_default() }
    });
    named.collect()
}

/// What a study that compares no variants runs on.
pub(crate) fn default_variant() -> Entry {
    let value = Value { span: 0..0, is: Is::Table(Table::default()) };
    Entry { key: "default".to_owned(), key_span: 0..0, value }
}

/// A scenario before its axes are given values.
struct Frame<'t> {
    name: &'t str,
    table: &'t Table,
    span: Range<usize>,
    axes: Vec<(&'t str, &'t [Value])>,
    variants: Vec<&'t Entry>,
}

impl<'t> Frame<'t> {
    /// `None` if this profile leaves the scenario out, or it is no table.
    fn parse(entry: &'t Entry, tables: &Tables<'t>, variants: &'t [Entry]) -> Option<Frame<'t>> {
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
        let runs_on = |variant: &&Entry| {
            let fields = Fields::of("a variant", &variant.value, problems);
            let here = fields.is_none_or(|fields| made_in(&fields, tables.profile));
            here && (listed.is_empty() || listed.iter().any(|(name, _)| *name == variant.key))
        };
        if !made_in(&fields, tables.profile) {
            return None;
        }
        let frame = Frame {
            name: &entry.key,
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
    fn check_axes_used(&self, tables: &Tables<'_>, entry: &Entry) {
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

fn axis_values<'t>(axis: &'t Entry, tables: &Tables<'_>) -> &'t [Value] {
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
    variant: &Entry,
    axes: Vec<(&str, &Value)>,
) -> Option<Point> {
    let problems = tables.problems;
    let bindings: Bindings =
        axes.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).clone())).collect();
    let axes = axes.iter().map(|(axis, value)| ((*axis).to_owned(), value.scalar_text()));
    let axes = axes.map(|(axis, value)| Some((axis, value?))).collect::<Option<Vec<_>>>()?;
    let built = Built::parse(tables, variant, &bindings)?;
    let first = built.topology.nodes.first()?.name.clone();

    // `run` binds names of its own and is substituted entry by entry; `over` is done with.
    let mut table = frame.table.clone();
    table.entries.retain(|entry| entry.key != "run" && entry.key != "over");
    let table = substitute_table(&table, &bindings, problems);
    let fields = Fields::new("a scenario", &table, frame.span.clone(), problems);
    let workloads = workloads(tables, frame, variant, &built, &bindings);
    let plan = tables.defaults.or(&fields);
    for known in ["says", "run", "over", "variants", "profiles"] {
        fields.entry(known);
    }
    let point = Point {
        name: PointName { variant: variant.key.clone(), scenario: frame.name.to_owned(), axes },
        workloads,
        generators: fields.integer("generators", 1..=GENERATORS_MAX).unwrap_or(1),
        lanes: fields.integer("lanes", 1..=LANES_MAX),
        connect_rate: fields.positive("connect_rate"),
        on_loss: fields.choice("on_loss", ON_LOSS).unwrap_or(OnLoss::Abort),
        before: timeline::steps(&fields, &built.topology, &first, tables.folder),
        warmup: plan.warmup,
        window_ms: plan.window_ms,
        timeline: timeline::timeline(&fields, &built.topology, plan.window_ms, tables.folder),
        checks: timeline::checks(&fields),
        unfit: fields.choice("unfit", UNFIT).unwrap_or(Unfit::Skip),
        rounds: plan.rounds,
        topology: built.topology,
        data: built.data,
    };
    fields.finish();
    if let Some(few) = point.workloads.iter().find(|w| w.clients < point.generators) {
        let message = format!("{} generators but only {} clients", point.generators, few.clients);
        problems.add(&frame.span, message);
    }
    Some(point)
}

/// What a variant builds at one point.
struct Built {
    topology: Topology,
    data: Data,
    override_: Table,
}

impl Built {
    fn parse(tables: &Tables<'_>, variant: &Entry, bindings: &Bindings) -> Option<Built> {
        let problems = tables.problems;
        let value = substitute(&variant.value, bindings, problems);
        let fields = Fields::of("a variant", &value, problems)?;
        for known in ["says", "profiles"] {
            fields.entry(known);
        }
        let topology = topology(&fields, tables, bindings);
        let study = tables.settings.map(|settings| {
            fields::settings("settings", &substitute(settings, bindings, problems), problems)
        });
        let study = study.unwrap_or_default();
        let own = fields.settings("settings");
        let override_ = match fields.value("override").map(|value| &value.is) {
            Some(Is::Table(table)) => table.clone(),
            _ => Table::default(),
        };
        check_override(&override_, tables);
        let data = data(&fields, tables, bindings, topology.as_ref());
        fields.finish();
        let mut topology = topology?;
        for node in topology.nodes.iter_mut().filter(|node| node.kind == NodeKind::Postgres) {
            let mut settings: Settings = study.clone();
            settings.append(&mut node.settings);
            settings.extend(own.clone());
            node.settings = settings;
        }
        Some(Built { topology, data, override_ })
    }
}

fn topology(fields: &Fields<'_>, tables: &Tables<'_>, bindings: &Bindings) -> Option<Topology> {
    let problems = tables.problems;
    let named = fields.value("topology");
    let entry = match (named, tables.topologies) {
        (None, []) => return Some(Topology::single()),
        (None, [only]) => only,
        (None, [_, ..]) => {
            problems.add(fields.span(), "the study has several topologies: say topology = …");
            return None;
        }
        (Some(value), entries) => {
            let name = fields::text("topology", value, problems)?;
            let found = entries.iter().find(|entry| entry.key == name);
            if found.is_none() {
                let known = entries.iter().map(|entry| entry.key.as_str());
                problems.unknown(&value.span, "topology", name, known);
            }
            found?
        }
    };
    let value = substitute(&entry.value, bindings, problems);
    Topology::parse(&entry.key, &value, problems)
}

/// The study's data with the variant's fields laid over them.
fn data(
    fields: &Fields<'_>,
    tables: &Tables<'_>,
    bindings: &Bindings,
    topology: Option<&Topology>,
) -> Data {
    let problems = tables.problems;
    let mut value = tables.data.map(|data| substitute(data, bindings, problems));
    if let Some(own) = fields.value("data") {
        value = Some(match (value, &own.is) {
            (Some(Value { span, is: Is::Table(mut table) }), Is::Table(own)) => {
                own.entries.iter().for_each(|entry| table.set(entry.clone()));
                Value { span, is: Is::Table(table) }
            }
            _ => own.clone(),
        });
    }
    let first = topology.and_then(|topology| topology.nodes.first());
    let first = first.map_or("primary", |node| node.name.as_str());
    let data = Data::parse(value.as_ref(), first, tables.folder, problems);
    if let (Some(topology), Some(value)) = (topology, &value)
        && topology.node(&data.node).is_none()
    {
        let known = topology.nodes.iter().map(|node| node.name.as_str());
        problems.unknown(&value.span, "node", &data.node, known);
    }
    data
}

fn workloads(
    tables: &Tables<'_>,
    frame: &Frame<'_>,
    variant: &Entry,
    built: &Built,
    bindings: &Bindings,
) -> Vec<Workload> {
    let problems = tables.problems;
    let run = match frame.table.find("run").map(|entry| &entry.value) {
        Some(Value { is: Is::List(run), .. }) => run.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    if run.is_empty() {
        let hint = "add run = [\"WORKLOAD\"]";
        problems.hinted(&frame.span, format!("scenario \"{}\" runs nothing", frame.name), hint);
    }
    let repeated = |name: &str| run.iter().filter(|r| workload_named(r) == Some(name)).count() > 1;
    let mut workloads: Vec<Workload> = Vec::new();
    for item in run {
        let item = substitute(item, bindings, problems);
        let Some(name) = workload_named(&item) else {
            let message = "run lists workloads: \"NAME\" or { workload = \"NAME\", … }";
            problems.add(&item.span, message);
            continue;
        };
        let Some(entry) = tables.workloads.iter().find(|entry| entry.key == name) else {
            let known = tables.workloads.iter().map(|entry| entry.key.as_str());
            problems.unknown(&item.span, "workload", name, known);
            continue;
        };
        let Is::Table(base) = &entry.value.is else {
            problems.add(&entry.value.span, "a workload must be a table");
            continue;
        };
        let laid = Laid::over(base, &item, bindings, problems);
        let mut table = laid.table;
        if let Some(Value { is: Is::Table(own), .. }) =
            built.override_.find(name).map(|entry| &entry.value)
        {
            own.entries.iter().for_each(|entry| table.set(entry.clone()));
        }
        let table = substitute_table(&table, &laid.bindings, problems);
        let name = match laid.name {
            Some(name) => name,
            None if repeated(name) => {
                std::iter::once(name.to_owned()).chain(laid.own).collect::<Vec<_>>().join("-")
            }
            None => name.to_owned(),
        };
        if workloads.iter().any(|workload| workload.name == name) {
            let hint = "give it a name of its own: as = \"NAME\"";
            problems.hinted(&item.span, format!("\"{name}\" runs twice"), hint);
        }
        let span = &entry.value.span;
        let first = &built.topology.nodes[0].name;
        let mut workload = Workload::parse(&name, &table, span, first, tables.folder, problems);
        add_data_variables(&mut workload, &built.data);
        check_target(&workload, &table, span, &built.topology, variant, problems);
        workloads.push(workload);
    }
    workloads
}

/// Scripts know the size of the data: the variables that built them, and pgbench's own `scale`.
fn add_data_variables(workload: &mut Workload, data: &Data) {
    let scale = data.pgbench.as_ref().map(|t| ("scale".to_owned(), t.scale.to_string()));
    let known = data.variables.clone().into_iter().chain(scale);
    for (name, value) in known {
        workload.variables.entry(name).or_insert(value);
    }
}

/// A workload's table with an axis's and a `run` entry's fields laid over it.
struct Laid {
    table: Table,
    bindings: Bindings,
    /// What `as` says.
    name: Option<String>,
    /// What the `run` entry sets, for a name when a workload runs twice.
    own: Vec<String>,
}

impl Laid {
    fn over(base: &Table, item: &Value, axes: &Bindings, problems: &Problems) -> Laid {
        let mut laid =
            Laid { table: base.clone(), bindings: axes.clone(), name: None, own: Vec::new() };
        let mut used = Vec::new();
        base.entries.iter().for_each(|entry| names_used(&entry.value, &mut used));
        for (axis, value) in axes {
            // An axis that the workload asks for by {name} goes where it asks.
            if Workload::FIELDS.contains(&axis.as_str()) && !used.contains(axis) {
                let (key_span, value) = (value.span.clone(), value.clone());
                laid.table.set(Entry { key: axis.clone(), key_span, value });
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

fn workload_named(item: &Value) -> Option<&str> {
    match &item.is {
        Is::Text(name) => Some(name),
        Is::Table(table) => match &table.find("workload")?.value.is {
            Is::Text(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn check_target(
    workload: &Workload,
    table: &Table,
    span: &Range<usize>,
    topology: &Topology,
    variant: &Entry,
    problems: &Problems,
) {
    if topology.node(&workload.to).is_some() {
        return;
    }
    let span = table.find("to").map_or(span, |entry| &entry.value.span);
    let known = topology.nodes.iter().map(|node| node.name.as_str());
    let what = format!("node of variant \"{}\":", variant.key);
    problems.unknown(span, &what, &workload.to, known);
}

fn check_override(override_: &Table, tables: &Tables<'_>) {
    let known = || tables.workloads.iter().map(|entry| entry.key.as_str());
    for entry in &override_.entries {
        if !known().any(|name| name == entry.key) {
            tables.problems.unknown(&entry.key_span, "workload", &entry.key, known());
        } else if !matches!(entry.value.is, Is::Table(_)) {
            let message = "override lays fields over a workload: { FIELD = … }";
            tables.problems.add(&entry.value.span, message);
        }
    }
}

/// Whatever is defined but used nowhere, in any profile, was mistyped somewhere.
fn check_use(tables: &Tables<'_>, variants: &[Entry]) {
    let problems = tables.problems;
    for group in [tables.topologies, variants, tables.workloads, tables.scenarios] {
        for entry in group {
            if !is_name(&entry.key) {
                problems.add(&entry.key_span, format!("\"{}\" cannot be a name", entry.key));
            }
        }
    }
    let runs = |workload: &Entry| {
        tables.scenarios.iter().any(|scenario| {
            let Is::Table(table) = &scenario.value.is else { return true };
            let run = match table.find("run").map(|entry| &entry.value) {
                Some(Value { is: Is::List(run), .. }) => run.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            run.iter()
                .filter_map(workload_named)
                .any(|name| name == workload.key || name.contains('{'))
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
const UNFIT: &[(&str, Unfit)] = &[("skip", Unfit::Skip), ("refuse", Unfit::Refuse)];
