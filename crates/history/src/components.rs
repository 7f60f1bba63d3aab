//! Strongly connected components, after Tarjan, without recursion.

/// A graph of nodes with numbers; the successors of each side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph<E> {
    starts: Vec<u32>,
    successors: Vec<E>,
}

impl<E: Copy> Graph<E> {
    /// A graph of so many nodes; each edge with the node that it leaves.
    pub(crate) fn new<I>(nodes: usize, edges: impl Fn() -> I) -> Graph<E>
    where
        I: Iterator<Item = (u32, E)>,
    {
        let mut starts = vec![0; nodes + 1];
        for (from, _) in edges() {
            starts[from as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut successors = Vec::new();
        if let Some((_, any)) = edges().next() {
            successors.resize(*starts.last().unwrap_or(&0) as usize, any);
        }
        for (from, edge) in edges() {
            let place = &mut next[from as usize];
            successors[*place as usize] = edge;
            *place += 1;
        }
        Graph { starts, successors }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The edges that leave a node.
    pub(crate) fn leaving(&self, node: u32) -> &[E] {
        let [start, end] = [self.starts[node as usize], self.starts[node as usize + 1]];
        &self.successors[start as usize..end as usize]
    }
}

/// The component of each node. A component has a smaller number than those that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct Components {
    of: Vec<u32>,
    sizes: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;

impl Components {
    /// The components of a graph; `follow` says where an edge leads, or that it does not count.
    pub(crate) fn new<E: Copy>(graph: &Graph<E>, follow: impl Fn(E) -> Option<u32>) -> Components {
        let nodes = graph.nodes();
        let mut of = vec![UNSEEN; nodes];
        let mut low = vec![UNSEEN; nodes];
        let mut sizes = Vec::new();
        let (mut stack, mut path): (Vec<u32>, Vec<(u32, u32, u32)>) = (Vec::new(), Vec::new());
        let mut count = 0;
        for root in 0..nodes as u32 {
            if low[root as usize] != UNSEEN {
                continue;
            }
            low[root as usize] = count;
            path.push((root, count, 0));
            stack.push(root);
            count += 1;
            while let Some((node, number, edge)) = path.last_mut() {
                let (node, number) = (*node, *number);
                if let Some(successor) = graph.leaving(node).get(*edge as usize) {
                    *edge += 1;
                    let Some(to) = follow(*successor) else { continue };
                    if low[to as usize] == UNSEEN {
                        low[to as usize] = count;
                        path.push((to, count, 0));
                        stack.push(to);
                        count += 1;
                    } else if of[to as usize] == UNSEEN {
                        low[node as usize] = low[node as usize].min(low[to as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, ..)) = path.last() {
                    let parent = *parent as usize;
                    low[parent] = low[parent].min(low[node as usize]);
                }
                if low[node as usize] == number {
                    let component = sizes.len() as u32;
                    let first = stack
                        .iter()
                        .rposition(|one| *one == node)
                        .expect("a node stays on the stack until its component is whole");
                    for member in stack.drain(first..) {
                        of[member as usize] = component;
                    }
                    sizes.push(0);
                }
            }
        }
        of.iter().for_each(|component| sizes[*component as usize] += 1);
        Components { of, sizes }
    }

    /// The component of a node.
    pub(crate) fn of(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    /// True if a node is in a component with others.
    pub(crate) fn is_in_circle(&self, node: u32) -> bool {
        self.sizes[self.of(node) as usize] > 1
    }

    /// True if any component has more than one node.
    pub(crate) fn has_circle(&self) -> bool {
        self.sizes.iter().any(|size| *size > 1)
    }

    /// True if two nodes lead to each other.
    pub(crate) fn join(&self, one: u32, other: u32) -> bool {
        self.of(one) == self.of(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_lead_to_each_other_are_together() {
        let check = |nodes: usize, edges: &[(u32, u32)], expected: &[&[u32]]| {
            let graph = Graph::new(nodes, || edges.iter().copied());
            let components = Components::new(&graph, Some);
            let mut found: Vec<Vec<u32>> = vec![Vec::new(); components.sizes.len()];
            (0..nodes as u32).for_each(|node| found[components.of(node) as usize].push(node));
            assert_eq!(found, expected, "{edges:?}");
        };
        check(0, &[], &[]);
        check(2, &[(0, 1)], &[&[1], &[0]]);
        check(3, &[(0, 1), (1, 2), (2, 0)], &[&[0, 1, 2]]);
        check(5, &[(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (4, 0)], &[&[2, 3], &[0, 1], &[4]]);
        // Two circles that share a node are one component.
        check(3, &[(0, 1), (1, 0), (1, 2), (2, 1)], &[&[0, 1, 2]]);
    }
}
