//! Addresses at which a link's processes listen and connect: a Unix socket or a TCP port.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::Mode;

/// A Unix socket or a TCP address. As text, `unix:/path` or `tcp:127.0.0.1:5432`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkAddress {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl LinkAddress {
    /// Listens there; every process that can reach the socket's directory may connect.
    pub(super) fn listen(&self) -> io::Result<Listener> {
        self.listen_with(Mode::empty())
    }

    /// Listens there for processes of the same user, where it is a Unix socket.
    pub(super) fn listen_alone(&self) -> io::Result<Listener> {
        self.listen_with(Mode::RWXG | Mode::RWXO)
    }

    fn listen_with(&self, mask: Mode) -> io::Result<Listener> {
        match self {
            Self::Unix(path) => {
                match std::fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                // A change of its mode could hit what somebody else has put in its place.
                let before = rustix::process::umask(mask);
                let listener = UnixListener::bind(path);
                rustix::process::umask(before);
                listener.map(Listener::Unix)
            }
            Self::Tcp(address) => TcpListener::bind(address).map(Listener::Tcp),
        }
    }

    /// Connects, with `timeout` where the way may lose packets.
    pub(super) fn connect(&self, timeout: Duration) -> io::Result<Stream> {
        match self {
            Self::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Self::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, timeout)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl FromStr for LinkAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => {
                address.parse().map(Self::Tcp).map_err(|error| format!("{text}: {error}"))
            }
            _ => Err(format!("{text} is neither unix:PATH nor tcp:ADDRESS:PORT")),
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(listener) => listener.set_nonblocking(true),
            Self::Tcp(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A connected socket.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    /// Closes it so that the other side is told of a reset: over TCP always, over a Unix socket
    /// only if it had sent something that was not read.
    pub(super) fn reset(self) {
        if let Self::Tcp(stream) = &self {
            // A socket that is closed already has nothing to reset.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }

    pub(super) fn into_fd(self) -> OwnedFd {
        match self {
            Self::Unix(stream) => stream.into(),
            Self::Tcp(stream) => stream.into(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["unix:/tmp/a:b", "tcp:127.0.0.1:5432", "tcp:[::1]:7"] {
            assert_eq!(text.parse::<LinkAddress>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "tcp:here:1", "/tmp/x"] {
            assert!(text.parse::<LinkAddress>().is_err(), "{text}");
        }
    }
}
