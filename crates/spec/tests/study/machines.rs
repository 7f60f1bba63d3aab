//! Machines, and actions whose node is found when they are due.

use super::*;
use spec::{
    Action, ActionTarget, Check, DiskKind, ProcessVerb, ReadyCondition, ReadyWhen, RejoinBy,
    SqlTarget,
};

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
  { at = "3s", run = ["/bin/ctl", "{self.directory}", "--ttl={ttl}"], on = "a standby now" },
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
    assert_eq!(
        point.before[0].on,
        SqlTarget::PrimaryNow,
        "which of them takes writes is not planned"
    );
    assert!(point.needs_root());
    let machine = point.topology.node("db2").unwrap().machine().unwrap();
    assert_eq!(machine.variables["ttl"], "60", "the variant's");
    let when = ReadyWhen::Http("http://{self.address}:8008/health".to_owned());
    assert_eq!(machine.processes[0].ready, Some(ReadyCondition { when, within_ms: 5_000 }));
    assert_eq!(machine.server.as_ref().map(|server| server.port), Some(5433));
    let proxy = point.topology.node("proxy").unwrap().machine().unwrap();
    assert!(!proxy.has_network && proxy.server.is_none());

    let timed = &point.timeline;
    assert_eq!(timed[0].chosen, Some(ActionTarget::PrimaryNow));
    assert_eq!(timed[0].called.as_deref(), Some("victim"));
    let (node, process, act) = ("db1".to_owned(), "server".to_owned(), ProcessVerb::Kill);
    assert_eq!(timed[0].action.on("db1"), Action::OfProcess { node, process, act });
    assert_eq!(timed[1].chosen, Some(ActionTarget::Earlier("victim".to_owned())));
    let Action::CutOff { from, .. } = &timed[1].action else { panic!("{timed:?}") };
    assert_eq!(from, &["db2", "clients"]);
    assert_eq!(timed[2].chosen, Some(ActionTarget::StandbyNow));
    let Action::Run { command, .. } = &timed[2].action else { panic!("{timed:?}") };
    assert_eq!(command[2], "--ttl={ttl}", "the machine has its value");
    let disk = point.topology.node("db2").unwrap().disk;
    assert!(
        matches!(disk, DiskKind::CutBlock { size_bytes, .. } if size_bytes == 300 << 20),
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
    check("--ttl={ttl}", "--ttl={tll}", "unknown axis \"tll\" (did you mean \"ttl\"?)");
    check(
        "{self.directory}\", \"--ttl",
        "{db2.port.web}\", \"--ttl",
        "nothing is called {db2.port.web}",
    );
    check("{proxy.port.sql}", "{proxy.port.web}", "nothing is called {proxy.port.web}");
    check("command = [\"/bin/manager\"", "comand = [\"/bin/manager\"", "a process has no command");
    let no_program = "a command has no program";
    check("command = [\"proxy\", \"{self.port.sql}\"]", "command = []", no_program);
    check("command = [\"proxy\", ", "command = [\"\", ", no_program);
    check("run = [\"/bin/ctl\", \"{self.directory}\", \"--ttl={ttl}\"]", "run = []", no_program);
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
    let paused = "{ at = \"4500ms\", pause = \"standby1\" },\n  { at = \"5s\", rejoin";
    check("{ at = \"5s\", rejoin", paused, "standby1 stands still by then");
    let asked =
        "{ at = \"4500ms\", sql = \"SELECT 1\", on = \"standby2\" },\n  { at = \"5s\", rejoin";
    let asked = format!("{{ at = \"4200ms\", pause = \"standby2\" }},\n  {asked}");
    check("{ at = \"5s\", rejoin", &asked, "sql: standby2 stands still by then");
    let back = "by = \"backup\" },\n  { at = \"6s\", promote = ";
    check("by = \"backup\" }", &format!("{back}\"standby1\" }}"), "standby1 was promoted before");
    let text = "timeline = [\n  { at = \"500ms\", sql = \"SELECT '{primary.prot}'\" },";
    check("timeline = [", text, "nothing is called {primary.prot}");
    let text = "before = [\"SELECT '{primary.prot}'\"]\ntimeline = [";
    check("timeline = [", text, "nothing is called {primary.prot}");
    let text = "checks = [{ restore = \"standby1\" }]\ntimeline = [";
    check(
        "timeline = [",
        text,
        "standby1 is a standby, whose WAL is in the archive of the server that it follows",
    );
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

#[test]
fn a_server_that_has_a_name_by_an_action_follows_and_is_promoted_again() {
    let named = |actions: &str| {
        let from = "  { at = \"3s\", kill = \"primary\" },\n";
        let (before, after) = SERVERS.split_once(from).unwrap();
        let (_, after) = after.split_once("]\n").unwrap();
        format!("{before}{actions}]\n{after}")
    };
    let check = |actions: &str, expected: &str| {
        let said = problems(&named(actions));
        assert!(
            if expected.is_empty() { said.is_empty() } else { said.contains(expected) },
            "{said}"
        );
    };
    let begin = "{ at = \"3s\", kill = \"primary\", as = \"old\" }, \
                 { at = \"4s\", promote = \"standby1\", as = \"new\" },\n";
    let rejoin = format!("{begin}{{ at = \"5s\", rejoin = \"old\", of = \"new\" }},\n");
    check(&rejoin, "");
    let again = "{ at = \"6s\", kill = \"new\" }, { at = \"7s\", promote = \"primary\" }, \
                 { at = \"8s\", sql = \"SELECT '{standby1.port} {1,2}'\", on = \"old\" }";
    check(&format!("{rejoin}{again}"), "");
    check(&format!("{begin}{{ at = \"5s\", promote = \"old\" }}"), "primary is no standby");
    check(
        &format!("{begin}{{ at = \"5s\", rejoin = \"new\", of = \"new\" }}"),
        "cannot follow itself",
    );
    check(&format!("{begin}{{ at = \"5s\", start = \"new\" }}"), "standby1 was not stopped before");
    check(
        "{ at = \"5s\", kill = \"proxy\", as = \"it\" }, { at = \"6s\", rejoin = \"it\", of = \"primary\" }",
        "proxy is a machine without server",
    );

    // Roles are known at their moment.
    let by_role = "{ at = \"3s\", kill = \"the primary now\", as = \"old\" }, \
                   { at = \"5s\", rejoin = \"old\", of = \"the primary now\" }";
    check(by_role, "");
    let timeline = parse(&named(by_role)).points.remove(0).timeline;
    let last = timeline.last().unwrap();
    assert_eq!(last.chosen, Some(ActionTarget::Earlier("old".to_owned())));
    assert_eq!(last.chosen_of, Some(ActionTarget::PrimaryNow));
    let expected =
        Action::Rejoin { node: "a".to_owned(), of: "b".to_owned(), by: RejoinBy::Rewind };
    assert_eq!(last.action.on("a").of("b"), expected);
}
