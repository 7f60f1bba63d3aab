//! Text of servers, hosts and studies commands no terminal, and lies in no file as it came: neither
//! colours, nor control characters beyond ASCII, nor those that turn the direction of writing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Desk;

/// As a stranger writes it: a colour, a clearing of the screen in two ways, a title, an override.
const EVIL: &str = "evil\u{1b}[31m\u{1b}[2J\u{9b}2J\u{1b}]0;mine\u{7}\u{202e}live";

/// The same in an SQL string and in TOML.
const IN_SQL: &str = r"E'evil\x1b[31m\x1b[2J\u009b2J\x1b]0;mine\x07\u202elive'";
const IN_TOML: &str = r"evil\u001b[31m\u001b[2J\u009b2J\u001b]0;mine\u0007\u202elive";

/// What a terminal shows of a command, which has colours of its own.
fn shown(desk: &Desk, arguments: &[&str]) -> String {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> =
        [env!("CARGO_BIN_EXE_pgrig")].iter().chain(arguments).map(quoted).collect();
    let output = std::process::Command::new("script")
        .args(["-qec", &words.join(" "), "/dev/null"])
        .current_dir(desk.path(""))
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script of util-linux");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Nothing of it passes as it came.
fn harmless(what: &str, text: &str) {
    for part in ["evil\u{1b}", "\u{1b}[2J\u{9b}", "\u{9b}", "\u{1b}]0;mine", "\u{202e}"] {
        assert!(!text.contains(part), "{what} has {part:?}: {text:?}");
    }
}

/// No file below a directory has such a character, but for the study that had it.
fn files_are_harmless(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "study") {
                files_are_harmless(&path);
            }
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let is_log = path.extension().is_some_and(|end| end == "log");
        if !is_log {
            harmless(&path.display().to_string(), &text);
            assert!(!text.contains('\u{1b}'), "{}", path.display());
        }
    }
}

#[test]
fn a_study_and_its_server_say_nothing_to_the_terminal_and_to_files() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let text = fs::read_to_string(desk.path("mine/study.toml")).unwrap();
    let says = format!("says = \"{IN_TOML}\"");
    desk.write("mine/study.toml", &text.replace("says = \"something is inserted\"", &says));
    desk.write("mine/insert.sql", "INSERT INTO t VALUES (1);\n");
    let said =
        shown(&desk, &["run", "mine", "--profile", "smoke", "--rounds", "1", "--out", "good"]);
    harmless("run", &said);
    assert!(said.contains("evil␛[31m␛[2J\u{fffd}2J␛]0;mine␇\u{fffd}live"), "{said}");
    // Colours of its own it has.
    assert!(said.contains("\u{1b}["), "{said:?}");
    for arguments in [&["show", "good"][..], &["show", "good", "--json"], &["check", "mine"]] {
        harmless(arguments[0], &shown(&desk, arguments));
    }
    files_are_harmless(&desk.path("good"));

    let raise = format!("DO $$ BEGIN RAISE EXCEPTION '%', {IN_SQL}; END $$;\n");
    desk.write("mine/insert.sql", &raise);
    let said =
        shown(&desk, &["run", "mine", "--profile", "smoke", "--rounds", "1", "--out", "bad"]);
    harmless("a failing run", &said);
    assert!(said.contains("evil␛[31m␛[2J\u{fffd}2J␛]0;mine␇\u{fffd}live"), "{said}");
    files_are_harmless(&desk.path("bad"));
    desk.write("mine/study.toml", &format!("{text}\nwrong = \"{EVIL}\"\n"));
    harmless("a mistake", &shown(&desk, &["check", "mine"]));
}

#[test]
fn a_load_and_its_hosts_say_nothing_either() {
    let (node, _lab) = testing::servers::server(&[("shared_buffers", "16MB")]);
    let conninfo = node.endpoint().to_string();
    let desk = Desk::new();
    let name = "evil\u{9b}2J\u{202e}live.sql";
    desk.write(name, "SELECT 1;\n");
    let bench = ["bench", "-n", "-f", name, "-t", "5", "--json=out.json", &conninfo];
    harmless("bench", &shown(&desk, &bench));
    let json = fs::read_to_string(desk.path("out.json")).unwrap();
    harmless("--json", &json);
    assert!(json.contains(r"evil\u009b2J\u202elive"), "{json}");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(read.to_string().contains(name), "a program reads the same text");

    desk.write("raise.sql", &format!("DO $$ BEGIN RAISE EXCEPTION '%', {IN_SQL}; END $$;\n"));
    let said = shown(&desk, &["bench", "-n", "-f", "raise.sql", "-t", "1", &conninfo]);
    harmless("a failing load", &said);
    assert!(said.contains("evil␛[31m␛[2J"), "{said}");

    desk.write("host", &format!("#!/bin/sh\necho '{EVIL}'\nexit 1\n"));
    fs::set_permissions(desk.path("host"), fs::Permissions::from_mode(0o755)).unwrap();
    let host = desk.path("host").display().to_string();
    desk.write("lab.toml", &format!("[hosts.h]\nlaunch = \"{host}\"\ntimeout = \"2s\"\n"));
    desk.write("one.sql", "SELECT 1;\n");
    let hosts = ["bench", "-n", "-f", "one.sql", "-t", "1", "--hosts=lab.toml", &conninfo];
    let said = shown(&desk, &hosts);
    harmless("a host", &said);
    assert!(said.contains("evil␛[31m"), "{said}");
}
