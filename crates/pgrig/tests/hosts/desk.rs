//! A folder, a server and the program, as a user has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lab::{Host, Lab, Node};
use serde_json::Value;

/// The program under test.
pub(crate) const PGRIG: &str = env!("CARGO_BIN_EXE_pgrig");

/// The schema of `--json`.
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench.schema.json");

/// A server and a folder that are removed with the test.
pub(crate) struct Desk {
    pub(crate) node: Node,
    _lab: Lab,
    folder: tempfile::TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let (node, lab) = testing::servers::server(&[("fsync", "off"), ("autovacuum", "off")]);
        Desk { node, _lab: lab, folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        write(self.folder(), name, text)
    }

    /// Where the server's Unix socket is: its directory and its port.
    pub(crate) fn socket(&self) -> (PathBuf, u16) {
        let endpoint = self.node.endpoint();
        let Host::Unix(directory) = &endpoint.host else { panic!("a server on a socket") };
        (directory.clone(), endpoint.port)
    }

    /// The connection string of its socket.
    pub(crate) fn conninfo(&self) -> String {
        let (directory, port) = self.socket();
        let user = &self.node.endpoint().user;
        format!("host={} port={port} user={user} dbname=postgres", directory.display())
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.node.connect().expect("connects").batch_execute(sql).expect(sql);
    }

    /// All rows of a query, each as the text of its columns.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let messages = self.node.connect().expect("connects").simple_query(sql).expect(sql);
        let row = |message| match message {
            postgres::SimpleQueryMessage::Row(row) => {
                let column = |at| row.get(at).unwrap_or("").to_owned();
                Some((0..row.len()).map(column).collect::<Vec<String>>())
            }
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    }

    /// `pgrig bench` with these words, on the server at `conninfo`.
    pub(crate) fn bench(&self, conninfo: &str, words: &str) -> Ended {
        run(&mut self.command(conninfo, words))
    }

    /// Starts it, with its streams in pipes.
    pub(crate) fn start(&self, conninfo: &str, words: &str) -> Child {
        let mut command = self.command(conninfo, words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("pgrig starts")
    }

    fn command(&self, conninfo: &str, words: &str) -> Command {
        let mut command = Command::new(PGRIG);
        command.arg("bench").args(words.split_whitespace()).arg(conninfo);
        command.current_dir(self.folder());
        command
    }

    /// What `--json` of `pgrig bench` has written, which keeps to its schema.
    pub(crate) fn json(&self, name: &str) -> Value {
        let read = |path: &Path| -> Value {
            let text = fs::read_to_string(path).expect("a file");
            serde_json::from_str(&text).expect("JSON")
        };
        let document = read(&self.folder().join(name));
        let faults = testing::schema::faults(&read(Path::new(SCHEMA)), &document);
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        document
    }
}

/// The tables of a ledger of eight clients at most.
pub(crate) const LEDGER_INIT: &str =
    "CREATE TABLE log (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));
CREATE TABLE state (client int PRIMARY KEY, seq bigint, chain bigint);
INSERT INTO state SELECT i, 0, NULL FROM generate_series(0, 7) i;";

/// A transaction that writes into both.
pub(crate) const LEDGER_WRITE: &str = "BEGIN;
INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);
UPDATE state SET seq = :ledger_seq, chain = :ledger_chain WHERE client = :ledger_client;
COMMIT;
";

pub(crate) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    path
}

pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// An inventory of so many hosts that a plain command launches, here.
pub(crate) fn here(names: &[&str]) -> String {
    let host = |name: &&str| format!("[hosts.{name}]\nlaunch = \"env\"\nprogram = \"{PGRIG}\"\n");
    names.iter().map(host).collect()
}

/// Processes of the program that do this, wherever they are: their ids.
pub(crate) fn doing(role: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_it = |pid: &i32| {
        let is_pgrig = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| {
            // A copy on a host has more behind the name; test programs are no pgrig.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("pgrig") && !path.components().any(|part| part.as_os_str() == "deps")
        });
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let second = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        is_pgrig && second == role.as_bytes()
    };
    ids.filter(is_it).collect()
}

/// The inventory of a server on the host `db`, and of clients on other ones.
pub(crate) fn inventory(clients: &[&str]) -> String {
    let host = |(number, name): (u32, &str)| {
        format!(
            "[hosts.{name}]\nlaunch = \"env\"\naddress = \"127.0.0.{number}\"\nprogram = \"{PGRIG}\"\n"
        )
    };
    let hosts: String = (2..).zip(["db"].iter().chain(clients).copied()).map(host).collect();
    format!("{hosts}[place]\nprimary = \"db\"\ngenerators = {clients:?}\n")
}
