//! The faults that come with pgrig, as far as a topology can suffer them.

use super::FaultForm;
use crate::action::ActionTarget;
use crate::disk::DiskKind;
use crate::node::{NodeKind, TopologyNode};
use crate::topology::Topology;
use crate::value::{Is, Value};
use crate::whom::SqlTarget;

/// A standby becomes a primary by somebody's hand. No default has it: nothing stops the old primary then.
pub(super) const PROMOTE: &str = "promote";

/// Every fault by its word, and a clause that explains it.
pub(super) const WORDS: &[(&str, &str)] = &[
    ("pause", "a server or a machine stands still"),
    ("kill", "it is killed, and started again"),
    ("stop", "a server is shut down, and started again"),
    ("kill_backend", "one process of a server is killed, so that it recovers"),
    ("cut", "nothing passes a link, or between a machine and all others"),
    ("pause_process", "each program of a machine stands still"),
    ("kill_process", "each program of a machine is killed, and started again"),
    ("power_cut", "a server's disk loses its power with all processes on it"),
    ("slow_disk", "each flush of a server's block disk takes 50 ms longer"),
    (PROMOTE, "somebody promotes a standby"),
];

/// The servers as victims: by their roles where there are several, else by their names.
pub(super) fn servers(topology: &Topology) -> Vec<String> {
    let names = topology.nodes.iter().filter(|node| node.has_server()).map(|node| &node.name);
    let names: Vec<String> = names.cloned().collect();
    match names.len() {
        0 | 1 => names,
        _ => [SqlTarget::PRIMARY_NOW, ActionTarget::STANDBY_NOW].map(str::to_owned).to_vec(),
    }
}

/// The faults that a topology can suffer, each with the word that means it.
pub(super) fn faults(topology: &Topology) -> Vec<(&'static str, FaultForm)> {
    let nodes = || topology.nodes.iter();
    let names = |is: &dyn Fn(&&TopologyNode) -> bool| {
        nodes().filter(is).map(|node| node.name.clone()).collect::<Vec<_>>()
    };
    let is_own = |node: &&TopologyNode| matches!(node.kind, NodeKind::Postgres(_));
    let machines = |node: &&TopologyNode| node.machine().is_some_and(|it| it.has_network);
    // Those without a server, such as the store of a manager, have no role.
    let others = names(&|node| machines(node) && !node.has_server());
    let has_several = nodes().filter(|node| node.has_server()).count() > 1;
    // A machine and a server of pgrig's are paused and killed by the same words.
    let everyone: Vec<String> = servers(topology).into_iter().chain(others.clone()).collect();
    let on_machines = match nodes().any(|node| machines(&node) && node.has_server()) {
        true => everyone.clone(),
        false => others,
    };
    let own = if nodes().any(|node| is_own(&node)) { servers(topology) } else { Vec::new() };
    let links = topology.links.iter().map(|link| link.name.clone());
    let cut: Vec<String> = on_machines.into_iter().chain(links).collect();
    let on_disk = |is: fn(DiskKind) -> bool| names(&|node| is_own(node) && is(node.disk));
    let mut found = vec![
        form("pause", ("pause", &[]), Some("continue"), everyone.clone()),
        form("kill", ("kill", &[]), Some("start"), everyone),
        form("stop", ("stop", &[]), Some("start"), own.clone()),
        form("kill_backend", ("kill_backend", &[]), None, own.clone()),
        form("cut", ("cut", &[]), Some("heal"), cut),
        form("power_cut", ("power_cut", &[]), Some("start"), on_disk(DiskKind::can_be_cut)),
        form(
            "slow_disk",
            ("slow_disk", &[("by", "50ms")]),
            Some("unthrottle"),
            on_disk(|disk| matches!(disk, DiskKind::CutBlock { .. })),
        ),
    ];
    let standby = ActionTarget::STANDBY_NOW.to_owned();
    let promoted = if own.is_empty() || !has_several { Vec::new() } else { vec![standby] };
    found.push(form(PROMOTE, ("promote", &[]), None, promoted));
    found.extend(processes(topology));
    found.retain(|(_, form)| !form.victims.is_empty());
    found
}

/// A fault of each program that machines have.
fn processes(topology: &Topology) -> Vec<(&'static str, FaultForm)> {
    let mut of: Vec<(&str, Vec<String>)> = Vec::new();
    for node in &topology.nodes {
        let Some(machine) = node.machine().filter(|it| it.has_network) else { continue };
        let victims = match machine.server.is_some() {
            true => servers(topology),
            false => vec![node.name.clone()],
        };
        for process in &machine.processes {
            match of.iter_mut().find(|(name, _)| *name == process.name) {
                Some((_, known)) => known.extend(victims.clone()),
                None => of.push((&process.name, victims.clone())),
            }
        }
    }
    let forms = of.into_iter().flat_map(|(process, mut victims)| {
        let mut seen = Vec::new();
        victims.retain(|name| {
            let is_new = !seen.contains(name);
            seen.push(name.clone());
            is_new
        });
        let both = [("pause_process", "pause", "continue"), ("kill_process", "kill", "start")];
        both.map(|(word, begin, end)| {
            let (_, mut form) =
                form(word, (begin, &[("process", process)]), Some(end), victims.clone());
            form.name = format!("{begin} {process} of");
            let named = (String::from("process"), text(process));
            form.end.iter_mut().for_each(|fields| fields.push(named.clone()));
            (word, form)
        })
    });
    forms.collect()
}

fn form(
    word: &'static str,
    (begin, more): (&str, &[(&str, &str)]),
    end: Option<&str>,
    victims: Vec<String>,
) -> (&'static str, FaultForm) {
    let field = |key: &str, value: &str| (key.to_owned(), text(value));
    let more = more.iter().map(|(key, value)| field(key, value));
    let form = FaultForm {
        name: word.to_owned(),
        begin: [field(begin, "{victim}")].into_iter().chain(more).collect(),
        end: end.map(|end| vec![field(end, "{victim}")]),
        victims,
        length_ms: None,
    };
    (word, form)
}

fn text(text: &str) -> Value {
    Value { span: 0..0, is: Is::Text(text.to_owned()) }
}
