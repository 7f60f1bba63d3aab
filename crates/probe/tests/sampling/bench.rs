//! A server of its own for each test.

use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Lab, Node, NodeConfig};
use probe::{Probes, SamplerConfig, SamplerReadings, WatchedServer};
use testing::servers;

/// One lab for all tests, so that initdb runs once. Its init ends it with this process.
pub(crate) static LAB: LazyLock<Lab> = LazyLock::new(servers::lab);

/// A server of its own for one test, ready for pgbench; it ends with the test.
pub(crate) struct Bench {
    pub(crate) node: Node,
}

impl Bench {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Bench {
        static NODES: AtomicU32 = AtomicU32::new(0);
        let name = format!("node{}", NODES.fetch_add(1, Ordering::Relaxed));
        let shared = [
            ("autovacuum", "off"),
            ("fsync", "off"),
            ("shared_preload_libraries", "pg_stat_statements"),
        ];
        let settings = shared.iter().chain(settings).copied().collect();
        let node = servers::start(&LAB, &name, NodeConfig::new(settings));
        let mut client = node.connect().expect("a connection");
        client.batch_execute("CREATE EXTENSION pg_stat_statements").expect("pg_stat_statements");
        let bench = Bench { node };
        bench.pgbench(&["-i", "-q", "-s", "1"]);
        bench
    }

    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(LAB.installation().program("pgbench"));
        command.args(options).arg(self.node.endpoint().to_string());
        command
    }

    pub(crate) fn pgbench(&self, options: &[&str]) -> String {
        let output = self.command(options).output().expect("pgbench");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn server(&self) -> WatchedServer {
        WatchedServer {
            node: "primary".to_owned(),
            conninfo: self.node.endpoint().to_string(),
            database: "postgres".to_owned(),
            log: Some(self.node.structured_log().1),
            root_pid: self.node.host_pid().map(|pid| pid as u32),
            horizon_every_s: None,
        }
    }

    /// What a sampler reads in so long a time, what keeps VACUUM back among it.
    pub(crate) fn sampled_with_horizon(&self, length: Duration) -> SamplerReadings {
        let server = WatchedServer { horizon_every_s: Some(1), log: None, ..self.server() };
        let config = SamplerConfig { servers: vec![server], ..SamplerConfig::default() };
        let running = Probes::start(config, Instant::now()).expect("a sampler");
        thread::sleep(length);
        running.stop()
    }

    pub(crate) fn config(&self) -> SamplerConfig {
        SamplerConfig {
            servers: vec![self.server()],
            generator_pids: vec![std::process::id()],
            ..SamplerConfig::default()
        }
    }
}
