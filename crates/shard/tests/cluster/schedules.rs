//! Random schedules: a server is restored to a random moment of a move, the tool is killed at another, and
//! clients write. `make soak-shard-restores` runs them; PGRIG_SHARD_SCHEDULES says how many, and
//! PGRIG_SHARD_SEED with which one to begin.

#![allow(clippy::print_stderr)] // The run is hours long, and told as it goes.

use std::collections::BTreeSet;
use std::time::Duration;

use lab::{Node, Snapshot};
use shard::{Cluster, Error, Event, Moves, Options, Status};

use crate::common::{Servers, connect, open_again, options};
use crate::crashes::{never, run_and_die_when};
use crate::forgotten::REPLICATION;

const TEMPLATE: &str = "
    CREATE TABLE {bucket}.ledger (id bigint PRIMARY KEY);
    CREATE FUNCTION {bucket}.note(key bigint) RETURNS void LANGUAGE sql
        AS 'INSERT INTO {bucket}.ledger VALUES ($1)';
    CREATE FUNCTION {bucket}.is_noted(key bigint) RETURNS boolean LANGUAGE sql STABLE
        AS 'SELECT EXISTS (SELECT FROM {bucket}.ledger WHERE id = $1)';
    CREATE FUNCTION {bucket}.keys() RETURNS SETOF bigint LANGUAGE sql STABLE
        AS 'SELECT id FROM {bucket}.ledger';";

const NODES: usize = 3;

/// Drops what a server has of a cluster.
const CLEAR: &str = "
    DO $$
    DECLARE
        schema text;
    BEGIN
        FOR schema IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^(bucket_|pgrig_shard$)' LOOP
            EXECUTE format('DROP SCHEMA %I CASCADE', schema);
        END LOOP;
    END
    $$";

/// SplitMix64: a schedule is its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }
}

/// Servers of a cluster, and the rows that were acknowledged and not lost by a restore.
struct Rig {
    servers: Servers,
    next: i64,
    kept: BTreeSet<i64>,
}

impl Rig {
    fn new() -> Self {
        let servers = Servers::start(NODES);
        let nodes = [servers.node(0), servers.node(1)];
        drop(Cluster::create(&servers.conninfo(), &nodes, 8, TEMPLATE, shard::KEY).unwrap());
        Self { servers, next: 0, kept: BTreeSet::new() }
    }

    fn server(&mut self, number: usize) -> &mut Node {
        match number < NODES {
            true => &mut self.servers.nodes[number],
            false => &mut self.servers.proxy,
        }
    }

    /// Clients write some rows, each of which is acknowledged or refused.
    fn write(&mut self, rows: i64) {
        write(&self.servers.conninfo(), &mut self.next, &mut self.kept, rows);
    }

    /// Adds the node that is not there, or removes one.
    /// What is out of step is brought into step before.
    fn change(&self, random: &mut Random) -> Cluster {
        let mut cluster = open_again(&self.servers);
        let node = random.below(NODES);
        let conninfo = self.servers.node(node).conninfo;
        let known = cluster.nodes().iter().find(|one| one.conninfo == conninfo);
        let others = |number: &i32| {
            let staying = cluster.nodes().iter().filter(|one| !one.is_leaving);
            staying.filter(|one| one.number != *number).count()
        };
        match known.map(|one| one.number) {
            None => {
                drop(cluster);
                return self.add(node);
            }
            Some(number) if others(&number) > 0 => {
                if let Err(error) = cluster.remove(number) {
                    assert!(matches!(error, Error::OutOfStep { .. }), "{error}");
                    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
                    match cluster.remove(number) {
                        // It has left, or all others have.
                        Err(Error::Refused { .. }) => {}
                        other => other.unwrap(),
                    }
                }
            }
            Some(_) => {
                drop(cluster);
                return self.add((node + 1) % NODES);
            }
        }
        cluster
    }

    /// Adds a node. One that has left and was restored since has to come into step first; one whose number another
    /// node has by now is cleared before it is added, as the hint says.
    fn add(&self, node: usize) -> Cluster {
        let (server, node) = (&self.servers.nodes[node], self.servers.node(node));
        let mut cluster = Cluster::open_to_add(&self.servers.conninfo(), &node).unwrap();
        for _ in 0..2 {
            match cluster.add(&node) {
                Ok(_) => return cluster,
                Err(Error::OutOfStep { .. }) => {
                    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
                }
                Err(Error::Refused { what, .. }) if what.contains("says that it is node") => {
                    server.connect().unwrap().batch_execute(CLEAR).unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        cluster.add(&node).unwrap();
        cluster
    }

    /// Runs what was begun until an event of this number; true if there were so many.
    fn run_until(&mut self, cluster: Cluster, at: usize) -> bool {
        let (conninfo, mut seen) = (self.servers.conninfo(), 0);
        let (next, kept) = (&mut self.next, &mut self.kept);
        run_and_die_when(cluster, &mut |_| {
            write(&conninfo, next, kept, 2);
            seen += 1;
            seen == at
        })
    }

    /// The rows of every copy that was ever served.
    fn surviving(&self) -> BTreeSet<i64> {
        let mut rows = BTreeSet::new();
        for node in &self.servers.nodes {
            let mut client = node.connect().unwrap();
            let there = "SELECT to_regclass('pgrig_shard.bucket') IS NOT NULL";
            if !client.query_one(there, &[]).unwrap().get::<_, bool>(0) {
                continue;
            }
            let served = "SELECT bucket FROM pgrig_shard.bucket WHERE state <> 'arriving'";
            for row in client.query(served, &[]).unwrap() {
                let ids = format!("SELECT id FROM {}.ledger", shard::bucket_schema(row.get(0)));
                rows.extend(
                    client.query(&ids, &[]).unwrap().iter().map(|row| row.get::<_, i64>(0)),
                );
            }
        }
        rows
    }

    /// Servers with buckets or replication of this cluster that the proxy neither has in its list nor remembers.
    fn forgotten(&self) -> Vec<usize> {
        let known = "SELECT conninfo FROM pgrig_shard.node
                     UNION ALL SELECT conninfo FROM pgrig_shard.former_node";
        let known = connect(&self.servers.conninfo()).query(known, &[]).unwrap();
        let known: Vec<String> = known.iter().map(|row| row.get(0)).collect();
        let has = "SELECT to_regclass('pgrig_shard.bucket') IS NOT NULL";
        let is_forgotten = |number: &usize| {
            let node = &self.servers.nodes[*number];
            !known.contains(&self.servers.node(*number).conninfo)
                && node.value(has).unwrap().as_deref() == Some("t")
        };
        (0..NODES).filter(is_forgotten).collect()
    }

    /// The rows that a call to all nodes gives, each once, if it is answered.
    fn all(&self) -> Option<BTreeSet<i64>> {
        let rows = connect(&self.servers.conninfo()).query("SELECT * FROM keys()", &[]).ok()?;
        let rows: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let set: BTreeSet<i64> = rows.iter().copied().collect();
        assert_eq!(set.len(), rows.len(), "rows are counted twice");
        Some(set)
    }
}

fn write(conninfo: &str, next: &mut i64, kept: &mut BTreeSet<i64>, rows: i64) {
    let mut client = connect(conninfo);
    for _ in 0..rows {
        *next += 1;
        match client.execute("SELECT note($1)", &[next]) {
            Ok(_) => drop(kept.insert(*next)),
            Err(error) => assert!(error.code().is_some(), "the proxy answers: {error}"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Done,
    Refused,
}

fn schedule(rig: &mut Rig, seed: u64) -> Ending {
    let mut random = Random(seed);
    rig.write(20);
    let cluster = rig.change(&mut random);
    let victim = random.below(NODES + 1);
    if !rig.run_until(cluster, 1 + random.below(40)) {
        // It has ended before.
        drop(rig.change(&mut random));
    }
    let copy: Snapshot = {
        let server = rig.server(victim);
        server.kill9().unwrap();
        let copy = server.snapshot().unwrap();
        server.start().unwrap();
        copy
    };
    let cluster = open_again(&rig.servers);
    rig.run_until(cluster, 1 + random.below(40));
    if random.below(4) == 0 {
        drop(rig.change(&mut random));
        let cluster = open_again(&rig.servers);
        rig.run_until(cluster, 1 + random.below(40));
    }
    let server = rig.server(victim);
    server.kill9().unwrap();
    if random.below(5) > 0 {
        server.init_from_snapshot(&copy).unwrap();
    }
    server.start().unwrap();
    copy.remove().unwrap();
    let surviving = rig.surviving();
    rig.kept.retain(|row| surviving.contains(row));
    rig.all();
    rig.write(20);
    rig.all();

    let status = match Status::of(&rig.servers.conninfo()) {
        // A proxy that is older than the number of one of them.
        Err(Error::Refused { what, hint }) if what.contains("both say that they are node") => {
            assert!(hint.contains("if the proxy was restored"), "{hint}");
            let opened = Cluster::open(&rig.servers.conninfo());
            assert!(matches!(opened, Err(Error::Busy { .. } | Error::Refused { .. })));
            eprintln!("  {seed}: {what}");
            return Ending::Refused;
        }
        status => status.unwrap(),
    };
    let opened = lab::wait_until(Duration::from_secs(10), || {
        Ok::<_, String>(match Cluster::open(&rig.servers.conninfo()) {
            Err(Error::Busy { .. }) => None,
            other => Some(other),
        })
    });
    let mut cluster = match opened.unwrap().expect("the lock is given back") {
        Err(error @ Error::Undecided { .. }) => {
            assert!(status.is_undecided, "{error} {status:?}");
            eprintln!("  {seed}: {error}");
            return Ending::Refused;
        }
        other => other.unwrap(),
    };
    assert!(!status.is_undecided, "{status:?}");
    let short = Options { fence_max: Duration::from_secs(20), ..options() };
    let ended = Moves::new(&mut cluster, short, &mut |_: &Event<'_>| {}, &never).run();
    match ended {
        Ok(()) => {}
        // A copy of before the restore: as the hint says.
        Err(error @ (Error::Differs { .. } | Error::Fence { .. })) => {
            eprintln!("  {seed}: {error}");
            Moves::new(&mut cluster, options(), &mut |_| {}, &never).abandon().unwrap();
            Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
        }
        Err(error) => panic!("{error}"),
    }
    drop(cluster);
    check(rig);
    // As the page says: a node that the restored proxy has forgotten is added again.
    for node in rig.forgotten() {
        eprintln!("  {seed}: the proxy has forgotten node{node}");
        let mut cluster = rig.add(node);
        Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
        drop(cluster);
        check(rig);
    }
    for node in &rig.servers.nodes {
        assert_eq!(node.value(REPLICATION).unwrap(), None, "{}", node.name());
    }
    Ending::Done
}

/// No row is lost or doubled, and nothing is under way.
fn check(rig: &Rig) {
    let all = rig.all().expect("all nodes have the mapping's version");
    let lost: Vec<&i64> = rig.kept.difference(&all).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let mut client = connect(&rig.servers.conninfo());
    let served = "SELECT bool_and(is_noted(key)) FROM unnest($1::bigint[]) key";
    let keys: Vec<i64> = rig.kept.iter().copied().collect();
    assert!(client.query_one(served, &[&keys]).unwrap().get::<_, bool>(0));
    let status = Status::of(&rig.servers.conninfo()).unwrap();
    let left = (status.out_of_step.len(), status.batches.len(), status.remnants.len());
    assert_eq!(left, (0, 0, 0), "{status:?}");
}

#[test]
#[ignore = "takes hours: make soak-shard-restores"]
fn restores_at_random_moments_lose_and_double_nothing() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let (count, first) = (number("PGRIG_SHARD_SCHEDULES", 1000), number("PGRIG_SHARD_SEED", 1));
    let (mut rig, mut done, mut refused) = (Rig::new(), 0, 0);
    for seed in first..first + count {
        eprintln!("schedule {seed}: {done} done, {refused} refused");
        match schedule(&mut rig, seed) {
            Ending::Done => done += 1,
            Ending::Refused => {
                refused += 1;
                rig = Rig::new();
            }
        }
    }
    eprintln!("{count} schedules: {done} done, {refused} refused; lost 0, doubled 0");
    assert!(done > 0);
}
