//! NegotiateProtocolVersion: the server speaks less than it was asked for.

use crate::cursor::Cursor;
use crate::{ProtocolError, ProtocolVersion};

/// The newest version that the server speaks, and the options it did not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiateProtocolVersion<'a> {
    /// The newest version of the requested major version that the server speaks.
    pub newest: ProtocolVersion,
    options: &'a [u8],
}

impl<'a> NegotiateProtocolVersion<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let newest = ProtocolVersion::from_word(body.u32()?);
        let count = body.u32()?;
        let options = body.rest();
        for _ in 0..count {
            body.text()?;
        }
        Ok(Self { newest, options })
    }

    /// The names of the protocol options (`_pq_.…`) that the server did not know.
    pub fn unknown_options(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let whole = self.options.strip_suffix(b"\0");
        whole.into_iter().flat_map(|names| names.split(|byte| *byte == 0))
    }
}
