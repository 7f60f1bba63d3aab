//! Cycles that need the order of time or of a client beside the dependencies of data.

use crate::components::Components;
use crate::cycles::{Cycles, Dependencies};
use crate::evidence::{Dependency, Edge};
use crate::fate::Fates;
use crate::search::{CycleSearch, CycleStep, Machine};
use crate::{CycleKind, CycleOrder, History, IsolationAnomaly, TransactionOutcome, cycles};

/// Places looked at for one cycle, once one has been found.
const PLACES_MOST: u64 = 20_000;

/// The kinds that are told apart; with an order beside the data, a long fork is not one of them.
const KINDS: [CycleKind; 5] =
    [CycleKind::G0, CycleKind::G1c, CycleKind::GSingle, CycleKind::GNonadjacent, CycleKind::G2Item];

/// The order of each client's transactions: every one that was acknowledged comes before its next one.
/// One of which its client heard nothing may have committed later than that.
pub(crate) fn of_processes(history: &History, fates: &Fates) -> Vec<Edge> {
    let mut by_client: Vec<(u32, u64, u32)> = (0..)
        .zip(history.transactions())
        .filter(|(number, _)| fates.is_committed(*number))
        .map(|(number, one)| (history.session(one).client, one.number, number))
        .collect();
    by_client.sort_unstable();
    let mut edges = Vec::with_capacity(by_client.len());
    let mut last: Option<(u32, u32)> = None;
    for (client, _, to) in by_client {
        if let Some((_, from)) = last.filter(|last| last.0 == client) {
            edges.push(Edge { from, to, key: 0, dependency: Dependency::Process });
        } else {
            last = None;
        }
        if history.transactions()[to as usize].outcome == TransactionOutcome::Committed {
            last = Some((client, to));
        }
    }
    edges
}

/// Finds cycles with the order of a client. `data` are the components of the data alone.
pub(crate) fn find_processes(cycles: &mut Cycles, dependencies: &Dependencies) {
    let all = dependencies.components(|_| true);
    if !all.has_circle() {
        return;
    }
    let mut search = CycleSearch::new(dependencies.graph.nodes());
    search.budget = dependencies.budget();
    for from in 0..dependencies.graph.nodes() as u32 {
        let arcs = dependencies.graph.leaving(from).iter();
        let order = arcs.filter(|arc| arc.dependency == Dependency::Process);
        for arc in order.filter(|arc| all.join(from, arc.to)) {
            if search.budget == 0 {
                cycles.is_partial = true;
                return;
            }
            let first = CycleStep { transaction: from, key: 0, dependency: Dependency::Process };
            let most = most_places(cycles, CycleOrder::Process);
            let to_first = |node| node == from;
            let found =
                smallest(&mut search, dependencies, arc.to, most, |x| all.join(x, from), to_first);
            let Some((way, _)) = found else {
                cycles.is_partial = true;
                continue;
            };
            let cycle: Vec<CycleStep> = std::iter::once(first).chain(way).collect();
            if let Some(guarantee) = guarantee(&cycle) {
                cycles.add(guarantee, cycle.clone());
            }
            cycles
                .add(IsolationAnomaly::Cycle(cycles::kind_of(&cycle), CycleOrder::Process), cycle);
        }
    }
}

/// Finds a cycle of what follows from the orders of time and of clients, where no other one was found.
pub(crate) fn find_inferred(cycles: &mut Cycles, dependencies: &Dependencies, inferred: &[Edge]) {
    if inferred.is_empty() || !cycles.found.is_empty() {
        return;
    }
    let all = dependencies.components(|_| true);
    let mut search = CycleSearch::new(dependencies.graph.nodes());
    for edge in inferred.iter().filter(|edge| all.join(edge.from, edge.to)) {
        let Edge { from, to, key, dependency } = *edge;
        let may_pass = |node| all.join(node, from);
        let way = smallest(&mut search, dependencies, to, u64::MAX, may_pass, |node| node == from);
        let first = CycleStep { transaction: from, key, dependency };
        let Some((way, _)) = way else { continue };
        let cycle: Vec<CycleStep> = std::iter::once(first).chain(way).collect();
        cycles.add(IsolationAnomaly::Cycle(cycles::kind_of(&cycle), CycleOrder::Realtime), cycle);
        return;
    }
}

/// Finds cycles with the order of time. In an order of intervals, a cycle with two such edges has a
/// shorter one with one of them: it is enough to look, from each transaction, for one that depends on
/// it and had ended before it began.
///
/// Where clocks have bounds, the order of a client is not a part of that of time, and is among the
/// dependencies.
pub(crate) fn find_realtime(cycles: &mut Cycles, dependencies: &Dependencies, history: &History) {
    let data = dependencies.components(|_| true);
    let least = least_ended(dependencies, &data, history);
    let mut search = CycleSearch::new(dependencies.graph.nodes());
    search.budget = dependencies.budget();
    for (number, transaction) in (0..).zip(history.transactions()) {
        let begun = transaction.earliest();
        if least[data.of(number) as usize] >= begun
            || transaction.outcome == TransactionOutcome::Failed
        {
            continue;
        }
        if search.budget == 0 {
            cycles.is_partial = true;
            return;
        }
        let most = most_places(cycles, CycleOrder::Realtime);
        let had_ended = |node: u32| history.transactions()[node as usize].latest() < begun;
        let found = smallest(&mut search, dependencies, number, most, |_| true, had_ended);
        let Some((mut cycle, last)) = found else {
            cycles.is_partial = true;
            continue;
        };
        let ended = history.transactions()[last as usize].latest();
        let began = |step: &CycleStep| history.transactions()[step.transaction as usize].earliest();
        if let Some(part) = cycle.iter().skip(1).rposition(|step| began(step) > ended) {
            // A part of it is a cycle, and is found from there, unless no search may take so long again.
            if most == PLACES_MOST {
                continue;
            }
            cycle.drain(..=part);
        }
        cycle.push(CycleStep { transaction: last, key: 0, dependency: Dependency::Realtime });
        cycles.add(IsolationAnomaly::Cycle(cycles::kind_of(&cycle), CycleOrder::Realtime), cycle);
    }
}

/// Places that may be looked at for the next cycle with such an order. There is one, so that the first one is
/// found, however long that takes.
fn most_places(cycles: &Cycles, order: CycleOrder) -> u64 {
    let has_one = KINDS.iter().any(|cycle| cycles.has(IsolationAnomaly::Cycle(*cycle, order)));
    if has_one { PLACES_MOST } else { u64::MAX }
}

/// The shortest cycle of the first kind that has any.
fn smallest(
    search: &mut CycleSearch,
    dependencies: &Dependencies,
    start: u32,
    most: u64,
    may_pass: impl Fn(u32) -> bool,
    is_goal: impl Fn(u32) -> bool,
) -> Option<(Vec<CycleStep>, u32)> {
    let kept = search.budget;
    if most == u64::MAX {
        search.budget = u64::MAX;
    }
    let found = KINDS.into_iter().find_map(|cycle| {
        let machine = Machine { cycle, begins_anti: false };
        let graph = &dependencies.graph;
        search.shortest(graph, machine, start, most, &may_pass, &is_goal)
    });
    if most == u64::MAX {
        search.budget = kept;
    }
    found
}

/// For each component, when the first of the transactions ended that are in it or depend on it.
pub(crate) fn least_ended(
    dependencies: &Dependencies,
    data: &Components,
    history: &History,
) -> Vec<u64> {
    let nodes = dependencies.graph.nodes() as u32;
    let mut least = vec![u64::MAX; nodes as usize];
    let mut by_component: Vec<u32> = (0..nodes).collect();
    by_component.sort_unstable_by_key(|node| data.of(*node));
    for node in by_component {
        let own = history.transactions()[node as usize].latest();
        let arcs = dependencies.graph.leaving(node).iter();
        let later = arcs.map(|arc| least[data.of(arc.to) as usize]).min();
        let place = &mut least[data.of(node) as usize];
        *place = (*place).min(own).min(later.unwrap_or(u64::MAX));
    }
    least
}

/// The guarantee of a session that a cycle breaks, if it is that of one session and one
/// anti-dependency.
fn guarantee(cycle: &[CycleStep]) -> Option<IsolationAnomaly> {
    let anti = cycle.iter().position(|step| step.dependency == Dependency::Anti)?;
    let after: Vec<Dependency> =
        (1..cycle.len()).map(|by| cycle[(anti + by) % cycle.len()].dependency).collect();
    let order = Dependency::Process;
    let (is_read, rest) = match after.as_slice() {
        [Dependency::Read, rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let first = rest.iter().take_while(|dependency| **dependency == order).count();
    let rest = &rest[first..];
    match (is_read, first, rest) {
        (_, 0, _) => None,
        (false, _, []) => Some(IsolationAnomaly::ReadYourWrites),
        (true, _, []) => Some(IsolationAnomaly::MonotonicReads),
        (true, _, rest) => {
            let is_seen = |one: &Dependency| *one <= Dependency::Read;
            rest.iter().all(is_seen).then_some(IsolationAnomaly::WritesFollowReads)
        }
        _ => None,
    }
}
