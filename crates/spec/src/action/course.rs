//! Conditions that must hold before an action can be done.

use super::Action;
use crate::disk::DiskKind;
use crate::node::TopologyNode;
use crate::topology::Topology;

/// The state of the nodes and links on the way through a timeline.
#[derive(Default)]
pub(crate) struct TopologyState {
    down: Vec<String>,
    paused: Vec<String>,
    promoted: Vec<String>,
    /// Standbys by an action.
    rejoined: Vec<String>,
    faulty: Vec<String>,
    throttled: Vec<String>,
    /// Servers on which a snapshot is held.
    held: Vec<String>,
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
            // A manager goes on with a disk that fails.
            Action::FailDisk { .. }
                if topology.node(&name).is_some_and(|n| n.machine().is_some()) => {}
            Action::Stop { .. }
            | Action::Kill { .. }
            | Action::PowerCut { .. }
            | Action::FailDisk { .. } => {
                was(&mut self.paused);
                self.down.push(name.clone());
            }
            Action::Start { .. } if !was(&mut self.down) => {
                return Err(format!("{name} was not stopped before"));
            }
            // It is started, whatever it was before.
            Action::Rejoin { of, .. } => {
                if *of == name {
                    return Err(format!("{name} cannot follow itself"));
                }
                if let Some(why) = self.gives_no_answer(of) {
                    return Err(why);
                }
                if let Some(why) = [&name, of].into_iter().find_map(|node| not_own(node, topology))
                {
                    return Err(why);
                }
                was(&mut self.down);
                was(&mut self.paused);
                self.promoted.retain(|known| *known != name);
                self.rejoined.push(name.clone());
            }
            Action::Throttle { .. } | Action::SlowDisk { .. } => self.throttled.push(name.clone()),
            Action::Pause { .. } => self.paused.push(name.clone()),
            Action::HoldSnapshot { .. } if self.held.contains(&name) => {
                return Err(format!("a snapshot of {name} is held already"));
            }
            Action::HoldSnapshot { .. } => self.held.push(name.clone()),
            Action::ReleaseSnapshot { .. } if !was(&mut self.held) => {
                return Err(format!("no snapshot of {name} is held by then"));
            }
            Action::Continue { .. } if !was(&mut self.paused) => {
                return Err(format!("{name} was not paused before"));
            }
            Action::Promote { .. } if self.promoted.contains(&name) => {
                return Err(format!("{name} was promoted before"));
            }
            Action::Promote { .. }
                if !self.rejoined.contains(&name)
                    && topology.node(&name).is_some_and(|node| node.follows().is_none()) =>
            {
                return Err(format!("{name} is no standby"));
            }
            Action::Promote { .. } => {
                self.promoted.push(name.clone());
                self.rejoined.retain(|known| *known != name);
            }
            Action::Cut { .. } | Action::Delay { .. } | Action::Reset { .. } => {
                self.faulty.push(name.clone());
            }
            Action::Heal { .. } if !was(&mut self.faulty) => {
                return Err(format!("nothing was done to {name} before"));
            }
            Action::Heal { .. } => self.faulty.retain(|known| *known != name),
            Action::CutOff { .. } | Action::FailRequests { .. } => self.faulty.push(name.clone()),
            Action::HealDisk { .. } if !was(&mut self.faulty) => {
                return Err(format!("no requests of {name} were failed before"));
            }
            Action::Reconnect { .. } if !was(&mut self.faulty) => {
                return Err(format!("{name} was not cut off before"));
            }
            Action::Reconnect { .. } => self.faulty.retain(|known| *known != name),
            _ => {}
        }
        if let Some(why) = topology.node(&name).and_then(|node| lacks_part(action, node)) {
            return Err(why);
        }
        match (action, topology.node(&name)) {
            (
                Action::Promote { .. }
                | Action::Sql { .. }
                | Action::Checkpoint { .. }
                | Action::Backup { .. }
                | Action::RestorePoint { .. }
                | Action::StepClock { .. }
                | Action::HoldSnapshot { .. }
                | Action::ReleaseSnapshot { .. }
                | Action::KillBackend { .. },
                Some(_),
            ) => self.gives_no_answer(&name).map_or(Ok(()), Err),
            (Action::Unthrottle { .. }, Some(node))
                if node.throttle.is_none() && !self.throttled.contains(&name) =>
            {
                Err(format!("the I/O of {name} is not limited: give it throttle = {{ … }}"))
            }
            _ => Ok(()),
        }
    }

    /// Says why a server gives no answer.
    fn gives_no_answer(&self, name: &String) -> Option<String> {
        match (self.down.contains(name), self.paused.contains(name)) {
            (true, _) => Some(format!("{name} is down by then")),
            (false, true) => Some(format!("{name} stands still by then")),
            (false, false) => None,
        }
    }
}

/// Says why a node is no server that pgrig starts itself.
fn not_own(name: &str, topology: &Topology) -> Option<String> {
    let node = topology.node(name).filter(|node| !node.is_postgres())?;
    Some(format!("{name} is {}, whose server pgrig does not start", node.noun()))
}

/// Says why a node has not the disk or the archive that an action needs, where it has not.
fn lacks_part(action: &Action, node: &TopologyNode) -> Option<String> {
    let TopologyNode { name, disk, .. } = node;
    match action {
        Action::StepClock { .. } if !node.has_own_clock => {
            Some(format!("{name} has the clock of the machine: give it own_clock = true"))
        }
        Action::Backup { .. } | Action::RestorePoint { .. } if !node.is_archived => {
            Some(format!("{name} has no archive: give it archive = true"))
        }
        Action::PowerCut { .. } if !disk.can_be_cut() => {
            Some(format!("the disk of {name} cannot be cut: give it disk = {{ cut = … }}"))
        }
        Action::FailDisk { .. }
        | Action::FailRequests { .. }
        | Action::SlowDisk { .. }
        | Action::PowerCut { at: Some(_), .. }
            if !matches!(disk, DiskKind::CutBlock { .. }) =>
        {
            Some(format!("{name} has no block disk: give it disk = {{ cut = \"block\" }}"))
        }
        Action::FailDisk { .. } | Action::PowerCut { at: Some(_), .. }
            if disk.has_parts_apart() =>
        {
            Some(format!(
                "{name} has several disks, and a request is counted on one: leave out wal and tablespaces at its \
                 disk"
            ))
        }
        _ => None,
    }
}

/// Says why an action on a node that is found at its moment cannot have an effect: none of those that it
/// may find has the disk for it, or is one that pgrig starts.
pub(crate) fn lacks_any(action: &Action, topology: &Topology) -> Option<String> {
    let lacks = |node: &TopologyNode| match action {
        Action::Rejoin { .. } => not_own(&node.name, topology),
        _ => lacks_part(action, node),
    };
    let may_be = topology.nodes.iter().filter(|node| node.has_server());
    let lacks: Option<Vec<String>> = may_be.map(lacks).collect();
    lacks?.into_iter().next()
}
