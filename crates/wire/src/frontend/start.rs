//! The messages before a session exists: they have no type byte.

use super::EncodeError;
use super::message::Builder;
use crate::ProtocolVersion;

/// Asks for TLS; the server answers with one byte, see [`crate::tls`].
pub fn ssl_request(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
}

/// Begins a session with these parameters, `user` among them.
pub fn startup<'p>(
    out: &mut Vec<u8>,
    version: ProtocolVersion,
    parameters: impl IntoIterator<Item = (&'p str, &'p str)>,
) -> Result<(), EncodeError> {
    let mut message = Builder::begin_untagged(out, "StartupMessage");
    message.bytes(&version.word().to_be_bytes());
    for (name, value) in parameters {
        message.text("start-up parameter", name.as_bytes())?;
        message.text("start-up parameter", value.as_bytes())?;
    }
    message.bytes(&[0]);
    message.finish()
}

/// Asks the server to cancel what a session is doing. Sent on a connection of its own, which the
/// server closes without an answer. A key never exceeds the 256 bytes that the protocol allows.
pub fn cancel_request(out: &mut Vec<u8>, pid: i32, key: &[u8]) {
    let key = &key[..key.len().min(256)];
    out.extend_from_slice(&(12 + key.len() as u32).to_be_bytes());
    out.extend_from_slice(&[0x04, 0xd2, 0x16, 0x2e]);
    out.extend_from_slice(&pid.to_be_bytes());
    out.extend_from_slice(key);
}
