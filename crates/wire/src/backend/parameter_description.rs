//! ParameterDescription: which parameters a prepared statement takes.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// The parameter types of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterDescription<'a> {
    types: &'a [u8],
}

impl<'a> ParameterDescription<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let count = body.u16()?;
        Ok(Self { types: body.bytes(usize::from(count) * 4)? })
    }

    /// The OID of each parameter's type.
    pub fn type_oids(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.types
            .chunks_exact(4)
            .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
    }
}
