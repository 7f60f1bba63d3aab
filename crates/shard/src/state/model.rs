//! A model of moves: a few buckets, three servers that come and go as nodes, and a proxy, in which every commit is
//! one change of one server. Each server is restored at each moment to each of its earlier states, the tool is killed after
//! each commit, each server falls silent at each commit, and clients write in between. The decisions are those of the
//! program itself. [`tool`] does what the program does with them.
//!
//! Servers are numbered by their places in [`World::servers`]; the number of a node is what the proxy's list calls it,
//! and what the node calls itself, which may be another.

mod tests;
mod tool;

use std::collections::{BTreeMap, HashSet};

use super::{
    BatchState, BatchStep, BucketState, ClusterState, NodeState, RecoveryDecision, Repair, Reply,
};
use crate::plan::Batch;
use tool::{Ending, Silence, run, run_with};

/// Number of servers.
const SERVERS: usize = 3;

/// Batches under way at once, at most.
const BATCHES: usize = 2;

/// A bucket on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Held {
    state: Option<BucketState>,
    /// The switch by which the bucket came, or left.
    since: i64,
    /// The node to which it has left.
    target: Option<i32>,
    /// Its rows, as a set of writes.
    rows: u128,
}

/// A server: what it says, its buckets, and its ends of the replication of each batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    /// The number that it gives itself; none if it holds nothing of the cluster. It may hold ends of replication.
    says: Option<i32>,
    version: i64,
    held: Vec<Held>,
    slots: [Option<u32>; BATCHES],
    subscriptions: [Option<u32>; BATCHES],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Proxy {
    version: i64,
    /// Each bucket's node, and the switch by which it came there.
    owners: Vec<(i32, i64)>,
    batches: [Option<Move>; BATCHES],
    /// The nodes by their numbers, and the servers that have been nodes.
    list: BTreeMap<i32, usize>,
    is_former: [bool; SERVERS],
}

/// A batch under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Move {
    from: i32,
    to: i32,
    buckets: Vec<usize>,
    step: BatchStep,
    version: Option<i64>,
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// All buckets go to this server, which is added if it is not in the list.
    Own(usize),
    /// The first bucket goes to this server.
    First(usize),
    /// This server is added, if it is not in the list.
    Join(usize),
    /// This server leaves, if it has no bucket.
    Leave(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    proxy: Proxy,
    servers: [Server; SERVERS],
    /// Buckets that move in one batch, at most.
    batch_max: usize,
    /// Links between two servers of which one was restored: nothing more arrives by them.
    broken: Vec<u32>,
    links: u32,
    /// Of each bucket: the number of writes, and those that no restore has lost: some copy has them that was ever
    /// served.
    writes: Vec<u32>,
    kept: Vec<u128>,
}

impl World {
    /// A cluster of these servers, whose buckets are on the first one.
    fn new(is_listed: [bool; SERVERS], buckets: usize, batch_max: usize) -> Self {
        let listed = (0..SERVERS).filter(|at| is_listed[*at]);
        let list: BTreeMap<i32, usize> = (0..).zip(listed).collect();
        let mut servers: [Server; SERVERS] = Default::default();
        servers.iter_mut().for_each(|server| server.held = vec![Held::default(); buckets]);
        for (number, at) in &list {
            (servers[*at].says, servers[*at].version) = (Some(*number), 1);
        }
        for held in &mut servers[0].held {
            (held.state, held.since) = (Some(BucketState::Owned), 1);
        }
        let (owners, batches) = (vec![(0, 1); buckets], [const { None }; BATCHES]);
        let proxy = Proxy { version: 1, owners, batches, list, is_former: [false; SERVERS] };
        let (writes, kept) = (vec![0; buckets], vec![0; buckets]);
        Self { proxy, servers, batch_max, broken: Vec::new(), links: 0, writes, kept }
    }

    /// What the program sees, if a server is silent.
    fn census(&self, silent: Option<usize>) -> ClusterState {
        let batches = (1..).zip(&self.proxy.batches).filter_map(|(number, one)| {
            let one = one.as_ref()?;
            let buckets = one.buckets.iter().map(|bucket| *bucket as i32).collect();
            let batch = Batch { from: one.from, to: one.to, buckets };
            Some(BatchState { number, batch, step: one.step, version: one.version })
        });
        let reply = |at: usize| {
            let server = &self.servers[at];
            let Some(says) = server.says else { return Reply::Stranger };
            let held = || (0..).zip(&server.held);
            let buckets =
                held().filter_map(|(bucket, held)| Some((bucket, (held.state?, held.since))));
            let gone = held().filter(|(_, held)| held.state == Some(BucketState::Gone));
            let targets = gone.filter_map(|(bucket, held)| Some((bucket, held.target?))).collect();
            let (buckets, version) = (buckets.collect(), server.version);
            Reply::Member(NodeState { says, version, buckets, targets })
        };
        let replies = self.proxy.list.iter().map(|(number, at)| match silent == Some(*at) {
            true => (*number, Reply::Silent),
            false => (*number, reply(*at)),
        });
        ClusterState {
            version: self.proxy.version,
            owners: self.proxy.owners.clone(),
            batches: batches.collect(),
            nodes: replies.collect(),
        }
    }

    fn buckets(&self) -> std::ops::Range<usize> {
        0..self.proxy.owners.len()
    }

    /// The server that the proxy calls this; the list has every node that it maps a bucket to.
    fn server_of(&self, number: i32) -> usize {
        self.proxy.list[&number]
    }

    fn owner(&self, bucket: usize) -> &Held {
        &self.servers[self.server_of(self.proxy.owners[bucket].0)].held[bucket]
    }

    fn number_of(&self, at: usize) -> Option<i32> {
        self.proxy.list.iter().find(|(_, server)| **server == at).map(|(number, _)| *number)
    }

    /// A client's write to each bucket by the proxy; it is refused, with a message, where the node does not own.
    fn write(&mut self) {
        for bucket in self.buckets() {
            let (at, write) = (self.server_of(self.proxy.owners[bucket].0), self.writes[bucket]);
            let held = &mut self.servers[at].held[bucket];
            if held.state == Some(BucketState::Owned) && write < 127 {
                held.rows |= 1 << write;
                self.kept[bucket] |= 1 << write;
                self.writes[bucket] += 1;
            }
        }
    }

    /// One server is as it was in another world.
    fn restore(&mut self, server: usize, old: &World) {
        if server == SERVERS {
            self.proxy = old.proxy.clone();
        } else {
            let now = &mut self.servers[server];
            let ends = |one: &Server| one.slots.into_iter().chain(one.subscriptions).flatten();
            self.broken.extend(ends(now).chain(ends(&old.servers[server])));
            *now = old.servers[server].clone();
            self.broken.sort_unstable();
            self.broken.dedup();
        }
        // What the restore itself has lost is not the move's loss.
        let is_served =
            |held: &&Held| held.state.is_some_and(|state| state != BucketState::Arriving);
        for bucket in self.buckets() {
            let held = self.servers.iter().map(|server| &server.held[bucket]);
            self.kept[bucket] &= held.filter(is_served).fold(0, |all, held| all | held.rows);
        }
    }

    /// True if one server, or the proxy, is as in another world.
    fn is_same_at(&self, other: &World, server: usize) -> bool {
        match server {
            SERVERS => self.proxy == other.proxy,
            server => self.servers[server] == other.servers[server],
        }
    }

    /// The same world in the smallest numbers: decisions rest on the order of versions, and on which copies
    /// have a write.
    fn normal(&self) -> Self {
        let mut world = self.clone();
        let mut versions = vec![world.proxy.version];
        versions.extend(world.proxy.owners.iter().map(|(_, since)| *since));
        versions.extend(world.servers.iter().map(|server| server.version));
        versions
            .extend(world.servers.iter().flat_map(|one| one.held.iter().map(|held| held.since)));
        versions.extend(world.proxy.batches.iter().flatten().filter_map(|one| one.version));
        versions.sort_unstable();
        versions.dedup();
        let rank = |version: i64| versions.iter().filter(|one| **one < version).count() as i64 + 1;
        let proxy = &mut world.proxy;
        proxy.version = rank(proxy.version);
        proxy.owners.iter_mut().for_each(|(_, since)| *since = rank(*since));
        for one in proxy.batches.iter_mut().flatten() {
            one.version = one.version.map(rank);
        }
        let mut links: Vec<u32> = Vec::new();
        let mut label = |link: u32| {
            if !links.contains(&link) {
                links.push(link);
            }
            links.iter().position(|one| *one == link).unwrap() as u32 + 1
        };
        for server in &mut world.servers {
            server.version = rank(server.version);
            server.held.iter_mut().for_each(|held| held.since = rank(held.since));
            server.slots = server.slots.map(|link| link.map(&mut label));
            server.subscriptions = server.subscriptions.map(|link| link.map(&mut label));
        }
        world.broken = (1..)
            .zip(&links)
            .filter(|(_, link)| self.broken.contains(link))
            .map(|(label, _)| label)
            .collect();
        world.links = links.len() as u32;
        for bucket in self.buckets() {
            world.order_writes(bucket);
        }
        world
    }

    /// Forgets of a bucket's writes everything but which copies have them together.
    fn order_writes(&mut self, bucket: usize) {
        let has = |rows: u128, write: u32| rows >> write & 1 == 1;
        let column = |write: u32| {
            let [a, b, c] = [0, 1, 2].map(|at| has(self.servers[at].held[bucket].rows, write));
            [a, b, c, has(self.kept[bucket], write)]
        };
        let mut columns: Vec<[bool; SERVERS + 1]> = (0..self.writes[bucket]).map(column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.retain(|column| column.contains(&true));
        let gather = |row: usize| -> u128 {
            (0..).zip(&columns).map(|(bit, column)| u128::from(column[row]) << bit).sum()
        };
        (0..SERVERS).for_each(|at| self.servers[at].held[bucket].rows = gather(at));
        (self.kept[bucket], self.writes[bucket]) = (gather(SERVERS), columns.len() as u32);
    }

    /// True at every moment, whatever has happened.
    fn check(&self) {
        if !self.listed().all(|server| server.version == self.proxy.version) {
            return;
        }
        for bucket in self.buckets() {
            let serving = self.listed().filter(|server| server.held[bucket].serves()).count();
            assert_eq!(
                serving, 1,
                "a call to all nodes counts rows doubly or not at all: {self:?}"
            );
        }
    }

    fn listed(&self) -> impl Iterator<Item = &Server> {
        self.proxy.list.values().map(|at| &self.servers[*at])
    }

    /// True for a server that says that it is a node, has a bucket, and is not in the list, nor is its number.
    fn is_forgotten(&self, at: usize) -> bool {
        let server = &self.servers[at];
        let has_bucket = server.held.iter().any(|held| held.state.is_some());
        let is_free = server.says.is_some_and(|number| !self.proxy.list.contains_key(&number));
        has_bucket && is_free && self.number_of(at).is_none()
    }

    /// True after a run that says that all is well.
    fn check_done(&self) {
        for bucket in self.buckets() {
            let (owner, kept) = (self.owner(bucket), self.kept[bucket]);
            assert_eq!(owner.state, Some(BucketState::Owned), "not served: {self:?}");
            assert_eq!(owner.rows & kept, kept, "rows lost: {self:?}");
            let others = self.listed().filter(|server| server.held[bucket].state.is_some()).count();
            assert_eq!(others, 1, "copies are left: {self:?}");
        }
        assert!(self.listed().all(|server| server.version == self.proxy.version), "{self:?}");
        for (at, server) in self.servers.iter().enumerate() {
            let is_asked = self.number_of(at).is_some() || self.proxy.is_former[at];
            let is_free =
                server.slots == [None; BATCHES] && server.subscriptions == [None; BATCHES];
            assert!(!is_asked || is_free, "server {at} has a slot or a subscription: {self:?}");
        }
        for (number, at) in &self.proxy.list {
            assert_eq!(self.servers[*at].says, Some(*number), "{self:?}");
        }
        assert_eq!(self.census(None).out_of_step(), []);
    }
}

impl Held {
    fn serves(&self) -> bool {
        self.state.is_some_and(BucketState::serves)
    }
}

/// A history without a fault; clients write after each commit.
fn history(mut world: World, goals: &[Goal]) -> Vec<World> {
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
    /// Runs that a silent server has ended.
    silent: usize,
    /// Worlds in which two servers say that they are the same node.
    same_number: usize,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.worlds += other.worlds;
        self.done += other.done;
        self.refused += other.refused;
        self.taken_back += other.taken_back;
        self.silent += other.silent;
        self.same_number += other.same_number;
    }
}

/// Worlds that were explored already.
#[derive(Default)]
struct Known {
    worlds: HashSet<World>,
    /// Those in which a run has ended well, and from which all goals were tried.
    finished: HashSet<World>,
}

/// Everything that can follow: the tool ends what was begun, or does what any of the goals asks for; it is killed
/// after each commit, or a server is silent all the time, and clients write then. A node that the proxy has forgotten is
/// added again.
fn explore(start: World, goals: &[Goal], known: &mut Known, count: &mut Count) {
    let mut open = vec![start];
    while let Some(mut world) = open.pop() {
        world.check();
        world.write();
        world = world.normal();
        if !known.worlds.insert(world.clone()) {
            continue;
        }
        count.worlds += 1;
        count.same_number += usize::from(world.census(None).same_number().is_some());
        for silent in world.proxy.list.values() {
            let silence = Silence { server: *silent, from: 0, until: usize::MAX };
            let (ending, made, _) = run_with(&mut world.clone(), None, Some(silence));
            assert_ne!(ending, Ending::Done, "server {silent} was not asked: {world:?}");
            count.silent += usize::from(ending == Ending::Silent);
            open.extend(made);
        }
        let mut after = world.clone();
        let (ending, made) = run(&mut after, None);
        // What a killed tool leaves.
        open.extend(made);
        if ending == Ending::Refused {
            count.refused += 1;
            for at in (0..SERVERS).filter(|at| world.is_forgotten(*at)) {
                let (ending, made) = run(&mut world.clone(), Some(Goal::Own(at)));
                count.taken_back += usize::from(ending == Ending::Done);
                open.extend(made);
            }
            continue;
        }
        count.done += 1;
        if known.finished.insert(after.normal()) {
            for goal in goals {
                let (ending, made) = run(&mut after.clone(), Some(*goal));
                let is_expected = ending == Ending::Done || after.is_refused(*goal);
                assert!(is_expected, "it goes on: {goal:?} {after:?}");
                open.extend(made);
            }
        }
    }
}

/// The worlds after one fault of one server. A commit changes one server: the others are not restored to the same
/// state again.
fn faults<'w>(now: &'w World, past: &'w [World]) -> impl Iterator<Item = World> + 'w {
    (0..=SERVERS).flat_map(move |server| {
        let is_other = move |at: &usize| *at == 0 || !past[*at].is_same_at(&past[*at - 1], server);
        (0..past.len()).filter(is_other).map(move |at| {
            let mut world = now.clone();
            world.restore(server, &past[at]);
            world
        })
    })
}

/// Each server silent from each moment of a run on, for one moment or until its end.
fn silences(now: &World, goal: Goal) -> Vec<Silence> {
    let (_, _, time) = run_with(&mut now.clone(), Some(goal), None);
    let of_server = |server: &usize| {
        let server = *server;
        (1..=time).flat_map(move |from| {
            [from + 1, usize::MAX].map(|until| Silence { server, from, until })
        })
    };
    now.proxy.list.values().flat_map(of_server).collect()
}

/// Each world of a history with each fault of one server, and each server silent from each moment on.
fn one_restored(past: &[World], goals: &[Goal]) -> Count {
    let (mut known, mut count) = (Known::default(), Count::default());
    for (at, now) in past.iter().enumerate() {
        let refused = count.refused;
        explore(now.clone(), goals, &mut known, &mut count);
        for silence in silences(now, goals[0]) {
            let (ending, made, _) = run_with(&mut now.clone(), Some(goals[0]), Some(silence));
            count.silent += usize::from(ending == Ending::Silent);
            for world in made {
                explore(world, goals, &mut known, &mut count);
            }
        }
        assert_eq!(count.refused, refused, "without a fault nothing is uncertain: {now:?}");
        for world in faults(now, &past[..at]).collect::<Vec<_>>() {
            let mut here = Count::default();
            explore(world, goals, &mut known, &mut here);
            count.add(&here);
        }
    }
    count
}
