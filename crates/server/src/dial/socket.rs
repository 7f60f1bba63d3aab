//! A connection's bytes: a non-blocking socket, with or without TLS on top.

use std::{
    io::{Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};
use rustls::ClientConnection;

/// A socket and what has not yet gone out through it.
pub struct BufferedSocket {
    fd: OwnedFd,
    connected: bool,
    tls: Option<Box<ClientConnection>>,
    unsent: Vec<u8>,
    is_in_ring: bool,
}

/// Result of a read.
pub enum ReadResult {
    /// So many bytes were appended; `more` when the socket may hold further ones.
    Bytes {
        /// True if the socket may hold further ones.
        more: bool,
    },
    /// Nothing there.
    Nothing,
    /// The peer has closed.
    Closed,
}

/// Progress of sending.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendProgress {
    /// It has.
    All,
    /// The rest goes out when the socket is writable again.
    Part,
}

/// Number of bytes that one read asks for. A select-only answer has 80 bytes; a larger result is
/// read in pieces.
const READ_BYTES: usize = 64 * 1024;

impl BufferedSocket {
    /// A socket that connects or has connected.
    pub fn new(fd: OwnedFd) -> Self {
        BufferedSocket { fd, connected: false, tls: None, unsent: Vec::new(), is_in_ring: false }
    }

    /// Speaks TLS from here on.
    pub fn encrypt(&mut self, tls: ClientConnection) {
        self.tls = Some(Box::new(tls));
    }

    /// TLS, once it was begun.
    pub fn tls(&self) -> Option<&ClientConnection> {
        self.tls.as_deref()
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// True if the connect has succeeded by now.
    pub fn is_connected(&mut self) -> bool {
        self.connected = self.connected || rustix::net::getpeername(&self.fd).is_ok();
        self.connected
    }

    /// The error that the connect has ended with, if it has failed; the system tells it once.
    pub fn connect_result(&self) -> Result<(), Errno> {
        rustix::net::sockopt::socket_error(&self.fd)?
    }

    /// Sends `bytes`, after whatever is still waiting. Takes them all: what the socket does not
    /// accept is kept.
    pub fn send(&mut self, bytes: &[u8]) -> Result<SendProgress, std::io::Error> {
        if self.tls.is_some() {
            return self.send_encrypted(bytes);
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return self.flush();
        }
        let sent = match send(&self.fd, bytes, SendFlags::NOSIGNAL) {
            Ok(n) => n,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if sent == bytes.len() {
            return Ok(SendProgress::All);
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(SendProgress::Part)
    }

    /// Notes that a ring receives from it from here on. The ring keeps the connection open by itself,
    /// so dropping the socket then ends the connection in words.
    pub fn give_to_ring(&mut self) {
        self.is_in_ring = true;
    }

    /// True if a ring receives from it.
    pub fn is_in_ring(&self) -> bool {
        self.is_in_ring
    }

    /// Keeps bytes that the socket did not take, to be sent when it is writable.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// True while something waits to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what is waiting.
    pub fn flush(&mut self) -> Result<SendProgress, std::io::Error> {
        while !self.unsent.is_empty() {
            match send(&self.fd, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(SendProgress::Part),
                Err(error) => return Err(error.into()),
            }
        }
        // An idle session keeps no buffer.
        self.unsent = Vec::new();
        Ok(SendProgress::All)
    }

    /// Appends what has arrived to `into`.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Result<ReadResult, std::io::Error> {
        if self.tls.is_some() {
            return self.receive_encrypted(into);
        }
        into.reserve(READ_BYTES);
        let space = into.capacity() - into.len();
        let received = loop {
            let spare = rustix::buffer::spare_capacity(into);
            match recv(&self.fd, spare, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        match received {
            Ok((0, _)) => Ok(ReadResult::Closed),
            // A stream socket that gives less than asked for is empty, so an edge-triggered
            // reader need not try again.
            Ok((n, _)) => Ok(ReadResult::Bytes { more: n == space }),
            Err(Errno::AGAIN) => Ok(ReadResult::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// True if TLS is still shaking hands.
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    fn send_encrypted(&mut self, bytes: &[u8]) -> Result<SendProgress, std::io::Error> {
        if let Some(tls) = &mut self.tls {
            let mut rest = bytes;
            loop {
                // TLS takes 64 KiB at a time.
                let taken = if rest.is_empty() { 0 } else { tls.writer().write(rest)? };
                rest = &rest[taken..];
                while tls.wants_write() {
                    tls.write_tls(&mut self.unsent)?;
                }
                if rest.is_empty() {
                    break;
                }
            }
        }
        self.flush()
    }

    fn receive_encrypted(&mut self, into: &mut Vec<u8>) -> Result<ReadResult, std::io::Error> {
        let before = into.len();
        let (mut closed, mut more) = (false, false);
        let mut raw = [0_u8; 16 * 1024];
        loop {
            let n = match recv(&self.fd, &mut raw[..], RecvFlags::empty()) {
                Ok((0, _)) => {
                    closed = true;
                    break;
                }
                Ok((n, _)) => n,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            self.decrypt(&raw[..n], into)?;
            // Where only TLS had something to say, the end of the stream may be there already,
            // and no further event would tell.
            if n < raw.len() && into.len() > before {
                break;
            }
            // A peer that sends without end is read in pieces.
            if into.len() - before >= READ_BYTES {
                more = true;
                break;
            }
        }
        // Handshake answers and alerts.
        self.send_encrypted(&[])?;
        if into.len() > before {
            Ok(ReadResult::Bytes { more })
        } else if closed {
            Ok(ReadResult::Closed)
        } else {
            Ok(ReadResult::Nothing)
        }
    }

    fn decrypt(&mut self, mut raw: &[u8], into: &mut Vec<u8>) -> Result<(), std::io::Error> {
        // Without TLS there is nothing to decrypt.
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while !raw.is_empty() {
            // After the peer's farewell TLS takes no more; what follows means nothing.
            if tls.read_tls(&mut raw)? == 0 {
                return Ok(());
            }
            let state = match tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The server's log should say why: an alert goes out if it can.
                    let _ = self.send_encrypted(&[]);
                    return Err(std::io::Error::other(error));
                }
            };
            let plain = state.plaintext_bytes_to_read();
            let start = into.len();
            into.resize(start + plain, 0);
            tls.reader().read_exact(&mut into[start..])?;
        }
        Ok(())
    }
}

impl Drop for BufferedSocket {
    fn drop(&mut self) {
        if self.is_in_ring {
            // One that the peer has closed is shut down already.
            let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
        }
    }
}

/// Text of an error of the operating system, without the "(os error 111)" that Rust adds.
pub fn without_errno(why: &str) -> &str {
    why.split(" (os error").next().unwrap_or(why)
}
