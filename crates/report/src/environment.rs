//! The environment of the measurement: machine, settings, and programs.

use std::collections::{BTreeMap, BTreeSet};

use record::{MachineFact, RecordHeader, RunState};
use spec::{DataReset, ScriptSource, Study, TrialPoint, Workload};

use crate::grouping::{label, point_label};
use crate::number;
use crate::view::{FactGroup, Log, Table};

/// A group of facts longer than this is folded away.
const FACTS_SHOWN_MAX: usize = 12;

/// Study, profile, day, and the first facts of machine and server: what a reader wants before anything.
pub(crate) fn subtitle(header: &RecordHeader) -> String {
    let day = header.started_at.split('T').next().expect("a split has a first part");
    let mut parts = match &header.comparison {
        Some(comparison) => vec![comparison.title()],
        None => vec![format!("study {}", header.study), format!("profile {}", header.profile)],
    };
    parts.push(day.to_owned());
    for group in ["PostgreSQL", "machine"] {
        let fact = header.facts.iter().find(|fact| fact.group.eq_ignore_ascii_case(group));
        parts.extend(fact.map(|fact| match group {
            "PostgreSQL" => format!("PostgreSQL {}", fact.value),
            _ => fact.value.clone(),
        }));
    }
    if header.state != RunState::Done {
        parts.push("incomplete".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// Facts of the record, in its order.
pub(crate) fn facts(header: &RecordHeader) -> Vec<FactGroup> {
    let mut run = vec![
        ("seed".to_owned(), header.seed.to_string()),
        ("began".to_owned(), header.started_at.clone()),
    ];
    if header.comparison.is_none() {
        run.insert(0, ("profile".to_owned(), header.profile.clone()));
    }
    if let Some(ended_at) = &header.ended_at {
        run.push(("ended".to_owned(), ended_at.clone()));
    }
    run.push(("how it ended".to_owned(), ending(&header.state)));
    run.push(("pgrig".to_owned(), format!("{}, record format {}", header.pgrig, header.format)));
    let mut groups = vec![FactGroup { name: "run".to_owned(), facts: run, folded: false }];
    groups.extend(grouped(&header.facts));
    groups
}

/// Facts under the names of their groups, in their order.
pub(crate) fn grouped(facts: &[MachineFact]) -> Vec<FactGroup> {
    let mut groups: Vec<FactGroup> = Vec::new();
    for fact in facts {
        let known = groups.iter().position(|group| group.name == fact.group);
        let index = known.unwrap_or_else(|| {
            let name = fact.group.clone();
            groups.push(FactGroup { name, facts: Vec::new(), folded: false });
            groups.len() - 1
        });
        groups[index].facts.push((fact.name.clone(), fact.value.clone()));
    }
    for group in &mut groups {
        group.folded = group.facts.len() > FACTS_SHOWN_MAX;
    }
    groups
}

/// Tables of the programs and their settings.
///
/// The study's settings are those of servers that the rig has built; a target's are facts.
pub(crate) fn tables(study: &Study, header: &RecordHeader) -> Vec<Table> {
    // The load of a comparison may be that of pgbench's options, which are its command.
    let is_of_study = header.comparison.as_ref().is_none_or(|one| one.point.is_some());
    let mut tables = match is_of_study {
        true => vec![workloads(study), data(study)],
        false => Vec::new(),
    };
    let is_target = header.facts.iter().any(|fact| fact.name == "target");
    tables.extend(settings(study).filter(|_| !is_target));
    tables
}

fn ending(state: &RunState) -> String {
    match state {
        RunState::Running => "unknown: its end was not recorded".to_owned(),
        RunState::Done => "every trial was run".to_owned(),
        RunState::Interrupted => "interrupted; what was measured until then is here".to_owned(),
        RunState::Broken(why) => format!("broke off: {why}"),
    }
}

fn workloads(study: &Study) -> Table {
    let columns = ["Workload", "In", "#Clients", "Protocol", "Pace", "Scripts", "Goes to"];
    let mut table = Table::new("What ran", "", &columns);
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    for point in &study.points {
        for workload in &point.workloads {
            let row = vec![
                workload.name.clone(),
                place(study, point),
                workload.clients.to_string(),
                workload.protocol.name().to_owned(),
                pace(workload),
                scripts(workload),
                workload.to.join(", "),
            ];
            if seen.insert(row.clone()) {
                table.row(row);
            }
        }
    }
    table
}

/// A point in the study's words.
fn place(study: &Study, point: &TrialPoint) -> String {
    let mut words = label(&study.scenarios, &point.name.scenario).to_owned();
    if study.variants.len() > 1 {
        words = format!("{} / {words}", label(&study.variants, &point.name.variant));
    }
    let axes = point_label(&point.name.axes.iter().cloned().collect());
    if !axes.is_empty() {
        words.push_str(" · ");
        words.push_str(&axes);
    }
    words
}

/// Size of the data of each point: pgbench's scale and rows, and the variables of the study's
/// script.
fn data(study: &Study) -> Table {
    let columns = ["In", "#Scale", "#pgbench_accounts", "Script", "With", "Between trials"];
    let mut table = Table::new("The data", "", &columns);
    let mut seen: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for point in &study.points {
        let data = &point.data;
        let scale = data.pgbench.as_ref().map(|tables| tables.scale);
        let rows = scale.map(|scale| format!("{} rows", number::count(u64::from(scale) * 100_000)));
        let given = data.variables.iter().map(|(name, value)| format!("{name} = {value}"));
        let cells = vec![
            scale.map_or("–".to_owned(), |scale| scale.to_string()),
            rows.unwrap_or_else(|| "–".to_owned()),
            data.script.as_ref().map_or("–".to_owned(), |script| script.name.clone()),
            given.collect::<Vec<String>>().join(", "),
            match data.reset {
                DataReset::Clone => "a fresh copy".to_owned(),
                DataReset::Keep => "kept".to_owned(),
                DataReset::Whole => "kept while the machines are whole".to_owned(),
            },
        ];
        let places = seen.entry(cells).or_default();
        let name = label(&study.scenarios, &point.name.scenario).to_owned();
        if !places.contains(&name) {
            places.push(name);
        }
    }
    for (cells, places) in seen {
        table.row([places.join("; ")].into_iter().chain(cells));
    }
    table
}

/// The text of every script that a point runs: of its workloads, and of its data.
pub(crate) fn script_texts(study: &Study) -> Vec<Log> {
    let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
    for point in &study.points {
        let scripts = point.workloads.iter().flat_map(|workload| &workload.scripts);
        let files = scripts.filter_map(|script| match &script.source {
            ScriptSource::File(file) => Some(file),
            ScriptSource::Builtin(_) => None,
        });
        for file in files.chain(&point.data.script) {
            texts.insert(&file.name, &file.text);
        }
    }
    let log =
        |(name, text): (&str, &str)| Log { title: format!("Script {name}"), text: text.to_owned() };
    texts.into_iter().map(log).collect()
}

fn pace(workload: &Workload) -> String {
    let pace = workload.pace;
    let Some((rate, arrivals)) = pace.rate().zip(pace.arrivals()) else {
        return "closed loop".to_owned();
    };
    if workload.is_rate_of_capacity {
        return format!("open loop, {arrivals}, {rate} × capacity");
    }
    format!("open loop, {arrivals}, {}", number::with_unit(rate, "1/s"))
}

fn scripts(workload: &Workload) -> String {
    let several = workload.scripts.len() > 1;
    let each = workload.scripts.iter().map(|script| {
        let name = match &script.source {
            ScriptSource::File(file) => file.name.clone(),
            ScriptSource::Builtin(builtin) => format!("pgbench's {}", builtin.name()),
        };
        if several { format!("{name} @{}", script.weight) } else { name }
    });
    each.collect::<Vec<String>>().join(", ")
}

/// Settings of every node, a column a variant; a variant whose points differ shows each value.
fn settings(study: &Study) -> Option<Table> {
    let mut values: BTreeMap<(String, String), Vec<BTreeSet<String>>> = BTreeMap::new();
    for point in &study.points {
        let column = study.variants.iter().position(|v| v.name == point.name.variant)?;
        for node in &point.topology.nodes {
            for (name, value) in node.settings.iter() {
                let key = (name.to_owned(), node.name.clone());
                let row = values.entry(key).or_insert(vec![BTreeSet::new(); study.variants.len()]);
                row[column].insert(value.to_owned());
            }
        }
    }
    if values.is_empty() {
        return None;
    }
    let mut columns = vec!["Setting", "Node"];
    columns.extend(study.variants.iter().map(|variant| variant.label()));
    let note = "as the study sets them. pgrig sets each server's addresses, port, time zone, log, archive \
                and replication; everything else has PostgreSQL's default";
    let mut table = Table::new("Settings", note, &columns);
    for ((name, node), row) in values {
        let mut cells = vec![name, node];
        cells.extend(row.into_iter().map(|values| match values.is_empty() {
            true => "–".to_owned(),
            false => values.into_iter().collect::<Vec<String>>().join(", "),
        }));
        table.row(cells);
    }
    Some(table)
}
