//! One PgBouncer of a lab.
//!
//! It listens where a node would: on a Unix socket in the lab's directory without a password, or
//! on loopback with SCRAM and the lab's password, and for other hosts on an address, with the same.
//! It connects to its server as that server's superuser, to the database that the client named.
//!
//! Limits: it runs as the user of the lab's servers, with that user's limit of open files, which
//! has to hold all of its clients and servers. In transaction and statement mode the state of a
//! session (SET, advisory locks, prepared statements before PgBouncer 1.21) does not stay with
//! its client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::command::ProcessOutput;
use rustix::process::Signal;
use terms::StopMode;

use crate::console;
use crate::endpoint::{Encryption, Endpoint, Host};
use crate::error::{Error, SettingFault};
use crate::files::{remove_file, write_file};
use crate::find::{self, PgBouncer};
use crate::identity::ServerIdentity;
use crate::inner::port::Port;
use crate::inner::program::{Program, Runs};
use crate::inner::shared::Shared;
use crate::listen::Listen;
use crate::pooler_config::{PoolerConfig, PoolerProgram};
use crate::wait::wait_until;
use terms::Settings;

/// One PgBouncer. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Pooler {
    program: Program,
    executable: PgBouncer,
    config: PoolerConfig,
    port: Port,
    /// The length of its log when it was last started.
    log_bytes: u64,
}

impl Pooler {
    pub(crate) fn new(
        shared: Arc<Shared>,
        name: &str,
        config: PoolerConfig,
    ) -> Result<Self, Error> {
        let user = shared.user;
        let program = Program::new(shared, name, user)?;
        check(name, &config.settings)?;
        let port = Port::take(&program.shared, config.listen, config.remote.as_ref(), name)?;
        let executable = match &config.program {
            PoolerProgram::Found(found) => found.clone(),
            PoolerProgram::Newest(version) => find::pgbouncer(version.as_deref())?,
        };
        Ok(Self { program, executable, config, port, log_bytes: 0 })
    }

    /// The address for clients, as its server's superuser and in its server's database.
    pub(crate) fn endpoint(&self) -> Endpoint {
        let (host, password) = match self.config.listen {
            Listen::Unix => (Host::Unix(self.program.shared.sockets()), None),
            Listen::Loopback => {
                let password = self.program.shared.password.clone();
                (Host::Tcp("127.0.0.1".to_owned()), Some(password))
            }
        };
        let (port, encryption) = (self.port.number, Encryption::None);
        Endpoint { host, port, password, encryption, ..self.config.to.clone() }
    }

    /// The address for clients on other hosts, as its server's superuser and in its server's database.
    pub(crate) fn remote_endpoint(&self) -> Option<Endpoint> {
        let remote = self.config.remote.as_ref()?;
        let host = Host::Tcp(remote.address.to_string());
        let password = Some(self.program.shared.password.clone());
        let encryption = if remote.tls { Encryption::Tls } else { Encryption::None };
        Some(Endpoint { host, password, encryption, ..self.endpoint() })
    }

    /// The address of its admin console.
    pub(crate) fn console(&self) -> Endpoint {
        self.endpoint().with_database("pgbouncer")
    }

    fn name(&self) -> &str {
        &self.program.name
    }

    fn wait_until_ready(&self) -> Result<(), Error> {
        let ready = wait_until(self.config.timeout, || {
            if let Some(exit) = self.program.exit()? {
                let (node, why, log) = (self.name().to_owned(), exit.to_string(), self.log_tail());
                return Err(Error::Start { node, why, log });
            }
            Ok(console::show(&self.console(), self.name(), "VERSION").ok().map(drop))
        })?;
        ready.ok_or_else(|| {
            let (node, waited) = (self.name().to_owned(), self.config.timeout);
            Error::Timeout { doing: "starting", node, waited, log: self.log_tail() }
        })
    }

    /// Makes its directory and what it reads there; returns the configuration's path.
    fn write_files(&self) -> Result<PathBuf, Error> {
        let (directory, user) = (&self.program.directory, self.program.shared.user);
        self.program.make_directory()?;
        // Left by one that was killed.
        let socket = self.program.shared.sockets().join(format!(".s.PGSQL.{}", self.port.number));
        remove_file(&socket, user)?;
        let (ini, users) = (self.program.file("pgbouncer.ini"), self.program.file("users.txt"));
        let quoted = |text: &str| text.replace('"', "\"\"");
        let (name, password) = (&self.config.to.user, &self.program.shared.password);
        let user_list = format!("\"{}\" \"{}\"\n", quoted(name), quoted(password.reveal()));
        write_file(&users, &user_list, user)?;
        let hba = match &self.config.remote {
            None => None,
            Some(remote) => {
                let path = self.program.file("pgbouncer_hba.conf");
                write_file(&path, &format!("{HBA}{}", remote.hba_lines()), user)?;
                Some(path)
            }
        };
        let identity = match self.config.remote.as_ref().filter(|remote| remote.tls) {
            None => None,
            Some(remote) => Some(ServerIdentity::of(directory, remote.address, user)?),
        };
        let text = self.configuration(&users, hba.as_deref(), identity.as_ref());
        write_file(&ini, &text, user)?;
        Ok(ini)
    }

    /// Its configuration file. `hba` says who may connect where clients come from other hosts, and
    /// `identity` is what they see where they must encrypt.
    fn configuration(
        &self,
        users: &Path,
        hba: Option<&Path>,
        identity: Option<&ServerIdentity>,
    ) -> String {
        let config = &self.config;
        let sockets = self.program.shared.sockets();
        let (port, pool, clients) =
            (self.port.number.to_string(), config.pool.to_string(), config.clients.to_string());
        let (mut addresses, mut authentication) = match config.listen {
            Listen::Unix => (Vec::new(), "trust"),
            Listen::Loopback => (vec!["127.0.0.1".to_owned()], "scram-sha-256"),
        };
        // The console of a pooler on loopback is there, too.
        let has_socket = addresses.is_empty();
        addresses.extend(config.remote.as_ref().map(|remote| remote.address.to_string()));
        addresses.dedup();
        let addresses = addresses.join(",");
        let hba = hba.map(Path::to_string_lossy);
        if hba.is_some() {
            authentication = "hba";
        }
        let mode = config.mode.name().to_owned();
        let (sockets, users) = (sockets.to_string_lossy(), users.to_string_lossy());
        let mut lines = vec![
            ("pool_mode", &*mode),
            ("default_pool_size", &pool),
            ("max_client_conn", &clients),
        ];
        if self.executable.has_prepared_statements() {
            // As later versions have it by default; the first ones that can have it off.
            lines.push(("max_prepared_statements", "200"));
        }
        lines.extend(config.settings.iter());
        lines.extend([
            ("listen_addr", addresses.as_str()),
            ("listen_port", &port),
            ("unix_socket_dir", if has_socket { &*sockets } else { "" }),
            ("auth_type", authentication),
            ("auth_file", &users),
            ("admin_users", &config.to.user),
        ]);
        lines.extend(hba.as_deref().map(|path| ("auth_hba_file", path)));
        let files = identity.map(|identity| {
            (identity.certificate.to_string_lossy(), identity.key.to_string_lossy())
        });
        if let Some((certificate, key)) = &files {
            lines.extend([
                ("client_tls_sslmode", "require"),
                ("client_tls_cert_file", certificate),
                ("client_tls_key_file", key),
            ]);
        }
        if config.to.encryption != Encryption::None {
            lines.push(("server_tls_sslmode", "require"));
        }
        let server = connection_string(&config.to, config.connect_query.as_deref());
        let lines: String =
            lines.into_iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        format!("[databases]\n* = {server}\n\n[pgbouncer]\n{lines}")
    }
}

impl Runs for Pooler {
    fn program(&self) -> &Program {
        &self.program
    }

    fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    fn start(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("starting")?;
        self.program.kill_leftovers()?;
        let ini = self.write_files()?;
        let log = self.log();
        // Before the first start there is no log.
        self.log_bytes = log.metadata().map_or(0, |log| log.len());
        let command = self
            .program
            .shared
            .command_of(self.executable.program(), &self.program.directory)
            .arg(ini)
            .stdout(ProcessOutput::File(log.clone()))
            .stderr(ProcessOutput::File(log))
            .parent_death_signal(Signal::KILL);
        self.program.launch(&command)?;
        self.wait_until_ready().inspect_err(|_| {
            let _ = self.program.kill9();
        })
    }

    fn stop_signal(&self, mode: StopMode) -> (Signal, Duration) {
        let version = self.executable.version();
        let signal = match mode {
            StopMode::Smart => Signal::INT,
            // Since then SIGTERM waits for all clients to leave.
            _ if (version.major, version.minor) >= (1, 23) => Signal::QUIT,
            StopMode::Fast | StopMode::Immediate => Signal::TERM,
        };
        (signal, self.config.timeout)
    }

    fn log(&self) -> PathBuf {
        self.program.file("pgbouncer.log")
    }

    fn log_tail(&self) -> String {
        self.program.tail(&self.log(), self.log_bytes)
    }
}

/// A server's address in the section `[databases]`: everybody goes there as one user.
fn connection_string(to: &Endpoint, connect_query: Option<&str>) -> String {
    let host = match &to.host {
        Host::Unix(directory) => directory.to_string_lossy(),
        Host::Tcp(name) => name.into(),
    };
    let mut pairs =
        vec![("host", host.into_owned()), ("port", to.port.to_string()), ("user", to.user.clone())];
    pairs.extend(to.password.as_ref().map(|password| ("password", password.reveal().to_owned())));
    pairs.extend(connect_query.map(|query| ("connect_query", query.to_owned())));
    // In single quotes, which are doubled inside.
    let quoted = |(key, value): (&str, String)| format!("{key}='{}'", value.replace('\'', "''"));
    pairs.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Rules for connections from this machine, as in `pg_hba.conf`.
const HBA: &str = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// Settings that tie a pooler to its lab.
const OF_THE_LAB: [&str; 14] = [
    "admin_users",
    "auth_file",
    "auth_hba_file",
    "auth_type",
    "conffile",
    "listen_addr",
    "listen_port",
    "logfile",
    "pidfile",
    "syslog",
    "unix_socket_dir",
    "unix_socket_group",
    "unix_socket_mode",
    "user",
];

fn check(node: &str, settings: &Settings) -> Result<(), Error> {
    for (name, value) in settings.iter() {
        let error = |why: SettingFault| {
            let (node, name) = (node.to_owned(), name.to_owned());
            Err(Error::Setting { node, name, why })
        };
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return error(SettingFault::NotAName);
        }
        if OF_THE_LAB.contains(&name) {
            return error(SettingFault::OfTheLab);
        }
        if value.contains(['\0', '\n', '\r']) {
            return error(SettingFault::LineBreak);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_as_pgbouncer_reads_them() {
        let to = Endpoint {
            host: Host::Unix("/tmp/x y/s".into()),
            port: 5432,
            user: "postgres".into(),
            database: "a".into(),
            password: Some("it's".into()),
            encryption: Encryption::None,
        };
        assert_eq!(
            connection_string(&to, Some("SET synchronous_commit = 'off'")),
            "host='/tmp/x y/s' port='5432' user='postgres' password='it''s' \
             connect_query='SET synchronous_commit = ''off'''"
        );
    }

    #[test]
    fn settings_are_checked() {
        let check = |name: &str, value: &str, expected: Option<SettingFault>| {
            let why = match super::check("n", &Settings::from_iter([(name, value)])) {
                Ok(()) => None,
                Err(Error::Setting { why, .. }) => Some(why),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(why, expected, "{name}");
        };
        check("server_idle_timeout", "10", None);
        check("Auth_Type", "any", Some(SettingFault::OfTheLab));
        check("a b", "1", Some(SettingFault::NotAName));
        check("verbose", "1\nauth_type = any", Some(SettingFault::LineBreak));
    }
}
