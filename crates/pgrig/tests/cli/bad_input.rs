//! What bad input gets: one clear message, the right exit code, nothing left.

use crate::{Desk, names};

#[test]
fn an_unknown_study_names_what_there_is() {
    let desk = Desk::new();
    let said = desk.pgrig(&["run", "no-such-study"]).ended(1);
    assert!(said.err.starts_with("error: no study \"no-such-study\"\n  hint:   there is "));
    std::fs::create_dir(desk.path("empty")).unwrap();
    let said = desk.pgrig(&["run", "./empty"]).ended(1);
    assert!(said.err.contains("the folder \"./empty\" holds no study.toml"), "{}", said.err);
    assert!(said.err.contains("pgrig new DIR"), "{}", said.err);
    assert_eq!(names(&desk.path("")), ["empty"]);
}

#[test]
fn a_broken_study_is_pointed_at() {
    let desk = Desk::new();
    desk.write_study("mine", "[variants.a]\nsettigs = { work_mem = \"1MB\" }\n");
    for command in [["run", "mine"], ["check", "mine"]] {
        let said = desk.pgrig(&command).ended(1);
        assert!(said.err.contains("--> mine/study.toml:"), "{}", said.err);
        assert!(said.err.contains("settigs = { work_mem"), "{}", said.err);
        assert!(said.err.contains("^^^^^^^"), "{}", said.err);
        assert!(said.err.contains("did you mean \"settings\"?"), "{}", said.err);
        assert!(!said.err.contains("panicked"));
    }
    desk.write("torn/study.toml", "question = \"why");
    let said = desk.pgrig(&["run", "torn"]).ended(1);
    assert!(said.err.contains("--> torn/study.toml:1:"), "{}", said.err);
}

#[test]
fn a_profile_that_does_not_fit_is_refused_with_needs_and_haves() {
    let desk = Desk::new();
    desk.write_study("big", "[variants.big]\nsettings = { shared_buffers = \"7TB\" }\n");
    for command in ["run", "check"] {
        let said = desk.pgrig(&[command, "big"]).ended(3);
        assert!(
            said.err.contains("error: what is asked for does not fit this machine"),
            "{}",
            said.err
        );
        let needs = said.err.lines().find(|line| line.starts_with("  needs")).unwrap();
        assert!(needs.contains("7 TiB shared_buffers"), "{needs}");
        assert!(needs.contains("   has  "), "{needs}");
        assert!(said.err.contains("  hint:"), "{}", said.err);
    }
    assert_eq!(names(&desk.path("")), ["big"], "no record was begun");

    let more = "[variants.big]\nsettings = { shared_buffers = { smoke = \"16MB\", \
                quick = \"16MB\", full = \"7TB\" } }\n";
    desk.write_study("mixed", more);
    let said = desk.pgrig(&["run", "mixed", "--profile", "full"]).ended(3);
    assert!(said.err.contains("hint:   --profile quick goes to 2 clients here"), "{}", said.err);
}

#[test]
fn a_part_that_is_missing_is_named_with_its_package() {
    let desk = Desk::new();
    let part = "[topologies.t.nodes.primary]\nextensions = [\"no_such_extension\"]\n";
    desk.write_study("parts", part);
    let said = desk.pgrig(&["run", "parts"]).ended(3);
    assert!(said.err.contains("needs   no_such_extension"), "{}", said.err);
    assert!(said.err.contains("hint:"), "{}", said.err);
}

#[test]
fn the_state_of_a_server_that_is_not_there_says_how_to_name_one() {
    let desk = Desk::new();
    let said = desk.pgrig(&["guard", "status", "host=/nonexistent"]).ended(2);
    assert!(said.err.contains("error: connecting to "), "{}", said.err);
    assert!(said.err.contains("hint:   name the primary as in `pgrig-guard "), "{}", said.err);
}

#[test]
fn no_postgres_is_said_with_how_to_get_one() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let said = desk.pgrig(&["run", "mine", "--pg-bin", "/nonexistent"]).ended(1);
    assert!(said.err.contains("/nonexistent holds no usable PostgreSQL"), "{}", said.err);
    assert!(said.err.contains("--pg-bin DIR"), "{}", said.err);

    if crate::own_mounts().is_none() {
        return;
    }
    // An empty directory over the distribution's, as on a machine without the package.
    let hide = "mount -t tmpfs none /usr/lib/postgresql";
    let said = desk.in_own_mounts(hide, &["run", "mine"]).ended(3);
    assert!(said.err.contains("error: no PostgreSQL server found"), "{}", said.err);
    assert!(said.err.contains("hint:"), "{}", said.err);
    assert_eq!(names(&desk.path("")), ["mine"]);
}

#[test]
fn a_full_disk_under_the_record_keeps_what_is_finished() {
    if crate::own_mounts().is_none() {
        return;
    }
    let desk = Desk::new();
    desk.write_study("mine", "");
    std::fs::create_dir(desk.path("small")).unwrap();
    // Room for the first page and a trial or two; three do not fit.
    let hide = "mount -t tmpfs -o size=192k none small";
    let run = ["run", "mine", "--profile", "smoke", "--rounds", "40", "--out", "small/record"];
    let said = desk.in_own_mounts(hide, &run).ended(2);
    assert!(said.err.contains("No space left on device"), "{}", said.err);
    assert!(said.err.contains("small/record"), "{}", said.err);
    assert!(said.err.contains("--resume"), "{}", said.err);
    assert!(!said.err.contains("panicked"), "{}", said.err);

    let full = "mount -t tmpfs -o size=4k none small";
    let said = desk.in_own_mounts(full, &run).ended(1);
    assert!(said.err.contains("No space left on device"), "{}", said.err);
}

#[test]
fn a_place_that_is_taken_is_not_written_to() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.write("there/file", "precious");
    let said = desk.pgrig(&["run", "mine", "--out", "there"]).ended(1);
    assert!(said.err.contains("the directory is not empty"), "{}", said.err);
    assert!(said.err.contains("--out that is empty"), "{}", said.err);
    let said = desk.pgrig(&["run", "mine", "--out", "there/file"]).ended(1);
    assert!(said.err.contains("creating there/file: "), "{}", said.err);
    assert!(said.err.contains("--out that is empty"), "{}", said.err);
    assert_eq!(names(&desk.path("there")), ["file"]);
}

#[test]
fn what_is_no_record_is_not_read_as_one() {
    let desk = Desk::new();
    desk.write("there/file", "x");
    for command in [&["show", "there"][..], &["report", "there"], &["diff", "there", "there"]] {
        let said = desk.pgrig(command).ended(1);
        assert!(said.err.contains("not a record"), "{}", said.err);
        assert!(said.err.contains("hint:"), "{}", said.err);
    }
    let said = desk.pgrig(&["run", "--resume", "there"]).ended(1);
    assert!(said.err.contains("not a record"), "{}", said.err);
    let said = desk.pgrig(&["show", "missing"]).ended(1);
    assert!(said.err.contains("missing"), "{}", said.err);
}

#[test]
fn an_unreachable_target_is_said_without_its_password() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let target = "postgresql://someone:secret@127.0.0.1:1/db";
    let said = desk.pgrig(&["run", "mine", "--target", target]).ended(1);
    assert!(said.err.contains("127.0.0.1:1"), "{}", said.err);
    assert!(said.err.contains("hint:   start that server"), "{}", said.err);
    assert!(!said.err.contains("secret"), "{}", said.err);
    let said = desk.pgrig(&["run", "mine", "--target", "postgresql://[::1"]).ended(1);
    assert!(said.err.contains("reading the target's address"), "{}", said.err);
    let target = "postgresql://127.0.0.1:1/db?sslmode=require";
    desk.pgrig(&["run", "mine", "--target", target]).ended(1);
    assert_eq!(names(&desk.path("")), ["mine"]);
}

#[test]
fn arguments_that_contradict_each_other_are_refused() {
    let desk = Desk::new();
    let check = |arguments: &[&str], word: &str| {
        let said = desk.pgrig(arguments).ended(1);
        assert!(said.err.contains(word), "{}", said.err);
    };
    check(&["run"], "STUDY");
    check(&["run", "x", "--profile", "huge"], "smoke");
    check(&["run", "x", "--rounds", "0"], "--rounds");
    check(&["run", "x", "--resume", "y"], "--resume");
    check(&["run", "x", "--strict"], "--gate");
    check(&["rum"], "run");
}

#[test]
fn the_first_statement_that_fails_stops_the_run_and_is_quoted() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.write("mine/insert.sql", "SELECT 1;\nINSERT INTO nope VALUES (1);\n");
    for protocol in ["simple", "prepared"] {
        let study = std::fs::read_to_string(desk.path("mine/study.toml")).unwrap();
        let study =
            study.replace("clients = 2\n", &format!("clients = 2\nprotocol = \"{protocol}\"\n"));
        desk.write(&format!("{protocol}/study.toml"), &study);
        desk.write(&format!("{protocol}/init.sql"), "CREATE TABLE t (a int);\n");
        desk.write(&format!("{protocol}/insert.sql"), "SELECT 1;\nINSERT INTO nope VALUES (1);\n");
        let said = desk.pgrig(&["run", protocol, "--gate"]).ended(2);
        assert!(said.err.contains("insert.sql:2: "), "{}", said.err);
        assert!(said.err.contains("relation \"nope\" does not exist"), "{}", said.err);
        assert!(said.err.contains("LINE 1: INSERT INTO nope"), "{}", said.err);
        assert!(
            said.err.contains("\n                    ^") || said.err.contains("^"),
            "{}",
            said.err
        );
    }
    // Where failures are expected the run goes on; a trial in which nothing succeeds has failed.
    let study = std::fs::read_to_string(desk.path("mine/study.toml")).unwrap();
    let study = study.replace("clients = 2\n", "clients = 2\nexpect_failures = true\n");
    desk.write("mine/study.toml", &study.replace("tps > 0", "tps >= 0"));
    desk.pgrig(&["run", "mine", "--gate"]).ended(2);
}

#[test]
fn check_asks_the_server_about_settings_and_reads_the_scripts() {
    let desk = Desk::new();
    for (more, script, expected) in [
        ("wrk_mem = \"1MB\"", "SELECT 1;", "unrecognized configuration parameter \"wrk_mem\""),
        ("work_mem = \"much\"", "SELECT 1;", "invalid value for parameter \"work_mem\": \"much\""),
        ("wal_level = \"all\"", "SELECT 1;", "Available values: minimal, replica, logical."),
        (
            "work_mem = \"5MB\"",
            "SELECT 1;\nSELECT :nope;",
            "insert.sql:2: nothing sets the variable :nope",
        ),
        ("work_mem = \"5MB\"", "\\set x (1\nSELECT :x;", "insert.sql:1"),
    ] {
        desk.write_study("mine", "");
        let study = std::fs::read_to_string(desk.path("mine/study.toml")).unwrap();
        let study = study.replace("[settings]\n", &format!("[settings]\n{more}\n"));
        desk.write("mine/study.toml", &study);
        desk.write("mine/insert.sql", script);
        for command in ["check", "run"] {
            let said = desk.pgrig(&[command, "mine"]).ended(1);
            assert!(said.err.contains(expected), "{command}, {expected}: {}", said.err);
        }
        assert!(!desk.path("runs").exists(), "{expected}: something was run");
    }
    desk.write_study("mine", "");
    let said = desk.pgrig(&["check", "mine/study.toml", "--json"]).ended(0);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["points"][0]["clients"], 2);
    let told: serde_json::Value =
        serde_json::from_str(&desk.pgrig(&["check", "--json"]).ended(0).out).unwrap();
    let bin = lab::find::find(None).expect("PostgreSQL is installed").bin().display().to_string();
    assert_eq!(told["installations"][0]["bin"], bin);
    assert!(told["disk"]["free_bytes"].as_u64() > Some(0), "{told}");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let desk = Desk::new();
    let output = desk.command(&["studies"]).stdout(full).output().unwrap();
    let said = crate::Said::of(&output).ended(1);
    assert!(said.err.contains("writing to standard output"), "{}", said.err);
}

#[test]
fn a_record_that_is_named_wrongly_or_finished_is_told() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.pgrig(&["run", "mine", "--rounds", "1", "--out", "runs/one"]).ended(0);
    let said = desk.pgrig(&["show", "runs"]).ended(0);
    assert!(said.out.contains("runs/one  mine, profile quick, 1 of 1 trials"), "{}", said.out);
    let said = desk.pgrig(&["show", "runs/one/report.html"]).ended(1);
    assert!(said.err.contains("pgrig show runs/one"), "{}", said.err);
    let said = desk.pgrig(&["run", "--resume", "runs/one"]).ended(1);
    assert!(said.err.contains("runs/one is finished"), "{}", said.err);
    let said = desk.pgrig(&["help", "run"]).ended(0);
    assert!(said.out.contains("--target"), "{}", said.out);
    assert!(desk.pgrig(&["help"]).ended(0).out.contains("5    with --gate: cannot tell"));
}
