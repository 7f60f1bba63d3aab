//! Proofs that a level holds although nothing tells the order of some versions.
//!
//! Violations are found with what is known for certain. That a level holds must be shown: an order of the
//! versions is guessed, from an order of all transactions that agrees with what is known, and with
//! it every dependency is known. If these have no cycle that the level forbids, the guess is the proof
//! (Adya 1999: a history is at a level if some order of its versions has none). If they have, another
//! guess may be one: it cannot be told.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::components::Graph;
use crate::cycles::{Dependencies, SplitComponents};
use crate::evidence::{Dependency, Edge, Evidence, ListTail};
use crate::fate::Fates;
use crate::index::Map;
use crate::registers::UnorderedRegister;
use crate::{History, IsolationLevel, orders, uses_in_time};

/// Only one guess is made for longer histories.
const GUESSES_FOR_AT_MOST: usize = 200_000;

/// The levels for which an order of all versions was found that shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProvedLevels {
    /// The strongest of them; it shows the weaker ones, too.
    level: Option<IsolationLevel>,
}

impl ProvedLevels {
    pub(crate) fn everything() -> ProvedLevels {
        ProvedLevels { level: Some(IsolationLevel::StrictSerializable) }
    }

    pub(crate) fn has(self, level: IsolationLevel) -> bool {
        self.level >= Some(level)
    }
}

/// What is known, from which orders are guessed.
pub(crate) struct KnownOrder<'h> {
    pub(crate) history: &'h History,
    pub(crate) fates: &'h Fates,
    /// Dependencies of the data.
    pub(crate) data: &'h [Edge],
    /// The order of clients, and what follows from it and from that of time.
    pub(crate) strict: &'h [Edge],
    pub(crate) registers: &'h [UnorderedRegister],
    pub(crate) tails: &'h [ListTail],
}

/// The strongest level that is shown.
pub(crate) fn prove(known: &KnownOrder<'_>) -> ProvedLevels {
    let mut proved = ProvedLevels::default();
    let places = uses_in_time::places(known.history, known.registers);
    let all = known.history.transactions();
    let place = |number: u32| {
        places.get(&number).copied().unwrap_or_else(|| all[number as usize].earliest())
    };
    let priorities: [&dyn Fn(u32) -> u64; 3] =
        [&place, &|number| all[number as usize].latest(), &|number| {
            all[number as usize].earliest()
        }];
    let guesses = if all.len() > GUESSES_FOR_AT_MOST { 1 } else { priorities.len() };
    for priority in &priorities[..guesses] {
        for sort in Sort::ALL {
            if proved.has(sort.most()) {
                continue;
            }
            if let Some(order) = known.arrange(sort, priority) {
                proved.level = proved.level.max(known.level_of(&order));
            }
        }
    }
    proved
}

/// The dependencies that an order of transactions agrees with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// All, and the orders of clients and of time.
    Time,
    /// All.
    Data,
    /// Those of commits and snapshots: no transaction follows one that it comes before by an
    /// anti-dependency after another dependency.
    Snapshots,
    /// Those of commits: writes, and reads of what was written.
    Commits,
}

impl Sort {
    const ALL: [Sort; 4] = [Sort::Time, Sort::Data, Sort::Snapshots, Sort::Commits];

    /// The strongest level that such an order is sure to exist for.
    fn most(self) -> IsolationLevel {
        match self {
            Sort::Time => IsolationLevel::StrictSerializable,
            Sort::Data => IsolationLevel::Serializable,
            Sort::Snapshots => IsolationLevel::RepeatableRead,
            Sort::Commits => IsolationLevel::ReadCommitted,
        }
    }
}

impl KnownOrder<'_> {
    /// The place of each transaction in an order; none if no order explains the history.
    fn arrange(&self, sort: Sort, priority: &dyn Fn(u32) -> u64) -> Option<Vec<u32>> {
        let all = self.history.transactions();
        let count = all.len();
        let plain = |edge: &Edge| (edge.from, edge.to);
        let always = |_: u32| (0, u64::MAX);
        match sort {
            Sort::Time => {
                let edges = || self.data.iter().chain(self.strict).map(plain);
                let window = |number: u32| match self.fates.is_committed(number) {
                    true => (all[number as usize].earliest(), all[number as usize].latest()),
                    false => (0, u64::MAX),
                };
                arrange(&Graph::new(count, edges), priority, window)
            }
            Sort::Data => {
                arrange(&Graph::new(count, || self.data.iter().map(plain)), priority, always)
            }
            Sort::Commits => {
                let commits = |edge: &&Edge| edge.dependency <= Dependency::Read;
                let edges = || self.data.iter().filter(commits).map(plain);
                arrange(&Graph::new(count, edges), priority, always)
            }
            Sort::Snapshots => {
                let edges = || {
                    self.data.iter().flat_map(|edge| {
                        let is_anti = edge.dependency == Dependency::Anti;
                        let to = edge.to * 2 + u32::from(is_anti);
                        let late = (!is_anti).then_some((edge.from * 2 + 1, to));
                        [Some((edge.from * 2, to)), late].into_iter().flatten()
                    })
                };
                let graph = Graph::new(2 * count, edges);
                let places = arrange(&graph, |node| priority(node / 2), always)?;
                Some(places.chunks(2).map(|pair| pair[0].max(pair[1])).collect())
            }
        }
    }

    /// The strongest level that all dependencies show, with the versions in the order of their writers.
    fn level_of(&self, order: &[u32]) -> Option<IsolationLevel> {
        let mut edges = self.data.to_vec();
        self.registers.iter().for_each(|register| of_register(register, order, &mut edges));
        self.tails.iter().for_each(|tail| of_tail(tail, order, &mut edges));
        let count = self.history.transactions().len();
        let all = Dependencies::new(count, &edges);
        if all.components(|dependency| dependency <= Dependency::Read).has_circle() {
            return None;
        }
        let joined = all.components(|_| true);
        if joined.has_circle() {
            let is_snapshot = !SplitComponents::new(&all, &joined).has_circle();
            return Some(if is_snapshot {
                IsolationLevel::RepeatableRead
            } else {
                IsolationLevel::ReadCommitted
            });
        }
        edges.extend(orders::of_processes(self.history, self.fates));
        let strict = Dependencies::new(count, &edges);
        let components = strict.components(|_| true);
        let least = orders::least_ended(&strict, &components, self.history);
        let is_late = |number: u32| {
            self.fates.is_committed(number)
                && least[components.of(number) as usize]
                    < self.history.transactions()[number as usize].earliest()
        };
        let is_strict = !components.has_circle() && !(0..count as u32).any(is_late);
        Some(if is_strict {
            IsolationLevel::StrictSerializable
        } else {
            IsolationLevel::Serializable
        })
    }
}

/// The dependencies of a register whose versions are in an order.
fn of_register(register: &UnorderedRegister, order: &[u32], edges: &mut Vec<Edge>) {
    let key = register.key;
    let writers = (0..).zip(&register.writers).filter_map(|(at, writer)| Some((at, (*writer)?)));
    let mut versions: Vec<(u32, u32)> = vec![(0, u32::MAX)];
    versions.extend(writers);
    versions[1..].sort_by_key(|(_, writer)| order[*writer as usize]);
    for pair in versions.windows(2) {
        let [(before, one), (_, next)] = [pair[0], pair[1]];
        if one != u32::MAX {
            edges.push(Edge { from: one, to: next, key, dependency: Dependency::Write });
        }
        let readers = register.readers(before).filter(|reader| *reader != next);
        let dependency = Dependency::Anti;
        edges.extend(readers.map(|from| Edge { from, to: next, key, dependency }));
    }
}

/// The dependencies of a list whose last versions are in an order.
fn of_tail(tail: &ListTail, order: &[u32], edges: &mut Vec<Edge>) {
    let key = tail.key;
    let mut unseen = tail.unseen.clone();
    unseen.sort_by_key(|writer| order[*writer as usize]);
    let chain: Vec<u32> = tail.last.into_iter().chain(unseen.iter().copied()).collect();
    let is_pair = |pair: &&[u32]| pair[0] != pair[1];
    edges.extend(chain.windows(2).filter(is_pair).map(|pair| {
        let dependency = Dependency::Write;
        Edge { from: pair[0], to: pair[1], key, dependency }
    }));
    // A list of which every append was read has no order to be chosen.
    let Some(first) = unseen.first().copied() else { return };
    let readers = tail.readers.iter().copied().filter(|reader| *reader != first);
    let dependency = Dependency::Anti;
    edges.extend(readers.map(|from| Edge { from, to: first, key, dependency }));
}

/// An order of the nodes of a graph: the place of each. Of those that may come next, the one with the
/// least priority does; one may come next if no other node that is left had ended before it began. None
/// where nodes are left of which none may come next.
fn arrange(
    graph: &Graph<u32>,
    priority: impl Fn(u32) -> u64,
    window: impl Fn(u32) -> (u64, u64),
) -> Option<Vec<u32>> {
    let count = graph.nodes();
    let mut waits_for = vec![0_u32; count];
    for node in 0..count as u32 {
        graph.leaving(node).iter().for_each(|to| waits_for[*to as usize] += 1);
    }
    let mut by_end: Vec<u32> = (0..count as u32).collect();
    by_end.sort_unstable_by_key(|node| window(*node).1);
    let mut by_end = by_end.into_iter().peekable();
    let begins = |node: u32| Reverse((window(node).0, node));
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> =
        (0..count as u32).filter(|node| waits_for[*node as usize] == 0).map(begins).collect();
    let mut next = BinaryHeap::new();
    let mut places = vec![u32::MAX; count];
    for place in 0..count as u32 {
        while by_end.next_if(|node| places[*node as usize] != u32::MAX).is_some() {}
        let first_end = by_end.peek().map_or(u64::MAX, |node| window(*node).1);
        while let Some(Reverse((begin, node))) = ready.peek().copied()
            && begin <= first_end
        {
            ready.pop();
            next.push(Reverse((priority(node), node)));
        }
        let Reverse((_, node)) = next.pop()?;
        places[node as usize] = place;
        for to in graph.leaving(node) {
            let left = &mut waits_for[*to as usize];
            *left -= 1;
            if *left == 0 {
                ready.push(begins(*to));
            }
        }
    }
    Some(places)
}

/// What must be proved beside that nothing was found.
pub(crate) fn needs_proof(evidence: &Evidence) -> bool {
    !evidence.registers.is_empty() || !evidence.tails.is_empty()
}

/// Keys the order of whose versions nothing tells.
pub(crate) fn unordered_keys(evidence: &Evidence) -> usize {
    let mut keys: Map<u32, ()> = Map::default();
    keys.extend(evidence.registers.iter().map(|register| (register.key, ())));
    keys.extend(evidence.tails.iter().map(|tail| (tail.key, ())));
    keys.len()
}
