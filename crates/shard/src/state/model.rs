//! A model of moves: one bucket, three servers that come and go as nodes, and a proxy, in which every commit is
//! one change of one server. Each server is restored at each moment to each of its earlier states, the tool is killed after
//! each commit, and clients write in between. The decisions are those of the program itself.

use std::collections::{BTreeMap, HashSet};

use super::{
    BatchState, BatchStep, BucketState, ClusterState, NodeState, RecoveryDecision, Repair, Reply,
};
use crate::plan::Batch;

/// A data node: what it says, its rows as a set of writes, and its ends of replication.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    version: i64,
    state: Option<BucketState>,
    /// The switch by which the bucket came, or left.
    since: i64,
    /// The node to which it has left.
    target: Option<usize>,
    /// False for a server that holds nothing of the cluster; it may hold ends of replication.
    is_member: bool,
    rows: u128,
    slot: Option<u32>,
    subscription: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Proxy {
    version: i64,
    owner: usize,
    since: i64,
    batch: Option<Move>,
    /// The nodes, and the servers that have been nodes.
    is_listed: [bool; 3],
    is_former: [bool; 3],
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// The bucket goes to this node, which is added if it is not in the list.
    Own(usize),
    /// This node leaves, if it has no bucket.
    Leave(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Move {
    from: usize,
    to: usize,
    step: BatchStep,
    version: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    proxy: Proxy,
    nodes: [Node; 3],
    /// Links between two nodes of which one was restored: nothing more arrives by them.
    broken: Vec<u32>,
    links: u32,
    writes: u32,
    /// Writes that no restore has lost: some copy has them that was ever served.
    kept: u128,
}

/// The end of a run of the tool.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Done,
    Refused,
}

/// A tool, and the world after each of its commits.
struct Tool<'w> {
    world: &'w mut World,
    seen: Vec<World>,
}

impl World {
    fn new(is_listed: [bool; 3]) -> Self {
        let node =
            |is_member: bool| Node { is_member, version: i64::from(is_member), ..Node::default() };
        let mut nodes = is_listed.map(node);
        (nodes[0].state, nodes[0].since) = (Some(BucketState::Owned), 1);
        let is_former = [false; 3];
        let proxy = Proxy { version: 1, owner: 0, since: 1, batch: None, is_listed, is_former };
        Self { proxy, nodes, broken: Vec::new(), links: 0, writes: 0, kept: 0 }
    }

    fn census(&self) -> ClusterState {
        let batch = self.proxy.batch.map(|one| BatchState {
            number: 1,
            batch: Batch { from: one.from as i32, to: one.to as i32, buckets: vec![0] },
            step: one.step,
            version: one.version,
        });
        let reply = |(says, node): (i32, &Node)| {
            let has = node.state.map(|state| (0, (state, node.since)));
            let buckets: BTreeMap<i32, (BucketState, i64)> = has.into_iter().collect();
            let gone = node.target.filter(|_| node.state == Some(BucketState::Gone));
            let targets = gone.map(|target| (0, target as i32)).into_iter().collect();
            match node.is_member {
                true => Reply::Member(NodeState { says, version: node.version, buckets, targets }),
                false => Reply::Stranger,
            }
        };
        ClusterState {
            version: self.proxy.version,
            owners: vec![(self.proxy.owner as i32, self.proxy.since)],
            batches: batch.into_iter().collect(),
            nodes: (0..)
                .zip((0..).zip(&self.nodes).map(reply))
                .filter(|(number, _)| self.proxy.is_listed[*number as usize])
                .collect(),
        }
    }

    /// A client's write by the proxy; it is refused, with a message, where the node does not own.
    fn write(&mut self) {
        let node = &mut self.nodes[self.proxy.owner];
        if node.state == Some(BucketState::Owned) && self.writes < 127 {
            node.rows |= 1 << self.writes;
            self.kept |= 1 << self.writes;
            self.writes += 1;
        }
    }

    fn is_linked(&self, one: Move) -> bool {
        let slot = self.nodes[one.from].slot;
        let known = slot.is_some() && slot == self.nodes[one.to].subscription;
        known && !slot.is_some_and(|slot| self.broken.contains(&slot))
    }

    /// One server is as it was in another world.
    fn restore(&mut self, server: usize, old: &World) {
        if server == 3 {
            self.proxy = old.proxy.clone();
        } else {
            let now = &mut self.nodes[server];
            let links = [now.slot, now.subscription];
            *now = old.nodes[server].clone();
            let links = links.into_iter().chain([now.slot, now.subscription]).flatten();
            self.broken.extend(links);
            self.broken.sort_unstable();
            self.broken.dedup();
        }
        // What the restore itself has lost is not the move's loss.
        let is_served =
            |node: &&Node| node.state.is_some_and(|state| state != BucketState::Arriving);
        self.kept &= self.nodes.iter().filter(is_served).fold(0, |all, node| all | node.rows);
    }

    /// The same world in the smallest numbers: decisions rest on the order of versions, and on which copies
    /// have a write.
    fn normal(&self) -> Self {
        let mut world = self.clone();
        let mut versions = vec![world.proxy.version, world.proxy.since];
        versions.extend(world.nodes.iter().flat_map(|node| [node.version, node.since]));
        versions.extend(world.proxy.batch.and_then(|one| one.version));
        versions.sort_unstable();
        versions.dedup();
        let rank = |version: i64| versions.iter().filter(|one| **one < version).count() as i64 + 1;
        let proxy = &mut world.proxy;
        (proxy.version, proxy.since) = (rank(proxy.version), rank(proxy.since));
        if let Some(one) = &mut proxy.batch {
            one.version = one.version.map(rank);
        }
        let mut links: Vec<u32> = Vec::new();
        let mut label = |link: u32| {
            if !links.contains(&link) {
                links.push(link);
            }
            links.iter().position(|one| *one == link).unwrap() as u32 + 1
        };
        for node in &mut world.nodes {
            (node.version, node.since) = (rank(node.version), rank(node.since));
            node.slot = node.slot.map(&mut label);
            node.subscription = node.subscription.map(&mut label);
        }
        world.broken = (1..)
            .zip(&links)
            .filter(|(_, link)| self.broken.contains(link))
            .map(|(label, _)| label)
            .collect();
        world.links = links.len() as u32;
        let column = |write: u32| {
            let has = |rows: u128| rows >> write & 1 == 1;
            let [a, b, c] = [0, 1, 2].map(|node| has(self.nodes[node].rows));
            [a, b, c, has(self.kept)]
        };
        let mut columns: Vec<[bool; 4]> = (0..self.writes).map(column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.retain(|column| column.contains(&true));
        let gather = |row: usize| -> u128 {
            (0..).zip(&columns).map(|(bit, column)| u128::from(column[row]) << bit).sum()
        };
        (0..3).for_each(|node| world.nodes[node].rows = gather(node));
        (world.kept, world.writes) = (gather(3), columns.len() as u32);
        world
    }

    /// True at every moment, whatever has happened.
    fn check(&self) {
        if self.listed().all(|node| node.version == self.proxy.version) {
            let serving = self.listed().filter(|node| node.serves()).count();
            assert_eq!(
                serving, 1,
                "a call to all nodes counts rows doubly or not at all: {self:?}"
            );
        }
    }

    fn listed(&self) -> impl Iterator<Item = &Node> {
        let nodes = self.nodes.iter().zip(self.proxy.is_listed);
        nodes.filter(|(_, is_listed)| *is_listed).map(|(node, _)| node)
    }

    /// Nodes that say that they are nodes, have the bucket, and are not in the list.
    fn forgotten(&self) -> Vec<usize> {
        let is_forgotten = |number: &usize| {
            let node = &self.nodes[*number];
            node.is_member && node.state.is_some() && !self.proxy.is_listed[*number]
        };
        (0..3).filter(is_forgotten).collect()
    }

    /// True after a run that says that all is well.
    fn check_done(&self) {
        let owner = &self.nodes[self.proxy.owner];
        assert_eq!(owner.state, Some(BucketState::Owned), "not served: {self:?}");
        assert_eq!(owner.rows & self.kept, self.kept, "rows lost: {self:?}");
        let others = self.listed().filter(|node| node.state.is_some()).count();
        assert_eq!(others, 1, "copies are left: {self:?}");
        assert!(self.listed().all(|node| node.version == self.proxy.version), "{self:?}");
        for (number, node) in self.nodes.iter().enumerate() {
            let is_asked = self.proxy.is_listed[number] || self.proxy.is_former[number];
            let is_free = node.slot.is_none() && node.subscription.is_none();
            assert!(!is_asked || is_free, "node {number} has a slot or a subscription: {self:?}");
        }
        assert_eq!(self.census().out_of_step(), []);
    }
}

impl Node {
    fn serves(&self) -> bool {
        self.state.is_some_and(BucketState::serves)
    }
}

impl Tool<'_> {
    /// Ends what was begun and moves the bucket to a node, if one is given.
    fn run(&mut self, goal: Option<Goal>) -> Result<(), Ending> {
        if let Some(Goal::Own(to)) = goal
            && self.world.forgotten().contains(&to)
        {
            self.list(to)?;
        }
        let mut is_swept = false;
        for _ in 0..40 {
            let census = self.world.census();
            match census.decide() {
                RecoveryDecision::Wait { node } => panic!("node {node} answers: {:?}", self.world),
                RecoveryDecision::Refuse { buckets } => {
                    assert_eq!(buckets, [0]);
                    assert_eq!(census.out_of_step(), [0], "status is silent: {:?}", self.world);
                    return Err(Ending::Refused);
                }
                RecoveryDecision::Repair(repair) => self.repair(&repair)?,
                RecoveryDecision::InStep if !is_swept => {
                    is_swept = true;
                    self.sweep()?;
                }
                RecoveryDecision::InStep => match (self.world.proxy.batch, goal) {
                    (Some(one), _) => self.step(one)?,
                    (None, Some(Goal::Own(to))) if !self.world.proxy.is_listed[to] => {
                        let version = self.world.proxy.version;
                        self.commit(|world| {
                            (world.nodes[to].is_member, world.nodes[to].version) = (true, version);
                        })?;
                        self.list(to)?;
                    }
                    (None, Some(Goal::Own(to))) if to != self.world.proxy.owner => {
                        let from = self.world.proxy.owner;
                        let one = Move { from, to, step: BatchStep::Planned, version: None };
                        self.commit(|world| world.proxy.batch = Some(one))?;
                    }
                    (None, Some(Goal::Leave(one)))
                        if one != self.world.proxy.owner && self.world.proxy.is_listed[one] =>
                    {
                        self.depart(one)?;
                    }
                    (None, _) => {
                        self.sweep()?;
                        self.world.check_done();
                        return Ok(());
                    }
                },
            }
        }
        panic!("it goes on for ever: {:?}", self.world);
    }

    /// As `deploy::list_node`.
    fn list(&mut self, node: usize) -> Result<(), Ending> {
        self.commit(|world| {
            (world.proxy.is_listed[node], world.proxy.is_former[node]) = (true, false);
        })
    }

    /// As `deploy::depart`: what the node has of replication stays.
    fn depart(&mut self, node: usize) -> Result<(), Ending> {
        self.commit(|world| {
            let Node { slot, subscription, .. } = world.nodes[node];
            world.nodes[node] = Node { slot, subscription, ..Node::default() };
        })?;
        self.commit(|world| {
            (world.proxy.is_listed[node], world.proxy.is_former[node]) = (false, true);
        })
    }

    /// As `moves::repair::end_stray_replication`.
    fn sweep(&mut self) -> Result<(), Ending> {
        let batch = self.world.proxy.batch;
        for at in 0..3 {
            let proxy = &self.world.proxy;
            let is_asked = proxy.is_listed[at] || proxy.is_former[at];
            let node = &self.world.nodes[at];
            if is_asked && node.subscription.is_some() && batch.is_none_or(|one| one.to != at) {
                self.commit(|world| world.nodes[at].subscription = None)?;
            }
            let node = &self.world.nodes[at];
            if is_asked && node.slot.is_some() && batch.is_none_or(|one| one.from != at) {
                self.commit(|world| world.nodes[at].slot = None)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, change: impl FnOnce(&mut World)) -> Result<(), Ending> {
        change(self.world);
        self.world.check();
        // Clients go on.
        self.world.write();
        self.seen.push(self.world.clone());
        Ok(())
    }

    /// As `moves::repair`: the nodes, the proxy, the copies.
    fn repair(&mut self, repair: &Repair) -> Result<(), Ending> {
        for node in &repair.strangers {
            let at = *node as usize;
            self.commit(|world| (world.nodes[at].is_member, world.nodes[at].version) = (true, 0))?;
        }
        if !repair.strangers.is_empty() {
            return Ok(());
        }
        let (version, (owner, since)) = (repair.version, repair.owners[0]);
        let owner = owner as usize;
        for node in &repair.nodes {
            let at = *node as usize;
            self.commit(|world| {
                let node = &mut world.nodes[at];
                node.version = version;
                node.state = match node.state {
                    Some(BucketState::Gone) if at == owner => {
                        (node.since, node.target) = (since, None);
                        Some(BucketState::Owned)
                    }
                    Some(BucketState::Fenced) if at == owner && repair.fenced.is_empty() => {
                        Some(BucketState::Owned)
                    }
                    Some(state) if state.serves() && at != owner => Some(BucketState::Gone),
                    state => state,
                };
                assert_eq!(node.serves(), at == owner, "a false certificate");
            })?;
        }
        self.commit(|world| {
            let proxy = &mut world.proxy;
            (proxy.owner, proxy.since, proxy.version) = (owner, since, version);
            if let (Some(one), Some((_, step))) = (&mut proxy.batch, repair.steps.first()) {
                match step {
                    Some(step) => one.step = *step,
                    None => proxy.batch = None,
                }
            }
        })?;
        for node in repair.copies.keys() {
            self.drop_copy(*node as usize)?;
        }
        Ok(())
    }

    /// A copy that was served must hold nothing that the owner has not.
    fn drop_copy(&mut self, at: usize) -> Result<(), Ending> {
        self.commit(|world| {
            let served = world.nodes[at].state == Some(BucketState::Gone);
            let owner = &world.nodes[world.proxy.owner];
            let only = world.nodes[at].rows & !owner.rows & world.kept;
            assert!(!served || only == 0, "rows {only:b} are dropped: {world:?}");
            assert!(!world.nodes[at].serves(), "{world:?}");
            let node = &mut world.nodes[at];
            (node.state, node.since, node.target, node.rows) = (None, 0, None, 0);
        })
    }

    /// As `moves::batch`.
    fn step(&mut self, one: Move) -> Result<(), Ending> {
        let (from, to) = (one.from, one.to);
        match one.step {
            BatchStep::Planned => {
                if self.world.nodes[to].state.is_none() {
                    self.commit(|world| world.nodes[to].state = Some(BucketState::Arriving))?;
                }
                self.world.links += 1;
                let link = Some(self.world.links);
                self.commit(|world| world.nodes[from].slot = link)?;
                self.commit(|world| {
                    world.nodes[to].rows = world.nodes[from].rows;
                    world.nodes[to].subscription = link;
                })?;
                self.set_step(BatchStep::Copying, None)
            }
            BatchStep::Copying
                if self.world.nodes[to].state.is_none() || !self.world.is_linked(one) =>
            {
                self.begin_anew(one)
            }
            BatchStep::Copying => self.set_step(BatchStep::Fencing, None),
            BatchStep::Fencing => self.fence(one),
            BatchStep::Switching => self.complete(one),
            BatchStep::Switched => {
                self.end_replication(one)?;
                if self.world.nodes[from].state == Some(BucketState::Gone) {
                    self.drop_copy(from)?;
                }
                self.commit(|world| world.proxy.batch = None)
            }
        }
    }

    fn fence(&mut self, one: Move) -> Result<(), Ending> {
        let (from, to) = (one.from, one.to);
        self.commit(|world| world.nodes[from].state = Some(BucketState::Fenced))?;
        if self.world.is_linked(one) {
            self.commit(|world| world.nodes[to].rows = world.nodes[from].rows)?;
        }
        let is_there = self.world.nodes[to].state == Some(BucketState::Arriving);
        if !is_there || self.world.nodes[to].rows != self.world.nodes[from].rows {
            self.commit(|world| world.nodes[from].state = Some(BucketState::Owned))?;
            self.set_step(BatchStep::Copying, None)?;
            return self.begin_anew(one);
        }
        let version = self.world.census().newest() + 1;
        self.set_step(BatchStep::Switching, Some(version))?;
        self.commit(|world| {
            world.nodes[from].version = version;
            (world.nodes[from].state, world.nodes[from].since) = (Some(BucketState::Gone), version);
            world.nodes[from].target = Some(to);
        })?;
        self.commit(|world| {
            world.nodes[to].version = version;
            assert_eq!(world.nodes[to].state, Some(BucketState::Arriving));
            (world.nodes[to].state, world.nodes[to].since) = (Some(BucketState::Owned), version);
        })?;
        let one = Move { version: Some(version), ..one };
        self.complete(one)
    }

    fn complete(&mut self, one: Move) -> Result<(), Ending> {
        let version = one.version.unwrap();
        let is_told = |other: &usize| *other != one.from && *other != one.to;
        for other in (0..3).filter(is_told) {
            if !self.world.proxy.is_listed[other] {
                continue;
            }
            self.commit(|world| world.nodes[other].version = version)?;
        }
        self.commit(|world| {
            world.proxy.version = version;
            (world.proxy.owner, world.proxy.since) = (one.to, version);
            world.proxy.batch = Some(Move { step: BatchStep::Switched, ..one });
        })
    }

    fn begin_anew(&mut self, one: Move) -> Result<(), Ending> {
        self.end_replication(one)?;
        if self.world.nodes[one.to].state == Some(BucketState::Arriving) {
            self.drop_copy(one.to)?;
        }
        self.set_step(BatchStep::Planned, None)
    }

    fn end_replication(&mut self, one: Move) -> Result<(), Ending> {
        self.commit(|world| world.nodes[one.to].subscription = None)?;
        self.commit(|world| world.nodes[one.from].slot = None)
    }

    fn set_step(&mut self, step: BatchStep, version: Option<i64>) -> Result<(), Ending> {
        self.commit(|world| {
            if let Some(one) = &mut world.proxy.batch {
                (one.step, one.version) = (step, version);
            }
        })
    }
}

/// Runs the tool to its end; the world after each commit is what it leaves if it is killed then.
fn run(world: &mut World, goal: Option<Goal>) -> (Ending, Vec<World>) {
    let mut tool = Tool { world, seen: Vec::new() };
    let ending = tool.run(goal).err().unwrap_or(Ending::Done);
    (ending, tool.seen)
}

/// A history without a fault, of a cluster that begins with these nodes; clients write after each commit.
fn history(is_listed: [bool; 3], goals: &[Goal]) -> Vec<World> {
    let mut world = World::new(is_listed);
    world.write();
    let mut worlds = vec![world.clone()];
    for goal in goals {
        let (ending, made) = run(&mut world, Some(*goal));
        assert_eq!(ending, Ending::Done);
        worlds.extend(made);
    }
    worlds
}

/// How the explored runs have ended.
#[derive(Debug, Default)]
struct Count {
    worlds: usize,
    done: usize,
    refused: usize,
    /// Refused worlds in which all is well when a forgotten node is added again.
    taken_back: usize,
}

/// Everything that can follow: the tool ends what was begun, or moves the bucket to any node, or any node leaves;
/// it is killed after each commit, and clients write then. A node that the proxy has forgotten is added again.
fn explore(start: World, known: &mut HashSet<World>, count: &mut Count) {
    let mut open = vec![start];
    while let Some(mut world) = open.pop() {
        world.check();
        world.write();
        world = world.normal();
        if !known.insert(world.clone()) {
            continue;
        }
        count.worlds += 1;
        let mut after = world.clone();
        let (ending, made) = run(&mut after, None);
        // What a killed tool leaves.
        open.extend(made);
        if ending == Ending::Refused {
            count.refused += 1;
            for node in world.forgotten() {
                let mut world = world.clone();
                let (ending, made) = run(&mut world, Some(Goal::Own(node)));
                count.taken_back += usize::from(ending == Ending::Done);
                open.extend(made);
            }
            continue;
        }
        count.done += 1;
        if known.insert(after.normal()) {
            for goal in (0..3).flat_map(|node| [Goal::Own(node), Goal::Leave(node)]) {
                let (ending, made) = run(&mut after.clone(), Some(goal));
                assert_eq!(ending, Ending::Done, "it goes on: {goal:?} {after:?}");
                open.extend(made);
            }
        }
    }
}

/// The worlds after one fault of one server.
fn faults<'w>(now: &'w World, past: &'w [World]) -> impl Iterator<Item = World> + 'w {
    (0..4).flat_map(move |server| {
        past.iter().map(move |old| {
            let mut world = now.clone();
            world.restore(server, old);
            world
        })
    })
}

#[test]
fn one_server_that_is_restored_at_any_moment_to_any_other_loses_and_doubles_nothing() {
    let count = one_restored(&history([true; 3], &[Goal::Own(1), Goal::Own(0), Goal::Own(2)]));
    assert!(count.worlds > 1000 && count.done > 1000 && count.refused > 100, "{count:?}");
}

/// Nodes come, go, and come again.
#[test]
fn a_server_that_was_no_node_or_is_none_any_more_loses_and_doubles_nothing() {
    let goals = [Goal::Own(1), Goal::Leave(0), Goal::Own(2), Goal::Leave(1), Goal::Own(0)];
    let count = one_restored(&history([true, false, false], &goals));
    assert!(count.worlds > 1000 && count.done > 1000 && count.refused > 100, "{count:?}");
    assert!(count.taken_back > 100, "{count:?}");
}

/// Each world of a history with each fault of one server.
fn one_restored(past: &[World]) -> Count {
    let (mut known, mut count) = (HashSet::new(), Count::default());
    for (at, now) in past.iter().enumerate() {
        let refused = count.refused;
        explore(now.clone(), &mut known, &mut count);
        assert_eq!(count.refused, refused, "without a fault nothing is uncertain: {now:?}");
        for world in faults(now, &past[..at]).collect::<Vec<_>>() {
            let mut count_here = Count::default();
            explore(world, &mut known, &mut count_here);
            count.done += count_here.done;
            count.worlds += count_here.worlds;
            count.refused += count_here.refused;
            count.taken_back += count_here.taken_back;
        }
    }
    count
}

/// A second server is restored at any moment of the repair.
#[test]
fn two_servers_that_are_restored_lose_and_double_nothing_either() {
    let past = history([true; 3], &[Goal::Own(1), Goal::Own(0)]);
    let (mut known, mut count) = (HashSet::new(), Count::default());
    for (at, now) in past.iter().enumerate() {
        for mut world in faults(now, &past[..at]).collect::<Vec<_>>() {
            world.write();
            let (_, made) = run(&mut world.clone(), None);
            for then in std::iter::once(&world).chain(&made) {
                for world in faults(then, &past[..at]) {
                    explore(world, &mut known, &mut count);
                }
            }
        }
    }
    assert!(count.worlds > 1000 && count.done > 1000 && count.refused > 100, "{count:?}");
}
