//! One server to try: where it is, and the password for it.

use std::fmt;
use std::net::IpAddr;

use super::ConninfoError;
use crate::Password;
use crate::tls::ByteTransport;

/// The longest path that a Unix socket can have on Linux, in bytes.
const SOCKET_PATH_LIMIT: usize = 107;

/// One server to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConninfoHost {
    /// The address.
    pub address: HostAddress,
    /// The TCP port, or the number in the socket's name.
    pub port: u16,
    /// The password for it.
    pub password: Option<Password>,
    /// Source of that password.
    pub password_source: PasswordSource,
}

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostAddress {
    /// A directory with a Unix socket in it; with a leading `@`, one in the abstract namespace.
    Unix {
        /// The directory.
        directory: String,
    },
    /// A host on the network.
    Tcp {
        /// The name, to look up and to check the certificate against; empty if only an address is
        /// known.
        host: String,
        /// The address, which makes looking up needless.
        hostaddr: Option<String>,
    },
}

/// Source of a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PasswordSource {
    /// From the conninfo, the environment, a service, or nowhere.
    #[default]
    Given,
    /// From the password file, which is what to look at when it is wrong.
    PassFile,
}

impl ConninfoHost {
    /// Transport that carries the bytes.
    pub fn transport(&self) -> ByteTransport {
        match self.address {
            HostAddress::Unix { .. } => ByteTransport::Unix,
            HostAddress::Tcp { .. } => ByteTransport::Tcp,
        }
    }

    /// The path of the Unix socket; a leading `@` stands for the NUL of the abstract namespace.
    pub fn socket_path(&self) -> Option<String> {
        match &self.address {
            HostAddress::Unix { directory } => Some(format!("{directory}/.s.PGSQL.{}", self.port)),
            HostAddress::Tcp { .. } => None,
        }
    }

    /// Name to resolve, or to parse as an address: `hostaddr` if there is one, else the name.
    pub fn network_name(&self) -> Option<&str> {
        match &self.address {
            HostAddress::Unix { .. } => None,
            HostAddress::Tcp { host, hostaddr } => Some(hostaddr.as_deref().unwrap_or(host)),
        }
    }

    /// The name that the server's certificate must show under `verify-full`; none where only an address
    /// is known.
    pub fn certificate_name(&self) -> Option<&str> {
        match &self.address {
            HostAddress::Tcp { host, .. } => Some(&**host).filter(|host| !host.is_empty()),
            HostAddress::Unix { .. } => None,
        }
    }

    /// `connection to server at "db" (10.0.0.1), port 5432 failed`, libpq's way to begin an error.
    pub fn connection_failed(&self, resolved: Option<IpAddr>) -> String {
        let name = match &self.address {
            // An address that was given needs no explanation.
            HostAddress::Tcp { host, hostaddr: None } => host,
            _ => return format!("connection to {self} failed"),
        };
        match resolved.map(|address| address.to_string()).filter(|address| address != name) {
            Some(address) => {
                let port = self.port;
                format!("connection to server at \"{name}\" ({address}), port {port} failed")
            }
            None => format!("connection to {self} failed"),
        }
    }

    /// libpq's question after a connection that could not be made.
    pub fn unreachable_hint(&self) -> &'static str {
        match self.address {
            HostAddress::Unix { .. } => {
                "Is the server running locally and accepting connections on that socket?"
            }
            HostAddress::Tcp { .. } => {
                "Is the server running on that host and accepting TCP/IP connections?"
            }
        }
    }

    /// The name by which the password file knows it.
    pub(super) fn pass_file_name<'a>(&'a self, socket_directory: &str) -> &'a str {
        match &self.address {
            HostAddress::Unix { directory } if directory == socket_directory => "localhost",
            HostAddress::Unix { directory } => directory,
            HostAddress::Tcp { host, hostaddr } if host.is_empty() => {
                hostaddr.as_deref().unwrap_or("localhost")
            }
            HostAddress::Tcp { host, .. } => host,
        }
    }

    pub(super) fn check_path(&self) -> Result<(), ConninfoError> {
        match self.socket_path() {
            Some(path) if path.len() > SOCKET_PATH_LIMIT => {
                Err(ConninfoError::SocketPathTooLong { path })
            }
            _ => Ok(()),
        }
    }
}

/// `server at "db", port 5432` or `server on socket "/tmp/.s.PGSQL.5432"`, as libpq says it.
impl fmt::Display for ConninfoHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network_name() {
            None => {
                let path = self.socket_path().expect("a host without a network name has a socket");
                write!(f, "server on socket \"{path}\"")
            }
            Some(name) => {
                write!(f, "server at \"{name}\", port {}", self.port)
            }
        }
    }
}
