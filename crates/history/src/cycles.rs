//! Cycles of dependencies, counted by their kinds, the smallest ones kept.

use std::collections::HashSet;

use crate::components::{Components, Graph};
use crate::evidence::{Dependency, Edge};
use crate::search::{Arc, CycleSearch, CycleStep, Machine};
use crate::{CycleKind, CycleOrder, IsolationAnomaly};

/// Examples kept of each kind.
const EXAMPLES: usize = 3;

/// Places looked at for one cycle, once one of its kind has been found.
const PLACES_MOST: u64 = 2_000;

/// Places looked at for one kind, beside four for each edge.
const PLACES_ALL: u64 = 20_000_000;

/// Cycles that were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycles {
    pub(crate) found: Vec<FoundKind>,
    /// A search was given up: there may be more, and smaller ones.
    pub(crate) is_partial: bool,
}

/// The cycles of one kind.
#[derive(Clone, Debug)]
pub(crate) struct FoundKind {
    pub(crate) anomaly: IsolationAnomaly,
    pub(crate) count: u64,
    pub(crate) smallest: Vec<Vec<CycleStep>>,
    /// The transactions of those that were counted.
    seen: HashSet<Vec<u32>>,
}

pub(crate) struct Dependencies {
    pub(crate) graph: Graph<Arc>,
    edges: usize,
}

impl Dependencies {
    pub(crate) fn new(transactions: usize, edges: &[Edge]) -> Dependencies {
        let arcs = || {
            edges.iter().map(|edge| {
                let Edge { from, to, key, dependency } = *edge;
                (from, Arc { to, key, dependency })
            })
        };
        Dependencies { graph: Graph::new(transactions, arcs), edges: edges.len() }
    }

    fn arcs(&self) -> impl Iterator<Item = (u32, Arc)> {
        (0..self.graph.nodes() as u32)
            .flat_map(|node| self.graph.leaving(node).iter().map(move |arc| (node, *arc)))
    }

    /// The components of what these dependencies join.
    pub(crate) fn components(&self, follow: impl Fn(Dependency) -> bool) -> Components {
        Components::new(&self.graph, |arc| follow(arc.dependency).then_some(arc.to))
    }

    pub(crate) fn budget(&self) -> u64 {
        PLACES_ALL + 4 * self.edges as u64
    }
}

impl Cycles {
    /// Counts a cycle, unless one of the same transactions was.
    pub(crate) fn add(&mut self, anomaly: IsolationAnomaly, cycle: Vec<CycleStep>) {
        let at = self.found.iter().position(|found| found.anomaly == anomaly);
        let at = at.unwrap_or_else(|| {
            let (smallest, seen) = (Vec::new(), HashSet::new());
            self.found.push(FoundKind { anomaly, count: 0, smallest, seen });
            self.found.len() - 1
        });
        let found = &mut self.found[at];
        let mut members: Vec<u32> = cycle.iter().map(|step| step.transaction).collect();
        members.sort_unstable();
        if !found.seen.insert(members) {
            return;
        }
        found.count += 1;
        found.smallest.push(cycle);
        found.smallest.sort_by_key(Vec::len);
        found.smallest.truncate(EXAMPLES);
    }

    pub(crate) fn has(&self, anomaly: IsolationAnomaly) -> bool {
        self.found.iter().any(|found| found.anomaly == anomaly)
    }

    /// Finds the cycles of data dependencies.
    pub(crate) fn find(&mut self, dependencies: &Dependencies) {
        let all = dependencies.components(|dependency| dependency <= Dependency::Anti);
        if !all.has_circle() {
            return;
        }
        let writes = dependencies.components(|dependency| dependency == Dependency::Write);
        let reads = dependencies.components(|dependency| dependency <= Dependency::Read);
        let apart = SplitComponents::new(dependencies, &all);
        let mut search = CycleSearch::new(dependencies.graph.nodes());
        for cycle in CycleKind::ALL {
            let first = match cycle {
                CycleKind::G0 => Dependency::Write,
                CycleKind::G1c => Dependency::Read,
                _ => Dependency::Anti,
            };
            let firsts = dependencies.arcs().filter(|(from, arc)| {
                arc.dependency == first
                    && match cycle {
                        CycleKind::G0 => writes.join(*from, arc.to),
                        CycleKind::G1c => reads.join(*from, arc.to),
                        CycleKind::G2Item => all.join(*from, arc.to),
                        _ => apart.join(*from, arc.to),
                    }
            });
            search.budget = dependencies.budget();
            for (from, arc) in firsts {
                let machine = Machine { cycle, begins_anti: first == Dependency::Anti };
                let found = self.has(IsolationAnomaly::Cycle(cycle, CycleOrder::Data));
                let most = if found { PLACES_MOST } else { u64::MAX };
                if search.budget == 0 {
                    self.is_partial = true;
                    break;
                }
                let joined = |node| all.join(node, from);
                let way =
                    search.shortest(&dependencies.graph, machine, arc.to, most, joined, |x| {
                        x == from
                    });
                if let Some((way, _)) = way {
                    self.close(from, arc, way);
                }
            }
        }
        self.unnamed(dependencies, &all, &apart, &mut search);
    }

    /// Counts the cycle of an edge and a way back, under the name that its dependencies give it.
    fn close(&mut self, from: u32, arc: Arc, way: Vec<CycleStep>) {
        let Arc { key, dependency, .. } = arc;
        let mut cycle = vec![CycleStep { transaction: from, key, dependency }];
        cycle.extend(way);
        if is_simple(&cycle) {
            self.add(IsolationAnomaly::Cycle(kind_of(&cycle), CycleOrder::Data), cycle);
        }
    }

    /// A circle has no simple cycle of a kind that was searched where its shortest ways cross themselves, and
    /// where the searches were given up. It is a closed walk all the same: snapshot isolation forbids
    /// one without adjacent anti-dependencies, and a serializable database has none.
    fn unnamed(
        &mut self,
        dependencies: &Dependencies,
        all: &Components,
        apart: &SplitComponents,
        search: &mut CycleSearch,
    ) {
        search.budget = u64::MAX;
        let not_adjacent = [CycleKind::GSingle, CycleKind::LongFork, CycleKind::GNonadjacent];
        for (named, cycle) in
            [(&not_adjacent[..], CycleKind::GNonadjacent), (&CycleKind::ALL[..], CycleKind::G2Item)]
        {
            if named.iter().any(|cycle| self.has(IsolationAnomaly::Cycle(*cycle, CycleOrder::Data)))
            {
                continue;
            }
            let machine = Machine { cycle, begins_anti: true };
            let mut walks = dependencies.arcs().filter_map(|(from, arc)| {
                let is_joined = match cycle {
                    CycleKind::GNonadjacent => apart.join(from, arc.to),
                    _ => all.join(from, arc.to),
                };
                if arc.dependency != Dependency::Anti || !is_joined {
                    return None;
                }
                let (graph, joined) = (&dependencies.graph, |node| all.join(node, from));
                let way = search.shortest(graph, machine, arc.to, u64::MAX, joined, |x| x == from);
                let Arc { key, dependency, .. } = arc;
                let first = CycleStep { transaction: from, key, dependency };
                way.map(|(way, _)| std::iter::once(first).chain(way).collect())
            });
            if let Some(walk) = walks.next() {
                self.add(IsolationAnomaly::Cycle(cycle, CycleOrder::Data), walk);
            }
        }
    }
}

fn is_simple(cycle: &[CycleStep]) -> bool {
    let members: HashSet<u32> = cycle.iter().map(|step| step.transaction).collect();
    members.len() == cycle.len()
}

/// The kind of a cycle, by its dependencies.
pub(crate) fn kind_of(cycle: &[CycleStep]) -> CycleKind {
    let is = |at: usize, dependency| cycle[at % cycle.len()].dependency == dependency;
    let anti: Vec<usize> = (0..cycle.len()).filter(|at| is(*at, Dependency::Anti)).collect();
    let is_adjacent = anti.len() > 1 && anti.iter().any(|at| is(at + 1, Dependency::Anti));
    let alternates =
        || cycle.len() == 2 * anti.len() && anti.iter().all(|at| is(at + 1, Dependency::Read));
    match anti.len() {
        0 if cycle.iter().any(|step| step.dependency == Dependency::Read) => CycleKind::G1c,
        0 => CycleKind::G0,
        1 => CycleKind::GSingle,
        _ if is_adjacent => CycleKind::G2Item,
        _ if alternates() => CycleKind::LongFork,
        _ => CycleKind::GNonadjacent,
    }
}

/// Components of the walks without adjacent anti-dependencies. Each transaction is there twice: as
/// reached by an anti-dependency, and as reached by another one.
pub(crate) struct SplitComponents {
    components: Components,
}

impl SplitComponents {
    pub(crate) fn new(dependencies: &Dependencies, all: &Components) -> SplitComponents {
        let nodes = dependencies.graph.nodes() * 2;
        let arcs = || {
            dependencies.arcs().filter(|(from, arc)| all.join(*from, arc.to)).flat_map(
                |(from, arc)| {
                    let is_anti = arc.dependency == Dependency::Anti;
                    let to = arc.to * 2 + u32::from(is_anti);
                    let late = (!is_anti).then_some((from * 2 + 1, to));
                    [Some((from * 2, to)), late].into_iter().flatten()
                },
            )
        };
        SplitComponents { components: Components::new(&Graph::new(nodes, arcs), Some) }
    }

    /// True if there is a closed walk without adjacent anti-dependencies.
    pub(crate) fn has_circle(&self) -> bool {
        self.components.has_circle()
    }

    /// True if a walk without adjacent anti-dependencies contains this anti-dependency.
    fn join(&self, from: u32, to: u32) -> bool {
        self.components.join(from * 2, to * 2 + 1)
    }
}
