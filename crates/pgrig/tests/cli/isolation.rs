//! `pgrig isolation`: the histories of a trial, judged and exported.

use crate::Desk;

/// Two clients that each append behind what they read: write skew.
const SKEW: &str = "\
history 1
g 0\tprimary\tserializable\tlists
c 0 0 11 1000
c 1 0 12 1000
b 0 1 2000
l 0 5 0
a 0 6 1
b 1 1 2500
l 1 6 0
a 1 5 2
o 0 4000
o 1 4500
";

/// One client reads what another one has appended before.
const READ: &str = "\
history 1
g 0\tprimary\tserializable\tlists
c 0 0 11 1000
c 1 0 12 1000
b 0 1 2000
a 0 5 1
o 0 3000
b 1 1 4000
l 1 5 0 1
o 1 5000
";

#[test]
fn histories_are_judged_and_exported() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("kept")).unwrap();
    let said = desk.pgrig(&["isolation", "check", "kept"]).ended(1);
    assert!(said.err.contains("has no file LANE.history"), "{}", said.err);
    desk.write("kept/0.history", SKEW);
    let said = desk.pgrig(&["isolation", "check", "kept", "--gate"]).ended(4);
    for words in [
        "2 transactions committed, 0 failed, 0 unknown; 2 reads, 2 writes",
        "1 × G2-item, forbidden from serializable on",
        "T1 -rw-> T2: T1 read [] in list 5, which lacks [2] of T2",
        "strict serializable: does not hold",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let json = ["isolation", "check", "kept", "--gate", "--json"];
    let found: serde_json::Value = serde_json::from_str(&desk.pgrig(&json).ended(4).out).unwrap();
    assert_eq!((&found["verdict"], &found["committed"]), (&"does not hold".into(), &2.into()));
    assert_eq!(found["anomalies"][0]["anomaly"], "G2-item");
    let weaker = ["isolation", "check", "kept", "--gate", "--level", "repeatable read"];
    // Nobody read what another one wrote: that forbids nothing, and shows nothing.
    let said = desk.pgrig(&weaker).ended(5);
    assert!(said.out.contains("repeatable read: cannot tell"), "{}", said.out);
    std::fs::create_dir(desk.path("read")).unwrap();
    desk.write("read/0.history", READ);
    let said = desk.pgrig(&["isolation", "check", "read", "--gate"]).ended(0);
    assert!(said.out.contains("strict serializable: holds"), "{}", said.out);
    let said = desk.pgrig(&["isolation", "check", "kept", "--level", "snapshot"]).ended(1);
    assert!(said.err.contains("\"snapshot\" is no isolation level"), "{}", said.err);

    desk.pgrig(&["isolation", "export", "kept"]).ended(0);
    let edn = std::fs::read_to_string(desk.path("history.edn")).unwrap();
    assert!(edn.starts_with("{:index 0, :type :invoke, :process 0, :time 2000"), "{edn}");
    desk.write("kept/1.history", "history 4\n");
    let said = desk.pgrig(&["isolation", "check", "kept"]).ended(1);
    assert!(said.err.contains("has version 4, this pgrig reads 1 to 3"), "{}", said.err);
    desk.write("kept/1.history", "history 1\nwhat\n");
    let said = desk.pgrig(&["isolation", "check", "kept"]).ended(0);
    assert!(said.out.contains("1.history, line 2: \"what\""), "{}", said.out);
}
