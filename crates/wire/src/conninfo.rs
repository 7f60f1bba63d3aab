//! Addresses and login of a connection: libpq's conventions, all of them that a TCP or Unix socket
//! client can honour.
//!
//! [`Conninfo::resolve`] takes what the user gave ([`GivenParameters`]) and where the rest may come from
//! ([`ParameterSources`]: the environment, the files, the operating system's user), and does no I/O of its
//! own: the caller passes functions that look up a variable and read a file. A value given
//! explicitly wins over the service file, that over the environment, that over the default.
//!
//! Limits: GSSAPI and OAuth keywords are accepted and have no effect; strings must be UTF-8.

mod error;
mod host;
mod keyword_string;
mod option;
mod pass_file;
mod resolve;
mod service_file;
mod split;
mod target;
mod text;
mod tls_settings;
mod uri;
mod words;

pub use error::ConninfoError;
pub use host::{ConninfoHost, HostAddress, PasswordSource};
pub use resolve::{
    ConninfoFileKind, GivenParameters, ParameterSources, SERVICE_DIRECTORY, SOCKET_DIRECTORY,
};
pub use split::SplitConninfo;
pub use target::{TargetDecision, TargetSessionAttrs};
pub use tls_settings::{ClientCertificate, TlsSettings, TlsVersion};
pub use words::{hide_passwords, shown_word};

use option::Values;

use crate::ProtocolVersion;
use crate::auth::AuthMethods;
use crate::startup::{ChannelBindingPolicy, Login};

/// Everything that is needed to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conninfo {
    /// The servers to try, in this order; at least one.
    pub hosts: Vec<ConninfoHost>,
    /// The role.
    pub user: String,
    /// The database.
    pub dbname: String,
    /// Kind of server that is accepted.
    pub target: TargetSessionAttrs,
    /// Order in which the caller tries `hosts` and the addresses of each: as given, or shuffled.
    pub load_balance: LoadBalance,
    /// Seconds for which each host is tried; `None` is forever.
    pub connect_timeout_s: Option<u32>,
    /// Encryption, and what it needs.
    pub tls: TlsSettings,
    /// Policy for binding a SCRAM login to its TLS connection.
    pub channel_binding: ChannelBindingPolicy,
    /// The authentication methods to put up with.
    pub require_auth: AuthMethods,
    /// The protocol version to ask for.
    pub protocol: ProtocolVersion,
    /// The protocol version to put up with.
    pub least_protocol: ProtocolVersion,
    /// Settings of the session that go with the start-up message: `application_name`,
    /// `client_encoding`, `options`, `replication`, and those of PGDATESTYLE, PGTZ, PGGEQO.
    pub settings: Vec<(String, String)>,
    /// Settings by which TCP finds out that a server is gone.
    pub keepalives: Keepalives,
    /// The user that must own the server process behind a Unix socket.
    pub require_peer: Option<String>,
    /// The password file that was looked into, for messages about a wrong password.
    pub passfile: Option<String>,
}

/// In which order hosts are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LoadBalance {
    /// As listed.
    #[default]
    Disable,
    /// At random.
    Random,
}

/// Settings by which TCP finds out that a server is gone. `None` leaves it to the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Keepalives {
    /// True if an idle connection is probed at all.
    pub enabled: bool,
    /// After how many idle seconds.
    pub idle_s: Option<u32>,
    /// Every how many seconds from then on.
    pub interval_s: Option<u32>,
    /// Number of probes that may go unanswered.
    pub count: Option<u32>,
    /// Time for which sent data may go unacknowledged, in milliseconds.
    pub user_timeout_ms: Option<u32>,
}

impl Conninfo {
    /// Works out what to connect to.
    pub fn resolve(
        given: &GivenParameters,
        sources: &ParameterSources<'_>,
    ) -> Result<Self, ConninfoError> {
        resolve::resolve(given, sources)
    }

    /// Login for `host`, which must be one of ours, when a session starts.
    pub fn login(&self, host: &ConninfoHost) -> Login {
        Login {
            user: self.user.clone(),
            database: Some(self.dbname.clone()),
            password: host.password.clone(),
            settings: self.settings.clone(),
            protocol: self.protocol,
            least_protocol: self.least_protocol,
            channel_binding: self.channel_binding,
            require_auth: self.require_auth,
        }
    }

    /// Sets a setting of the session, in place of one of that name.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// The servers without passwords, as in `db.example.org:5432`, for messages.
    pub fn place(&self) -> String {
        let place = |host: &ConninfoHost| match &host.address {
            HostAddress::Unix { directory } => format!("{directory}:{}", host.port),
            HostAddress::Tcp { .. } => {
                let name = host.certificate_name().or(host.network_name());
                let name = name.expect("a host without a socket has a name in the network");
                format!("{name}:{}", host.port)
            }
        };
        self.hosts.iter().map(place).collect::<Vec<_>>().join(",")
    }

    /// The setting with this name in the start-up message.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// All of it as one string of keywords and values, the password included, for another process
    /// of ours to read with [`Conninfo::from_keyword_string`]. Not for people to see.
    pub fn to_keyword_string(&self) -> String {
        text::write(self, text::Reader::Ourselves)
    }

    /// As [`Conninfo::to_keyword_string`], in keywords that libpq knows. Passwords from a password
    /// file stay there, where libpq finds each host's own; one that was given is for all hosts.
    pub fn to_libpq_string(&self) -> String {
        text::write(self, text::Reader::Libpq)
    }

    /// Reads what [`Conninfo::to_keyword_string`] wrote: nothing comes from anywhere else.
    pub fn from_keyword_string(text: &str) -> Result<Self, ConninfoError> {
        text::read(text)
    }
}

#[cfg(test)]
mod tests;
