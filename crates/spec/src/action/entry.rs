//! An action as study.toml writes it.

use std::cell::RefCell;

use terms::{Direction, DiskFault, DiskRequest, StopMode};

use super::meant::{link_named, node, own_server, server, span_of};
use super::{Action, ActionTarget, ProcessVerb, RejoinBy, fail_requests, rebalance};
use crate::duration;
use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::link;
use crate::machine::{MachineNode, MachineProgram};
use crate::node::{NodeKind, Subscription, SubscriptionBegin, TopologyNode};
use crate::throttle::{self, NodeThrottle};
use crate::timeline::sql_text;
use crate::topology::Topology;
use crate::whom::SqlTarget;

impl Action {
    /// Reads an action, and the ways to find its node and the one that it follows at its moment, where their
    /// names say no more. `known` are the names that actions of the timeline give to what they are done to.
    pub(crate) fn parse(
        fields: &Fields<'_>,
        topology: &Topology,
        folder: &StudyFolder,
        known: &[String],
    ) -> Option<(Action, [Option<ActionTarget>; 2])> {
        let problems = fields.problems;
        // `on` of sql and `to` of delay stand beside their verb.
        let mut found = VERBS.iter().filter(|verb| fields.entry(verb.word).is_some());
        match (found.next(), found.next()) {
            (Some(verb), None) => {
                let (verb_word, chosen, chosen_of) =
                    (verb.word, RefCell::default(), RefCell::default());
                let entry =
                    Entry { fields, verb: verb_word, topology, folder, known, chosen, chosen_of };
                let action = (verb.parse)(&entry)?;
                Some((action, [entry.chosen.into_inner(), entry.chosen_of.into_inner()]))
            }
            (None, _) => {
                let words: Vec<&str> = VERBS.iter().map(|verb| verb.word).collect();
                let hint = format!("one of {}", words.join(", "));
                problems.hinted(fields.span(), "an action without a verb", hint);
                None
            }
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(found);
                let verbs: Vec<&str> = all.map(|verb| verb.word).collect();
                let message = format!("one action at a time, not {}", verbs.join(" and "));
                problems.add(fields.span(), message);
                None
            }
        }
    }
}

/// An action as study.toml writes it.
pub(crate) struct Entry<'e> {
    pub(super) fields: &'e Fields<'e>,
    verb: &'static str,
    topology: &'e Topology,
    folder: &'e StudyFolder,
    /// The names that actions of the timeline give to what they are done to.
    known: &'e [String],
    /// The way to find the node at its moment, where its name says no more.
    chosen: RefCell<Option<ActionTarget>>,
    /// The same of the node that it follows from then on.
    chosen_of: RefCell<Option<ActionTarget>>,
}

impl Entry<'_> {
    /// The node behind the verb.
    fn node(&self) -> Option<String> {
        match self.chosen(self.verb) {
            Some(words) => Some(words),
            None => Some(node(self.fields, self.verb, self.topology)?.name.clone()),
        }
    }

    /// The words for a node that is found at its moment, if they are ones.
    fn chosen(&self, key: &'static str) -> Option<String> {
        self.chosen_into(key, &self.chosen)
    }

    fn chosen_into(
        &self,
        key: &'static str,
        place: &RefCell<Option<ActionTarget>>,
    ) -> Option<String> {
        let words = self.fields.text(key)?;
        let chosen = match words {
            SqlTarget::PRIMARY_NOW => ActionTarget::PrimaryNow,
            ActionTarget::STANDBY_NOW => ActionTarget::StandbyNow,
            name if self.known.iter().any(|known| known == name) => {
                ActionTarget::Earlier(name.to_owned())
            }
            _ => return None,
        };
        place.replace(Some(chosen));
        Some(words.to_owned())
    }

    /// A machine behind a key.
    fn machine(&self, key: &'static str) -> Option<String> {
        if let Some(words) = self.chosen(key) {
            return Some(words);
        }
        let node = node(self.fields, key, self.topology)?;
        if node.machine().is_none() {
            let message = format!("{} is no machine", node.name);
            self.fields.problems.add(span_of(self.fields, key), message);
        }
        Some(node.name.clone())
    }

    /// An action on a node, or on one process of it where `process` names one.
    fn of_node(&self, act: ProcessVerb, whole: fn(String) -> Action) -> Option<Action> {
        let Some(process) = self.fields.text("process") else { return Some(whole(self.node()?)) };
        let node = self.machine(self.verb)?;
        let machines = self
            .topology
            .nodes
            .iter()
            .filter(|known| known.name == node || self.chosen.borrow().is_some());
        let machines: Vec<&MachineNode> = machines.filter_map(TopologyNode::machine).collect();
        let names = |machine: &MachineNode| {
            let server = machine.server.as_ref().map(|_| MachineProgram::SERVER.to_owned());
            machine.processes.iter().map(|one| one.name.clone()).chain(server).collect::<Vec<_>>()
        };
        let known: Vec<String> = machines.iter().flat_map(|machine| names(machine)).collect();
        if !known.iter().any(|name| name == process) {
            let known = known.iter().map(String::as_str);
            self.fields.problems.unknown(
                span_of(self.fields, "process"),
                "process",
                process,
                known,
            );
        }
        Some(Action::OfProcess { node, process: process.to_owned(), act })
    }

    fn run(&self) -> Option<Action> {
        let command = self.fields.command("run")?;
        self.fields.required("on")?;
        Some(Action::Run { node: self.machine("on")?, command })
    }

    fn heal(&self) -> Option<Action> {
        match self.fields.text(self.verb).and_then(|name| self.topology.link(name)) {
            Some(link) => Some(Action::Heal { link: link.name.clone() }),
            None => match self.fields.text(self.verb).and_then(|name| self.topology.node(name)) {
                Some(node) if node.machine().is_none() => {
                    Some(Action::HealDisk { node: self.own_server()? })
                }
                _ => Some(Action::Reconnect { node: self.machine(self.verb)? }),
            },
        }
    }

    /// The link behind the verb.
    fn link(&self) -> Option<String> {
        Some(link_named(self.fields, self.verb, self.topology)?.name.clone())
    }

    fn sql(&self) -> Option<Action> {
        let node = match self.fields.value("on") {
            Some(_) => match self.chosen("on") {
                Some(words) => words,
                // PAUSE and RESUME are a pooler's.
                None => match node(self.fields, "on", self.topology)?.kind {
                    NodeKind::Pgbouncer(_) => self.fields.text("on")?.to_owned(),
                    _ => server(self.fields, "on", self.topology)?.name.clone(),
                },
            },
            None => self.topology.first()?.name.clone(),
        };
        let sql = sql_text(self.fields.required("sql")?, self.folder, self.fields.problems)?;
        Some(Action::Sql { node, sql })
    }

    fn checkpoint(&self) -> Option<Action> {
        Some(Action::Checkpoint { node: self.server()? })
    }

    /// The server behind the verb.
    fn server(&self) -> Option<String> {
        match self.chosen(self.verb) {
            Some(words) => Some(words),
            None => Some(server(self.fields, self.verb, self.topology)?.name.clone()),
        }
    }

    fn stop(&self) -> Option<Action> {
        let mode = self.fields.choice("mode", STOP_MODES).unwrap_or(StopMode::Fast);
        let action =
            self.of_node(ProcessVerb::Stop, |node| Action::Stop { node, mode: StopMode::Fast })?;
        Some(match action {
            Action::Stop { node, .. } => Action::Stop { node, mode },
            other => other,
        })
    }

    fn kill_backend(&self) -> Option<Action> {
        // Memory is limited of processes that the rig has started.
        let (node, memory_bytes) = match self.fields.value("memory") {
            Some(_) => (self.own_server()?, Some(throttle::bytes(self.fields, "memory", "bytes")?)),
            None => (self.server()?, None),
        };
        Some(Action::KillBackend { node, memory_bytes })
    }

    fn cut(&self) -> Option<Action> {
        let direction = self.fields.choice("direction", DIRECTIONS).unwrap_or(Direction::Both);
        let name = self.fields.text(self.verb)?;
        let is_node = self.topology.node(name).is_some();
        if !is_node && self.chosen(self.verb).is_none() {
            return Some(Action::Cut { direction, link: self.link()? });
        }
        let node = self.machine(self.verb)?;
        let named = self.fields.texts("from").into_iter();
        let (clients, names): (Vec<_>, Vec<_>) =
            named.map(|(name, _)| name).partition(|name| name == CLIENTS);
        let span = span_of(self.fields, "from");
        let mut from = self.topology.all_called(&names, span, self.fields.problems);
        from.extend(clients);
        Some(Action::CutOff { node, from, direction })
    }

    fn delay(&self) -> Option<Action> {
        let to = self.fields.required("to");
        let to = to.and_then(|value| link::delay_us("to", value, self.fields.problems));
        Some(Action::Delay { link: self.link()?, to_us: to? })
    }

    /// `write = 100` or `flush = 10`: a request of a disk.
    fn request(&self) -> Option<DiskRequest> {
        let number = |key| self.fields.integer(key, 1..=REQUEST_MAX);
        match (number("write"), number("flush")) {
            (Some(_), Some(_)) => {
                self.fields.problems.add(self.fields.span(), "write or flush, not both");
                None
            }
            (Some(number), None) => Some(DiskRequest::Write(number)),
            (None, number) => number.map(DiskRequest::Flush),
        }
    }

    fn rejoin(&self) -> Option<Action> {
        let by = self.fields.choice("by", REJOIN_BY).unwrap_or(RejoinBy::Rewind);
        self.fields.required("of")?;
        let of = self.chosen_into("of", &self.chosen_of);
        let of = of.or_else(|| own_server(self.fields, "of", self.topology));
        let node = self.chosen(self.verb).or_else(|| self.own_server());
        let (Some(of), Some(node)) = (of, node) else { return None };
        if node == of {
            let message = format!("{node} cannot follow itself");
            self.fields.problems.add(span_of(self.fields, "of"), message);
        }
        Some(Action::Rejoin { node, of, by })
    }

    fn subscribe(&self) -> Option<Action> {
        let node = node(self.fields, self.verb, self.topology)?;
        let begins = |to: &Subscription| to.begin == SubscriptionBegin::ByAction;
        if !node.subscribes.as_ref().is_some_and(begins) {
            let message = format!("{} has no subscription that begins by an action", node.name);
            let hint = "give it subscribes = { to = NODE, begin = \"action\" }";
            self.fields.problems.hinted(span_of(self.fields, self.verb), message, hint);
        }
        Some(Action::Subscribe { node: node.name.clone() })
    }

    fn step_clock(&self) -> Option<Action> {
        let text = self.fields.required("by").and_then(|_| self.fields.text("by"));
        let by_us = text.and_then(|text| {
            let (back, length) = match text.strip_prefix('-') {
                Some(length) => (true, length),
                None => (false, text),
            };
            match duration::parse_us(length) {
                Ok(us) => i64::try_from(us).ok().map(|us| if back { -us } else { us }),
                Err(why) => {
                    let hint = "write by = \"-3s\" for back, by = \"3s\" for forth";
                    self.fields.problems.hinted(
                        span_of(self.fields, "by"),
                        format!("by: {why}"),
                        hint,
                    );
                    None
                }
            }
        });
        Some(Action::StepClock { node: self.own_server()?, by_us: by_us? })
    }

    fn throttle(&self) -> Option<Action> {
        let to = self.fields.required("to");
        let to = to.and_then(|value| NodeThrottle::parse(value, self.fields.problems));
        Some(Action::Throttle { node: self.own_server()?, to: to? })
    }

    /// The server behind the verb, which the rig starts itself.
    pub(super) fn own_server(&self) -> Option<String> {
        own_server(self.fields, self.verb, self.topology)
    }

    fn slow_disk(&self) -> Option<Action> {
        let at = self.request().unwrap_or(DiskRequest::Flush(1));
        let by = self.fields.required("by");
        let by = by.and_then(|value| link::delay_us("by", value, self.fields.problems));
        Some(Action::SlowDisk { node: self.server()?, at, by_us: by? })
    }

    fn fail_disk(&self) -> Option<Action> {
        let at = self.request().unwrap_or(DiskRequest::Write(1));
        let fault = self.fields.choice("error", DISK_FAULTS).unwrap_or(DiskFault::Broken);
        Some(Action::FailDisk { node: self.server()?, at, fault })
    }
}

/// A verb of the timeline.
pub(crate) struct Verb {
    pub(crate) word: &'static str,
    /// The action as study.toml writes it.
    pub(crate) form: &'static str,
    /// A clause of a sentence that explains it.
    pub(crate) says: &'static str,
    parse: fn(&Entry<'_>) -> Option<Action>,
}

/// The row of a verb.
const fn verb(
    word: &'static str,
    form: &'static str,
    says: &'static str,
    parse: fn(&Entry<'_>) -> Option<Action>,
) -> Verb {
    Verb { word, form, says, parse }
}

pub(crate) const VERBS: &[Verb] = &[
    verb(
        "sql",
        "{ at = \"5s\", sql = \"SELECT …\", on = NODE }",
        "runs SQL on a server",
        |entry| entry.sql(),
    ),
    verb("checkpoint", "{ at = \"5s\", checkpoint = NODE }", "runs CHECKPOINT", |entry| {
        entry.checkpoint()
    }),
    verb(
        "backup",
        "{ at = \"1s\", backup = NODE }",
        "takes a base backup of a server with archive = true, which the check restore begins with",
        |entry| Some(Action::Backup { node: entry.server()? }),
    ),
    verb(
        "restore_point",
        "{ at = \"random(3s,8s)\", restore_point = NODE }",
        "notes a moment that the check restore goes to: the server's clock, its position in the WAL, a restore point with a name, and a transaction",
        |entry| Some(Action::RestorePoint { node: entry.server()? }),
    ),
    verb(
        "step_clock",
        "{ at = \"5s\", step_clock = NODE, by = \"-3s\" }",
        "steps the clock that a server with own_clock = true sees; the machine's stays",
        |entry| entry.step_clock(),
    ),
    verb(
        "hold_snapshot",
        "{ at = \"0s\", hold_snapshot = NODE }",
        "begins a transaction that keeps its snapshot and does nothing more (idle in transaction), so that no dead row that is younger can be removed; on a standby with hot_standby_feedback its primary cannot remove them either",
        |entry| Some(Action::HoldSnapshot { node: entry.server()? }),
    ),
    verb(
        "release_snapshot",
        "{ at = \"9s\", release_snapshot = NODE }",
        "ends the transaction of hold_snapshot",
        |entry| Some(Action::ReleaseSnapshot { node: entry.server()? }),
    ),
    verb(
        "stop",
        "{ at = \"5s\", stop = NODE, mode = \"fast\" }",
        "shuts a node down, or one process of a machine",
        |entry| entry.stop(),
    ),
    verb(
        "kill",
        "{ at = \"5s\", kill = NODE, process = \"server\" }",
        "sends SIGKILL to all processes of a node, or to one process of a machine",
        |entry| entry.of_node(ProcessVerb::Kill, |node| Action::Kill { node }),
    ),
    verb(
        "kill_backend",
        "{ at = \"5s\", kill_backend = NODE }",
        "kills the server process whose statement has run longest; with memory = \"256MB\", the kernel kills one when the server's processes have taken so much more (as root)",
        |entry| entry.kill_backend(),
    ),
    verb(
        "unthrottle",
        "{ at = \"5s\", unthrottle = NODE }",
        "ends the limit on a server's I/O, and what made its disk slow",
        |entry| Some(Action::Unthrottle { node: entry.server()? }),
    ),
    verb(
        "pause",
        "{ at = \"5s\", pause = NODE, process = \"server\" }",
        "sends SIGSTOP to all processes of a node, or to one process of a machine",
        |entry| entry.of_node(ProcessVerb::Pause, |node| Action::Pause { node }),
    ),
    verb(
        "continue",
        "{ at = \"9s\", continue = NODE, process = \"server\" }",
        "lets go on what was paused",
        |entry| entry.of_node(ProcessVerb::Continue, |node| Action::Continue { node }),
    ),
    verb(
        "start",
        "{ at = \"9s\", start = NODE }",
        "starts what was stopped, killed or cut off from power",
        |entry| entry.of_node(ProcessVerb::Start, |node| Action::Start { node }),
    ),
    verb(
        "run",
        "{ at = \"5s\", run = [\"PROGRAM\", \"ARGUMENT\"], on = NODE }",
        "runs a command of the study on a machine",
        |entry| entry.run(),
    ),
    verb(
        "rebalance",
        "{ at = \"5s\", rebalance = NODE, to = [\"shard1\"] }",
        "moves the rows of a PL/Proxy cluster",
        |entry| rebalance::parse(entry.fields, entry.topology),
    ),
    verb(
        "rejoin",
        "{ at = \"9s\", rejoin = NODE, of = NODE, by = \"rewind\" }",
        "stops a server, makes it a standby of another one by pg_rewind or a base backup, and starts it",
        |entry| entry.rejoin(),
    ),
    verb(
        "throttle",
        "{ at = \"5s\", throttle = NODE, to = { write_iops = 50 } }",
        "limits a server's I/O from then on",
        |entry| entry.throttle(),
    ),
    verb("promote", "{ at = \"5s\", promote = NODE }", "makes a standby a primary", |entry| {
        Some(Action::Promote { node: entry.node()? })
    }),
    verb(
        "subscribe",
        "{ at = \"5s\", subscribe = NODE }",
        "makes the subscription of a server whose subscribes has begin = \"action\"",
        |entry| entry.subscribe(),
    ),
    verb(
        "power_cut",
        "{ at = \"5s\", power_cut = NODE }",
        "takes the power from a server's disk and all processes on it; with write = 100 or flush = 10, at that request",
        |entry| Some(Action::PowerCut { node: entry.node()?, at: entry.request() }),
    ),
    verb(
        "slow_disk",
        "{ at = \"5s\", slow_disk = NODE, flush = 10, by = \"20ms\" }",
        "has a server's block disk take so much longer for every such request from that one on, until unthrottle",
        |entry| entry.slow_disk(),
    ),
    verb(
        "fail_disk",
        "{ at = \"5s\", fail_disk = NODE, write = 100, error = \"EIO\" }",
        "has a server's block disk fail every request from that one on",
        |entry| entry.fail_disk(),
    ),
    verb(
        "fail_requests",
        "{ at = \"5s\", fail_requests = NODE, of = \"heap\", on = \"write\", times = 3, error = \"EIO\" }",
        "has requests of a server's block disk fail, while others are done: so many, or all until heal; of = wal, heap, index, slru, control or a path, on = read, write or flush",
        fail_requests::parse,
    ),
    verb(
        "cut",
        "{ at = \"5s\", cut = LINK or NODE, from = [\"clients\"], direction = \"both\" }",
        "lets nothing pass a link, or between a machine and others",
        |entry| entry.cut(),
    ),
    verb(
        "delay",
        "{ at = \"5s\", delay = LINK, to = \"20ms\" }",
        "gives a link another delay",
        |entry| entry.delay(),
    ),
    verb("reset", "{ at = \"5s\", reset = LINK }", "ends all connections of a link", |entry| {
        Some(Action::Reset { link: entry.link()? })
    }),
    verb(
        "heal",
        "{ at = \"9s\", heal = LINK or NODE }",
        "ends what was done to a link, or what cut a machine off",
        |entry| entry.heal(),
    ),
];

/// The other end of a cut that is no machine.
const CLIENTS: &str = "clients";
const STOP_MODES: &[(&str, StopMode)] =
    &[("fast", StopMode::Fast), ("immediate", StopMode::Immediate)];
const DIRECTIONS: &[(&str, Direction)] =
    &[("both", Direction::Both), ("to", Direction::To), ("from", Direction::From)];
const REJOIN_BY: &[(&str, RejoinBy)] =
    &[("rewind", RejoinBy::Rewind), ("backup", RejoinBy::Backup)];
pub(super) const DISK_FAULTS: &[(&str, DiskFault)] =
    &[("EIO", DiskFault::Broken), ("ENOSPC", DiskFault::Full)];

/// More than a load of hours asks a disk for.
const REQUEST_MAX: u64 = 1_000_000_000_000;
