//! What the tests of whole loads share: a server, plans, and a way to run them.

use std::{
    fs,
    ops::Not,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use lab::{Lab, Listen, Node, NodeConfig, Settings};
use load::{
    ClientGroup, LoadControl, LoadError, LoadEvent, LoadLimit, LoadOutcome, LoadPlan, LoadScript,
    Protocol, ScriptSyntax, WarmUp,
};
use testing::servers;
use wire::conninfo::{Conninfo, GivenParameters, ParameterSources};

/// A real PostgreSQL on a Unix socket and on loopback.
pub(crate) struct Server {
    pub(crate) node: Node,
    pub(crate) lab: Lab,
}

impl Server {
    /// One that belongs to the caller alone.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Server {
        let mut server = Server::stopped(settings);
        server.node.start().expect("a server");
        server
    }

    pub(crate) fn stopped(settings: &[(&str, &str)]) -> Server {
        let lab = servers::lab();
        let small = [
            ("shared_buffers", "16MB"),
            ("fsync", "off"),
            ("autovacuum", "off"),
            ("max_connections", "120"),
        ];
        let settings: Settings = small.iter().chain(settings).copied().collect();
        let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings) };
        let mut node = lab.node("primary", config).expect("a node");
        node.init().expect("initdb");
        Server { node, lab }
    }

    /// The one that tests share; it ends when the last of them has ended.
    pub(crate) fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        servers::shared(&SHARED, || Server::start(&[]))
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.node.connect().expect("a connection").batch_execute(sql).expect(sql);
    }

    pub(crate) fn value(&self, sql: &str) -> String {
        self.node.value(sql).expect(sql).unwrap_or_default()
    }

    pub(crate) fn number(&self, sql: &str) -> u64 {
        self.value(sql).parse().expect(sql)
    }

    /// By Unix socket.
    pub(crate) fn conninfo(&self) -> String {
        format!(
            "host={} port={} user=postgres dbname=postgres",
            self.socket_directory(),
            self.port()
        )
    }

    /// By TCP, with the superuser's password.
    pub(crate) fn tcp(&self) -> String {
        self.node.endpoint().to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.node.endpoint().port
    }

    pub(crate) fn socket(&self) -> String {
        format!("{}/.s.PGSQL.{}", self.socket_directory(), self.port())
    }

    pub(crate) fn socket_directory(&self) -> String {
        servers::socket_directory(&self.node).display().to_string()
    }

    /// Who may come in how, before the lines that initdb wrote.
    pub(crate) fn admit(&self, lines: &str) {
        let path = self.node.data().join("pg_hba.conf");
        let before = fs::read_to_string(&path).expect("pg_hba.conf");
        fs::write(&path, format!("{lines}\n{before}")).expect("pg_hba.conf");
        self.execute("SELECT pg_reload_conf()");
        let wanted = lines.lines().count() as u64;
        let seen = "SELECT count(*) FROM pg_hba_file_rules WHERE error IS NULL";
        assert!(self.number(seen) > wanted, "pg_hba.conf is wrong");
    }
}

/// As `wire` resolves it with nothing from the environment.
pub(crate) fn resolved(conninfo: &str) -> String {
    let given = GivenParameters { dbname: Some(conninfo.to_owned()), ..GivenParameters::default() };
    Conninfo::resolve(&given, &ParameterSources::NOTHING).expect(conninfo).to_keyword_string()
}

/// `clients` run `script`.
pub(crate) fn workload(conninfo: &str, script: &str, clients: u32) -> ClientGroup {
    let script = LoadScript {
        name: "test.sql".to_owned(),
        text: script.to_owned(),
        weight: 1,
        syntax: ScriptSyntax::Current,
    };
    ClientGroup::new("w", resolved(conninfo), vec![script], clients, Protocol::Simple)
}

/// `PGRIG_IO=epoll` runs the tests without io_uring.
pub(crate) fn plan(workload: ClientGroup, limit: LoadLimit) -> LoadPlan {
    let io_uring = std::env::var("PGRIG_IO").is_ok_and(|io| io == "epoll").not();
    LoadPlan {
        lanes: 2,
        seed: 42,
        interval_ms: 100,
        io_uring,
        ..LoadPlan::new(vec![workload], limit)
    }
}

pub(crate) fn window(ms: u64) -> LoadLimit {
    LoadLimit::Time { warm_up: WarmUp::Fixed(200), window_ms: ms }
}

pub(crate) fn run(plan: &LoadPlan) -> Result<LoadOutcome, LoadError> {
    run_with(plan, &LoadControl::new(), &mut |_| {})
}

pub(crate) fn run_with(
    plan: &LoadPlan,
    control: &LoadControl,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    load::run(plan, control, Instant::now(), observe)
}

/// Runs, and keeps what was said.
pub(crate) fn run_listening(plan: &LoadPlan) -> (Result<LoadOutcome, LoadError>, Vec<String>) {
    let mut said = Vec::new();
    let outcome = run_with(plan, &LoadControl::new(), &mut |event| {
        if let LoadEvent::Message(message) = event {
            said.push(message.text);
        }
    });
    (outcome, said)
}
