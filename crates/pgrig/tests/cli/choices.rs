//! A study with other values, a part of a study, and a study that starts from another one.

use std::fs;

use crate::{Desk, names};

#[test]
fn a_study_is_planned_with_other_values_and_in_part() {
    let desk = Desk::new();
    let check = |arguments: &[&str], expected: &str, missing: &str| {
        let said = desk.pgrig(&[&["check", "pgbench", "--profile", "smoke"], arguments].concat());
        let said = said.ended(0);
        assert!(said.out.contains(expected), "{arguments:?}: {}", said.out);
        assert!(missing.is_empty() || !said.out.contains(missing), "{arguments:?}: {}", said.out);
        assert!(arguments.iter().all(|word| said.err.contains(word)), "{}", said.err);
    };
    check(&["--only", "function"], "1 trials in up to 1 rounds", "read_write");
    check(&["--set", "workloads.read_only.clients=3"], "3 clients  fits", "");
    check(&["--set", "rounds=2"], "published/read_only    2 ×", "");
    check(&["--set", "scenarios.function.rounds=2"], "published/function     2 ×", "");
    // A file of one's own, or of a record. What the command repeats is what the file sets.
    let file = "# mine\n\"workloads.read_only.clients\" = 3\nrounds = 2\n";
    fs::write(desk.path("mine.toml"), file).unwrap();
    let arguments = ["check", "pgbench", "--profile", "smoke", "--set", "mine.toml"];
    let said = desk.pgrig(&arguments).ended(0);
    assert!(said.out.contains("3 clients  fits"), "{}", said.out);
    let again = "--set 'workloads.read_only.clients=3' --set 'rounds=2'";
    assert!(said.err.contains(again), "{}", said.err);
}

#[test]
fn what_cannot_be_set_or_chosen_is_said() {
    let desk = Desk::new();
    let check = |arguments: &[&str], expected: &[&str]| {
        for command in ["check", "run"] {
            let all = [&[command, "pgbench", "--profile", "smoke"], arguments].concat();
            let said = desk.pgrig(&all).ended(1);
            assert!(expected.iter().all(|words| said.err.contains(words)), "{}", said.err);
        }
    };
    check(
        &["--set", "data.pgbench.scal=5"],
        &[
            "error: setting data.pgbench.scal = 5 in pgbench: pgbench has no field \"scal\"",
            "did you mean \"scale\"?",
        ],
    );
    check(
        &["--set", "workload.function.clients=5"],
        &["study.toml has no \"workload\"", "did you mean \"workloads\"?"],
    );
    check(&["--set", "rows"], &["write NAME=VALUE"]);
    // Of several, the one that is wrong is named.
    check(
        &["--set", "rounds=2", "--set", "workloads.function.clients=0"],
        &["error: setting workloads.function.clients = 0 in pgbench: clients must be"],
    );
    check(&["--set", "none.toml"], &["reading none.toml: No such file"]);
    fs::write(desk.path("mine.toml"), "# rows\nrounds = 2\nclients\n").unwrap();
    check(&["--set", "mine.toml"], &["mine.toml, line 3: write NAME = VALUE"]);
    fs::remove_file(desk.path("mine.toml")).unwrap();
    check(&["--only", "nothing"], &["error: no trial fits \"nothing\"", "published/function"]);
    assert_eq!(names(&desk.path("")), [""; 0], "no record was begun");
}

#[test]
fn a_study_starts_from_another_one() {
    let desk = Desk::new();
    desk.pgrig(&["new", "mine", "--from", "fsync"]).ended(0);
    let files = names(&desk.path("mine"));
    assert!(files.contains(&"study.toml".to_owned()), "{files:?}");
    assert!(!files.contains(&"coverage.csv".to_owned()), "{files:?}");
    desk.pgrig(&["check", "mine", "--profile", "smoke", "--only", "update"]).ended(0);
    let said = desk.pgrig(&["new", "yours", "--from", "fsnc"]).ended(1);
    assert!(said.err.contains("no study \"fsnc\""), "{}", said.err);
    assert!(!desk.path("yours").exists(), "nothing was begun");
}
