//! The program pgrig-shard, as the owner of a cluster meets it first.

use std::process::Command;

fn run(words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig-shard"));
    testing::program::output(command.args(words).env("NO_COLOR", "1"))
}

#[test]
fn mistakes_have_a_reason_and_an_exit_code() {
    let check = |words: &[&str], code: i32, expected: &[&str]| {
        let (seen, said) = run(words);
        assert_eq!(seen, Some(code), "{words:?}: {said}");
        for text in expected {
            assert!(said.contains(text), "{words:?}: no {text:?} in\n{said}");
        }
    };
    check(&["--version"], 0, &[concat!("pgrig-shard ", env!("CARGO_PKG_VERSION"))]);
    check(&["--help"], 0, &["rebalance", "abandon"]);
    check(&["--help"], 0, &["Adds and removes nodes of a PL/Proxy cluster while clients use it"]);
    check(&[], 1, &["Usage: pgrig-shard"]);
    check(&["status", "--proxy", "host=/nonexistent"], 1, &["/nonexistent"]);
    let create = ["create", "--proxy", "host=/nonexistent", "--node", "host=/nonexistent"];
    check(&[&create[..], &["--template", "absent"]].concat(), 1, &["reading the template absent"]);
    let (code, said) = run(&["status", "--proxy", "postgres://u:planted@h/", "--nonsense"]);
    assert!(code == Some(1) && !said.contains("planted"), "{said}");
}

/// A cluster is created, shown and extended without any other program of pgrig's.
#[test]
fn a_cluster_is_made_and_shown() {
    let lab = testing::servers::lab();
    let mut addresses = Vec::new();
    let mut nodes = Vec::new();
    for name in ["proxy", "a", "b"] {
        let settings = testing::servers::settings(&[("wal_level", "logical")]);
        let node = testing::servers::start(&lab, name, lab::NodeConfig::new(settings));
        addresses.push(node.endpoint().to_string());
        nodes.push(node);
    }
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("bucket.sql");
    let text = "CREATE TABLE {bucket}.t (key int PRIMARY KEY);
        CREATE FUNCTION {bucket}.add(key int) RETURNS void LANGUAGE sql AS 'INSERT INTO {bucket}.t VALUES (key)';";
    std::fs::write(&template, text).unwrap();
    let template = template.display().to_string();
    let proxy = ["--proxy", &addresses[0]];
    let create = ["create", "--node", &addresses[1], "--template", &template, "--buckets", "16"];
    let (code, said) = run(&[&create[..], &proxy].concat());
    if said.contains("plproxy") && code == Some(3) {
        return testing::skip::because("there is no PL/Proxy");
    }
    assert!(code == Some(0) && said.contains("the proxy offers add"), "{said}");
    let (code, said) = run(&[&["add", &addresses[2], "--grace", "0"], &proxy[..]].concat());
    assert!(code == Some(0) && said.contains("8 buckets, 0 rows"), "{said}");
    let (code, said) = run(&[&["status", "--json"], &proxy[..]].concat());
    let status: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(code == Some(0) && status["nodes"][1]["owned"] == 8, "{said}");
}
