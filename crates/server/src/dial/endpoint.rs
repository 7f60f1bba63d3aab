//! One address of one host, and how a socket to it is opened.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    os::fd::OwnedFd,
    sync::Arc,
    time::Duration,
};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};

use wire::conninfo::{ConninfoHost, Keepalives};

use super::socket::without_errno;

/// One address of one host.
#[derive(Clone, Debug)]
pub struct ServerEndpoint {
    address: Address,
    host: Arc<ConninfoHost>,
    keepalives: Keepalives,
}

#[derive(Clone, Debug)]
enum Address {
    Unix(SocketAddrUnix),
    Tcp(SocketAddr),
    /// The name has no address; the reason in libpq's words.
    Unresolved(String),
}

/// Result of an attempt to open a socket.
pub enum SocketOpening {
    /// The peer has accepted or will.
    Open(OwnedFd),
    /// A Unix socket's backlog is full: the same again in a moment.
    BacklogFull,
    /// The host's name has no address; the reason in libpq's words.
    Unresolved(String),
}

impl ServerEndpoint {
    /// Every address of `host`, whose name is looked up here. A name without an address is one
    /// endpoint that cannot be opened.
    pub fn resolve(host: &ConninfoHost, keepalives: Keepalives) -> Vec<Self> {
        let addresses = match host.network_name() {
            Some(name) => tcp_addresses(name, host.port),
            None => {
                let path = host.socket_path().expect("a host without a network name has a socket");
                vec![unix_address(&path)]
            }
        };
        let host = Arc::new(host.clone());
        let endpoint = |address| ServerEndpoint { address, host: Arc::clone(&host), keepalives };
        addresses.into_iter().map(endpoint).collect()
    }

    /// Why there is no address, in libpq's words.
    pub fn unresolved(&self) -> Option<&str> {
        match &self.address {
            Address::Unresolved(why) => Some(why),
            Address::Unix(_) | Address::Tcp(_) => None,
        }
    }

    /// True for a Unix socket.
    pub fn is_unix(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }

    /// The host that it belongs to.
    pub fn host(&self) -> &ConninfoHost {
        &self.host
    }

    /// Beginning of libpq's message about a connection that failed.
    pub fn connection_failed(&self) -> String {
        let resolved = match self.address {
            Address::Unix(_) | Address::Unresolved(_) => None,
            Address::Tcp(address) => Some(address.ip()),
        };
        self.host.connection_failed(resolved)
    }

    /// Begins to connect, without waiting.
    pub fn open(&self) -> rustix::io::Result<SocketOpening> {
        let family = match &self.address {
            Address::Unresolved(why) => return Ok(SocketOpening::Unresolved(why.clone())),
            Address::Unix(_) => AddressFamily::UNIX,
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        let connected = match &self.address {
            Address::Unresolved(_) => Err(rustix::io::Errno::DESTADDRREQ),
            Address::Unix(address) => connect(&fd, address),
            Address::Tcp(address) => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                self.keep_alive(&fd)?;
                connect(&fd, address)
            }
        };
        match connected {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(SocketOpening::Open(fd)),
            Err(rustix::io::Errno::AGAIN) => Ok(SocketOpening::BacklogFull),
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

fn unix_address(path: &str) -> Address {
    // A leading @ is libpq's way of naming the abstract namespace.
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None => SocketAddrUnix::new(path),
    };
    match address {
        Ok(address) => Address::Unix(address),
        Err(error) => Address::Unresolved(format!("Unix-domain socket path \"{path}\": {error}")),
    }
}

fn tcp_addresses(name: &str, port: u16) -> Vec<Address> {
    let failed = |why: &str| {
        let why = without_errno(why);
        // The standard library wraps the resolver's own words.
        let why = why.strip_prefix("failed to lookup address information: ").unwrap_or(why);
        let text = format!("could not translate host name \"{name}\" to address: {why}");
        vec![Address::Unresolved(text)]
    };
    match (name, port).to_socket_addrs() {
        Ok(found) => {
            let found: Vec<_> = found.map(Address::Tcp).collect();
            if found.is_empty() { failed("the name has no address") } else { found }
        }
        Err(error) => failed(&error.to_string()),
    }
}
