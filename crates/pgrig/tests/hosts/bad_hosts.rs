//! What bad hosts get.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::desk::{self, Desk, Ended, PGRIG, here};

pub(crate) fn check(folder: &Path, words: &[&str]) -> Ended {
    desk::run(Command::new(PGRIG).arg("check").args(words).current_dir(folder))
}

pub(crate) fn script(folder: &Path, name: &str, text: &str) -> String {
    let path = desk::write(folder, name, &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path.display().to_string()
}

pub(crate) fn each_cause_is_told_once_for_all_hosts_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let denied = "echo \"root@$1: Permission denied (publickey,password).\" >&2; echo -------- >&2; exit 255";
    let denied = script(folder, "denied", denied);
    // A terminal could be asked for a password: there must be none.
    let asks = "if read -r word </dev/tty; then echo asked >&2; fi; echo \"$1's password:\" >&2; exec sleep 60";
    let asks = script(folder, "asks", asks);
    let other = script(folder, "other", "echo 'pgrig-host 9.9.9 {}'; cat");
    let inventory = format!(
        r#"
        [hosts.fine]
        [hosts.denied]
        launch = "{denied} node{{1..3}}"
        [hosts.asks]
        launch = "{asks} node7"
        timeout = "1s"
        [hosts.other]
        launch = "{other} node{{1..2}}"
        [hosts.empty]
        launch = "env"
        program = "nosuchprogram"
        [hosts.nolauncher]
        launch = "nosuchlauncher -x"
        [hosts.chatty]
        launch = "yes"
        [hosts.stranger]
        address = "192.0.2.1"
        "#
    );
    desk::write(folder, "lab.toml", &inventory);
    let words = ["--hosts", "lab.toml", "--reach", "127.0.0.1:1"];
    let ended = check(folder, &words);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let has = |expected: &str| {
        let n = ended.out.matches(expected).count();
        assert_eq!(n, 1, "{expected}: {n} times in\n{}", ended.out);
    };
    has(
        "hosts denied1, denied2, denied3: the launcher ended with exit code 255 before pgrig answered: root@node1: Permission denied",
    );
    has("host asks: the launcher ran for 1 s, and pgrig did not answer: node7's password:");
    has("hosts other1, other2: pgrig there is 9.9.9, here it is ");
    has("host empty: there is no nosuchprogram on the host");
    has("host nolauncher: starting the launcher nosuchlauncher: No such file");
    has("host chatty: more than 200 lines came before pgrig's first line");
    // Some systems let anybody listen on any address; then the others cannot reach it.
    let own = "host stranger: the host cannot listen on 192.0.2.1: ";
    let others = "hosts fine, this machine: no connection to stranger at 192.0.2.1: ";
    assert!(ended.out.contains(own) || ended.out.contains(others), "{}", ended.out);
    has("hosts fine, stranger, this machine: no connection to 127.0.0.1:1: ");
    assert!(ended.out.contains("round trip"), "{}", ended.out);
    assert!(ended.out.contains("hint:"), "{}", ended.out);

    let ended = check(folder, &[&words[..], &["--json"]].concat());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    let is_reached = |one: &serde_json::Value| one["name"] == "fine" && one["is_reached"] == true;
    assert!(told["hosts"].as_array().expect("hosts").iter().any(is_reached), "{told}");
    let denied = serde_json::json!(["denied1", "denied2", "denied3"]);
    let is_denied = |one: &serde_json::Value| one["hosts"] == denied;
    assert!(told["troubles"].as_array().expect("troubles").iter().any(is_denied), "{told}");

    desk::write(folder, "lab.toml", "[hosts.a]\n[hosts.b]\nweight = 2\n");
    let ended = check(folder, &["--hosts", "lab.toml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    has_line(&ended, "2 hosts can be used");
    desk::write(folder, "lab.toml", "[hosts.a]\nlunch = \"ssh\"\n");
    let ended = check(folder, &["--hosts", "lab.toml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("reading the inventory lab.toml"), "{}", ended.err);
    assert!(ended.err.contains("unknown field `lunch`"), "{}", ended.err);
}

fn has_line(ended: &Ended, expected: &str) {
    assert!(ended.out.lines().any(|line| line == expected), "{expected}:\n{}", ended.out);
}

pub(crate) fn a_banner_is_no_trouble() {
    let desk = Desk::new();
    desk.write("select.sql", "SELECT 1;\n");
    let greets = "echo Welcome; echo; echo '1 new mail'; exec \"$@\"";
    let launch = script(desk.folder(), "greets", greets);
    let inventory = format!("[hosts.a]\nlaunch = \"{launch}\"\nprogram = \"{PGRIG}\"\n");
    desk.write("lab.toml", &inventory);
    let ended = check(desk.folder(), &["--hosts", "lab.toml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("printed before pgrig's first line: Welcome"), "{}", ended.out);
    let ended = desk.bench(&desk.conninfo(), "-n -f select.sql -t 5 --hosts=lab.toml");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The program is copied to hosts that have none, and removes itself there.
pub(crate) fn a_program_can_be_pushed() {
    let desk = Desk::new();
    desk.write("select.sql", "SELECT 1;\n");
    let inventory = here(&["a", "b"]).replace(PGRIG, "nosuchprogram");
    desk.write("lab.toml", &inventory);
    let pushed = || {
        let entries = fs::read_dir("/tmp")
            .expect("/tmp")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        entries.filter(|name| name.starts_with("pgrig-0")).collect::<Vec<_>>()
    };
    let before = pushed();
    let words = "-n -f select.sql -c 2 -t 5 --hosts=lab.toml";
    let ended = desk.bench(&desk.conninfo(), words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.err.contains("hosts a, b: there is no nosuchprogram on the host"),
        "{}",
        ended.err
    );
    let ended = desk.bench(&desk.conninfo(), &format!("{words} --push"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(pushed(), before);
}
