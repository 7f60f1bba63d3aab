//! The shortest way through dependencies that makes a cycle of one kind.

use std::collections::VecDeque;

use crate::CycleKind;
use crate::Key;
use crate::components::Graph;
use crate::evidence::Dependency;

/// An edge without the transaction that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arc {
    pub(crate) to: u32,
    pub(crate) key: Key,
    pub(crate) dependency: Dependency,
}

/// A step of a cycle: a transaction, and the dependency by which it comes before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CycleStep {
    pub(crate) transaction: u32,
    pub(crate) key: Key,
    pub(crate) dependency: Dependency,
}

/// Dependencies that a search may follow, as a machine that reads them.
///
/// A state counts the anti-dependencies (up to two), and remembers whether the last dependency was one;
/// for [`CycleKind::G2Item`] it counts adjacent ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) cycle: CycleKind,
    /// True if the first dependency is an anti-dependency: it follows the last one.
    pub(crate) begins_anti: bool,
}

type State = u8;

/// More than the largest state.
const STATES: usize = 8;

const AFTER_ANTI: State = 1;
const ONE: State = 2;
const TWO: State = 4;

impl Machine {
    /// The state after the first dependency.
    fn start(self) -> State {
        if self.begins_anti { AFTER_ANTI | ONE } else { 0 }
    }

    fn step(self, state: State, dependency: Dependency) -> Option<State> {
        let is_anti = dependency == Dependency::Anti;
        let count = state & (ONE | TWO);
        let more = if count == 0 { ONE } else { TWO };
        match self.cycle {
            CycleKind::G0 => {
                matches!(dependency, Dependency::Write | Dependency::Process).then_some(0)
            }
            CycleKind::G1c => (!is_anti).then_some(0),
            CycleKind::GSingle => match is_anti {
                true => (count == 0).then_some(ONE),
                false => Some(count),
            },
            CycleKind::LongFork => match (state & AFTER_ANTI != 0, dependency) {
                (true, Dependency::Read) => Some(count),
                (false, Dependency::Anti) => Some(more | AFTER_ANTI),
                _ => None,
            },
            CycleKind::GNonadjacent => match (is_anti, state & AFTER_ANTI != 0) {
                (true, true) => None,
                (true, false) => Some(more | AFTER_ANTI),
                (false, _) => Some(count),
            },
            // Here two stands for two adjacent ones.
            CycleKind::G2Item => match (count == TWO, is_anti, state & AFTER_ANTI != 0) {
                (true, ..) | (false, true, true) => Some(TWO),
                (false, true, false) => Some(ONE | AFTER_ANTI),
                // What begins with an anti-dependency begins with two: every cycle can.
                (false, false, _) => (!self.begins_anti).then_some(0),
            },
        }
    }

    fn accepts(self, state: State) -> bool {
        let is_apart = !(self.begins_anti && state & AFTER_ANTI != 0);
        match self.cycle {
            CycleKind::G0 | CycleKind::G1c => true,
            CycleKind::GSingle => state & ONE != 0 || self.begins_anti,
            CycleKind::LongFork | CycleKind::GNonadjacent => state & TWO != 0 && is_apart,
            CycleKind::G2Item => state & TWO != 0,
        }
    }
}

/// Room for searches, one after another.
pub(crate) struct CycleSearch {
    /// Number of the search that last reached each node in each state.
    reached: Vec<u32>,
    /// From which place, by which edge.
    from: Vec<(u32, u32)>,
    searches: u32,
    queue: VecDeque<(u32, State)>,
    /// Places that may still be looked at, in all searches together.
    pub(crate) budget: u64,
}

impl CycleSearch {
    pub(crate) fn new(nodes: usize) -> CycleSearch {
        CycleSearch {
            reached: vec![0; nodes * STATES],
            from: vec![(0, 0); nodes * STATES],
            searches: 0,
            queue: VecDeque::new(),
            budget: 0,
        }
    }

    /// The shortest way from `start` to a node that `is_goal` takes, through nodes that `may_pass`.
    /// The last node has no step. None where there is none, or where more than `most` places would have
    /// to be looked at.
    pub(crate) fn shortest(
        &mut self,
        graph: &Graph<Arc>,
        machine: Machine,
        start: u32,
        most: u64,
        may_pass: impl Fn(u32) -> bool,
        is_goal: impl Fn(u32) -> bool,
    ) -> Option<(Vec<CycleStep>, u32)> {
        self.searches += 1;
        self.queue.clear();
        self.reach(start, machine.start(), (u32::MAX, 0));
        self.queue.push_back((start, machine.start()));
        let mut left = most.min(self.budget);
        while let Some((node, state)) = self.queue.pop_front() {
            for (number, arc) in (0..).zip(graph.leaving(node)) {
                left = left.checked_sub(1)?;
                self.budget = self.budget.saturating_sub(1);
                let Some(next) = machine.step(state, arc.dependency) else { continue };
                let is_end = is_goal(arc.to) && machine.accepts(next);
                if !is_end && (arc.to == start || !may_pass(arc.to)) {
                    continue;
                }
                if is_end || !self.is_reached(arc.to, next) {
                    let here = node * STATES as u32 + u32::from(state);
                    self.reach(arc.to, next, (here, number));
                    if is_end {
                        return Some((self.way(graph, arc.to, next), arc.to));
                    }
                    self.queue.push_back((arc.to, next));
                }
            }
        }
        None
    }

    fn is_reached(&self, node: u32, state: State) -> bool {
        self.reached[node as usize * STATES + usize::from(state)] == self.searches
    }

    fn reach(&mut self, node: u32, state: State, from: (u32, u32)) {
        let place = node as usize * STATES + usize::from(state);
        self.reached[place] = self.searches;
        self.from[place] = from;
    }

    fn way(&self, graph: &Graph<Arc>, node: u32, state: State) -> Vec<CycleStep> {
        let mut steps = Vec::new();
        let mut place = node as usize * STATES + usize::from(state);
        loop {
            let (before, number) = self.from[place];
            if before == u32::MAX {
                break;
            }
            let transaction = before / STATES as u32;
            let Arc { key, dependency, .. } = graph.leaving(transaction)[number as usize];
            steps.push(CycleStep { transaction, key, dependency });
            place = before as usize;
        }
        steps.reverse();
        steps
    }
}
