//! Where a connection goes: names resolved before the load begins.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    os::fd::OwnedFd,
    sync::Arc,
    time::Duration,
};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};

use wire::conninfo::{Host, Keepalives};

use crate::error::LoadError;

/// One address of one host.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    address: Address,
    host: Arc<Host>,
    keepalives: Keepalives,
}

#[derive(Clone, Debug)]
enum Address {
    Unix(SocketAddrUnix),
    Tcp(SocketAddr),
}

/// What became of an attempt to open a socket.
pub(crate) enum Opening {
    /// The peer has accepted or will.
    Open(OwnedFd),
    /// A Unix socket's backlog is full: the same again in a moment.
    BacklogFull,
}

impl Endpoint {
    /// Every address of `host`: names are looked up here, once, before the load begins.
    pub(crate) fn resolve(host: &Host, keepalives: Keepalives) -> Result<Vec<Self>, LoadError> {
        let addresses = match host.socket_path() {
            Some(path) => vec![unix_address(&path)?],
            None => tcp_addresses(host.network_name().unwrap_or_default(), host.port)?,
        };
        let host = Arc::new(host.clone());
        let endpoint = |address| Endpoint { address, host: Arc::clone(&host), keepalives };
        Ok(addresses.into_iter().map(endpoint).collect())
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// How libpq begins a message about a connection that failed.
    pub(crate) fn connection_failed(&self) -> String {
        let resolved = match self.address {
            Address::Unix(_) => None,
            Address::Tcp(address) => Some(address.ip()),
        };
        self.host.connection_failed(resolved)
    }

    /// Begins to connect, without waiting.
    pub(crate) fn open(&self) -> rustix::io::Result<Opening> {
        let family = match &self.address {
            Address::Unix(_) => AddressFamily::UNIX,
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        let connected = match &self.address {
            Address::Unix(address) => connect(&fd, address),
            Address::Tcp(address) => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                self.keep_alive(&fd)?;
                connect(&fd, address)
            }
        };
        match connected {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(Opening::Open(fd)),
            Err(rustix::io::Errno::AGAIN) => Ok(Opening::BacklogFull),
            Err(error) => Err(error),
        }
    }

    fn keep_alive(&self, fd: &OwnedFd) -> rustix::io::Result<()> {
        let Keepalives { enabled, idle_s, interval_s, count, user_timeout_ms } = self.keepalives;
        sockopt::set_socket_keepalive(fd, enabled)?;
        if let Some(idle_s) = idle_s.filter(|_| enabled) {
            sockopt::set_tcp_keepidle(fd, Duration::from_secs(idle_s.into()))?;
        }
        if let Some(interval_s) = interval_s.filter(|_| enabled) {
            sockopt::set_tcp_keepintvl(fd, Duration::from_secs(interval_s.into()))?;
        }
        if let Some(count) = count.filter(|_| enabled) {
            sockopt::set_tcp_keepcnt(fd, count)?;
        }
        if let Some(timeout_ms) = user_timeout_ms {
            sockopt::set_tcp_user_timeout(fd, timeout_ms)?;
        }
        Ok(())
    }
}

fn unix_address(path: &str) -> Result<Address, LoadError> {
    // A leading @ is libpq's way of naming the abstract namespace.
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None => SocketAddrUnix::new(path),
    };
    address
        .map(Address::Unix)
        .map_err(|error| LoadError::Resolve { host: path.to_owned(), why: error.to_string() })
}

fn tcp_addresses(name: &str, port: u16) -> Result<Vec<Address>, LoadError> {
    let failed = |why: String| LoadError::Resolve { host: name.to_owned(), why };
    let found: Vec<_> = (name, port)
        .to_socket_addrs()
        .map_err(|error| failed(error.to_string()))?
        .map(Address::Tcp)
        .collect();
    if found.is_empty() {
        return Err(failed("the name has no address".to_owned()));
    }
    Ok(found)
}
