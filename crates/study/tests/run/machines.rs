//! Machines: programs that the study names, with an address of their own, and a server that the rig
//! did not start.

use record::{AttemptEnding, FinishedTrial, MarkKind};
use study::RecordPlace;

use super::{figure, finished, folder, request, run};

/// Two servers that a script starts, and a command that promotes the second one: a manager by hand.
const PAIR: &str = r#"
question = "Is a server that the rig did not start one like any other?"
window = "7s"
warmup = "100ms"
rounds = 2
[data]
script = "init.sql"
[topologies.pair.nodes.db]
kind = "machine"
count = 2
server = { data = "data" }
variables = { settings = "-c shared_buffers=16MB" }
[topologies.pair.nodes.db.processes.postgres]
command = ["/bin/sh", "pg.sh"]
files = { "pg.sh" = "pg.sh" }
ready = { port = "{self.address}:5432", within = "60s" }
stop = "INT"
[topologies.pair.nodes.beside]
kind = "process"
ports = ["web"]
command = ["/bin/sh", "-c", "echo port {self.port.web} of {self.name}; exec sleep 600"]
ready = { log = "port {self.port.web} of beside" }
[topologies.pair.nodes.hosts]
kind = "route"
clients = "host={db1.address},{db2.address} user=postgres password={servers.password} dbname=postgres target_session_attrs=read-write connect_timeout=1"
ready = { sql = "SELECT count(*) = 1 FROM pg_stat_replication", within = "60s" }
[workloads.writes]
script = "write.sql"
clients = 2
to = "hosts"
ledger = { insert = "log" }
[scenarios.promoted]
run = ["writes"]
on_loss = "reconnect"
steady = false
timeline = [
  { at = "500ms", cut = "db2", from = ["clients"] },
  { at = "1500ms", heal = "db2" },
  { at = "2500ms", pause = "db1", process = "server" },
  { at = "3s", continue = "db1", process = "server" },
  { at = "4s", kill = "the primary now", as = "victim" },
  { at = "5s", run = ["{postgres.bin}/pg_ctl", "promote", "-D", "{self.directory}/data"], on = "a standby now" },
]
checks = [
  { ledger = "the primary now" },
  { amcheck = "the primary now" },
  { sql = "SELECT count(*) FROM log", as = "written", expect = "> before" },
]
[[claims]]
every = "ledger_anomalies == 0"
"#;

const SERVER: &str = r#"
set -e
data={self.directory}/data
if [ ! -e $data/PG_VERSION ]; then
  if [ {self.name} = db1 ]; then
    {postgres.bin}/initdb -D $data -U postgres -A trust
    echo "host all all 0.0.0.0/0 trust
host replication all 0.0.0.0/0 trust" >> $data/pg_hba.conf
  else
    until {postgres.bin}/pg_basebackup -h {db1.address} -U postgres -D $data -R; do sleep 0.1; done
  fi
fi
exec {postgres.bin}/postgres -D $data -c listen_addresses='*' -c unix_socket_directories={self.directory} {settings}
"#;

const WRITE: &str = "BEGIN;\n\
    INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n\
    COMMIT;\n";

#[test]
fn a_server_that_the_rig_did_not_start_is_cut_off_killed_and_succeeded() {
    if !lab::machine::is_root() {
        return testing::skip::no_root();
    }
    let place = tempfile::tempdir().unwrap();
    let init =
        "CREATE TABLE log (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));";
    let files = [("study.toml", PAIR), ("init.sql", init), ("write.sql", WRITE), ("pg.sh", SERVER)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();

    // On a busy machine an attempt may be late, and is made again.
    let trials = finished(&ended.directory);
    let in_time: Vec<_> = trials.iter().filter(|one| !one.trial.ending.is_late()).collect();
    assert_eq!(
        in_time.len(),
        2,
        "{:?}",
        trials.iter().map(|one| &one.trial.ending).collect::<Vec<_>>()
    );
    in_time.into_iter().for_each(succeeded);
}

/// In every trial, each of which begins with the files as they were built.
fn succeeded(trial: &FinishedTrial) {
    let marks = trial.marks.iter().filter(|mark| mark.kind == MarkKind::Action);
    let texts: Vec<&str> = marks.map(|mark| mark.text.as_str()).collect();
    assert_eq!(trial.trial.ending, AttemptEnding::Done, "{texts:?} {:?}", trial.trial.notes);
    let expected = [
        "cut db2: packets in both directions are dropped, of 1 peer",
        "heal db2: 2 ways are open again",
        "pause db1: server: ",
        "continue db1: server: ",
        "kill db1: ",
        "run db2: server promoted",
    ];
    for (text, start) in texts.iter().zip(expected) {
        assert!(text.starts_with(start), "{texts:?}");
    }
    assert_eq!(figure(trial, "sql_check_failures", "written"), 0.0);
    assert_eq!(figure(trial, "amcheck_corruptions", "db2"), 0.0);
    assert_eq!(figure(trial, "ledger_servers", ""), 2.0, "{texts:?}");
    assert_eq!(figure(trial, "ledger_split", ""), 0.0);
    assert!(figure(trial, "no_primary_ms", "") > 0.0);
    assert_eq!(figure(trial, "whole_at_end", ""), 0.0, "db1 is dead");
}

/// A program that has ended is not waited for, and the message says when it ended and not how long it had.
#[test]
fn a_program_that_ends_before_it_is_ready_has_ended() {
    if !lab::machine::is_root() {
        return testing::skip::no_root();
    }
    let (init, ends) = ("SELECT 1;\n", "echo gone; exit 3\n");
    let files = [("study.toml", PAIR), ("init.sql", init), ("write.sql", WRITE), ("pg.sh", ends)];
    let place = tempfile::tempdir().unwrap();
    let said = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned())));
    let said = said.unwrap_err().to_string();
    assert!(said.contains("postgres of db1") && said.contains(" ended after "), "{said}");
    assert!(!said.contains("within"), "{said}");
}
