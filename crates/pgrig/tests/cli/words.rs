//! Help, lists, and a study to start from.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Desk;

#[test]
fn the_help_is_grouped_by_what_commands_are_for() {
    let said = Desk::new().pgrig(&["--help"]).ended(0);
    let groups = ["\nMeasure\n", "\nRead\n", "\nOperate\n"];
    let places: Vec<usize> =
        groups.iter().map(|group| said.out.find(group).expect(group)).collect();
    assert!(places.is_sorted());
    assert!(!said.out.contains("generator"), "what only the rig itself calls is hidden");
    for line in said.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let end = "the whole command, and all that it printed.\n";
    assert!(said.out.contains("\nReport bugs to ") && said.out.ends_with(end), "{}", said.out);
}

#[test]
fn nothing_asked_is_a_mistake_and_help_is_none() {
    let desk = Desk::new();
    assert!(desk.pgrig(&[]).ended(1).err.contains("Usage: pgrig <COMMAND>"));
    assert!(desk.pgrig(&["--version"]).ended(0).out.starts_with("pgrig "));
    assert!(desk.pgrig(&["run", "--help"]).ended(0).out.contains("--profile"));
    assert!(desk.pgrig(&["bench", "--help"]).ended(0).out.contains("--client"));
}

#[test]
fn studies_are_listed_with_their_questions() {
    let said = Desk::new().pgrig(&["studies"]).ended(0);
    assert!(
        said.out.lines().all(|line| line.contains("  ") && line.ends_with('?')),
        "{}",
        said.out
    );
}

/// What `pgrig` prints on a terminal of so many columns.
fn on_a_terminal(desk: &Desk, columns: u16, arguments: &str) -> Vec<String> {
    let pgrig = env!("CARGO_BIN_EXE_pgrig");
    let script = format!("stty cols {columns} && exec {pgrig} {arguments}");
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &script, "/dev/null"])
        .current_dir(desk.path(""))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

#[test]
fn on_a_narrow_terminal_lines_are_broken_where_words_are() {
    let desk = Desk::new();
    let wide = on_a_terminal(&desk, 200, "studies");
    let narrow = on_a_terminal(&desk, 60, "studies");
    for line in &narrow {
        assert!(line.chars().count() <= 60, "{line}");
    }
    assert!(narrow.len() > wide.len(), "{narrow:?}");
    let words = |lines: &[String]| -> Vec<String> {
        lines.iter().flat_map(|line| line.split_whitespace().map(str::to_owned)).collect()
    };
    assert_eq!(words(&narrow), words(&wide), "no word is lost or broken");
}

#[test]
fn called_pgbench_it_is_pgbench() {
    let desk = Desk::new();
    let name = desk.path("pgbench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pgrig"), &name).unwrap();
    let output = std::process::Command::new(&name).arg("--version").output().unwrap();
    let said = crate::Said::of(&output).ended(0);
    assert!(said.out.starts_with("pgbench (PostgreSQL) "), "{}", said.out);
}

#[test]
fn a_copy_called_pgbench_starts_generator_processes() {
    let desk = Desk::new();
    let name = desk.path("pgbench");
    // By another process: this one might start a child while it has the copy open, and what is open
    // for writing cannot be executed.
    let mut copy = std::process::Command::new("cp");
    assert!(copy.arg(env!("CARGO_BIN_EXE_pgrig")).arg(&name).status().unwrap().success());
    desk.write("one.sql", "SELECT 1;\n");
    let (node, _lab) = testing::servers::server(&[]);
    let mut command = std::process::Command::new(&name);
    command.args(["-n", "-c2", "-t3", "--generators=2", "-fone.sql"]);
    command.arg(node.endpoint().to_string()).current_dir(desk.path(""));
    let said = crate::Said::of(&command.output().unwrap()).ended(0);
    assert!(said.out.contains("actually processed: 6/6"), "{}", said.out);
}

#[test]
fn a_new_study_can_be_checked_at_once() {
    let desk = Desk::new();
    let said = desk.pgrig(&["new", "orders"]).ended(0);
    assert!(said.out.contains("orders/study.toml"));
    let said = desk.pgrig(&["check", "orders", "--profile", "smoke"]).ended(0);
    assert!(said.out.starts_with("orders, profile smoke: "), "{}", said.out);
    assert!(said.out.contains("memory"), "{}", said.out);
    assert!(said.out.contains("fits"), "{}", said.out);

    let said = desk.pgrig(&["new", "orders"]).ended(1);
    assert!(said.err.contains("the directory is not empty"), "{}", said.err);
    assert!(said.err.contains("hint:"));
}

#[test]
fn a_bare_check_tells_what_the_machine_can_do() {
    let said = Desk::new().pgrig(&["check"]).ended(0);
    for word in ["processor", "memory", "disk", "isolation", "PostgreSQL", "pg_stat_statements"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
}

#[test]
fn what_a_study_can_ask_for_is_listed_and_looked_for() {
    let desk = Desk::new();
    let check = |args: &[&str], code: i32, expected: &str| {
        let said = desk.pgrig(args).ended(code);
        let all = said.out + &said.err;
        assert!(all.contains(expected), "{args:?}:\n{all}");
    };
    check(&["metrics", "primaries"], 0, "two_primaries_ms [ms]  time in which two servers");
    check(&["metrics", "p99", "--json"], 0, "\"unit\": \"ms\"");
    check(&["metrics", "ledger_losst"], 1, "did you mean \"ledger_lost\"?");
    check(&["words", "node"], 0, "kind = \"machine\"");
    check(&["words", "SIGSTOP"], 0, "pause  (action)");
    check(&["words", "amcheck", "--json"], 0, "\"kind\": \"check\"");
    check(&["words", "promte"], 1, "did you mean \"promote\"?");
}

/// Names of keys are lower case with underscores, and those of truths say so.
fn check_names(what: &str, value: &Value) {
    let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                assert!(name.chars().all(is_lower), "{what}: {name}");
                let is_truth = value.is_boolean();
                assert_eq!(name.starts_with("is_"), is_truth, "{what}: {name} is {value}");
                check_names(what, value);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| check_names(what, value)),
        _ => {}
    }
}

/// The same of the keys that a schema describes.
fn check_schema(what: &str, schema: &Value) {
    let Value::Object(members) = schema else {
        return schema.as_array().into_iter().flatten().for_each(|one| check_schema(what, one));
    };
    for (name, described) in
        members.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let is_truth = described["type"] == "boolean";
        assert_eq!(name.starts_with("is_"), is_truth, "{what}: {name} is {described}");
    }
    members.values().for_each(|one| check_schema(what, one));
}

#[test]
fn json_has_one_naming() {
    let desk = Desk::new();
    for command in ["studies", "metrics", "words", "check", "check pgbench"] {
        let words: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let said = desk.pgrig(&words).ended(0);
        check_names(command, &serde_json::from_str(&said.out).unwrap());
    }
    for (name, schema) in [
        ("guard-status", include_str!("../../../../docs/guard-status.schema.json")),
        ("shard-status", include_str!("../../../../docs/shard-status.schema.json")),
        ("show", include_str!("../../../../docs/show.schema.json")),
        ("verify", include_str!("../../../../docs/verify.schema.json")),
    ] {
        check_schema(name, &serde_json::from_str(schema).unwrap());
    }
}

#[test]
fn clean_says_when_there_is_nothing() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("empty")).unwrap();
    let said = desk.pgrig(&["clean", "empty"]).ended(0);
    assert_eq!(said.err, "nothing left in empty\n");
    assert!(desk.pgrig(&["clean", "missing"]).ended(1).err.contains("missing"));
}
