//! Ports: numbers that stay free for a node until it listens, and between its restarts.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::error::Error;
use crate::listen::Listen;
use crate::shared::Shared;

/// The port of one server of a lab, given back when it is dropped. A server has one number for
/// both its Unix socket and TCP.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    shared: Arc<Shared>,
    _reserved: Option<ReservedPort>,
}

impl Port {
    /// Takes one for the server of that name.
    pub(crate) fn take(shared: &Arc<Shared>, listen: Listen, name: &str) -> Result<Self, Error> {
        let reserved = match listen {
            Listen::Unix => None,
            Listen::Loopback => Some(ReservedPort::take().map_err(|source| {
                let (doing, node) = ("finding a TCP port", name.to_owned());
                Error::Process { doing, node, source }
            })?),
        };
        // Unix sockets only need names that differ.
        let number = reserved.as_ref().map_or_else(|| shared.take_unix_port(), |tcp| tcp.number);
        Ok(Self { number, shared: Arc::clone(shared), _reserved: reserved })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.give_back_unix_port(self.number);
    }
}

/// A TCP port of the loopback address that no other process gets while this lives.
///
/// It is held by a socket that is bound and does not listen. Linux lets a second socket listen
/// there if both say SO_REUSEADDR, as PostgreSQL's do, and gives such a port to no connection of
/// its own accord (socket(7), ip(7)).
#[derive(Debug)]
struct ReservedPort {
    number: u16,
    _holder: OwnedFd,
}

impl ReservedPort {
    /// Takes one that is free.
    fn take() -> io::Result<Self> {
        let (family, kind, flags) = (AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC);
        let holder = net::socket_with(family, kind, flags, None)?;
        sockopt::set_socket_reuseaddr(&holder, true)?;
        net::bind(&holder, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddr::try_from(net::getsockname(&holder)?)?;
        Ok(Self { number: address.port(), _holder: holder })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_reserved_port_can_be_listened_on_again_and_again() {
        let port = ReservedPort::take().unwrap();
        let address = (Ipv4Addr::LOCALHOST, port.number);
        assert!(TcpStream::connect(address).is_err(), "the holder itself does not listen");
        for _ in 0..2 {
            let listener = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(address).unwrap();
            let (server, _) = listener.accept().unwrap();
            drop((server, client));
        }
        assert_ne!(ReservedPort::take().unwrap().number, port.number);
    }
}
