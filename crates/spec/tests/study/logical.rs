//! Logical replication as a part of a topology, and actions that wait for a state.

use super::*;

const CUTOVER: &str = r#"
question = "?"

[topologies.two]
nodes.new = { subscribes = { to = "old", tables = ["orders"], begin = "action", streaming = "parallel", origin = "none" }, bin = "/opt/pg/18/bin" }
nodes.old = {}
nodes.reader = { subscribes = { to = "old" } }

[workloads.orders]
script = "orders.sql"

[scenarios.load]
run = ["orders"]
window = "20s"
timeline = [
  { at = "1s", subscribe = "new" },
  { when = { sql = "SELECT count(*) > 0 FROM pg_subscription_rel", on = "new", within = "4s" }, checkpoint = "old" },
  { at = "6s", sql = "SELECT 1", on = "old" },
  { when = { caught_up = "new", within = "2s" }, sql = "SELECT '{old.port}'", on = "new" },
]
checks = [{ same_rows = ["old", "new"], tables = ["orders"], extra = "new" }, { same_objects = ["old", "new"] }]
"#;

#[test]
fn a_subscriber_has_its_programs_and_its_publisher_and_no_data_of_its_own() {
    let study = parse(CUTOVER);
    let topology = &study.points[0].topology;
    let new = topology.node("new").unwrap();
    assert_eq!(new.bin.as_deref(), Some(std::path::Path::new("/opt/pg/18/bin")));
    assert_eq!(new.upstream(), Some("old"));
    let subscription = new.subscribes.as_ref().unwrap();
    assert_eq!(subscription.begin, spec::SubscriptionBegin::ByAction);
    let options = subscription.options();
    let expected = [("streaming = parallel", 16), ("origin = none", 16)];
    assert_eq!(options, expected.map(|(option, since)| (option.to_owned(), since)));
    // The first server that takes writes is no subscriber, wherever it stands in the file.
    assert_eq!(topology.first().map(|node| node.name.as_str()), Some("old"));
    assert_eq!(study.points[0].data.node, "old");
    let level =
        |name: &str| topology.node(name).unwrap().settings.value("wal_level").map(str::to_owned);
    assert_eq!((level("old").as_deref(), level("new")), (Some("logical"), None));
    let names: Vec<&str> = topology.subscribers("old").iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["new", "reader"]);
}

#[test]
fn an_action_that_waits_is_behind_the_one_before_it() {
    let study = parse(CUTOVER);
    let timeline = &study.points[0].timeline;
    let moments: Vec<(u64, u64)> =
        timeline.iter().map(|entry| (entry.earliest_ms, entry.latest_ms)).collect();
    assert_eq!(moments, [(1000, 1000), (1000, 5000), (6000, 6000), (6000, 8000)]);
    let caught_up = spec::AwaitedCondition::CaughtUp { node: "new".to_owned() };
    assert_eq!(timeline[3].when.as_ref().map(|when| &when.condition), Some(&caught_up));
    let trials = study.trials(None);
    assert_eq!(trials[0].at_ms, [1000, 1000, 6000, 6000]);
}

#[test]
fn what_cannot_be_replicated_or_awaited_is_pointed_at() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(CUTOVER.contains(from), "{from}");
        assert_eq!(problems(&CUTOVER.replacen(from, to, 1)).trim_end(), expected);
    };
    check(
        "reader = { subscribes = { to = \"old\" } }",
        "reader = { subscribes = {} }",
        "`{}` subscribes has no to",
    );
    check(
        "nodes.old = {}",
        "nodes.old = { settings = { wal_level = \"replica\" } }",
        "`` node old publishes, but its wal_level is replica \
         (write wal_level = \"logical\", or leave it out)",
    );
    check(
        "nodes.old = {}",
        "nodes.old = { subscribes = { to = \"new\" } }",
        "`{ to = \"old\", tables = [\"orders\"], begin = \"action\", streaming = \"parallel\", origin = \"none\" }` \
         new follows itself\n`{ to = \"new\" }` old follows itself\n`{ to = \"old\" }` reader follows itself",
    );
    check(
        "{ at = \"1s\", subscribe = \"new\" }",
        "{ at = \"1s\", subscribe = \"reader\" }",
        "`\"reader\"` reader has no subscription that begins by an action \
         (give it subscribes = { to = NODE, begin = \"action\" })",
    );
    check(
        "caught_up = \"new\"",
        "caught_up = \"old\"",
        "`\"old\"` caught_up: old subscribes to no server (name a node with subscribes = { … })",
    );
    check(
        "within = \"4s\"",
        "within = \"6s\"",
        "`{ at = \"6s\", sql = \"SELECT 1\", on = \"old\" }` checkpoint may wait until 7 s after the window's \
         opening, and sql is due at 6 s (move it, or make `within` of the waiting ones shorter)",
    );
    check(
        "within = \"2s\"",
        "within = \"15s\"",
        "`{ caught_up = \"new\", within = \"15s\" }` when: it may wait until 21 s after the window's opening, \
         which closes after 20 s (lengthen the window, or shorten within)",
    );
    check(
        "same_objects = [\"old\", \"new\"]",
        "same_objects = [\"old\", \"old\"]",
        "`[\"old\", \"old\"]` same_objects compares two servers (write same_objects = [\"old\", \"new\"])",
    );
    check(
        "extra = \"new\"",
        "extra = \"reader\"",
        "`\"reader\"` extra: reader is none of the two servers",
    );
    check(
        "{ when = { caught_up",
        "{ at = \"7s\", when = { caught_up",
        "`at` an action with at and when (write at = \"5s\" or when = { … })",
    );
}
