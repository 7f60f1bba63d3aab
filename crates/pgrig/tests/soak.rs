//! A cluster whose nodes come and go for long, while tool, nodes and proxy are killed at random
//! moments, and accounts of every row. `make soak-shard` runs it; PGRIG_SOAK_ROWS says how many rows.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Node, NodeConfig};
use postgres::{Client, NoTls};

/// One bucket holds a part of the ledger. A row that comes twice is one row, so that a client may
/// try again whatever it does not know the outcome of.
const TEMPLATE: &str = "
    CREATE TABLE {bucket}.ledger (id bigint PRIMARY KEY, noted timestamptz NOT NULL DEFAULT now());
    CREATE FUNCTION {bucket}.note(key bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO {bucket}.ledger (id) VALUES (key) ON CONFLICT DO NOTHING; RETURN key; END $$;
    CREATE FUNCTION {bucket}.is_noted(key bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
    BEGIN RETURN EXISTS (SELECT FROM {bucket}.ledger WHERE id = key); END $$;";

const CLIENTS: i64 = 4;
/// Identifiers of one client lie apart from those of the next.
const RANGE: i64 = 1 << 40;
/// Rows that one statement notes, each in a transaction of its own behind the proxy.
const AT_ONCE: i64 = 20;
const MOVES_MIN: i64 = 20;

#[test]
#[ignore = "takes minutes: make soak-shard"]
fn no_row_is_lost_or_doubled_whoever_is_killed() {
    let given = std::env::var("PGRIG_SOAK_ROWS").ok();
    let rows_min: i64 = given.map_or(1_000_000, |rows| rows.parse().expect("a number of rows"));
    let lab = testing::servers::lab();
    // A process that is killed loses nothing that it has written: fsync would only cost time.
    let settings = [
        ("fsync", "off"),
        ("wal_level", "logical"),
        ("max_connections", "60"),
        ("max_worker_processes", "16"),
        ("wal_writer_delay", "10ms"),
        ("wal_retrieve_retry_interval", "200ms"),
    ];
    let start = |name: &str| {
        testing::servers::start(&lab, name, NodeConfig::new(settings.into_iter().collect()))
    };
    let mut nodes: Vec<Node> = ["proxy", "n0", "n1", "n2", "n3"].map(start).into();
    let place: Vec<String> = nodes.iter().map(|node| node.endpoint().to_string()).collect();
    let template = lab.directory().join("bucket.sql");
    std::fs::write(&template, TEMPLATE).unwrap();
    let template = template.to_string_lossy().into_owned();
    let create = ["create", "--node", &place[1], "--node", &place[2], "--template", &template];
    assert!(shard(&place[0], &[&create[..], &["--buckets", "32"]].concat()).0, "creating");

    let stop = Arc::new(AtomicBool::new(false));
    let noted: Vec<Arc<AtomicI64>> = (0..CLIENTS).map(|_| Arc::default()).collect();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (stop, proxy) = (Arc::clone(&stop), place[0].clone());
            let mine = Arc::clone(&noted[client as usize]);
            thread::spawn(move || write(&proxy, client, &mine, &stop))
        })
        .collect();

    let mut random = Random(0x5eed);
    let mut kills = BTreeMap::new();
    let acknowledged = || noted.iter().map(|mine| mine.load(Ordering::Relaxed)).sum::<i64>();
    while acknowledged() < rows_min || moves(&place[0]) < MOVES_MIN {
        let (numbers, target) = members(&place[0]);
        let free = place[1..].iter().find(|one| !target.contains(one));
        let leave = numbers[random.below(numbers.len())].to_string();
        let arguments: Vec<&str> = match free {
            Some(free) if numbers.len() < 3 || random.below(2) == 0 => vec!["add", free],
            _ => vec!["remove", &leave],
        };
        let mut tool =
            spawn(&place[0], &[&arguments[..], &["--grace", "1", "--batch", "4"]].concat());
        thread::sleep(Duration::from_millis(random.below(2500) as u64));
        let victim = random.below(6);
        match victim {
            0 | 1 => {
                tool.kill().unwrap();
                *kills.entry("tool").or_insert(0) += 1;
            }
            2 | 3 => {
                let node = 1 + random.below(4);
                nodes[node].kill9().unwrap();
                nodes[node].start().unwrap();
                *kills.entry("node").or_insert(0) += 1;
            }
            4 => {
                nodes[0].kill9().unwrap();
                nodes[0].start().unwrap();
                *kills.entry("proxy").or_insert(0) += 1;
            }
            _ => {}
        }
        tool.wait().unwrap();
        let began = Instant::now();
        loop {
            let (is_done, said) = shard(&place[0], &["rebalance", "--grace", "1", "--batch", "4"]);
            if is_done {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "it does not go on: {said}");
            thread::sleep(Duration::from_millis(200));
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    check(&place[0], &noted);
    let fences = "SELECT format('%s moves, %s rows, fence ms p50 %s p99 %s max %s', count(*),
                         sum(rows), round(percentile_cont(0.5) WITHIN GROUP (ORDER BY fence_ms)),
                         round(percentile_cont(0.99) WITHIN GROUP (ORDER BY fence_ms)),
                         round(max(fence_ms))) FROM pgrig_shard.batch";
    let said = nodes[0].value(fences).unwrap().unwrap_or_default();
    println!("{} rows acknowledged, killed {kills:?}; {said}", acknowledged());
}

/// Notes rows and raises `noted` to the last one that was acknowledged, all before it included.
fn write(proxy: &str, client: i64, noted: &AtomicI64, stop: &AtomicBool) {
    let mut connection = None;
    while !stop.load(Ordering::Relaxed) {
        let mut one = match connection.take().map_or_else(|| Client::connect(proxy, NoTls), Ok) {
            Ok(one) => one,
            Err(_) => {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
        };
        let first = client * RANGE + noted.load(Ordering::Relaxed);
        let note = "SELECT note(key) FROM generate_series($1::bigint, $2) key";
        if one.execute(note, &[&first, &(first + AT_ONCE - 1)]).is_ok() {
            noted.fetch_add(AT_ONCE, Ordering::Relaxed);
        }
        // A read at any moment is right, or it is refused.
        let known = client * RANGE + noted.load(Ordering::Relaxed) - 1;
        if noted.load(Ordering::Relaxed) > 0
            && let Ok(row) = one.query_one("SELECT is_noted($1)", &[&known])
        {
            assert!(row.get::<_, bool>(0), "row {known} was acknowledged and is not there");
        }
        if !one.is_closed() {
            connection = Some(one);
        }
    }
}

/// Every acknowledged row is there once, and each is where its hash and the mapping say.
fn check(proxy: &str, noted: &[Arc<AtomicI64>]) {
    let mut client = Client::connect(proxy, NoTls).unwrap();
    let owners = "SELECT b.bucket, n.conninfo FROM pgrig_shard.bucket b
                  JOIN pgrig_shard.node n ON n.number = b.node";
    let mut there: Vec<Vec<i64>> = vec![Vec::new(); noted.len()];
    for row in client.query(owners, &[]).unwrap() {
        let (bucket, conninfo): (i32, String) = (row.get(0), row.get(1));
        let mut node = Client::connect(&conninfo, NoTls).unwrap();
        let ledger = format!("SELECT id, pgrig_shard.bucket_of(id) FROM bucket_{bucket:04}.ledger");
        for row in node.query(&ledger, &[]).unwrap() {
            let id: i64 = row.get(0);
            assert_eq!(row.get::<_, i32>(1), bucket, "row {id} is in the wrong bucket");
            there[(id / RANGE) as usize].push(id % RANGE);
        }
    }
    for (ids, noted) in there.iter_mut().zip(noted) {
        let noted = noted.load(Ordering::Relaxed);
        ids.sort_unstable();
        let distinct = ids.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(distinct, "a row is there twice");
        let acknowledged = ids.iter().take_while(|id| **id < noted).count() as i64;
        assert_eq!(acknowledged, noted, "acknowledged rows are missing");
        // Of the last statement the outcome may be unknown; nothing else was ever intended.
        assert!(ids.last().is_none_or(|last| *last < noted + AT_ONCE), "rows that were not noted");
    }
}

fn spawn(proxy: &str, arguments: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
    command.arg("shard").args(arguments).args(["--proxy", proxy]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Whether it ended well, and what it said.
fn shard(proxy: &str, arguments: &[&str]) -> (bool, String) {
    let output = spawn(proxy, arguments).wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The nodes' numbers and addresses.
fn members(proxy: &str) -> (Vec<i32>, Vec<String>) {
    let mut client = Client::connect(proxy, NoTls).unwrap();
    let rows = client.query("SELECT number, conninfo FROM pgrig_shard.node", &[]).unwrap();
    rows.iter().map(|row| (row.get::<_, i32>(0), row.get::<_, String>(1))).unzip()
}

fn moves(proxy: &str) -> i64 {
    let mut client = Client::connect(proxy, NoTls).unwrap();
    let done = "SELECT count(*) FROM pgrig_shard.batch WHERE done IS NOT NULL";
    client.query_one(done, &[]).unwrap().get(0)
}

/// Marsaglia's xorshift64: the same moments again for the same machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
