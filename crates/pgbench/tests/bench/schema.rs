//! `--json` keeps to `docs/bench.schema.json`, and every key is described there.

use std::fs;

use crate::common::Server;
use serde_json::Value;
use testing::schema::faults;

#[test]
fn what_is_written_keeps_to_the_schema() {
    let schema = crate::common::schema();
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q --partitions=2").code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let (json, fails) = (folder.path().join("run.json"), folder.path().join("fails.sql"));
    fs::write(&fails, "select 1/0;\n").expect("a script");
    // One at a time: each more client adds 10 ms to everyone's latency.
    let queue = folder.path().join("queue.sql");
    fs::write(&queue, "begin;\nselect pg_advisory_xact_lock(1);\nselect pg_sleep(0.01);\nend;\n")
        .expect("a script");
    let search = format!("-n -T 1 --warmup=0 -c 4 --find-seconds=1 -f {}", queue.display());
    let found = format!("{search} --find-clients=p50<25ms");
    let abort = format!("-n -t 1 -f {}", fails.display());
    let other = format!("{abort} --continue-on-error -c 2");
    let mut last = Value::Null;
    for (line, code) in [
        ("-n -t 5", 0),
        ("-n -T 1 -R 100 -L 100 -r -S -N -c 2 -j 2 -P 1 --max-tries=2", 0),
        ("-n -S -T 1 --reconnect --baseline --warmup=0", 0),
        ("-n -S -T 1 --warmup=0 --find-clients=mean<9s", 2),
        (&found, 0),
        (&abort, 2),
        (&other, 0),
    ] {
        let ended = server.ours("postgres", &format!("{line} --json={}", json.display()));
        assert_eq!(ended.code, code, "{line}: {ended:?}");
        let text = fs::read_to_string(&json).expect("the document");
        last = serde_json::from_str(&text).expect("JSON");
        let found = faults(&schema, &last);
        assert!(found.is_empty(), "{line}: {found:#?}");
    }

    // What does not keep to it is found.
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut changed = last.clone();
        change(&mut changed);
        assert_eq!(faults(&schema, &changed), [expected]);
    };
    check(&|told| told["scale"] = "1".into(), "$.scale is no [\"integer\"]: \"1\"");
    check(&|told| told["end"] = "well".into(), "$.end may not be \"well\"");
    check(&|told| told["new"] = 1.into(), "$.new is not described");
    check(
        &|told| drop(told["latency"].as_object_mut().expect("an object").remove("p99_ns")),
        "$.latency has no p99_ns",
    );
}
