//! Differences between two runs that exist before anything is measured.

use record::{MachineFact, RecordHeader};
use spec::{TrialPoint, Workload};

use crate::diff::DiffSide;

/// Something that was not the same in two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCondition {
    /// Name of the condition: "scale", "PostgreSQL version", "shared_buffers of primary".
    pub what: String,
    /// The value in the first run.
    pub before: String,
    /// The value in the second run.
    pub after: String,
    /// The points of which it is true; empty for the whole run.
    pub points: Vec<String>,
}

/// Facts that are another every time and mean nothing: how full the disk is, what the load was.
const FLEETING: [&str; 4] =
    ["disk of the servers", "load average before", "CPU taken by the hypervisor", "programs"];

/// Groups of such facts: what `pg_test_fsync` measures, and how long the run took.
const FLEETING_GROUPS: [&str; 2] = ["pg_test_fsync", "time"];

/// Conditions in which two runs differ, those of the whole run first; one that is true of several
/// points is listed once.
pub(crate) fn differing(before: DiffSide<'_>, after: DiffSide<'_>) -> Vec<RunCondition> {
    let mut conditions = of_runs(before.header, after.header);
    for point in &before.study.points {
        let Some(other) = after.study.points.iter().find(|other| other.name == point.name) else {
            continue;
        };
        for (what, before, after) in different(&properties(point), &properties(other)) {
            let same = |one: &&mut RunCondition| {
                !one.points.is_empty()
                    && (&one.what, &one.before, &one.after) == (&what, &before, &after)
            };
            match conditions.iter_mut().find(same) {
                Some(condition) => condition.points.push(point.name.to_string()),
                None => {
                    let points = vec![point.name.to_string()];
                    conditions.push(RunCondition { what, before, after, points });
                }
            }
        }
    }
    conditions
}

fn of_runs(before: &RecordHeader, after: &RecordHeader) -> Vec<RunCondition> {
    let different = different(&run(before), &run(after));
    let condition =
        |(what, before, after)| RunCondition { what, before, after, points: Vec::new() };
    different.into_iter().map(condition).collect()
}

type Properties = Vec<(String, String)>;

/// Properties that differ, in the order of the first; a missing one is "–".
fn different(before: &Properties, after: &Properties) -> Vec<(String, String, String)> {
    let value = |of: &Properties, name: &str| {
        let found = of.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in before.iter().chain(after) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let each =
        names.into_iter().map(|name| (name.clone(), value(before, name), value(after, name)));
    each.filter(|(_, before, after)| before != after).collect()
}

fn run(header: &RecordHeader) -> Properties {
    let mut properties = vec![
        ("study".to_owned(), header.study.clone()),
        ("profile".to_owned(), header.profile.clone()),
        ("pgrig".to_owned(), header.pgrig.clone()),
    ];
    if let Some(comparison) = &header.comparison {
        properties.push(("workload".to_owned(), comparison.workload.clone()));
        properties.push(("sides".to_owned(), comparison.sides_words().join(" ")));
        properties.extend(comparison.differences.iter().map(|one| {
            let [a, b] = [&one.a, &one.b].map(|side| side.as_deref().unwrap_or("–"));
            (one.name.clone(), format!("{a} on A, {b} on B"))
        }));
    }
    let lasting = |fact: &&MachineFact| {
        let is_fleeting = FLEETING.contains(&fact.name.as_str());
        !is_fleeting && !FLEETING_GROUPS.contains(&fact.group.as_str())
    };
    let facts = header.facts.iter().filter(lasting);
    properties.extend(facts.map(|fact| {
        let name = match fact.group.as_str() {
            "machine" | "system" => fact.name.clone(),
            group => format!("{group} {}", fact.name),
        };
        (name, fact.value.clone())
    }));
    properties
}

fn properties(point: &TrialPoint) -> Properties {
    let mut properties: Properties = Vec::new();
    let mut add = |name: String, value: String| properties.push((name, value));
    add("clients".to_owned(), point.clients().to_string());
    add("window".to_owned(), format!("{} s", point.window_ms as f64 / 1e3));
    if let Some(tables) = &point.data.pgbench {
        add("scale".to_owned(), tables.scale.to_string());
    }
    for (name, value) in &point.data.variables {
        add(name.clone(), value.clone());
    }
    for workload in &point.workloads {
        of_workload(workload, &mut add);
    }
    for node in &point.topology.nodes {
        for (name, value) in node.settings.iter() {
            add(format!("{name} of {}", node.name), value.to_owned());
        }
    }
    properties
}

fn of_workload(workload: &Workload, add: &mut impl FnMut(String, String)) {
    let name = &workload.name;
    add(format!("protocol of {name}"), format!("{:?}", workload.protocol).to_lowercase());
    let pace = workload.pace.rate().zip(workload.pace.arrivals());
    let unit = if workload.is_rate_of_capacity { " × capacity" } else { "/s" };
    let pace = pace.map_or("closed loop".to_owned(), |(rate, how)| format!("{rate}{unit}, {how}"));
    add(format!("pace of {name}"), pace);
}
