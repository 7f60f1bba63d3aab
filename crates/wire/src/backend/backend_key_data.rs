//! BackendKeyData: what a cancel request needs.

use std::fmt;

use crate::ProtocolError;
use crate::cursor::Cursor;

/// The process id and cancel key of a session, as they arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendKeyData<'a> {
    /// The server process that serves this session.
    pub pid: i32,
    /// The secret that a cancel request must show: 4 bytes in protocol 3.0, up to 256 in 3.2.
    pub key: &'a [u8],
}

impl<'a> BackendKeyData<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let pid = body.i32()?;
        let key = body.bytes(body.rest().len())?;
        if !(4..=256).contains(&key.len()) {
            return Err(body.malformed("a cancel key has 4 to 256 bytes"));
        }
        Ok(Self { pid, key })
    }

    /// An owned copy, to be kept for as long as the session lives.
    pub fn to_owned(&self) -> BackendKey {
        BackendKey { pid: self.pid, key: CancelKey::new(self.key) }
    }
}

/// The process id and cancel key of a session: all that an idle session must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendKey {
    /// The server process that serves this session.
    pub pid: i32,
    /// The secret that a cancel request must show.
    pub key: CancelKey,
}

/// A cancel key. Those of protocol 3.0 stay inline, so that an idle session owns no heap.
#[derive(Clone, PartialEq, Eq)]
pub struct CancelKey(Bytes);

#[derive(Clone, PartialEq, Eq)]
enum Bytes {
    Four([u8; 4]),
    More(Box<[u8]>),
}

impl CancelKey {
    /// The key with these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(match bytes.try_into() {
            Ok(four) => Bytes::Four(four),
            Err(_) => Bytes::More(bytes.into()),
        })
    }

    /// The bytes to send in a cancel request.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Four(bytes) => bytes,
            Bytes::More(bytes) => bytes,
        }
    }
}

impl fmt::Debug for CancelKey {
    // A secret has no place in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelKey({} bytes)", self.as_bytes().len())
    }
}
