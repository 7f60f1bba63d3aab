//! Ports: numbers that stay free for a node until it listens, and between its restarts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::error::Error;
use crate::inner::shared::Shared;
use crate::listen::{Listen, RemoteAccess};

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
    pub(crate) fn take(
        shared: &Arc<Shared>,
        listen: Listen,
        remote: Option<&RemoteAccess>,
        name: &str,
    ) -> Result<Self, Error> {
        let loopback =
            matches!(listen, Listen::Loopback).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let remote = remote.map(|remote| remote.address).filter(|one| Some(*one) != loopback);
        let addresses: Vec<IpAddr> = loopback.into_iter().chain(remote).collect();
        let reserved = match addresses.is_empty() {
            true => None,
            false => Some(ReservedPort::take(&addresses).map_err(|source| {
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

/// A TCP port, the same on several addresses of this machine, that no other process gets while this
/// value lives.
///
/// It is held by sockets that are bound and do not listen. Linux lets a second socket listen
/// there if both say SO_REUSEADDR, as PostgreSQL's do, and gives such a port to no connection of
/// its own accord (socket(7), ip(7)).
#[derive(Debug)]
struct ReservedPort {
    number: u16,
    _holders: Vec<OwnedFd>,
}

impl ReservedPort {
    /// Takes one that is free on each of `addresses`.
    fn take(addresses: &[IpAddr]) -> io::Result<Self> {
        let mut last = Errno::ADDRINUSE;
        for _ in 0..ATTEMPTS_MAX {
            let (mut number, mut holders) = (0, Vec::new());
            let held = addresses.iter().try_for_each(|address| {
                let holder = hold(SocketAddr::new(*address, number))?;
                number = SocketAddr::try_from(net::getsockname(&holder)?)?.port();
                holders.push(holder);
                Ok::<(), Errno>(())
            });
            match held {
                Ok(()) => return Ok(Self { number, _holders: holders }),
                // The number that was free on the first address is taken on another one.
                Err(Errno::ADDRINUSE) => {}
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
        Err(last.into())
    }
}

fn hold(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let holder = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&holder, true)?;
    net::bind(&holder, &address)?;
    Ok(holder)
}

/// Numbers that are tried. One is rarely taken.
const ATTEMPTS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    /// A child that another test has just forked has the listener before, until it calls exec.
    fn listen(address: (IpAddr, u16)) -> TcpListener {
        let bound =
            crate::wait::wait_until(Duration::from_secs(5), || match TcpListener::bind(address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
                other => other.map(Some),
            });
        bound.unwrap().expect("the port can be listened on")
    }

    #[test]
    fn a_reserved_port_can_be_listened_on_again_and_again() {
        let addresses = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)].map(IpAddr::V4);
        let port = ReservedPort::take(&addresses).unwrap();
        for address in addresses.map(|address| (address, port.number)) {
            assert!(TcpStream::connect(address).is_err(), "the holder itself does not listen");
            for _ in 0..2 {
                let listener = listen(address);
                let client = TcpStream::connect(address).unwrap();
                let (server, _) = listener.accept().unwrap();
                drop((server, client));
            }
        }
        assert_ne!(ReservedPort::take(&addresses).unwrap().number, port.number);
    }
}
