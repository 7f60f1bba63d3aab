//! A server of the user's. The rig builds nothing there and changes no setting; what it
//! writes, it writes into a schema of its own.

use std::fmt;

use postgres::CancelToken;
use server::Address;

use crate::endpoint::first_value;
use crate::error::Error;
use crate::target_name::TARGET;

/// How an outside server is reached.
#[derive(Clone)]
pub struct TargetConfig {
    /// What clients are told.
    pub conninfo: String,
    /// The same for administration.
    pub admin: Address,
}

/// An outside server.
#[derive(Clone)]
pub struct Target {
    config: TargetConfig,
    version_number: u32,
    version: String,
}

impl Target {
    /// Connects once, to see that the server is there and which version it has.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn open(config: TargetConfig) -> Result<Self, Error> {
        let mut target = Self { config, version_number: 0, version: String::new() };
        if target.config.admin.config.get_application_name().is_none() {
            target.config.admin.config.application_name("pgrig");
        }
        let number = target.value("SHOW server_version_num")?.unwrap_or_default();
        target.version_number = number.parse().unwrap_or(0);
        target.version = target.value("SHOW server_version")?.unwrap_or_default();
        Ok(target)
    }

    /// What clients are told; it may hold a password.
    pub fn conninfo(&self) -> &str {
        &self.config.conninfo
    }

    /// Where it is, without a password, as in "db.example.org:5432".
    pub fn place(&self) -> String {
        self.config.admin.place()
    }

    /// How it is encrypted, where it may be.
    pub fn tls(&self) -> Option<&rustls::ClientConfig> {
        self.config.admin.tls.as_ref()
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.version_number / 10_000
    }

    /// Its version as it calls itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A connection for administration.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(&self) -> Result<postgres::Client, Error> {
        self.config.admin.connect().map_err(|source| Error::Connect {
            server: TARGET.to_owned(),
            place: self.place(),
            source,
        })
    }

    /// Cancels what the connection of `token` does, by a way that is encrypted as its own is.
    ///
    /// # Errors
    /// Why the cancel could not be sent.
    pub fn cancel(&self, token: &CancelToken) -> Result<(), postgres::Error> {
        self.config.admin.cancel(token)
    }

    /// The first value that a statement gives, as text.
    ///
    /// # Errors
    /// [`Error::Connect`]; [`Error::Query`].
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        first_value(&mut self.connect()?, statement, TARGET)
    }
}

/// Without the conninfo, which may hold a password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}, {})", self.place(), self.version)
    }
}
