//! What is done at a moment of the timeline, and what must have happened before it can be.

use terms::{Direction, DiskFault, DiskRequest, StopMode};

use crate::disk::Disk;
use crate::fields::Fields;
use crate::folder::Folder;
use crate::link::{self, Link};
use crate::node::{Node, NodeKind};
use crate::timeline::{Step, sql_text};
use crate::topology::Topology;
use crate::value::Value;

/// Something done at a moment of the timeline. Each proves its effect or voids the trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs SQL on a server.
    Sql(Step),
    /// Runs CHECKPOINT on a server.
    Checkpoint {
        /// The server.
        node: String,
    },
    /// Shuts a node down.
    Stop {
        /// The node.
        node: String,
        /// pg_ctl's shutdown mode.
        mode: StopMode,
    },
    /// Kills all processes of a node with SIGKILL.
    Kill {
        /// The node.
        node: String,
    },
    /// Kills the server process whose client's statement has run longest with SIGKILL.
    KillBackend {
        /// The server.
        node: String,
    },
    /// Ends the limit on a server's I/O.
    Unthrottle {
        /// The server.
        node: String,
    },
    /// Stops all processes of a node with SIGSTOP: its connections stay open, nothing answers.
    Pause {
        /// The node.
        node: String,
    },
    /// Lets a paused node go on.
    Continue {
        /// The node.
        node: String,
    },
    /// Starts a node that was stopped, killed or cut off from power.
    Start {
        /// The node.
        node: String,
    },
    /// Moves the rows of a PL/Proxy cluster until these servers hold them, and no others.
    Rebalance {
        /// The proxy.
        node: String,
        /// The servers that hold the data afterwards.
        to: Vec<String>,
    },
    /// Makes a standby a primary.
    Promote {
        /// The standby.
        node: String,
    },
    /// Takes the power from a server's disk and all processes on it.
    PowerCut {
        /// The server.
        node: String,
        /// The request of its block disk at which that happens; none for at once.
        at: Option<DiskRequest>,
    },
    /// Has a server's block disk fail from a request on; when the server has ended, its power is cut.
    FailDisk {
        /// The server.
        node: String,
        /// The first request that fails.
        at: DiskRequest,
        /// What it gets.
        fault: DiskFault,
    },
    /// Lets nothing pass a link any more.
    Cut {
        /// The link.
        link: String,
        /// In which direction.
        direction: Direction,
    },
    /// Gives a link another delay.
    Delay {
        /// The link.
        link: String,
        /// In each direction, in microseconds.
        to_us: u64,
    },
    /// Ends all connections of a link with a reset.
    Reset {
        /// The link.
        link: String,
    },
    /// Ends what was done to a link: nothing is cut, its delay is the topology's.
    Heal {
        /// The link.
        link: String,
    },
}

impl Action {
    /// The node or the link that it touches.
    #[must_use]
    pub fn target(&self) -> &str {
        match self {
            Action::Sql(step) => &step.node,
            Action::Checkpoint { node }
            | Action::Stop { node, .. }
            | Action::Kill { node }
            | Action::KillBackend { node }
            | Action::Unthrottle { node }
            | Action::Pause { node }
            | Action::Continue { node }
            | Action::Start { node }
            | Action::Rebalance { node, .. }
            | Action::Promote { node }
            | Action::PowerCut { node, .. }
            | Action::FailDisk { node, .. } => node,
            Action::Cut { link, .. }
            | Action::Delay { link, .. }
            | Action::Reset { link }
            | Action::Heal { link } => link,
        }
    }

    /// The verb, as study.toml writes it.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Action::Sql(_) => "sql",
            Action::Checkpoint { .. } => "checkpoint",
            Action::Stop { .. } => "stop",
            Action::Kill { .. } => "kill",
            Action::KillBackend { .. } => "kill_backend",
            Action::Unthrottle { .. } => "unthrottle",
            Action::Pause { .. } => "pause",
            Action::Continue { .. } => "continue",
            Action::Start { .. } => "start",
            Action::Rebalance { .. } => "rebalance",
            Action::Promote { .. } => "promote",
            Action::PowerCut { .. } => "power_cut",
            Action::FailDisk { .. } => "fail_disk",
            Action::Cut { .. } => "cut",
            Action::Delay { .. } => "delay",
            Action::Reset { .. } => "reset",
            Action::Heal { .. } => "heal",
        }
    }

    /// Whether it only talks to a server, as anybody may who can connect.
    #[must_use]
    pub fn is_sql(&self) -> bool {
        matches!(self, Action::Sql(_) | Action::Checkpoint { .. })
    }

    pub(crate) fn parse(
        fields: &Fields<'_>,
        topology: &Topology,
        folder: &Folder,
    ) -> Option<Action> {
        let problems = fields.problems;
        // `on` of sql and `to` of delay stand beside their verb.
        let mut found = VERBS.iter().filter(|(verb, _)| fields.entry(verb).is_some());
        match (found.next(), found.next()) {
            (Some((verb, parse)), None) => parse(&Entry { fields, verb, topology, folder }),
            (None, _) => {
                let hint = format!("one of {}", VERBS.map(|(verb, _)| verb).join(", "));
                problems.hinted(fields.span(), "an action without a verb", hint);
                None
            }
            (Some((first, _)), Some((second, _))) => {
                let others = found.map(|(verb, _)| *verb);
                let verbs: Vec<&str> = [*first, *second].into_iter().chain(others).collect();
                let message = format!("one action at a time, not {}", verbs.join(" and "));
                problems.add(fields.span(), message);
                None
            }
        }
    }
}

/// An action as study.toml writes it.
struct Entry<'e> {
    fields: &'e Fields<'e>,
    verb: &'static str,
    topology: &'e Topology,
    folder: &'e Folder,
}

impl Entry<'_> {
    /// The node behind the verb.
    fn node(&self) -> Option<String> {
        Some(node(self.fields, self.verb, self.topology)?.name.clone())
    }

    /// The link behind the verb.
    fn link(&self) -> Option<String> {
        Some(link_named(self.fields, self.verb, self.topology)?.name.clone())
    }

    fn sql(&self) -> Option<Action> {
        let node = match self.fields.value("on") {
            Some(_) => server(self.fields, "on", self.topology)?,
            None => self.topology.first()?,
        };
        let sql = sql_text(self.fields.required("sql")?, self.folder, self.fields.problems)?;
        Some(Action::Sql(Step { node: node.name.clone(), sql }))
    }

    fn checkpoint(&self) -> Option<Action> {
        Some(Action::Checkpoint { node: self.server()? })
    }

    /// The server behind the verb.
    fn server(&self) -> Option<String> {
        Some(server(self.fields, self.verb, self.topology)?.name.clone())
    }

    fn stop(&self) -> Option<Action> {
        let mode = self.fields.choice("mode", STOP_MODES).unwrap_or(StopMode::Fast);
        Some(Action::Stop { mode, node: self.node()? })
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

    fn fail_disk(&self) -> Option<Action> {
        let at = self.request().unwrap_or(DiskRequest::Write(1));
        let fault = self.fields.choice("error", DISK_FAULTS).unwrap_or(DiskFault::Broken);
        Some(Action::FailDisk { node: self.server()?, at, fault })
    }

    fn cut(&self) -> Option<Action> {
        let direction = self.fields.choice("direction", DIRECTIONS).unwrap_or(Direction::Both);
        Some(Action::Cut { direction, link: self.link()? })
    }

    fn delay(&self) -> Option<Action> {
        let to = self.fields.required("to");
        let to = to.and_then(|value| link::delay_us("to", value, self.fields.problems));
        Some(Action::Delay { link: self.link()?, to_us: to? })
    }
}

/// Reads the action of one verb.
type Parse = fn(&Entry<'_>) -> Option<Action>;

/// Every verb with what reads its action.
const VERBS: [(&str, Parse); 17] = [
    ("sql", |entry| entry.sql()),
    ("checkpoint", |entry| entry.checkpoint()),
    ("stop", |entry| entry.stop()),
    ("kill", |entry| Some(Action::Kill { node: entry.node()? })),
    ("kill_backend", |entry| Some(Action::KillBackend { node: entry.server()? })),
    ("unthrottle", |entry| Some(Action::Unthrottle { node: entry.server()? })),
    ("pause", |entry| Some(Action::Pause { node: entry.node()? })),
    ("continue", |entry| Some(Action::Continue { node: entry.node()? })),
    ("start", |entry| Some(Action::Start { node: entry.node()? })),
    ("rebalance", |entry| rebalance(entry.fields, entry.topology)),
    ("promote", |entry| Some(Action::Promote { node: entry.node()? })),
    ("power_cut", |entry| Some(Action::PowerCut { node: entry.node()?, at: entry.request() })),
    ("fail_disk", |entry| entry.fail_disk()),
    ("cut", |entry| entry.cut()),
    ("delay", |entry| entry.delay()),
    ("reset", |entry| Some(Action::Reset { link: entry.link()? })),
    ("heal", |entry| Some(Action::Heal { link: entry.link()? })),
];

/// A cluster's proxy, and the servers that shall hold its data.
fn rebalance(fields: &Fields<'_>, topology: &Topology) -> Option<Action> {
    let node = node(fields, "rebalance", topology)?;
    if !matches!(node.kind, NodeKind::Plproxy(_)) {
        let message = format!("{} is no PL/Proxy server", node.name);
        fields.problems.add(span_of(fields, "rebalance"), message);
        return None;
    }
    if let NodeKind::Plproxy(proxy) = &node.kind
        && proxy.partitions.is_some()
    {
        let message = format!("{} has partitions of its own, which stay where they are", node.name);
        fields.problems.add(span_of(fields, "rebalance"), message);
    }
    fields.required("to")?;
    let names: Vec<String> = fields.texts("to").into_iter().map(|(name, _)| name).collect();
    let to = topology.all_called(&names, span_of(fields, "to"), fields.problems);
    Some(Action::Rebalance { node: node.name.clone(), to })
}

/// What has become of the nodes and links on the way through a timeline.
#[derive(Default)]
pub(crate) struct TopologyState {
    down: Vec<String>,
    paused: Vec<String>,
    promoted: Vec<String>,
    faulty: Vec<String>,
}

impl TopologyState {
    /// Takes one action further; says why it cannot have an effect.
    pub(crate) fn follow(&mut self, action: &Action, topology: &Topology) -> Result<(), String> {
        let name = action.target().to_owned();
        let was = |list: &mut Vec<String>| match list.iter().position(|known| *known == name) {
            Some(at) => {
                list.swap_remove(at);
                true
            }
            None => false,
        };
        match action {
            Action::Stop { .. }
            | Action::Kill { .. }
            | Action::PowerCut { .. }
            | Action::FailDisk { .. } => {
                was(&mut self.paused);
                self.down.push(name.clone());
            }
            Action::Start { .. } => {
                if !was(&mut self.down) {
                    return Err(format!("{name} was not stopped before"));
                }
            }
            Action::Pause { .. } => self.paused.push(name.clone()),
            Action::Continue { .. } => {
                if !was(&mut self.paused) {
                    return Err(format!("{name} was not paused before"));
                }
            }
            Action::Promote { .. } if self.promoted.contains(&name) => {
                return Err(format!("{name} was promoted before"));
            }
            Action::Promote { .. } => self.promoted.push(name.clone()),
            Action::Cut { .. } | Action::Delay { .. } | Action::Reset { .. } => {
                self.faulty.push(name.clone());
            }
            Action::Heal { .. } if !was(&mut self.faulty) => {
                return Err(format!("nothing was done to {name} before"));
            }
            Action::Heal { .. } => self.faulty.retain(|known| *known != name),
            Action::Sql(_)
            | Action::Checkpoint { .. }
            | Action::KillBackend { .. }
            | Action::Unthrottle { .. }
            | Action::Rebalance { .. } => {}
        }
        match (action, topology.node(&name)) {
            (Action::Promote { .. }, Some(node)) if node.follows().is_none() => {
                Err(format!("{name} is no standby"))
            }
            (Action::PowerCut { .. }, Some(node)) if !node.disk.can_be_cut() => {
                Err(format!("the disk of {name} cannot be cut: give it disk = {{ cut = … }}"))
            }
            (
                Action::FailDisk { .. } | Action::PowerCut { at: Some(_), .. },
                Some(Node { disk, .. }),
            ) if !matches!(disk, Disk::CutBlock { .. }) => {
                Err(format!("{name} has no block disk: give it disk = {{ cut = \"block\" }}"))
            }
            (Action::Sql(_) | Action::Checkpoint { .. } | Action::KillBackend { .. }, Some(_))
                if self.down.contains(&name) =>
            {
                Err(format!("{name} is down by then"))
            }
            (Action::Unthrottle { .. }, Some(node)) if node.throttle.is_none() => {
                Err(format!("the I/O of {name} is not limited: give it throttle = {{ … }}"))
            }
            _ => Ok(()),
        }
    }
}

/// A node that the topology has.
pub(crate) fn node<'t>(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &'t Topology,
) -> Option<&'t Node> {
    let name = fields.text(key)?;
    let found = topology.node(name);
    if found.is_none() {
        let known = topology.nodes.iter().map(|node| node.name.as_str());
        fields.problems.unknown(span_of(fields, key), "node", name, known);
    }
    found
}

/// A node that understands SQL.
pub(crate) fn server<'t>(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &'t Topology,
) -> Option<&'t Node> {
    let node = node(fields, key, topology)?;
    if node.is_postgres() {
        return Some(node);
    }
    let what = match node.kind {
        NodeKind::Guard(_) => "a guard",
        _ => "a pooler",
    };
    let message = format!("{} is {what}, no PostgreSQL server", node.name);
    fields.problems.add(span_of(fields, key), message);
    None
}

fn link_named<'t>(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &'t Topology,
) -> Option<&'t Link> {
    let name = fields.text(key)?;
    let found = topology.link(name);
    if found.is_none() {
        let known = topology.links.iter().map(|link| link.name.as_str());
        fields.problems.unknown(span_of(fields, key), "link", name, known);
    }
    found
}

fn span_of<'t>(fields: &'t Fields<'_>, key: &'static str) -> &'t std::ops::Range<usize> {
    fields.value(key).map_or(fields.span(), |value: &Value| &value.span)
}

const STOP_MODES: &[(&str, StopMode)] =
    &[("fast", StopMode::Fast), ("immediate", StopMode::Immediate)];
const DIRECTIONS: &[(&str, Direction)] =
    &[("both", Direction::Both), ("to", Direction::To), ("from", Direction::From)];
const DISK_FAULTS: &[(&str, DiskFault)] =
    &[("EIO", DiskFault::Broken), ("ENOSPC", DiskFault::Full)];

/// More than a load of hours asks a disk for.
const REQUEST_MAX: u64 = 1_000_000_000_000;
