//! States that a power cut could have left: found sound where nothing is wrong, and found where
//! something is.

use crate::Desk;

/// A server that flushes what it must, and one that flushes nothing.
const STUDY: &str = r#"
question = "Is every crash survived?"
rounds = 1
window = "700ms"
warmup = "100ms"
settings = { shared_buffers = "16MB", autovacuum = "off", allow_in_place_tablespaces = "on" }
data = { script = "init.sql", reset = "clone" }
[topologies.safe.nodes.primary]
disk = { cut = "block", size = "512MB", log = "256MB" }
[topologies.whole.nodes.primary]
disk = { cut = "block", size = "512MB", sector = 4096 }
[topologies.apart.nodes.primary]
disk = { cut = "block", size = "512MB", log = "256MB", wal = "128MB", tablespaces = "128MB" }
[topologies.pair.nodes]
primary = {}
standby = { of = "primary", sync = 1, disk = { cut = "block", size = "512MB", log = "256MB" } }
[topologies.none.nodes.primary]
disk = { cut = "block", size = "512MB", log = "256MB", wal = "128MB", tablespaces = "128MB" }
swallow_fsync = "all"
[variants.safe]
topology = "safe"
[variants.whole]
topology = "whole"
[variants.apart]
topology = "apart"
[variants.pair]
topology = "pair"
[variants.none]
topology = "none"
[workloads.writes]
script = "writes.sql"
clients = 4
ledger = { insert = "writes_log" }
[scenarios.explore]
run = ["writes"]
variants = ["safe", "apart", "none"]
before = [
  { on = "primary", sql = "CREATE TABLESPACE spread LOCATION ''" },
  { on = "primary", sql = "ALTER INDEX writes_log_pkey SET TABLESPACE spread" },
]
checks = ["ledger", { explore = "primary", states = 4, least = 4, second_cuts = 1 }]
[scenarios.promoted]
run = ["writes"]
variants = ["pair"]
checks = ["ledger", { explore = "standby", states = 3, least = 4, second_cuts = 1 }]
[scenarios.fails]
run = ["writes"]
variants = ["whole"]
timeline = [{ at = "200ms", fail_disk = "primary", flush = 5, error = "EIO" }]
on_loss = "reconnect"
checks = ["ledger", "amcheck"]
[scenarios.cut]
run = ["writes"]
variants = ["safe"]
timeline = [{ at = "200ms", power_cut = "primary", flush = 9 }]
on_loss = "reconnect"
checks = ["ledger", "amcheck"]
[scenarios.cut_both]
run = ["writes"]
variants = ["apart"]
timeline = [{ at = "200ms", power_cut = "primary" }]
on_loss = "reconnect"
checks = ["ledger", "amcheck"]
[[claims]]
says = "no state fails: of a server, of one with its WAL and its tablespaces on other disks, of a standby that is promoted"
every = "explore_failed == 0 and explore_states >= 4 and explore_second > 0"
trials = "safe/explore|apart/explore|pair/promoted"
kind = "invariant"
[[claims]]
says = "a disk that fails or is cut at a request costs nothing acknowledged"
every = "cut_survived == 1"
trials = "whole/fails|safe/cut|apart/cut_both"
kind = "invariant"
[[claims]]
says = "a server whose disk fails says PANIC"
every = "cut_panicked == 1"
trials = "whole/fails"
kind = "invariant"
[[claims]]
says = "control: without flushes some state fails"
some = "explore_failed > 0"
trials = "none/explore"
kind = "control"
"#;

const INIT: &str = "CREATE TABLE writes_log (client int, seq bigint, chain bigint, \
                    PRIMARY KEY (client, seq));\n";

const WRITES: &str = "INSERT INTO writes_log (client, seq, chain) \
                      VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n";

#[test]
fn every_crash_is_looked_at_and_a_state_that_fails_is_looked_at_again() {
    if !rustix::process::geteuid().is_root() {
        return testing::skip::no_root();
    }
    let desk = Desk::new();
    desk.write("crashes/study.toml", STUDY);
    desk.write("crashes/init.sql", INIT);
    desk.write("crashes/writes.sql", WRITES);
    let run = desk.pgrig(&["run", "crashes", "--gate", "--seed", "7"]).ended(0);
    // The summary adds up what was explored.
    assert!(run.out.contains("explored apart/explore: none of "), "{}", run.out);
    assert!(
        run.out.contains("acknowledged: all that was, in every table that the load wrote"),
        "{}",
        run.out
    );
    let kept = || {
        let trials = std::fs::read_dir(desk.path("runs")).unwrap().next().unwrap().unwrap().path();
        let trials = std::fs::read_dir(trials.join("trials")).unwrap();
        let states = trials.map(|trial| trial.unwrap().path().join("ledger/states"));
        states.into_iter().find(|states| states.join("states.txt").is_file()).expect("states")
    };
    let failed = || {
        let list = std::fs::read_to_string(kept().join("states.txt")).unwrap();
        let line = list.lines().skip(1).find(|line| !line.ends_with("\tsound")).map(str::to_owned);
        line.expect("a state that failed")
    };
    let line = failed();
    let number = line.split('\t').next().unwrap();
    let look = ["run", "crashes", "--state", number, "--trust-record"];
    let refused = desk.pgrig(&look[..4]).ended(1);
    assert!(refused.err.contains("add --trust-record"), "{}", refused.err);
    let said = desk.pgrig(&[&look[..], &["--image", "disk"]].concat()).ended(0);
    assert!(said.err.contains("the disk is in disk.wal: "), "{}", said.err);
    let then = said.out.lines().find(|line| line.starts_with("then: ")).unwrap();
    let now = said.out.lines().find(|line| line.starts_with("now: ")).unwrap();
    assert_eq!(then.strip_prefix("then: "), now.strip_prefix("now: "), "{}", said.out);
    for image in ["disk", "disk.wal", "disk.tablespaces"] {
        let image = std::fs::read(desk.path(image)).unwrap();
        assert_eq!(&image[1080..1082], [0x53, 0xef], "ext4's magic number");
    }
    // Nothing is read through a name that leads out of the record, nor waited for at a FIFO.
    let states = kept();
    for (name, swap) in [("states.txt", true), ("base.log", true), ("writes.log", false)] {
        let (path, aside) = (states.join(name), states.join("aside"));
        assert!(path.is_file(), "{name}");
        std::fs::rename(&path, &aside).unwrap();
        match swap {
            true => std::os::unix::fs::symlink(&aside, &path).unwrap(),
            false => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap(),
        }
        let refused = desk.pgrig(&look).ended(1);
        let what = ["a symbolic link", "a FIFO"].iter().any(|what| refused.err.contains(what));
        assert!(what, "{}", refused.err);
        std::fs::rename(&aside, &path).unwrap();
    }
    let none = desk.pgrig(&["run", "crashes", "--state", "999999", "--trust-record"]).ended(1);
    assert!(none.err.contains("has no state 999999"), "{}", none.err);
    let none = desk.pgrig(&["run", "pgbench", "--state", "1", "--trust-record"]).ended(1);
    assert!(none.err.contains("has kept the states of an exploration"), "{}", none.err);
}
