//! Where a server is, as whom to connect, and how the way there is encrypted.

use postgres::{CancelToken, NoTls};
use tokio_postgres::config::Host as ClientHost;
use tokio_postgres_rustls::MakeRustlsConnect;
use wire::conninfo::{Address as HostAddress, Conninfo, Host, TargetSessionAttrs};
use wire::startup::ChannelBindingPolicy;
use wire::tls::{SslMode, SslNegotiation, Transport};

use crate::quote::conninfo_value;
use crate::tls::{self, TlsError};

/// How the client libraries reach a server.
#[derive(Clone)]
pub struct Address {
    /// Where, as whom, with what.
    pub config: tokio_postgres::Config,
    /// How the way there is encrypted, where `config` allows or demands that.
    pub tls: Option<rustls::ClientConfig>,
}

impl Address {
    /// The same in the terms of the client libraries, certificates read.
    ///
    /// Limits of these libraries: one password and one `sslmode` for all hosts; addresses only
    /// where each host has one.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn new(conninfo: &Conninfo) -> Result<Address, AddressError> {
        let tls = match encryption(conninfo) {
            Encryption::Disable => None,
            Encryption::Prefer | Encryption::Require => {
                Some((*tls::config(&conninfo.tls)?).clone())
            }
        };
        Ok(Address { config: Self::keywords(conninfo).parse()?, tls })
    }

    /// A connection string in the keywords that the client libraries know, which are fewer than
    /// libpq's.
    #[must_use]
    pub fn keywords(conninfo: &Conninfo) -> String {
        let each = |value: fn(&Host) -> String| {
            conninfo.hosts.iter().map(value).collect::<Vec<_>>().join(",")
        };
        let place = |host: &Host| match &host.address {
            HostAddress::Unix { directory } => directory.clone(),
            HostAddress::Tcp { .. } => host.certificate_name().unwrap_or_default().to_owned(),
        };
        let address = |host: &Host| match &host.address {
            HostAddress::Tcp { hostaddr, .. } => hostaddr.clone(),
            HostAddress::Unix { .. } => None,
        };
        let addresses: Option<Vec<String>> = conninfo.hosts.iter().map(address).collect();
        let mut form = String::new();
        let mut put = |keyword: &str, value: &str| {
            if !value.trim_matches(',').is_empty() {
                form.push_str(&format!("{keyword}={} ", conninfo_value(value)));
            }
        };
        put("host", &each(place));
        put("hostaddr", &addresses.unwrap_or_default().join(","));
        put("port", &each(|host| host.port.to_string()));
        put("user", &conninfo.user);
        put("dbname", &conninfo.dbname);
        let password = conninfo.hosts.first().and_then(|host| host.password.as_deref());
        put("password", password.unwrap_or_default());
        let encryption = match encryption(conninfo) {
            Encryption::Disable => "disable",
            Encryption::Prefer => "prefer",
            Encryption::Require => "require",
        };
        put("sslmode", encryption);
        if conninfo.tls.negotiation == SslNegotiation::Direct {
            put("sslnegotiation", "direct");
        }
        let channel_binding = match conninfo.channel_binding {
            ChannelBindingPolicy::Disable => "disable",
            ChannelBindingPolicy::Prefer => "prefer",
            ChannelBindingPolicy::Require => "require",
        };
        put("channel_binding", channel_binding);
        let target = match conninfo.target {
            TargetSessionAttrs::Any | TargetSessionAttrs::PreferStandby => "any",
            TargetSessionAttrs::ReadWrite | TargetSessionAttrs::Primary => "read-write",
            TargetSessionAttrs::ReadOnly | TargetSessionAttrs::Standby => "read-only",
        };
        put("target_session_attrs", target);
        put("connect_timeout", &conninfo.connect_timeout_s.unwrap_or(0).to_string());
        form
    }

    /// Where it is, without a password, as in "db.example.org:5432".
    #[must_use]
    pub fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            ClientHost::Tcp(name) => name.clone(),
            ClientHost::Unix(path) => path.display().to_string(),
        });
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        format!("{}:{port}", hosts.collect::<Vec<_>>().join(","))
    }

    /// Connects.
    ///
    /// # Errors
    /// As the client library has them.
    pub fn connect(&self) -> Result<postgres::Client, postgres::Error> {
        let config = postgres::Config::from(self.config.clone());
        match &self.tls {
            Some(tls) => config.connect(MakeRustlsConnect::new(tls.clone())),
            None => config.connect(NoTls),
        }
    }

    /// Cancels what the connection of `token` does. The request is encrypted as the connection is.
    ///
    /// # Errors
    /// Why the request could not be sent.
    pub fn cancel(&self, token: &CancelToken) -> Result<(), postgres::Error> {
        match &self.tls {
            Some(tls) => token.cancel_query(MakeRustlsConnect::new(tls.clone())),
            None => token.cancel_query(NoTls),
        }
    }
}

/// Without what may hold a password.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.place())
    }
}

/// Why a connection string is no address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Certificates could not be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The client library does not take it.
    #[error(transparent)]
    Client(#[from] tokio_postgres::Error),
}

impl AddressError {
    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            AddressError::Tls(error) => Some(error.hint()),
            AddressError::Client(_) => None,
        }
    }
}

/// Whether connections are encrypted, in the three steps that the client libraries know. A socket
/// never is; `allow` becomes `prefer`: encrypted where the server can.
enum Encryption {
    Disable,
    Prefer,
    Require,
}

fn encryption(conninfo: &Conninfo) -> Encryption {
    let on_network = |host: &Host| host.transport() == Transport::Tcp;
    match conninfo.tls.mode {
        _ if !conninfo.hosts.iter().any(on_network) => Encryption::Disable,
        SslMode::Disable => Encryption::Disable,
        SslMode::Allow | SslMode::Prefer => Encryption::Prefer,
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Encryption::Require,
    }
}
