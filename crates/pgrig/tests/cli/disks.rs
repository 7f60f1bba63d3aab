//! Disks that are slow, full, fail or lose their power: under a server of the rig's, and under one that a
//! machine's program has started. What readers saw is held to what is there afterwards.

use crate::Desk;

const STUDY: &str = r#"
question = "What does a disk do to a server, and to a machine's?"
rounds = 1
window = "1s"
warmup = "100ms"
settings = { shared_buffers = "16MB", autovacuum = "off" }
data = { script = "init.sql", reset = "clone" }
[topologies.server.nodes.primary]
disk = { cut = "block", size = "256MB" }
[topologies.pair.nodes.db]
kind = "machine"
count = 2
server = {}
[topologies.pair.nodes.db.processes.postgres]
command = ["/bin/sh", "pg.sh"]
files = { "pg.sh" = "pg.sh" }
ready = { port = "{self.address}:5432", within = "60s" }
stop = "INT"
[topologies.pair.nodes.hosts]
kind = "route"
clients = "host={db1.address},{db2.address} user=postgres password={servers.password} dbname=postgres target_session_attrs=read-write connect_timeout=1"
ready = { sql = "SELECT count(*) = 1 FROM pg_stat_replication", within = "60s" }
[variants.server]
topology = "server"
override = { writes = { to = "primary" }, reads = { to = "primary" } }
[variants.pair]
topology = "pair"
disks = { db = { cut = "block", size = "256MB" } }
[workloads.writes]
script = "write.sql"
clients = 2
to = "hosts"
ledger = { insert = "log" }
[workloads.reads]
script = "read.sql"
protocol = "simple"
rate = 100
to = "hosts"
ledger = { read = "log" }
[scenarios.slow]
run = ["writes"]
variants = ["server"]
timeline = [{ at = "200ms", slow_disk = "primary", flush = 2, by = "60ms" }, { at = "600ms", unthrottle = "primary" }]
checks = ["ledger"]
[scenarios.full]
run = ["writes"]
variants = ["server"]
timeline = [{ at = "200ms", fail_disk = "primary", write = 3, error = "ENOSPC" }]
on_loss = "reconnect"
checks = ["ledger", "amcheck"]
[scenarios.deleted]
run = ["writes", "reads"]
variants = ["server"]
timeline = [{ at = "700ms", sql = "DELETE FROM log", on = "primary" }]
checks = ["ledger"]
[scenarios.power]
run = ["writes", "reads"]
variants = ["pair"]
on_loss = "reconnect"
steady = false
timeline = [{ at = "300ms", power_cut = "the primary now", as = "victim" }, { at = "400ms", start = "victim" }]
checks = [{ ledger = "the primary now" }, { amcheck = "every server now" }]
[scenarios.fails]
run = ["writes"]
variants = ["pair"]
on_loss = "reconnect"
steady = false
timeline = [
  { at = "100ms", slow_disk = "the primary now", flush = 1, by = "60ms", as = "victim" },
  { at = "300ms", unthrottle = "victim" },
  { at = "350ms", fail_disk = "victim", flush = 1 },
  { at = "600ms", kill = "victim" },
  { at = "650ms", run = ["{postgres.bin}/pg_ctl", "promote", "-D", "{self.disk}/data"], on = "a standby now" },
]
checks = [{ ledger = "the primary now" }, { amcheck = "every server now" }]
[[claims]]
says = "a disk that is slow loses nothing"
every = "ledger_anomalies == 0"
trials = "server/slow"
kind = "invariant"
[[claims]]
says = "a server whose disk has no room says PANIC, and loses nothing"
every = "cut_panicked == 1 and cut_survived == 1"
trials = "server/full"
kind = "invariant"
[[claims]]
says = "a machine that loses its power loses nothing, and nothing that a reader saw"
every = "ledger_anomalies == 0 and ledger_seen > 0"
trials = "pair/power"
kind = "invariant"
[[claims]]
says = "a machine whose disk fails is succeeded by another one"
every = "amcheck_corruptions == 0 and ledger_doubled + ledger_invented == 0"
trials = "pair/fails"
kind = "invariant"
[[claims]]
says = "control: what a reader saw and somebody deletes has vanished"
some = "ledger_vanished > 0"
trials = "server/deleted"
kind = "control"
"#;

const INIT: &str = "CREATE TABLE log (client int, seq bigint, chain bigint, \
                    PRIMARY KEY (client, seq));\nCREATE EXTENSION IF NOT EXISTS amcheck;\n";

const WRITE: &str = "BEGIN;\n\
    INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n\
    COMMIT;\n";

const READ: &str = "SELECT 0 AS ledger_read_client, coalesce(max(seq), 0) AS ledger_read_seq \
                    FROM log WHERE client = 0 AND :ledger_seq > 0 \\gset\n";

/// Two servers that a script starts, of which the second follows the first.
const SERVER: &str = r#"
set -e
data={self.disk}/data
if [ ! -e $data/PG_VERSION ]; then
  if [ {self.name} = db1 ]; then
    {postgres.bin}/initdb -D $data -U postgres -A trust
    echo "host all all 0.0.0.0/0 trust
host replication all 0.0.0.0/0 trust" >> $data/pg_hba.conf
  else
    until {postgres.bin}/pg_basebackup -h {db1.address} -U postgres -D $data -R; do sleep 0.1; done
  fi
fi
exec {postgres.bin}/postgres -D $data -c listen_addresses='*' -c unix_socket_directories={self.directory} -c shared_buffers=16MB
"#;

#[test]
fn disks_are_slow_full_fail_and_lose_their_power_under_servers_and_machines() {
    if !rustix::process::geteuid().is_root() {
        return testing::skip::no_root();
    }
    let desk = Desk::new();
    let files = [
        ("study.toml", STUDY),
        ("init.sql", INIT),
        ("write.sql", WRITE),
        ("read.sql", READ),
        ("pg.sh", SERVER),
    ];
    for (name, text) in files {
        desk.write(&format!("disks/{name}"), text);
    }
    let run = desk.pgrig(&["run", "disks", "--gate"]);
    // On a busy machine a fault may meet no transaction in flight: that claim is open then.
    let is_open = run.out.contains("had no transaction in flight at the fault");
    let run = run.ended(if is_open { 5 } else { 0 });
    assert!(!run.out.contains("does not hold"), "{}", run.out);
    // Each commit waits for a flush.
    let longest = longest_wait_ms(&desk, "server-slow");
    assert!(longest >= 60.0, "{longest}: {}", run.out);
}

/// The longest wait of a client in the only trial of that name.
fn longest_wait_ms(desk: &Desk, name: &str) -> f64 {
    let read =
        |path: &std::path::Path| std::fs::read_dir(path).unwrap().map(|one| one.unwrap().path());
    let record = read(&desk.path("runs")).next().unwrap();
    let mut trials = read(&record.join("trials"));
    let trial = trials.find(|trial| trial.to_str().unwrap().ends_with(name)).unwrap();
    let text = std::fs::read_to_string(trial.join("trial.json")).unwrap();
    let trial: serde_json::Value = serde_json::from_str(&text).unwrap();
    trial["metrics"]["longest_wait_ms"][""].as_f64().unwrap()
}
