//! Machines, and actions whose node is found when they are due.

use super::*;
use spec::{Action, Check, Chosen, Disk, ProcessVerb, Ready, ReadyWhen, RejoinBy, Whom};

const STUDY: &str = r#"
question = "?"
window = "10s"
[data]
script = "init.sql"
[topologies.t.nodes.db]
kind = "machine"
count = 2
server = { port = 5433 }
variables = { ttl = 20 }
[topologies.t.nodes.db.processes.manager]
command = ["/bin/manager", "{self.name}", "{db2.address}"]
ready = { http = "http://{self.address}:8008/health", within = "5s" }
stop = "INT"
[topologies.t.nodes.proxy]
kind = "process"
command = ["proxy", "{self.port.sql}"]
ports = ["sql"]
clients = "host={proxy.address} port={proxy.port.sql} password={servers.password}"
[variants.slow]
variables = { ttl = 60 }
disks = { db = { cut = "block", size = "300MB" } }
[workloads.w]
script = "orders.sql"
to = "proxy"
[scenarios.s]
run = ["w"]
before = ["CHECKPOINT"]
timeline = [
  { at = "1s", kill = "the primary now", process = "server", as = "victim" },
  { at = "2s", cut = "victim", from = ["db2", "clients"], direction = "to" },
  { at = "3s", run = ["/bin/ctl", "{self.directory}"], on = "a standby now" },
  { at = "4s", heal = "victim" },
  { at = "5s", fail_disk = "the primary now", flush = 3 },
  { at = "6s", slow_disk = "db2", by = "20ms" },
]
checks = [{ amcheck = "the primary now" }, { amcheck = "every server now" }]
[[claims]]
every = "two_primaries_ms == 0"
"#;

#[test]
fn machines_and_nodes_that_are_chosen_are_read() {
    let study = parse(STUDY);
    let point = &study.points[0];
    assert_eq!(point.data.node, "db1");
    assert_eq!(point.before[0].on, Whom::PrimaryNow, "which of them takes writes is not planned");
    assert!(point.needs_root());
    let machine = point.topology.node("db2").unwrap().machine().unwrap();
    assert_eq!(machine.variables["ttl"], "60", "the variant's");
    let when = ReadyWhen::Http("http://{self.address}:8008/health".to_owned());
    assert_eq!(machine.processes[0].ready, Some(Ready { when, within_ms: 5_000 }));
    assert_eq!(machine.server.as_ref().map(|server| server.port), Some(5433));
    let proxy = point.topology.node("proxy").unwrap().machine().unwrap();
    assert!(!proxy.has_network && proxy.server.is_none());

    let timed = &point.timeline;
    assert_eq!(timed[0].chosen, Some(Chosen::PrimaryNow));
    assert_eq!(timed[0].called.as_deref(), Some("victim"));
    let (node, process, act) = ("db1".to_owned(), "server".to_owned(), ProcessVerb::Kill);
    assert_eq!(timed[0].action.on("db1"), Action::OfProcess { node, process, act });
    assert_eq!(timed[1].chosen, Some(Chosen::Earlier("victim".to_owned())));
    let Action::CutOff { from, .. } = &timed[1].action else { panic!("{timed:?}") };
    assert_eq!(from, &["db2", "clients"]);
    assert_eq!(timed[2].chosen, Some(Chosen::StandbyNow));
    let disk = point.topology.node("db2").unwrap().disk;
    assert!(
        matches!(disk, Disk::CutBlock { size_bytes, .. } if size_bytes == 300 << 20),
        "{disk:?}"
    );
    assert_eq!(point.checks[1], Check::AmcheckEverywhere);
}

#[test]
fn what_is_wrong_with_machines_is_pointed_at() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(STUDY.contains(from), "{from}");
        let said = problems(&STUDY.replacen(from, to, 1));
        assert!(said.contains(expected), "{from} → {to}:\n{said}");
    };
    check("{db2.address}", "{db3.address}", "node db1: nothing is called {db3.address}");
    check("{proxy.port.sql}", "{proxy.port.web}", "nothing is called {proxy.port.web}");
    check("command = [\"/bin/manager\"", "comand = [\"/bin/manager\"", "a process has no command");
    check("http = \"http", "https = \"http", "ready: one condition");
    check("process = \"server\"", "process = \"postgres\"", "unknown process \"postgres\"");
    check("cut = \"victim\"", "cut = \"victin\"", "unknown link \"victin\"");
    check(
        "at = \"4s\", heal = \"victim\"",
        "at = \"500ms\", heal = \"victim\"",
        "done as \"victim\"",
    );
    check("heal = \"victim\"", "heal = \"proxy\"", "proxy was not cut off before");
    check("from = [\"db2\"", "from = [\"db9\"", "unknown node \"db9\"");
    check("variables = { ttl = 60 }", "variables = { tll = 60 }", "has a variable tll");
    check("disks = { db", "disks = { dbs", "unknown node with a server \"dbs\"");
    check("{ cut = \"block\"", "{ cut = \"filesystem\"", "fail_disk: db1 has no block disk");
    check("size = \"300MB\"", "size = \"300MB\", log = \"64MB\"", "keeps no log");
    check("server = { port = 5433 }", "disk = \"plain\"", "has no field \"disk\"");
    check("clients = \"host=", "says = \"host=", "a node has no field \"says\"");
    check("server = { port = 5433 }", "server = { data = \"../data\" }", "below the machine's");
    // An option of apt-get would run commands of the study's author.
    for name in ["-oDir::Bin::dpkg=/bin/sh", "--download-only", "../x.deb", "a b", ""] {
        let packages = format!("server = {{ port = 5433 }}\npackages = [\"{name}\"]");
        check("server = { port = 5433 }", &packages, "is no name of a package");
    }
    check("stop = \"INT\"", "stop = \"KILL\"", "unknown stop \"KILL\"");
}

/// A server of the rig's with a program of the study in front of it.
const SERVERS: &str = r#"
question = "?"
window = "10s"
[topologies.t.nodes]
primary = { checksums = true }
standby1 = { of = "primary" }
standby2 = { of = "standby1" }
[topologies.t.nodes.proxy]
kind = "process"
command = ["proxy", "{primary.address}", "{primary.port}", "{primary.user}", "{primary.password}"]
[workloads.w]
script = "orders.sql"
[scenarios.s]
run = ["w"]
timeline = [
  { at = "1s", throttle = "primary", to = { write_iops = 50 } },
  { at = "2s", unthrottle = "primary" },
  { at = "3s", kill = "primary" },
  { at = "4s", promote = "standby1" },
  { at = "5s", rejoin = "primary", of = "standby1", by = "backup" },
]
[[claims]]
every = "tps > 0"
"#;

#[test]
fn servers_are_limited_and_follow_others_from_a_moment_on() {
    let study = parse(SERVERS);
    let actions: Vec<&Action> = study.points[0].timeline.iter().map(|one| &one.action).collect();
    let [Action::Throttle { to, .. }, _, _, _, Action::Rejoin { node, of, by }] = actions[..]
    else {
        panic!("{actions:?}");
    };
    assert_eq!(to.write_iops, Some(50));
    assert_eq!((node.as_str(), of.as_str(), *by), ("primary", "standby1", RejoinBy::Backup));

    let check = |from: &str, to: &str, expected: &str| {
        assert!(SERVERS.contains(from), "{from}");
        let said = problems(&SERVERS.replacen(from, to, 1));
        assert!(said.contains(expected), "{from} → {to}:\n{said}");
    };
    check("{primary.port}", "{primary.directory}", "nothing is called {primary.directory}");
    check("of = \"standby1\", by", "of = \"primary\", by", "primary cannot follow itself");
    check("of = \"standby1\", by", "of = \"proxy\", by", "proxy is a machine without server");
    check("of = \"standby1\", by = \"backup\"", "by = \"backup\"", "an action has no of");
    check("by = \"backup\"", "by = \"hand\"", "unknown by \"hand\"");
    check("to = { write_iops = 50 }", "to = {}", "throttle limits nothing");
    check(", to = { write_iops = 50 }", "", "an action has no to");
    let down = "{ at = \"4500ms\", kill = \"standby1\" },\n  { at = \"5s\", rejoin";
    check("{ at = \"5s\", rejoin", down, "standby1 is down by then");
    check(
        "{ at = \"1s\", throttle = \"primary\", to = { write_iops = 50 } },",
        "",
        "is not limited",
    );
    check(
        "standby2 = { of = \"standby1\" }",
        "standby2 = { of = \"standby1\", sync = 1 }",
        "cannot wait",
    );
}
