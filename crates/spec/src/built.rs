//! The servers that a variant builds at one point: topology, settings, data, and what it overrides.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::data::TrialData;
use terms::Settings;

use crate::fields::{self, Fields};
use crate::initdb::InitdbOption;
use crate::node::TopologyNode;
use crate::problem::Problems;
use crate::requirement::MachineRequirement;
use crate::tables::Tables;
use crate::topology::Topology;
use crate::value::{Bindings, Is, KeyValue, Table, Value, substitute};

/// The servers that a variant builds at one point.
pub(crate) struct Built {
    pub(crate) topology: Topology,
    pub(crate) data: TrialData,
    pub(crate) override_: Table,
    pub(crate) needs: Vec<MachineRequirement>,
}

impl Built {
    pub(crate) fn parse(
        tables: &Tables<'_>,
        variant: &KeyValue,
        bindings: &Bindings,
    ) -> Option<Built> {
        let problems = tables.problems;
        let value = substitute(&variant.value, bindings, problems);
        let fields = Fields::of("a variant", &value, problems)?;
        for known in ["says", "profiles"] {
            fields.entry(known);
        }
        let mut topology = topology(&fields, tables, bindings);
        let study = tables.settings.map(|settings| {
            fields::settings("settings", &substitute(settings, bindings, problems), problems)
        });
        let study = study.unwrap_or_default(); // A study may set nothing for all its servers.
        let own = fields.settings("settings");
        let initdb = InitdbOption::list(&fields);
        lay_over_machines(fields.value("variables"), topology.as_mut(), problems);
        lay_over_disks(fields.named("disks"), topology.as_mut(), problems);
        let override_ = match fields.value("override").map(|value| &value.is) {
            Some(Is::Table(table)) => table.clone(),
            _ => Table::default(),
        };
        check_override(&override_, tables);
        let data = data(&fields, tables, bindings, topology.as_ref());
        let needs = MachineRequirement::list(&fields);
        fields.finish();
        let mut topology = topology?;
        let names: Vec<Option<String>> =
            topology.nodes.iter().map(|n| topology.synchronous_standby_names(&n.name)).collect();
        for (node, sync_names) in topology.nodes.iter_mut().zip(names) {
            if !node.is_postgres() {
                continue;
            }
            let mut settings: Settings = study.clone();
            settings.extend(std::mem::take(&mut node.settings));
            settings.extend(own.clone());
            if let Some(names) = sync_names.filter(|_| settings.value(SYNC_NAMES).is_none()) {
                settings.set(SYNC_NAMES, names);
            }
            node.settings = settings;
            node.initdb.extend(initdb.iter().cloned());
        }
        publish(&mut topology, &variant.key_span, problems);
        spread(&mut topology, &variant.key_span, problems);
        Some(Built { topology, data, override_, needs })
    }
}

/// Gives each publisher the level of WAL from which logical replication reads.
fn publish(topology: &mut Topology, span: &Range<usize>, problems: &Problems) {
    let subscribed = topology.nodes.iter().filter_map(|node| node.subscribes.as_ref());
    let publishers: BTreeSet<String> = subscribed.map(|to| to.to.clone()).collect();
    for node in topology.nodes.iter_mut().filter(|node| publishers.contains(&node.name)) {
        match node.settings.value(WAL_LEVEL) {
            None => node.settings.set(WAL_LEVEL, LOGICAL),
            Some(LOGICAL) => {}
            Some(level) => {
                let message = format!("node {} publishes, but its wal_level is {level}", node.name);
                problems.hinted(span, message, "write wal_level = \"logical\", or leave it out");
            }
        }
    }
}

/// Lets each server whose tablespaces are on a disk of their own have them below `pg_tblspc`: recovery takes a directory
/// there for damage otherwise. A base backup leaves out a `pg_tblspc` that is a link.
fn spread(topology: &mut Topology, span: &Range<usize>, problems: &Problems) {
    let followed = topology.nodes.iter().filter_map(|node| node.follows().map(str::to_owned));
    let followed: BTreeSet<String> = followed.collect();
    for node in topology.nodes.iter_mut().filter(|node| node.disk.has_tablespaces_apart()) {
        if node.settings.value(IN_PLACE).is_none() {
            node.settings.set(IN_PLACE, "on");
        }
        if node.is_archived || node.follows().is_some() || followed.contains(&node.name) {
            let name = &node.name;
            let message = format!(
                "the tablespaces of {name} are on a disk of their own, and base backups lack them then"
            );
            let hint = "leave out tablespaces, or the archive and the standbys";
            problems.hinted(span, message, hint);
        }
    }
}

/// A variant's variables take the place of those that machines have.
fn lay_over_machines(value: Option<&Value>, topology: Option<&mut Topology>, problems: &Problems) {
    // A variant without variables, or one whose topology is wrong, which was said.
    let (Some(value), Some(topology)) = (value, topology) else { return };
    for (name, text) in fields::variables("variables", value, problems) {
        let machines = topology.nodes.iter_mut().filter_map(TopologyNode::machine_mut);
        let places = machines.filter_map(|machine| machine.variables.get_mut(&name));
        let count = places.map(|place| place.clone_from(&text)).count();
        if count == 0 {
            let message =
                format!("no machine of topology \"{}\" has a variable {name}", topology.name);
            let hint = "give one variables = { NAME = VALUE }, for {NAME} in its files";
            problems.hinted(&value.span, message, hint);
        }
    }
}

/// A variant's disks take the place of those that nodes have.
fn lay_over_disks(entries: &[KeyValue], topology: Option<&mut Topology>, problems: &Problems) {
    // That the topology is wrong was said.
    let Some(topology) = topology else { return };
    for entry in entries {
        let nodes = topology.nodes.iter_mut().filter(|node| node.group == entry.key);
        let nodes = nodes.filter(|node| node.may_have_disk());
        let count = nodes.map(|node| node.take_disk(&entry.value, problems)).count();
        if count == 0 {
            let known = topology.nodes.iter().filter(|node| node.may_have_disk());
            let known = known.map(|node| node.group.as_str());
            problems.unknown(&entry.key_span, "node with a server", &entry.key, known);
        }
    }
}

const IN_PLACE: &str = "allow_in_place_tablespaces";
const WAL_LEVEL: &str = "wal_level";
const LOGICAL: &str = "logical";

/// The setting that names the standbys for which commits wait.
const SYNC_NAMES: &str = "synchronous_standby_names";

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
    Topology::parse(&entry.key, &value, tables.folder, problems)
}

/// The study's data with the variant's fields laid over them.
fn data(
    fields: &Fields<'_>,
    tables: &Tables<'_>,
    bindings: &Bindings,
    topology: Option<&Topology>,
) -> TrialData {
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
    let first = topology.and_then(Topology::first);
    let first = first.map_or("primary", |node| node.name.as_str());
    let data = TrialData::parse(value.as_ref(), first, tables.folder, problems);
    if let (Some(topology), Some(value)) = (topology, &value) {
        match topology.node(&data.node) {
            None => {
                let known = topology.nodes.iter().map(|node| node.name.as_str());
                problems.unknown(&value.span, "node", &data.node, known);
            }
            Some(node) if !node.has_server() || node.follows().is_some() => {
                let message = format!("data cannot be built on {}: it takes no writes", node.name);
                problems.add(&value.span, message);
            }
            Some(_) => {}
        }
    }
    data
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
