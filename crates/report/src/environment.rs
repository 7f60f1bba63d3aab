//! Where it was measured, with which settings, and what ran.

use std::collections::{BTreeMap, BTreeSet};

use record::{Fact, Header, State};
use spec::{Pace, ScriptSource, Study, Workload};

use crate::number;
use crate::view::{FactGroup, Table};

/// A group of facts longer than this is folded away.
const FACTS_SHOWN_MAX: usize = 12;

/// Profile, day, and the first facts of machine and server: what a reader wants before anything.
pub(crate) fn subtitle(header: &Header) -> String {
    let day = header.started_at.split('T').next().unwrap_or_default();
    let mut parts = vec![format!("profile {}", header.profile), day.to_owned()];
    for group in ["PostgreSQL", "machine"] {
        let fact = header.facts.iter().find(|fact| fact.group.eq_ignore_ascii_case(group));
        parts.extend(fact.map(|fact| match group {
            "PostgreSQL" => format!("PostgreSQL {}", fact.value),
            _ => fact.value.clone(),
        }));
    }
    if header.state != State::Done {
        parts.push("incomplete".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// Facts of the record, in its order.
pub(crate) fn facts(header: &Header) -> Vec<FactGroup> {
    let mut run = vec![
        ("profile".to_owned(), header.profile.clone()),
        ("seed".to_owned(), header.seed.to_string()),
        ("began".to_owned(), header.started_at.clone()),
    ];
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
pub(crate) fn grouped(facts: &[Fact]) -> Vec<FactGroup> {
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

/// What ran and how it was set.
///
/// The study's settings are those of servers that the rig has built; a target's are facts.
pub(crate) fn tables(study: &Study, header: &Header) -> Vec<Table> {
    let mut tables = vec![workloads(study)];
    let is_target = header.facts.iter().any(|fact| fact.name == "target");
    tables.extend(settings(study).filter(|_| !is_target));
    tables
}

fn ending(state: &State) -> String {
    match state {
        State::Running => "unknown: its end was not recorded".to_owned(),
        State::Done => "every trial was run".to_owned(),
        State::Interrupted => "interrupted; what was measured until then is here".to_owned(),
        State::Broken(why) => format!("broke off: {why}"),
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
                point.name.to_string(),
                workload.clients.to_string(),
                workload.protocol.name().to_owned(),
                pace(workload.pace),
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

fn pace(pace: Pace) -> String {
    match pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Poisson(rate) => format!("open loop, Poisson, {}", number::with_unit(rate, "1/s")),
        Pace::Constant(rate) => format!("open loop, constant, {}", number::with_unit(rate, "1/s")),
    }
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
            for (name, value) in &node.settings {
                let key = (name.clone(), node.name.clone());
                let row = values.entry(key).or_insert(vec![BTreeSet::new(); study.variants.len()]);
                row[column].insert(value.clone());
            }
        }
    }
    if values.is_empty() {
        return None;
    }
    let mut columns = vec!["Setting", "Node"];
    columns.extend(study.variants.iter().map(|variant| variant.name.as_str()));
    let note = "as the study sets them; everything else has PostgreSQL's default";
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
