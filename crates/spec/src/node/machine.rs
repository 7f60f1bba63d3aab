//! Nodes that are made of programs which the study names.

use crate::machine::MachineNode;
use crate::node::{KindWord, NodeKind};

/// Several programs with an address of their own.
pub(super) const MACHINE: KindWord = KindWord {
    name: "machine",
    form: "nodes.db = { kind = \"machine\", processes.etcd = { command = [\"…\"] } }",
    says: "programs of the study with an address of their own",
    parse: |_, fields, folder| boxed(MachineNode::several(fields, folder)),
};

pub(super) const PROCESS: KindWord = KindWord {
    name: "process",
    form: "nodes.proxy = { kind = \"process\", command = [\"…\"], ports = [\"sql\"] }",
    says: "a program of the study on the loopback",
    parse: |name, fields, folder| boxed(MachineNode::one(name, fields, folder)),
};

/// No program.
pub(super) const ROUTE: KindWord = KindWord {
    name: "route",
    form: "nodes.hosts = { kind = \"route\", clients = \"host=… port=…\" }",
    says: "a connection string with a name",
    parse: |_, fields, _| boxed(MachineNode::route(fields)),
};

fn boxed(machine: Option<MachineNode>) -> Option<NodeKind> {
    machine.map(|machine| NodeKind::Machine(Box::new(machine)))
}
