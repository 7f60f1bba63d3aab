//! A server that somebody else runs. The rig builds nothing there and changes no setting; what it
//! writes, it writes into a schema of its own.

use std::str::FromStr;

use postgres::NoTls;

use crate::endpoint::first_value;
use crate::error::Error;

/// The schema that the rig writes in on an outside server.
pub const TARGET_SCHEMA: &str = "pgrig";

/// An outside server.
///
/// Limit: administration goes without TLS; a server that insists on it is refused by name.
#[derive(Debug, Clone)]
pub struct Target {
    conninfo: String,
    config: postgres::Config,
    version_number: u32,
    version: String,
}

impl Target {
    /// Connects once, to see that the server is there and which version it has.
    ///
    /// # Errors
    /// [`Error::Address`] for a conninfo (URI or keywords) that cannot be read;
    /// [`Error::Connect`].
    pub fn open(conninfo: &str) -> Result<Self, Error> {
        let mut config =
            postgres::Config::from_str(conninfo).map_err(|source| Error::Address { source })?;
        if config.get_application_name().is_none() {
            config.application_name("pgrig");
        }
        let (version_number, version) = (0, String::new());
        let conninfo = conninfo.to_owned();
        let mut target = Self { conninfo, config, version_number, version };
        let number = target.value("SHOW server_version_num")?.unwrap_or_default();
        target.version_number = number.parse().unwrap_or(0);
        target.version = target.value("SHOW server_version")?.unwrap_or_default();
        Ok(target)
    }

    /// The address as it was given; it may hold a password.
    pub fn conninfo(&self) -> &str {
        &self.conninfo
    }

    /// Where it is, without a password, as in "db.example.org:5432".
    pub fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            postgres::config::Host::Tcp(name) => name.clone(),
            postgres::config::Host::Unix(path) => path.display().to_string(),
        });
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        format!("{}:{port}", hosts.collect::<Vec<_>>().join(","))
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.version_number / 10_000
    }

    /// Its version as it calls itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A connection to the database that the address names.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(&self) -> Result<postgres::Client, Error> {
        self.config.connect(NoTls).map_err(|source| Error::Connect {
            server: "the target".to_owned(),
            place: self.place(),
            source,
        })
    }

    /// The first value that a statement gives, as text.
    ///
    /// # Errors
    /// [`Error::Connect`]; [`Error::Query`].
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        first_value(&mut self.connect()?, statement, "the target")
    }
}
