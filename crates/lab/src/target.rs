//! A server of the user's. The rig builds nothing there and changes no setting; what it
//! writes, it writes into a schema of its own.

use std::fmt;

use server::{Client, Conninfo, Limits, Password, PasswordSource};

use crate::endpoint::first_value;
use crate::error::Error;
use crate::target_name::TARGET;

/// An outside server and the limits of the rig's sessions on it.
#[derive(Clone)]
pub struct TargetConfig {
    /// Connection settings for clients.
    pub conninfo: Conninfo,
    /// The limits of sessions for administration.
    pub limits: Limits,
}

/// An outside server.
#[derive(Clone)]
pub struct Target {
    config: TargetConfig,
    /// The connection string in keyword form.
    text: String,
    /// The same with the user's login, where `text` has that of a run.
    login_text: String,
    version_number: u32,
    version: String,
}

impl Target {
    /// Connects once, to see that the server is there and which version it has.
    pub fn open(config: TargetConfig) -> Result<Self, Error> {
        let text = config.conninfo.to_keyword_string();
        let login_text = text.clone();
        let mut target =
            Self { config, text, login_text, version_number: 0, version: String::new() };
        let mut client = target.connect()?;
        // A server that answers at all answers these at once.
        client.set_limits(|limits| limits.answer = Limits::of_questions().answer);
        let mut value = |statement| first_value(&mut client, statement, TARGET);
        let number = value("SHOW server_version_num")?;
        let version = value("SHOW server_version")?;
        let known = number.as_deref().and_then(|number| number.parse().ok()).zip(version);
        (target.version_number, target.version) =
            known.ok_or_else(|| Error::NoVersion { place: target.place(), told: number })?;
        Ok(target)
    }

    /// Connection string for clients; it may hold a password.
    pub fn conninfo(&self) -> &str {
        &self.text
    }

    /// The same for sessions of the rig's that only look: as the user's login, which may see more.
    pub fn login_conninfo(&self) -> &str {
        &self.login_text
    }

    /// The same server for the role that a run has made there. Samples are taken by the user's login where that sees the
    /// statistics of all roles.
    pub(crate) fn as_role(&self, role: &str, password: &Password, login_sees_all: bool) -> Target {
        let mut target = self.clone();
        let conninfo = &mut target.config.conninfo;
        role.clone_into(&mut conninfo.user);
        conninfo.passfile = None;
        for host in &mut conninfo.hosts {
            host.password = Some(password.clone());
            host.password_source = PasswordSource::Given;
        }
        target.text = conninfo.to_keyword_string();
        if !login_sees_all {
            target.login_text.clone_from(&target.text);
        }
        target
    }

    /// The same in libpq's keywords, for programs that connect by libpq.
    pub fn libpq_conninfo(&self) -> String {
        self.config.conninfo.to_libpq_string()
    }

    /// Its address, without a password, as in "db.example.org:5432".
    pub fn place(&self) -> String {
        self.config.conninfo.place()
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
    pub fn connect(&self) -> Result<Client, Error> {
        self.connect_within(&self.config.limits)
    }

    /// A connection with these limits, which the user's signals end as they end the others.
    pub(crate) fn connect_within(&self, limits: &Limits) -> Result<Client, Error> {
        let limits = Limits { control: self.config.limits.control.clone(), ..limits.clone() };
        server::connect(&self.config.conninfo, &limits).map_err(|source| {
            let (server, place) = (TARGET.to_owned(), self.place());
            Error::Connect { server, place, source: Box::new(source) }
        })
    }

    /// The first value that a statement gives, as text.
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
