//! What the tests of whole loads share: a server, plans, and a way to run them.

use std::{
    fs,
    ops::Not,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use lab::{Lab, Listen, Node, NodeConfig, Settings};
use load::{
    Control, Event, Limit, LoadError, Outcome, Plan, Protocol, ScriptText, Syntax, WarmUp, Workload,
};
use testing::servers;
use wire::conninfo::{Conninfo, Given, Sources};

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
    let given = Given { dbname: Some(conninfo.to_owned()), ..Given::default() };
    Conninfo::resolve(&given, &Sources::NOTHING).expect(conninfo).to_keyword_string()
}

/// `clients` run `script`.
pub(crate) fn workload(conninfo: &str, script: &str, clients: u32) -> Workload {
    let script = ScriptText {
        name: "test.sql".to_owned(),
        text: script.to_owned(),
        weight: 1,
        syntax: Syntax::Current,
    };
    Workload::new("w", resolved(conninfo), vec![script], clients, Protocol::Simple)
}

/// `PGRIG_IO=epoll` runs the tests without io_uring.
pub(crate) fn plan(workload: Workload, limit: Limit) -> Plan {
    let io_uring = std::env::var("PGRIG_IO").is_ok_and(|io| io == "epoll").not();
    Plan { lanes: 2, seed: 42, interval_ms: 100, io_uring, ..Plan::new(vec![workload], limit) }
}

pub(crate) fn window(ms: u64) -> Limit {
    Limit::Time { warm_up: WarmUp::Fixed(200), window_ms: ms }
}

pub(crate) fn run(plan: &Plan) -> Result<Outcome, LoadError> {
    run_with(plan, &Control::new(), &mut |_| {})
}

pub(crate) fn run_with(
    plan: &Plan,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, LoadError> {
    load::run(plan, control, Instant::now(), observe)
}

/// Runs, and keeps what was said.
pub(crate) fn run_listening(plan: &Plan) -> (Result<Outcome, LoadError>, Vec<String>) {
    let mut said = Vec::new();
    let outcome = run_with(plan, &Control::new(), &mut |event| {
        if let Event::Message(message) = event {
            said.push(message.text);
        }
    });
    (outcome, said)
}
