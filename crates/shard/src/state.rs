//! The places of the buckets: what the proxy believes, what every node says, and what follows from both.
//!
//! Every switch has a number, the version of the mapping that it makes. A number stands for one mapping
//! only, because a new one is greater than every number of the proxy and of all nodes.
//!
//! - A node keeps with each bucket the number of the switch by which it came or left. Of two nodes that
//!   serve a bucket, the one with the lower number has an old copy. A bucket that has left in a switch
//!   later than the one by which it came to the node that serves it was lost by its later node.
//! - A node's own version certifies its buckets: the transaction that gives a node a version compares the
//!   buckets that the node serves with the mapping of that version. So nodes with the proxy's version
//!   hold each bucket once, and only they may answer a call to all nodes.
//!
//! Servers are restored, fail over and lose transactions, so nothing of this is taken for granted:
//! [`ClusterState::decide`] goes on only from states that a step leaves behind, completes what is
//! certain, and refuses the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::plan::Batch;

#[cfg(test)]
mod model;

/// State of a bucket on a node that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum BucketState {
    /// It is being copied to the node.
    Arriving,
    /// It is read and written there.
    Owned,
    /// It is only read there, and about to leave.
    Fenced,
    /// It has left, and its rows are still there.
    Gone,
}

impl BucketState {
    const ALL: [Self; 4] = [Self::Arriving, Self::Owned, Self::Fenced, Self::Gone];

    /// The word in the table of buckets.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Arriving => "arriving",
            Self::Owned => "owned",
            Self::Fenced => "fenced",
            Self::Gone => "gone",
        }
    }

    /// The state of a word, if it is one.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// True if the node answers calls for the bucket.
    pub(crate) fn serves(self) -> bool {
        matches!(self, Self::Owned | Self::Fenced)
    }
}

/// Progress of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BatchStep {
    /// Nothing has happened, or a part of the preparation.
    Planned,
    /// Rows are copied, and changes after them.
    Copying,
    /// Writes are refused, what is under way ends, both sides are compared.
    Fencing,
    /// The source leaves, the target serves, the mapping changes.
    Switching,
    /// The target serves; the old rows are still there.
    Switched,
}

impl BatchStep {
    const ALL: [Self; 5] =
        [Self::Planned, Self::Copying, Self::Fencing, Self::Switching, Self::Switched];

    /// The word in the table of batches.
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Copying => "copying",
            Self::Fencing => "fencing",
            Self::Switching => "switching",
            Self::Switched => "switched",
        }
    }

    /// The step of a word, if it is one.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.word() == word)
    }
}

/// Buckets and version of one node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NodeState {
    /// The number that it gives itself. It differs from that of the list if the node has left and come again since
    /// the moment to which the proxy was restored.
    pub(crate) says: i32,
    /// The mapping's version that its buckets were last compared with.
    pub(crate) version: i64,
    /// Each bucket's state, and the switch by which it came, or left.
    pub(crate) buckets: BTreeMap<i32, (BucketState, i64)>,
    /// The nodes to which buckets have left that are gone.
    pub(crate) targets: BTreeMap<i32, i32>,
}

impl NodeState {
    /// The number that it gives itself, unless it has just been made and has never served.
    fn claims(&self) -> Option<i32> {
        (self.version > 0 || !self.buckets.is_empty()).then_some(self.says)
    }
}

/// Reply of a server that the proxy has in its list of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Member(NodeState),
    /// Its database holds nothing of this cluster.
    Stranger,
    Silent,
}

/// A batch that was begun and is not done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchState {
    pub(crate) number: i32,
    pub(crate) batch: Batch,
    pub(crate) step: BatchStep,
    /// The version that has the buckets on the target; from the step `Switching` on.
    pub(crate) version: Option<i64>,
}

/// The proxy's tables and the replies of all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClusterState {
    pub(crate) version: i64,
    /// Each bucket's node, and the switch by which it came there.
    pub(crate) owners: Vec<(i32, i64)>,
    pub(crate) batches: Vec<BatchState>,
    pub(crate) nodes: BTreeMap<i32, Reply>,
}

/// What is to be done before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryDecision {
    /// Nothing: every server is where a step leaves it.
    InStep,
    /// This node has to answer first.
    Wait {
        node: i32,
    },
    Repair(Repair),
    /// Neither side is certain to be right about these buckets.
    Refuse {
        buckets: Vec<i32>,
    },
}

/// Changes after which proxy and nodes agree, in this order: strangers, nodes, proxy, copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repair {
    /// Servers that the proxy has in its list and that hold nothing of the cluster: they become nodes
    /// without buckets and without a version before anything else is changed.
    pub(crate) strangers: Vec<i32>,
    /// Nodes that get the number of the list, before anything else is changed.
    pub(crate) renumbered: Vec<i32>,
    /// The version of the mapping that everybody gets.
    pub(crate) version: i64,
    /// Each bucket's node, and the switch by which it came there.
    pub(crate) owners: Vec<(i32, i64)>,
    /// The nodes that get the version, those first to which a bucket returns.
    pub(crate) nodes: Vec<i32>,
    /// The buckets that stay fenced: their batch is at that step.
    pub(crate) fenced: BTreeSet<i32>,
    /// The batches that are at another step than the proxy believes; none is the end of a batch that
    /// somebody else has overtaken.
    pub(crate) steps: Vec<(i32, Option<BatchStep>)>,
    /// Copies that nobody serves and that belong to no batch, by node.
    pub(crate) copies: BTreeMap<i32, Vec<i32>>,
}

/// Judgement about one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// This node serves it, since this switch.
    Owner(i32, i64),
    /// It returns to this node.
    Returns(i32),
    /// It depends on a node that does not answer.
    Unknown(i32),
    Undecided,
}

impl ClusterState {
    /// The highest version that the proxy or a node has, or that a switch was to have.
    pub(crate) fn newest(&self) -> i64 {
        let members = self.members().flat_map(|(_, state)| {
            state.buckets.values().map(|(_, since)| *since).chain([state.version])
        });
        let switches = self.batches.iter().filter_map(|one| one.version);
        members.chain(switches).fold(self.version, i64::max)
    }

    /// State of a bucket on a node, if the node has it.
    pub(crate) fn state(&self, node: i32, bucket: i32) -> Option<BucketState> {
        self.has(node, bucket).map(|(state, _)| state)
    }

    /// Decides from the states of all servers what has to be done before the next step.
    pub(crate) fn decide(&self) -> RecoveryDecision {
        let (mut owners, mut undecided, mut unknown) = (Vec::new(), Vec::new(), None);
        let mut is_returning = false;
        let next = self.newest() + 1;
        for bucket in self.buckets() {
            match self.judge(bucket) {
                Judgement::Owner(node, since) => owners.push((node, since)),
                Judgement::Returns(node) => {
                    is_returning = true;
                    owners.push((node, next));
                }
                Judgement::Unknown(node) => unknown = Some(node),
                Judgement::Undecided => undecided.push(bucket),
            }
        }
        if !undecided.is_empty() {
            return RecoveryDecision::Refuse { buckets: undecided };
        }
        if let Some(node) = unknown {
            return RecoveryDecision::Wait { node };
        }
        let strangers = self.strangers();
        if !strangers.is_empty() {
            let version = self.version;
            let repair = Repair { strangers, version, owners, ..Repair::default() };
            return RecoveryDecision::Repair(repair);
        }
        let renumbered: Vec<i32> = self.renumbered().map(|(node, _)| node).collect();
        // A bucket that returns is gone to a node by that node's own number.
        if !renumbered.is_empty() && !is_returning {
            let version = self.version;
            let repair = Repair { renumbered, version, owners, ..Repair::default() };
            return RecoveryDecision::Repair(repair);
        }
        // A switch is completed as a step if that is all that is left to do.
        let decision = match self.repair(owners.clone(), true) {
            RecoveryDecision::Repair(_) => self.repair(owners, false),
            decision => decision,
        };
        match (&decision, self.silent()) {
            // A new number must be greater than every node's, or that node would be certified by it.
            (RecoveryDecision::Repair(repair), Some(node)) if repair.version > self.version => {
                RecoveryDecision::Wait { node }
            }
            _ => decision,
        }
    }

    /// The nodes that give themselves another number than the list does, and that number.
    pub(crate) fn renumbered(&self) -> impl Iterator<Item = (i32, i32)> {
        let others = self.members().filter(|(node, state)| state.says != *node);
        others.map(|(node, state)| (node, state.says))
    }

    /// A sentence about two servers that give themselves the same number, if there are such.
    pub(crate) fn same_number(&self) -> Option<String> {
        let mut seen = BTreeMap::new();
        self.members().find_map(|(node, state)| {
            let (says, other) = (state.says, seen.insert(state.claims()?, node)?);
            Some(format!(
                "the servers of node {other} and node {node} both say that they are node {says}"
            ))
        })
    }

    /// The servers' words about buckets, a line for those of which the words are the same.
    pub(crate) fn table(&self, buckets: &[i32]) -> Vec<String> {
        let mut lines: Vec<(Vec<i32>, String)> = Vec::new();
        for bucket in buckets {
            let words = self.words(*bucket);
            match lines.iter_mut().find(|(_, said)| *said == words) {
                Some((same, _)) => same.push(*bucket),
                None => lines.push((vec![*bucket], words)),
            }
        }
        let line = |(buckets, words): (Vec<i32>, String)| {
            let numbers: Vec<String> = buckets.iter().map(i32::to_string).collect();
            let noun = if numbers.len() == 1 { "bucket" } else { "buckets" };
            format!("{noun} {}: {words}", numbers.join(" "))
        };
        lines.into_iter().map(line).collect()
    }

    /// The buckets of which something is not as a step leaves it.
    pub(crate) fn out_of_step(&self) -> Vec<i32> {
        let RecoveryDecision::Repair(repair) = self.decide() else {
            return match self.decide() {
                RecoveryDecision::Refuse { buckets } => buckets,
                _ => Vec::new(),
            };
        };
        let is_out = |bucket: &i32| {
            let owner = index(*bucket).and_then(|at| repair.owners.get(at)).map(|owner| owner.0);
            owner != self.mapped(*bucket)
                || self.members().any(|(node, _)| {
                    let serves = self.state(node, *bucket).is_some_and(BucketState::serves);
                    serves != (owner == Some(node))
                })
                || repair.copies.values().any(|copies| copies.contains(bucket))
        };
        self.buckets().filter(is_out).collect()
    }

    /// The nodes that need another version of the mapping, and the one that each has.
    pub(crate) fn lagging(&self) -> Vec<(i32, i64)> {
        let RecoveryDecision::Repair(repair) = self.decide() else { return Vec::new() };
        let members = self.members().filter(|(node, _)| repair.nodes.contains(node));
        members
            .filter(|(_, state)| state.version != self.version)
            .map(|(node, state)| (node, state.version))
            .collect()
    }

    fn buckets(&self) -> impl Iterator<Item = i32> + use<> {
        0..i32::try_from(self.owners.len()).unwrap_or(i32::MAX)
    }

    fn members(&self) -> impl Iterator<Item = (i32, &NodeState)> {
        self.nodes.iter().filter_map(|(number, reply)| match reply {
            Reply::Member(state) => Some((*number, state)),
            Reply::Stranger | Reply::Silent => None,
        })
    }

    /// The servers of the list that hold nothing of the cluster.
    pub(crate) fn strangers(&self) -> Vec<i32> {
        let strangers = self.nodes.iter().filter(|(_, reply)| **reply == Reply::Stranger);
        strangers.map(|(node, _)| *node).collect()
    }

    /// A node that does not answer, if there is one.
    pub(crate) fn silent(&self) -> Option<i32> {
        let silent = self.nodes.iter().find(|(_, reply)| **reply == Reply::Silent);
        silent.map(|(node, _)| *node)
    }

    /// True for the number that a node gives itself.
    fn is_known(&self, number: i32) -> bool {
        self.members().any(|(_, state)| state.claims() == Some(number))
    }

    /// The node to which a bucket has left that is gone from this one, if this one knows it.
    fn target(&self, node: i32, bucket: i32) -> Option<i32> {
        match self.nodes.get(&node)? {
            Reply::Member(state) => state.targets.get(&bucket).copied(),
            Reply::Stranger | Reply::Silent => None,
        }
    }

    fn mapped(&self, bucket: i32) -> Option<i32> {
        Some(self.owners.get(index(bucket)?)?.0)
    }

    fn batch_of(&self, bucket: i32) -> Option<&BatchState> {
        self.batches.iter().find(|one| one.batch.buckets.contains(&bucket))
    }

    fn has(&self, node: i32, bucket: i32) -> Option<(BucketState, i64)> {
        match self.nodes.get(&node)? {
            Reply::Member(state) => state.buckets.get(&bucket).copied(),
            Reply::Stranger | Reply::Silent => None,
        }
    }

    fn judge(&self, bucket: i32) -> Judgement {
        let Some(&(mapped, since)) = index(bucket).and_then(|at| self.owners.get(at)) else {
            return Judgement::Undecided;
        };
        let is_silent = |node: &i32| matches!(self.nodes.get(node), Some(Reply::Silent));
        let batch = self.batch_of(bucket);
        let concerned = batch.map(|one| [one.batch.from, one.batch.to]).into_iter().flatten();
        if let Some(node) = concerned.chain([mapped]).find(is_silent) {
            return Judgement::Unknown(node);
        }
        let has = self.members().filter_map(|(node, state)| {
            state.buckets.get(&bucket).map(|(state, since)| (node, *state, *since))
        });
        let has: Vec<(i32, BucketState, i64)> = has.collect();
        let left = has.iter().filter(|(_, state, _)| *state == BucketState::Gone);
        let left = left.map(|(_, _, when)| *when).max();
        let mut serving: Vec<(i64, i32)> = has
            .iter()
            .filter(|(_, state, _)| state.serves())
            .map(|(node, _, since)| (*since, *node))
            .collect();
        serving.sort_unstable();
        let is_mapped_elsewhere = serving.last().is_none_or(|(_, node)| *node != mapped);
        if is_mapped_elsewhere && let Some(node) = self.nodes.keys().find(|node| is_silent(node)) {
            // It might serve the bucket, too.
            return Judgement::Unknown(*node);
        }
        let Some((came, owner)) = serving.pop() else {
            return match self.may_return(bucket, mapped, since) {
                true => Judgement::Returns(mapped),
                false => Judgement::Undecided,
            };
        };
        let is_shared = serving.last().is_some_and(|(other, _)| *other == came);
        let has_left = left.is_some_and(|left| left > came);
        // Where the proxy does not know of the switch, clients may have written to another copy.
        let is_written = came != since && !serving.is_empty();
        let is_lost = came < since || came == since && owner != mapped;
        match is_shared || has_left || is_written || is_lost {
            true => Judgement::Undecided,
            false => Judgement::Owner(owner, came),
        }
    }

    /// True if a bucket that nobody serves has just left the node that the mapping has it on, and its
    /// target has never served it.
    fn may_return(&self, bucket: i32, mapped: i32, since: i64) -> bool {
        let Some((BucketState::Gone, left)) = self.has(mapped, bucket) else { return false };
        let is_last = self.members().all(|(node, _)| {
            node == mapped || self.has(node, bucket).is_none_or(|(_, other)| other < left)
        });
        is_last
            && left > since
            && match self.batch_of(bucket) {
                Some(one) if one.step == BatchStep::Switching => {
                    one.batch.from == mapped && one.version == Some(left)
                }
                Some(one) if one.step == BatchStep::Switched => false,
                // The proxy has lost the switch. Others are told of it after the target has the bucket; a
                // target that the proxy does not know may serve it.
                _ => {
                    self.target(mapped, bucket).is_some_and(|target| self.is_known(target))
                        && self
                            .members()
                            .all(|(node, state)| node == mapped || state.version < left)
                }
            }
    }

    /// Everything that differs from what these owners, and the steps of the batches, would leave.
    fn repair(&self, owners: Vec<(i32, i64)>, may_switch: bool) -> RecoveryDecision {
        let mut repair = Repair { owners, ..Repair::default() };
        let owner = |bucket: i32| Some(repair.owners.get(index(bucket)?)?.0);
        let came = |batch: &Batch| Some(repair.owners.get(index(*batch.buckets.first()?)?)?.1);
        let mut switching = BTreeSet::new();
        for one in &self.batches {
            let batch = &one.batch;
            let all = |node: i32| batch.buckets.iter().all(|bucket| owner(*bucket) == Some(node));
            let serves = |node: i32| {
                let state = |bucket: &i32| self.state(node, *bucket);
                batch.buckets.iter().all(|bucket| state(bucket).is_some_and(BucketState::serves))
            };
            let is_switching = one.step == BatchStep::Switching;
            let step = match one.step {
                // In the middle of its switch.
                BatchStep::Switching
                    if may_switch && all(batch.to) && one.version == came(batch) =>
                {
                    switching.extend(batch.buckets.iter().copied());
                    Some(BatchStep::Switching)
                }
                BatchStep::Switched if all(batch.to) => Some(BatchStep::Switched),
                _ if all(batch.to) => Some(BatchStep::Switched),
                BatchStep::Switched => None,
                // Its fence may have been lifted by a restore: the comparison counts no more.
                _ if is_switching && all(batch.from) && serves(batch.from) => {
                    Some(BatchStep::Fencing)
                }
                _ if is_switching && all(batch.from) => Some(BatchStep::Copying),
                step if all(batch.from) => Some(step),
                _ => None,
            };
            if step != Some(one.step) {
                repair.steps.push((one.number, step));
            }
        }
        let step_of = |one: &BatchState| {
            let changed = repair.steps.iter().find(|(number, _)| *number == one.number);
            changed.map_or(Some(one.step), |(_, step)| *step)
        };
        let fencing = self.batches.iter().filter(|one| step_of(one) == Some(BatchStep::Fencing));
        let fenced: BTreeSet<i32> = fencing.flat_map(|one| one.batch.buckets.clone()).collect();
        let mut is_moved = false;
        for bucket in self.buckets() {
            let owner = owner(bucket);
            // A switch that the proxy does not know of, or an operator's decision.
            let is_known =
                index(bucket).is_some_and(|at| repair.owners.get(at) == self.owners.get(at));
            is_moved |= !is_known && !switching.contains(&bucket);
            for (node, state) in self.members() {
                let Some((state, _)) = state.buckets.get(&bucket) else { continue };
                if owner == Some(node) {
                    is_moved |= !state.serves();
                    continue;
                }
                is_moved |= state.serves();
                let belongs = self.batch_of(bucket).is_some_and(|one| match step_of(one) {
                    Some(BatchStep::Planned | BatchStep::Copying | BatchStep::Fencing) => {
                        node == one.batch.to && *state == BucketState::Arriving
                    }
                    Some(BatchStep::Switching | BatchStep::Switched) => {
                        node == one.batch.from && *state != BucketState::Arriving
                    }
                    None => false,
                });
                if !belongs {
                    repair.copies.entry(node).or_default().push(bucket);
                }
            }
        }
        // In the middle of a switch nodes learn of its version one after the other.
        let told: BTreeSet<i64> = self
            .batches
            .iter()
            .filter(|one| step_of(one) == Some(BatchStep::Switching))
            .filter_map(|one| one.version)
            .collect();
        let newest = self.newest();
        let is_newer = self
            .members()
            .any(|(_, state)| state.version > self.version && !told.contains(&state.version));
        repair.version = if is_moved || is_newer { newest + 1 } else { self.version };
        let lags = |state: &NodeState| {
            let is_left = |(bucket, (state, _)): (&i32, &(BucketState, i64))| {
                *state == BucketState::Fenced && !fenced.contains(bucket)
            };
            state.version != repair.version && !told.contains(&state.version)
                || state.buckets.iter().any(is_left)
        };
        let mut nodes: Vec<i32> =
            self.members().filter(|(_, state)| lags(state)).map(|(node, _)| node).collect();
        let returns = |node: i32| {
            self.buckets().any(|bucket| {
                owner(bucket) == Some(node) && self.state(node, bucket) == Some(BucketState::Gone)
            })
        };
        nodes.sort_by_key(|node| !returns(*node));
        if nodes.is_empty() && repair.steps.is_empty() && repair.copies.is_empty() {
            return RecoveryDecision::InStep;
        }
        (repair.nodes, repair.fenced) = (nodes, fenced);
        RecoveryDecision::Repair(repair)
    }

    /// A target that the proxy does not know, in words.
    fn unknown_target(&self, node: i32, bucket: i32) -> String {
        match self.target(node, bucket).filter(|target| !self.is_known(*target)) {
            Some(target) => format!(", went to node {target}, which the proxy does not know"),
            None => String::new(),
        }
    }

    fn words(&self, bucket: i32) -> String {
        let mapped = index(bucket).and_then(|at| self.owners.get(at));
        let mut words = match mapped {
            Some((node, since)) => format!(
                "node {node} by the mapping since version {since} (version {})",
                self.version
            ),
            None => "no node by the mapping".to_owned(),
        };
        for (node, reply) in &self.nodes {
            // Writing to a String cannot fail.
            let _ = match reply {
                Reply::Silent => write!(words, "; node {node} does not answer"),
                Reply::Stranger => write!(words, "; node {node} holds nothing of this cluster"),
                Reply::Member(state) => match state.buckets.get(&bucket) {
                    Some((has, since)) => write!(
                        words,
                        "; {} on node {node} since version {since} (version {}){}",
                        has.word(),
                        state.version,
                        self.unknown_target(*node, bucket)
                    ),
                    None => write!(words, "; not on node {node} (version {})", state.version),
                },
            };
        }
        words
    }
}

fn index(bucket: i32) -> Option<usize> {
    usize::try_from(bucket).ok()
}
