//! A small cluster in a lab, and clients that write to it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lab::{Lab, LabConfig, Node, NodeConfig, Settings};
use postgres::{Client, NoTls};
use shard::{Cluster, Options};
use testing::servers;

/// Few enough that deploying them takes no time, enough for three nodes to have different shares.
pub(crate) const BUCKETS: i32 = 16;

/// Keys that the tests use: a few hundred rows in every bucket's table.
pub(crate) const KEYS: i64 = 2000;

/// What one bucket holds: a counter for each key.
pub(crate) const TEMPLATE: &str = "
    CREATE TABLE {bucket}.counter (id bigint PRIMARY KEY, value bigint NOT NULL);
    CREATE FUNCTION {bucket}.add(key bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {bucket}.counter VALUES (key, 1)
            ON CONFLICT (id) DO UPDATE SET value = counter.value + 1
            RETURNING value INTO key;
        RETURN key;
    END $$;
    CREATE FUNCTION {bucket}.value(key bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN (SELECT value FROM {bucket}.counter WHERE id = key); END $$;
    CREATE FUNCTION {bucket}.forget(key bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN DELETE FROM {bucket}.counter WHERE id = key; END $$;
    CREATE FUNCTION {bucket}.counters() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN (SELECT count(*) FROM {bucket}.counter); END $$;";

/// A proxy and data nodes.
pub(crate) struct Servers {
    // Servers go before their lab.
    pub(crate) proxy: Node,
    pub(crate) nodes: Vec<Node>,
    _labs: [Lab; 2],
}

impl Servers {
    /// A proxy and `count` data nodes, running. PGRIG_PROXY_BIN names the programs of the proxy where the
    /// nodes' version has no PL/Proxy.
    pub(crate) fn start(count: usize) -> Self {
        let bin = std::env::var_os("PGRIG_PROXY_BIN");
        let of_proxy = lab::find::find(bin.as_deref().map(Path::new)).unwrap();
        let labs = [servers::lab(), Lab::open(LabConfig::new(of_proxy)).unwrap()];
        let start = |lab: &Lab, name: &str| servers::start(lab, name, NodeConfig::new(settings()));
        let proxy = start(&labs[1], "proxy");
        let nodes = (0..count).map(|number| start(&labs[0], &format!("node{number}"))).collect();
        Self { proxy, nodes, _labs: labs }
    }

    pub(crate) fn conninfo(&self) -> String {
        self.proxy.endpoint().to_string()
    }

    pub(crate) fn node(&self, number: usize) -> shard::NodeConfig {
        shard::NodeConfig { conninfo: self.nodes[number].endpoint().to_string(), route: None }
    }

    /// A cluster over the first `count` nodes.
    pub(crate) fn create(&self, count: usize) -> Cluster {
        let nodes: Vec<_> = (0..count).map(|number| self.node(number)).collect();
        Cluster::create(&self.conninfo(), &nodes, BUCKETS, TEMPLATE, shard::KEY).unwrap()
    }

    /// Every key counted once.
    pub(crate) fn fill(&self) {
        let mut client = connect(&self.conninfo());
        client
            .execute("SELECT add(key) FROM generate_series(1, $1::bigint) key", &[&KEYS])
            .unwrap();
    }

    /// Checks that each key is held once, by the node and in the schema that its hash and the
    /// mapping say, and gives the sum of the counters.
    pub(crate) fn check_rows(&self) -> i64 {
        let mut proxy = connect(&self.conninfo());
        let owners = "SELECT b.bucket, n.conninfo FROM pgrig_shard.bucket b
                      JOIN pgrig_shard.node n ON n.number = b.node ORDER BY 1";
        let (mut keys, mut sum) = (0, 0);
        for row in proxy.query(owners, &[]).unwrap() {
            let (bucket, conninfo): (i32, String) = (row.get(0), row.get(1));
            let sql = format!(
                "SELECT count(*), coalesce(sum(value), 0)::bigint,
                        count(*) FILTER (WHERE pgrig_shard.bucket_of(id) <> {bucket})
                 FROM {}.counter",
                shard::bucket_schema(bucket)
            );
            let row = connect(&conninfo).query_one(&sql, &[]).unwrap();
            let (count, values, astray): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
            assert_eq!(astray, 0, "rows in bucket {bucket} that do not belong there");
            (keys, sum) = (keys + count, sum + values);
        }
        assert_eq!(keys, KEYS, "each key exactly once");
        for node in &self.nodes {
            let stray = "SELECT count(*) FROM pg_namespace n WHERE nspname ~ '^bucket_'
                         AND NOT EXISTS (SELECT FROM pgrig_shard.bucket b
                                         WHERE format('bucket_%s', lpad(b.bucket::text, 4, '0'))
                                               = nspname AND b.state = 'owned')";
            let mut client = node.connect().unwrap();
            if client
                .query_one("SELECT to_regclass('pgrig_shard.node') IS NOT NULL", &[])
                .unwrap()
                .get(0)
            {
                let left: i64 = client.query_one(stray, &[]).unwrap().get(0);
                assert_eq!(left, 0, "{} holds buckets that it does not own", node.name());
            }
            let slots = "SELECT count(*) FROM pg_replication_slots";
            assert_eq!(client.query_one(slots, &[]).unwrap().get::<_, i64>(0), 0);
        }
        sum
    }
}

/// The cluster after its tool has died: the server needs a moment to see that the connection is gone.
pub(crate) fn open_again(servers: &Servers) -> Cluster {
    let opened =
        lab::wait_until(Duration::from_secs(10), || match Cluster::open(&servers.conninfo()) {
            Err(shard::Error::Busy { .. }) => Ok(None),
            other => other.map(Some),
        });
    opened.unwrap().expect("the lock is given back")
}

fn settings() -> Settings {
    let pairs = [
        ("shared_buffers", "16MB"),
        ("max_connections", "40"),
        ("wal_level", "logical"),
        ("max_worker_processes", "16"),
        ("max_logical_replication_workers", "8"),
        ("max_sync_workers_per_subscription", "4"),
        ("wal_retrieve_retry_interval", "100ms"),
        ("wal_writer_delay", "10ms"),
        ("synchronous_commit", "off"),
    ];
    pairs.into_iter().collect()
}

pub(crate) fn connect(conninfo: &str) -> Client {
    Client::connect(conninfo, NoTls).unwrap()
}

/// A short grace: the tests' rows are few. Long limits: the machine may be busy with other tests.
pub(crate) fn options() -> Options {
    Options {
        batch_max: 2,
        grace: Duration::from_millis(50),
        patience: Duration::from_secs(120),
        fence_max: Duration::from_secs(120),
        ..Options::default()
    }
}

/// Adds to counters through the proxy until it is told to stop, and reads what it has written.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

/// What a writer knows.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Calls that were acknowledged.
    pub(crate) acknowledged: i64,
    /// Calls whose connection was lost, or that failed in a way that may have been after the commit.
    pub(crate) unknown: i64,
    /// Calls that were refused and tried again.
    pub(crate) retried: i64,
    /// Errors that no retry was meant for.
    pub(crate) errors: Vec<String>,
}

impl Writer {
    pub(crate) fn start(conninfo: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, conninfo) = (Arc::clone(&stop), conninfo.to_owned());
        let thread = thread::spawn(move || write(&conninfo, &stopped));
        Self { stop, thread }
    }

    pub(crate) fn finish(self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn write(conninfo: &str, stop: &AtomicBool) -> Written {
    let (mut written, mut key) = (Written::default(), 0);
    let mut client = None;
    while !stop.load(Ordering::Relaxed) {
        key = (key + 7) % KEYS;
        let connected = match client.take() {
            Some(client) => Ok(client),
            None => Client::connect(conninfo, NoTls),
        };
        let Ok(mut one) = connected else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        match one.query_one("SELECT add($1)", &[&(key + 1)]) {
            Ok(_) => written.acknowledged += 1,
            Err(error) => match error.code().map(|code| code.code()) {
                Some("40001") => written.retried += 1,
                Some(code) => {
                    written.unknown += 1;
                    written.errors.push(format!("{code}: {:?}", error.as_db_error()));
                }
                None => {
                    written.unknown += 1;
                    continue;
                }
            },
        }
        // A read of any key, at any moment, is right or is refused.
        match one.query_one("SELECT value($1)", &[&(key + 1)]) {
            Ok(row) => assert!(row.get::<_, Option<i64>>(0).is_some(), "key {} vanished", key + 1),
            Err(error) if error.code().is_none() => continue,
            Err(_) => {}
        }
        client = Some(one);
    }
    written
}
