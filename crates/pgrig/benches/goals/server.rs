//! A server to measure with.

use std::{fs, path::PathBuf};

use lab::{Lab, LabConfig, Listen, Node, NodeConfig, Settings, StopMode, find};

/// The role that logs in by SCRAM.
pub(crate) const SCRAM_USER: &str = "scram";

/// A throw-away server with pgbench's tables.
pub(crate) struct Server {
    node: Node,
    pub(crate) pgbench: PathBuf,
    pub(crate) port: String,
    /// The directory of its Unix socket.
    sockets: String,
    scripts: tempfile::TempDir,
    _lab: Lab,
}

/// Connections for the largest goal and a few administrators; nothing that makes the disk or a
/// background process take part.
const SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "8300"),
    ("shared_buffers", "512MB"),
    ("huge_pages", "try"),
    ("fsync", "off"),
    ("autovacuum", "off"),
];

/// 1.5 million rows: held by the shared buffers, so that the disk does not take part.
const SCALE: &str = "15";

impl Server {
    pub(crate) fn start() -> Result<Self, String> {
        let installation = find::find(None).map_err(|error| error.to_string())?;
        let pgbench = installation.program("pgbench");
        let lab = Lab::open(LabConfig::new(installation)).map_err(|error| error.to_string())?;
        let mut settings = Settings::new();
        for (name, value) in SETTINGS {
            settings.set(*name, *value);
        }
        let mut config = NodeConfig::new(settings);
        config.listen = Listen::Loopback;
        let mut node = lab.node("goals", config).map_err(|error| error.to_string())?;
        node.init().map_err(|error| error.to_string())?;
        node.start().map_err(|error| error.to_string())?;
        let mut client = node.connect().map_err(|error| error.to_string())?;
        client
            .batch_execute(&format!(
                "SET password_encryption = 'scram-sha-256';
                 CREATE ROLE {SCRAM_USER} SUPERUSER LOGIN PASSWORD 'secret'"
            ))
            .map_err(|error| error.to_string())?;
        let port = node.endpoint().port.to_string();
        let sockets: String = client
            .query_one("SHOW unix_socket_directories", &[])
            .map_err(|error| error.to_string())?
            .get(0);
        let scripts = tempfile::tempdir().map_err(|error| error.to_string())?;
        let server = Server { node, pgbench, port, sockets, scripts, _lab: lab };
        server.initialise()?;
        Ok(server)
    }

    fn initialise(&self) -> Result<(), String> {
        let done = self
            .command(&self.pgbench)
            .args(["-i", "-q", "-s", SCALE])
            .output()
            .map_err(|error| error.to_string())?;
        if done.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    }

    /// A command that finds the server by its environment.
    pub(crate) fn command(&self, program: &std::path::Path) -> std::process::Command {
        let endpoint = self.node.endpoint();
        let mut command = std::process::Command::new(program);
        command.env("PGHOST", &self.sockets).env("PGPORT", &self.port);
        command.env("PGUSER", endpoint.user).env("PGDATABASE", endpoint.database);
        command
    }

    pub(crate) fn socket(&self) -> String {
        format!("{}/.s.PGSQL.{}", self.sockets, self.port)
    }

    pub(crate) fn user(&self) -> String {
        self.node.endpoint().user
    }

    /// The postmaster's process id.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.node.host_pid()
    }

    /// Writes a script and returns its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> Result<String, String> {
        let path = self.scripts.path().join(format!("{name}.sql"));
        fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(path.display().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The lab's init ends it all the same.
        let _ = self.node.stop(StopMode::Immediate);
    }
}
