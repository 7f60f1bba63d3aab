//! Topologies and the actions on them.

use super::*;

/// Servers that follow one another, what stands in front of them, and what breaks them.
pub(super) const SYNC: &str = r#"
question = "?"
[settings]
work_mem = "1MB"
[topologies.C]
nodes.primary = { sync = "ANY 1", disk = { cut = "block", wal = "256MB", size = "1GB", sector = 4096, fs = "xfs" } }
nodes.standby1 = { of = "primary", sync = 2 }
nodes.standby2 = { of = "primary", sync = 1 }
nodes.distant = { of = "standby1" }
nodes.front = { kind = "pgbouncer", to = "primary", pool = 16, mode = "session", listen = "tcp", clients = 64, settings = { query_wait_timeout = 5 } }
nodes.watcher = { kind = "guard", to = "primary", grace = "3s" }
nodes.shard = { count = "{n}", throttle = { write_iops = 200, write_bytes = "4MB", read_bytes = "32kB" } }
nodes.many = { kind = "plproxy", to = "shard", buckets = 8, partitions = 5 }
nodes.door = { kind = "pgbouncer", to = "shard", count = "{n}", version = "1.18" }
nodes.proxy = { kind = "plproxy", to = "shard", buckets = 8 }
links.wan = { between = ["primary", "standby1"], delay = "{delay}", bandwidth = "100Mbit", by = "namespace" }
[workloads.writes]
script = "orders.sql"
to = ["primary", "standby1"]
ledger = { insert = "writes_log", update = "writes_state" }
session = { synchronous_commit = "{commit}" }
[scenarios.break]
run = [{ workload = "writes", commit = "on" }]
over = { n = [2], delay = ["0.2ms"] }
window = "60s"
on_loss = "reconnect"
timeline = [
  { at = "1s", cut = "wan", direction = "to" },
  { at = "2s", heal = "wan" },
  { at = "3s", delay = "wan", to = "5ms" },
  { at = "4s", reset = "wan" },
  { at = "5s", power_cut = "primary" },
  { at = "6s", start = "primary" },
  { at = "7s", stop = "front" },
  { at = "8s", promote = "standby2" },
]
checks = [
  "counts", "ledger", { ledger = "standby1" }, "amcheck", { amcheck = "distant" },
  { explain = "SELECT 1", as = "one", on = "standby2", session = { jit = "off" } },
]
steady = false
drain = "2s"
needs = ["root"]
"#;

#[test]
fn a_topology_has_standbys_poolers_guards_proxies_and_links() {
    use spec::{
        Action, Check, Direction, DiskKind, LinkKind, NodeKind, PoolMode, PostgresRole, SqlTarget,
    };
    let study = parse(SYNC);
    let point = &study.points[0];
    let topology = &point.topology;
    let names: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names.join(" "),
        "primary standby1 standby2 distant front watcher shard1 shard2 many door1 door2 proxy"
    );
    let node = |name: &str| topology.node(name).unwrap();
    let disk = DiskKind::CutBlock {
        size_bytes: 1 << 30,
        sector_bytes: 4096,
        lying: false,
        file_system: spec::FileSystem::Xfs,
        log_bytes: None,
        wal_bytes: Some(256 << 20),
        tablespaces_bytes: None,
    };
    assert_eq!(node("primary").disk, disk);
    assert_eq!(
        node("primary").settings.value("synchronous_standby_names"),
        Some("ANY 1 (\"standby2\", \"standby1\")")
    );
    assert_eq!(node("standby1").settings.value("work_mem"), Some("1MB"));
    assert!(node("standby1").settings.value("synchronous_standby_names").is_none());
    assert_eq!(node("distant").follows(), Some("standby1"));
    assert_eq!(
        node("distant").kind,
        NodeKind::Postgres(PostgresRole::Standby { of: "standby1".to_owned(), sync: None })
    );
    let NodeKind::Pgbouncer(front) = &node("front").kind else { panic!() };
    assert_eq!((front.pool, front.mode, front.clients), (16, PoolMode::Session, 64));
    assert_eq!(node("front").settings.value("query_wait_timeout"), Some("5"));
    assert_eq!(node("door2").connects_to(), ["shard2"]);
    assert_eq!(node("proxy").connects_to(), ["shard1", "shard2"]);
    let NodeKind::Guard(watcher) = &node("watcher").kind else { panic!() };
    assert_eq!((watcher.to.as_str(), watcher.grace_ms), ("primary", 3_000));
    let wan = topology.link("wan").unwrap();
    assert_eq!((wan.delay_us, wan.bandwidth_bits), (200, Some(100_000_000)));
    assert_eq!((wan.between.join(" "), wan.by), ("primary standby1".into(), LinkKind::Namespace));

    let workload = &point.workloads[0];
    assert_eq!(workload.to, ["primary", "standby1"]);
    let ledger = workload.ledger.as_ref().unwrap();
    assert_eq!(ledger.insert.as_deref(), Some("writes_log"));
    assert_eq!(ledger.update.as_deref(), Some("writes_state"));
    let actions: Vec<String> = point
        .timeline
        .iter()
        .map(|timed| format!("{} {}", timed.action.verb(), timed.action.target()))
        .collect();
    let expected = "cut wan, heal wan, delay wan, reset wan, power_cut primary, start primary, \
                    stop front, promote standby2";
    assert_eq!(actions.join(", "), expected);
    let cut = Action::Cut { link: "wan".to_owned(), direction: Direction::To };
    assert_eq!(point.timeline[0].action, cut);
    assert_eq!(point.timeline[2].action, Action::Delay { link: "wan".into(), to_us: 5_000 });
    assert_eq!(
        point.checks[2],
        Check::Ledger { node: Some(SqlTarget::Node("standby1".to_owned())) }
    );
    assert_eq!(
        point.checks[4],
        Check::Amcheck { node: Some(SqlTarget::Node("distant".to_owned())) }
    );
    let Check::Explain(explain) = &point.checks[5] else { panic!("{:?}", point.checks) };
    assert_eq!((explain.name.as_str(), explain.sql.as_str()), ("one", "SELECT 1"));
    assert_eq!(
        (explain.node.as_ref().and_then(SqlTarget::name), explain.session.value("jit")),
        (Some("standby2"), Some("off"))
    );
    let throttle = node("shard2").throttle.unwrap();
    assert_eq!((throttle.write_iops, throttle.write_bytes), (Some(200), Some(4 << 20)));
    assert_eq!((throttle.read_iops, throttle.read_bytes), (None, Some(32 << 10)));
    assert!(node("front").by_tcp && !node("primary").by_tcp);
    let NodeKind::Plproxy(many) = &node("many").kind else { panic!() };
    assert_eq!(many.partitions(), 5);
    assert_eq!((many.partitions_on("shard1"), many.partitions_on("shard2")), (3, 2));
    assert!(!point.must_be_steady && parse(OWN).points[0].must_be_steady);
    assert_eq!((point.drain_ms, parse(OWN).points[0].drain_ms), (Some(2_000), None));
    assert!(point.needs_root());
    assert!(!parse(OWN).points[0].needs_root());
}

#[test]
fn the_first_of_the_synchronous_standbys_is_waited_for_unless_the_study_says_otherwise() {
    let check = |primary: &str, expected: Option<&str>| {
        let study = SYNC.replacen("sync = \"ANY 1\"", primary, 1);
        let study = parse(&study.replace("{ sync = \"ANY 1\", ", "{ "));
        let settings = &study.points[0].topology.nodes[0].settings;
        let names = settings.value("synchronous_standby_names");
        assert_eq!(names, expected, "{primary}");
    };
    check("settings = {}", Some("FIRST 1 (\"standby2\", \"standby1\")"));
    check("sync = \"first 2\"", Some("FIRST 2 (\"standby2\", \"standby1\")"));
    check("settings = { synchronous_standby_names = \"*\" }", Some("*"));
}

#[test]
fn a_variant_adds_options_of_initdb_to_those_of_its_servers() {
    let study = SYNC.replace(
        "nodes.shard = { ",
        "nodes.shard = { initdb = \"--no-locale\", checksums = true, ",
    );
    let study = parse(&format!("{study}\n[variants.wide]\ninitdb = [\"--wal-segsize=64\"]\n"));
    let topology = &study.points[0].topology;
    let options = |name: &str| {
        let words = topology.node(name).unwrap().initdb.iter().map(|option| option.word());
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(options("shard2"), "--no-locale --data-checksums --wal-segsize=64");
    assert_eq!((options("primary"), options("front")), ("--wal-segsize=64".into(), String::new()));
}

#[test]
fn a_topology_is_wrong_at_the_place_where_it_is_wrong() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(SYNC.contains(from), "{from}");
        assert_eq!(problems(&SYNC.replacen(from, to, 1)).trim_end(), expected);
    };
    check(
        "nodes.distant = { of = \"standby1\" }",
        "nodes.distant = { of = \"standby1\", initdb = [\"--wal-segsize=64\"] }",
        "`initdb` standby \"distant\" has the options of initdb of standby1 \
         (name them at standby1)",
    );
    check(
        "nodes.shard = { ",
        "nodes.shard = { initdb = [\"--no-locale\", \"--waldir=/wal\", \"64\"], ",
        "`\"--waldir=/wal\"` initdb: \"--waldir=/wal\": --waldir cannot be given: pgrig decides \
         where the files lie\n\
         `\"64\"` initdb: \"64\": expected the long form of an option of initdb, with its value \
         after =, as in --data-checksums or --wal-segsize=64",
    );
    check(
        "partitions = 5",
        "partitions = 1",
        "`1` 1 partitions on 2 servers (at least one for each server of `to`)",
    );
    check(
        "write_bytes = \"4MB\"",
        "write_bytes = \"fast\"",
        "`\"fast\"` write_bytes: not a number of bytes a second (write \"4MB\")",
    );
    check(
        "of = \"standby1\" }",
        "of = \"standby9\" }",
        "`\"standby9\"` unknown node \"standby9\" (did you mean \"standby1\"?)",
    );
    check(
        "sync = \"ANY 1\"",
        "sync = \"ANY 3\"",
        "`\"ANY 3\"` commits would wait for 3 synchronous standbys, primary has 2 \
         (give the standbys a priority: sync = 1)",
    );
    check(
        "sync = \"ANY 1\"",
        "sync = 1",
        "`1` sync: not a number of standbys (a primary says \"FIRST 1\" or \"ANY 2\"; \
         a priority belongs to a standby, which says of = \"PRIMARY\")",
    );
    check(
        "{ of = \"standby1\" }",
        "{ of = \"standby1\", sync = 3 }",
        "`3` commits cannot wait for a standby of standby standby1",
    );
    check(
        "of = \"primary\", sync = 1",
        "of = \"front\", sync = 1",
        "`\"front\"` front is no PostgreSQL server",
    );
    check("{ of = \"standby1\" }", "{ of = \"distant\" }", "`\"distant\"` distant follows itself");
    check(
        "kind = \"guard\", to = \"primary\"",
        "kind = \"guard\", to = \"standby2\"",
        "`\"standby2\"` a guard watches a primary; standby2 is a standby",
    );
    check(
        "count = \"{n}\", version",
        "count = 3, version",
        "`\"shard\"` \"shard\" are 2 nodes, \"door\" 3 \
         (name one of them, or give both the same count)",
    );
    check(
        "buckets = 8",
        "buckets = 6",
        "`6` buckets must be a power of two (a bucket is the low bits of a hash: 16, 32, 64, 128, …)",
    );
    check(
        "[\"primary\", \"standby1\"], delay",
        "[\"standby2\", \"standby1\"], delay",
        "`\"standby1\"` neither of standby2 and standby1 connects to the other",
    );
    check(
        "sync = \"ANY 1\", disk",
        "listen = \"tcp\", sync = \"ANY 1\", disk",
        "`\"namespace\"` primary listens on loopback, which is not in its namespace \
         (leave out listen = \"tcp\" there, or write \"relay\")",
    );
    check(
        "100Mbit",
        "100Mbps",
        "`\"100Mbps\"` \"100Mbps\" is not a bandwidth \
         (write bits a second with a unit: 512kbit, 100Mbit, 1Gbit)",
    );
    check(
        "clients = 64",
        "clients = 64, max = 1",
        "`max` a node has no field \"max\" \
         (there is kind, to, pool, mode, clients, version, settings, listen, count)",
    );
    check(
        "ledger = { insert = \"writes_log\", update = \"writes_state\" }",
        "ledger = {}",
        "`{}` a ledger needs a table \
         (write { insert = \"TABLE\" }, { update = \"TABLE\" } or both, or { read = \"TABLE\" })",
    );
    check(
        "ledger = { insert = \"writes_log\", update = \"writes_state\" }",
        "clients = 3",
        "`[` no workload of the scenario keeps a ledger \
         (give one ledger = { insert = \"TABLE\" })",
    );
    check(
        "ledger = { insert = \"writes_log\", update = \"writes_state\" }",
        "ledger = { insert = \"writes_log\", update = \"writes_state\" }\nhistory = true",
        "`[` a history is kept and not judged \
         (add checks = [{ history = \"serializable\" }], or another level)",
    );
}

#[test]
fn an_action_that_can_have_no_effect_is_pointed_at() {
    let check = |action: &str, expected: &str| {
        let study = SYNC.replacen("{ at = \"8s\", promote = \"standby2\" }", action, 1);
        assert_eq!(problems(&study).trim_end(), format!("`{action}` {expected}"));
    };
    check("{ at = \"8s\", start = \"standby1\" }", "start: standby1 was not stopped before");
    check("{ at = \"8s\", start = \"primary\" }", "start: primary was not stopped before");
    check("{ at = \"8s\", continue = \"distant\" }", "continue: distant was not paused before");
    check("{ at = \"2500ms\", heal = \"wan\" }", "heal: nothing was done to wan before");
    check("{ at = \"8s\", promote = \"primary\" }", "promote: primary is no standby");
    check("{ at = \"5500ms\", checkpoint = \"primary\" }", "checkpoint: primary is down by then");
    check(
        "{ at = \"8s\", power_cut = \"standby1\" }",
        "power_cut: the disk of standby1 cannot be cut: give it disk = { cut = … }",
    );
}

#[test]
fn a_promotion_is_refused_where_the_next_trial_would_have_to_live_with_it() {
    let promote = "{ at = \"8s\", promote = \"standby2\" }";
    let keep =
        SYNC.replacen("[workloads.writes]", "[data]\nreset = \"keep\"\n[workloads.writes]", 1);
    let expected = format!(
        "`{promote}` promote: the next trial would find no standby standby2 \
         (data.reset = \"clone\" begins each trial anew)"
    );
    assert_eq!(problems(&keep).trim_end(), expected);
    assert_eq!(problems(&keep.replacen("keep", "clone", 1)), "");
}

/// A disk that keeps a log, the exploration of it, and requests at which a disk fails or loses power.
const CRASHES: &str = r#"
question = "?"
[topologies.one.nodes.primary]
disk = { cut = "block", size = "1GB", log = "64MB" }
swallow_fsync = "pg_control"
[workloads.writes]
script = "orders.sql"
ledger = { insert = "writes_log" }
[scenarios.explore]
run = ["writes"]
checks = [{ explore = "primary", states = 500, second_cuts = 10, complaints = "SELECT 1", followed = { "a.b" = "SELECT 2" } }]
[scenarios.fail]
run = ["writes"]
timeline = [{ at = "1s", fail_disk = "primary", flush = 3, error = "ENOSPC" }]
checks = ["ledger"]
[scenarios.some]
run = ["writes"]
timeline = [{ at = "1s", fail_requests = "primary", of = "heap", times = 3 }, { at = "2s", heal = "primary" }]
checks = ["ledger"]
[scenarios.cut]
run = ["writes"]
timeline = [{ at = "1s", power_cut = "primary", write = 7 }]
checks = ["ledger"]
[scenarios.slow]
run = ["writes"]
timeline = [{ at = "1s", slow_disk = "primary", flush = 2, by = "20ms" }, { at = "2s", unthrottle = "primary" }]
checks = ["ledger"]
"#;

#[test]
fn a_server_has_disks_for_its_wal_and_its_tablespaces_and_ext4_in_two_ways() {
    use spec::{DataPart, DiskKind, FileSystem};
    let disk = "disk = { cut = \"block\", size = \"1GB\", log = \"64MB\" }";
    let three = "disk = { cut = \"block\", size = \"1GB\", log = \"64MB\", wal = \"128MB\", \
                 tablespaces = \"256MB\", fs = \"ext4-writeback\" }";
    let study = CRASHES.replacen(disk, three, 1);
    // A request is counted on one disk only.
    let study = [
        "fail_disk = \"primary\", flush = 3, error = \"ENOSPC\"",
        "power_cut = \"primary\", write = 7",
    ]
    .iter()
    .fold(study, |study, action| study.replacen(action, "power_cut = \"primary\"", 1));
    let node = parse(&study).points[0].topology.node("primary").unwrap().clone();
    assert_eq!(node.settings.value("allow_in_place_tablespaces"), Some("on"));
    let parts = [(DataPart::Main, 1 << 30), (DataPart::Wal, 128 << 20)];
    assert_eq!(node.disk.parts()[..2], parts);
    assert_eq!(node.disk.parts()[2..], [(DataPart::Tablespaces, 256 << 20)]);
    let is_writeback =
        |disk| matches!(disk, DiskKind::CutBlock { file_system: FileSystem::Ext4Writeback, .. });
    assert!(is_writeback(node.disk), "{:?}", node.disk);
    let check = |from: &str, to: &str, expected: &str| {
        assert!(study.contains(from), "{from}");
        let said = problems(&study.replacen(from, to, 1));
        assert!(said.contains(expected), "{to}:\n{said}");
    };
    check("\"256MB\"", "\"1MB\"", "tablespaces: not the size of a disk");
    let lack = "the tablespaces of primary are on a disk of their own, and base backups lack them then \
                (leave out tablespaces, or the archive and the standbys)";
    check("swallow_fsync", "archive = true\nswallow_fsync", lack);
    let standby = "[topologies.one.nodes.second]\nof = \"primary\"\n[workloads.writes]";
    check("[workloads.writes]", standby, lack);
    check(
        "power_cut = \"primary\"",
        "power_cut = \"primary\", write = 7",
        "primary has several disks, and a request is counted on one: leave out wal and tablespaces at its disk",
    );
}

#[test]
fn a_disk_keeps_a_log_fails_and_loses_its_power_at_a_request() {
    use spec::{
        Action, Check, DiskFault, DiskKind, DiskRequest, StateExploration, SwallowedFlushes,
    };
    let study = parse(CRASHES);
    let node = study.points[0].topology.node("primary").unwrap();
    assert!(
        matches!(node.disk, DiskKind::CutBlock { log_bytes: Some(bytes), .. } if bytes == 64 << 20)
    );
    assert_eq!(node.swallow_fsync, Some(SwallowedFlushes::Control));
    let (node, complaints) = (Some("primary".to_owned()), Some("SELECT 1".to_owned()));
    let followed = [("a.b".to_owned(), "SELECT 2".to_owned())].into();
    let explore =
        StateExploration { node, states: 500, least: 100, second_cuts: 10, complaints, followed };
    let explore = Check::Explore(explore);
    assert_eq!(study.points[0].checks, [explore]);
    let action = |point: usize| study.points[point].timeline[0].action.clone();
    let node = "primary".to_owned();
    let (at, fault) = (DiskRequest::Flush(3), DiskFault::Full);
    assert_eq!(action(1), Action::FailDisk { node: node.clone(), at, fault });
    let (kind, files) = (spec::RequestKind::Write, Some(spec::ServerFiles::Heap));
    let (times, fault) = (Some(3), DiskFault::Broken);
    let some = Action::FailRequests { node: node.clone(), kind, files, times, fault };
    assert_eq!(action(2), some);
    assert_eq!(study.points[2].timeline[1].action, Action::HealDisk { node: node.clone() });
    assert_eq!(action(3), Action::PowerCut { node: node.clone(), at: Some(DiskRequest::Write(7)) });
    let at = DiskRequest::Flush(2);
    assert_eq!(action(4), Action::SlowDisk { node, at, by_us: 20_000 });
    let check = |from: &str, to: &str, expected: &str| {
        assert!(CRASHES.contains(from), "{from}");
        assert_eq!(problems(&CRASHES.replacen(from, to, 1)).trim_end(), expected);
    };
    check(
        ", log = \"64MB\"",
        "",
        "`\"primary\"` the disk of primary keeps no log \
         (give it disk = { cut = \"block\", log = \"256MB\" })",
    );
    check(
        "\"64MB\"",
        "\"64 M\"",
        "`\"64 M\"` log: not the size of a log (write \"256MB\" or \"1GB\")\n\
         `\"primary\"` the disk of primary keeps no log \
         (give it disk = { cut = \"block\", log = \"256MB\" })",
    );
    check(
        "states = 500, ",
        "",
        "`{ explore = \"primary\", second_cuts = 10, complaints = \"SELECT 1\", followed = { \"a.b\" = \"SELECT 2\" } }` \
         a check has no states",
    );
    check(
        "second_cuts = 10",
        "second_cuts = 501",
        "`501` second_cuts must be an integer from 0 to 500",
    );
    check(
        "write = 7",
        "write = 7, flush = 1",
        "`{ at = \"1s\", power_cut = \"primary\", write = 7, flush = 1 }` write or flush, not both",
    );
    check(
        "\"pg_control\"",
        "\"pg_contrl\"",
        "`\"pg_contrl\"` unknown swallow_fsync \"pg_contrl\" (did you mean \"pg_control\"?)",
    );
}
