//! A PostgreSQL of one's own, and both programs on it: the real pgbench and ours.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lab::{Host, Lab, LabConfig, Listen, Node, NodeConfig, StopMode};
use load::LoadControl;
use pgbench::options::Invocation;
use pgbench::{Console, bench};
use testing::servers;

/// A running server, removed with the test.
pub(crate) struct Server {
    pub(crate) node: Node,
    _lab: Lab,
}

/// What a program said and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Server {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Server::start_on(settings, Listen::Unix)
    }

    pub(crate) fn start_on(settings: &[(&str, &str)], listen: Listen) -> Self {
        Server::start_at(None, settings, listen)
    }

    /// With its data in a new folder of this one.
    pub(crate) fn start_in(folder: &Path, settings: &[(&str, &str)]) -> Self {
        Server::start_at(Some(folder.join("lab")), settings, Listen::Unix)
    }

    fn start_at(directory: Option<PathBuf>, settings: &[(&str, &str)], listen: Listen) -> Self {
        let config = LabConfig { directory, ..LabConfig::new(servers::installation()) };
        let lab = Lab::open(config).expect("a lab opens");
        let defaults = [("fsync", "off"), ("autovacuum", "off")];
        let all = defaults.iter().chain(settings).copied().collect();
        let config = NodeConfig { listen, ..NodeConfig::new(all) };
        Server { node: servers::start(&lab, "server", config), _lab: lab }
    }

    /// The environment that leads to a database of this server.
    pub(crate) fn environment(&self, database: &str) -> Vec<(String, String)> {
        let endpoint = self.node.endpoint();
        let host = match &endpoint.host {
            Host::Unix(directory) => directory.display().to_string(),
            Host::Tcp(name) => name.clone(),
        };
        let mut environment = vec![
            ("PGHOST".to_owned(), host),
            ("PGPORT".to_owned(), endpoint.port.to_string()),
            ("PGUSER".to_owned(), endpoint.user.clone()),
            ("PGDATABASE".to_owned(), database.to_owned()),
        ];
        if let Some(password) = &endpoint.password {
            environment.push(("PGPASSWORD".to_owned(), password.reveal().to_owned()));
        }
        environment
    }

    /// Ours.
    pub(crate) fn ours(&self, database: &str, line: &str) -> Ended {
        ours(&self.environment(database), line)
    }

    /// Ours, speaking as the real pgbench here.
    pub(crate) fn ours_alike(&self, database: &str, line: &str) -> Ended {
        let speaks = theirs_major();
        self.ours(database, &format!("{line} --as={speaks}"))
    }

    /// The real pgbench.
    pub(crate) fn theirs(&self, database: &str, line: &str) -> Ended {
        let output = Command::new(self.theirs_program())
            .args(line.split_whitespace())
            .envs(self.environment(database))
            .env("LC_ALL", "C")
            .output()
            .expect("pgbench runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            code: output.status.code().expect("no signal"),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    fn theirs_program(&self) -> PathBuf {
        match std::env::var_os("PGRIG_PGBENCH") {
            Some(program) => program.into(),
            None => self.node.installation().program("pgbench"),
        }
    }

    pub(crate) fn create_database(&self, name: &str) {
        self.execute("postgres", &format!("create database {name}"));
    }

    pub(crate) fn execute(&self, database: &str, sql: &str) {
        let mut client = self.node.connect_to(database).expect("connects");
        client.batch_execute(sql).expect(sql);
    }

    /// All rows of a query as text, one a line.
    pub(crate) fn rows(&self, database: &str, sql: &str) -> Vec<String> {
        let mut client = self.node.connect_to(database).expect("connects");
        let messages = client.simple_query(sql).expect(sql);
        let rows = messages.into_iter().filter_map(|message| match message {
            postgres::SimpleQueryMessage::Row(row) => {
                let columns = (0..row.len()).map(|at| row.get(at).unwrap_or("∅"));
                Some(columns.collect::<Vec<_>>().join("|"))
            }
            _ => None,
        });
        rows.collect()
    }

    /// The first column of the first row.
    pub(crate) fn value(&self, database: &str, sql: &str) -> String {
        self.rows(database, sql).into_iter().next().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.node.stop(StopMode::Immediate);
    }
}

/// The schema of `--json`.
pub(crate) fn schema() -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema");
    serde_json::from_str(&text).expect("JSON")
}

/// The major version of the real pgbench.
pub(crate) fn theirs_major() -> u32 {
    static MAJOR: OnceLock<u32> = OnceLock::new();
    *MAJOR.get_or_init(|| {
        let program = match std::env::var_os("PGRIG_PGBENCH") {
            Some(program) => program.into(),
            None => servers::installation().program("pgbench"),
        };
        let output = Command::new(program).arg("--version").output().expect("pgbench runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // `pgbench (PostgreSQL) 19rc1 (Debian 19~rc1-1)`
        let version = text.split_whitespace().nth(2).unwrap_or_default();
        let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().expect("a version")
    })
}

/// Ours, with nothing but this environment.
pub(crate) fn ours(environment: &[(String, String)], line: &str) -> Ended {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    ours_until(environment, &arguments, &LoadControl::new())
}

/// Ours as `pgrig bench`, which speaks as its server does.
pub(crate) fn ours_as_its_server(environment: &[(String, String)], line: &str) -> Ended {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let look_up = |name: &str| {
        environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let invocation = Invocation {
        environment: &look_up,
        follows_server: true,
        ..Invocation::of(&arguments, None)
    };
    let code =
        bench(&invocation, &LoadControl::new(), &mut Console::new(&mut out, &mut err, false));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ended { code: i32::from(code), out: text(out), err: text(err) }
}

/// Ours, ended by `control`.
pub(crate) fn ours_until(
    environment: &[(String, String)],
    arguments: &[String],
    control: &LoadControl,
) -> Ended {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console = Console::new(&mut out, &mut err, false);
    let code = on_console(environment, arguments, control, &mut console);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ended { code: i32::from(code), out: text(out), err: text(err) }
}

/// Ours, on a console of the caller's.
pub(crate) fn ours_on(
    environment: &[(String, String)],
    line: &str,
    console: &mut Console<'_>,
) -> u8 {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    on_console(environment, &arguments, &LoadControl::new(), console)
}

fn on_console(
    environment: &[(String, String)],
    arguments: &[String],
    control: &LoadControl,
    console: &mut Console<'_>,
) -> u8 {
    let look_up = |name: &str| {
        environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let invocation = Invocation {
        environment: &look_up,
        generator: std::path::Path::new("pgrig"),
        ..Invocation::of(arguments, None)
    };
    bench(&invocation, control, console)
}
