//! pgrig as a person or a script uses it: what is printed, how it ends, what is left.

mod action;
mod bad_input;
mod choices;
mod compare;
mod controls;
mod disks;
mod ending;
mod examples;
mod explore;
mod foreign;
mod ground;
mod heavy;
mod history;
mod interruption;
mod isolation;
mod machines;
mod majors;
mod mcp;
mod mutants;
mod namesake;
mod passwords;
mod peers;
mod planted_statements;
mod power;
mod prompt;
mod python;
mod rates;
mod same_work;
mod schemas;
mod series;
mod serve;
mod shard;
mod signals;
mod smoke;
mod statements;
mod strangers;
mod target;
mod verify;
mod version;
mod versus;
mod view;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of its own, and pgrig in it.
pub(crate) struct Desk {
    directory: tempfile::TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, its folders made.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A study of one's own that takes a second a trial.
    pub(crate) fn write_study(&self, name: &str, more: &str) {
        self.write(&format!("{name}/study.toml"), &format!("{STUDY}{more}"));
        self.write(&format!("{name}/init.sql"), "CREATE TABLE t (a int);\n");
        self.write(&format!("{name}/insert.sql"), "INSERT INTO t VALUES (1);\n");
    }

    /// pgrig with its own view of what is mounted, as [`own_mounts`] gives it.
    pub(crate) fn in_own_mounts(&self, prepare: &str, arguments: &[&str]) -> Said {
        let how = own_mounts().expect("asked before");
        let back = match how[0] {
            "sudo" => {
                let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
                let (user, group) = (user.as_raw(), group.as_raw());
                format!("setpriv --reuid={user} --regid={group} --clear-groups ")
            }
            _ => String::new(),
        };
        let script = format!("{prepare} && exec {back}env NO_COLOR=1 PATH={PATH} \"$0\" \"$@\"");
        let output = Command::new(how[0])
            .args(&how[1..])
            .args(["sh", "-c", &script, env!("CARGO_BIN_EXE_pgrig")])
            .args(arguments)
            .current_dir(self.path(""))
            .env_remove("PG_CONFIG")
            .output()
            .expect("unshare of util-linux");
        Said::of(&output)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
        command.args(arguments).current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("NO_COLOR", "1").env_remove("PG_CONFIG");
        command
    }

    pub(crate) fn pgrig(&self, arguments: &[&str]) -> Said {
        Said::of(&self.command(arguments).output().unwrap())
    }
}

/// How a program gets its own view of what is mounted: as root, or by sudo. In a user namespace it would
/// be a root without the users that servers run as. Where neither works, the test is skipped.
pub(crate) fn own_mounts() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["sudo", "-n", "unshare", "--mount"]];
    let works = |way: &&&[&str]| {
        let tried = Command::new(way[0]).args(&way[1..]).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let way = ways.iter().find(works).copied();
    if way.is_none() {
        testing::skip::because("needs a mount namespace");
    }
    way
}

/// Without the folders of this user's own programs.
const PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

impl Said {
    pub(crate) fn of(output: &Output) -> Said {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Fails with everything that was said unless it ended so.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Said {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// The names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const STUDY: &str = r#"
question = "How fast are inserts?"
window = "700ms"
warmup = "100ms"
rounds = 3
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
reset = "keep"
[workloads.insert]
script = "insert.sql"
clients = 2
[scenarios.load]
run = ["insert"]
[[claims]]
says = "something is inserted"
every = "tps > 0"
kind = "invariant"
"#;
