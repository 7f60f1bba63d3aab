//! CopyInResponse, CopyOutResponse, CopyBothResponse: COPY data is about to flow.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// The formats of COPY data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyResponse<'a> {
    /// The format of the whole: 0 is text, 1 is binary.
    pub format: u8,
    columns: &'a [u8],
}

impl<'a> CopyResponse<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let format = body.byte()?;
        let count = body.u16()?;
        Ok(Self { format, columns: body.bytes(usize::from(count) * 2)? })
    }

    /// The format code of each column.
    pub fn column_formats(&self) -> impl ExactSizeIterator<Item = u16> + use<'a> {
        self.columns.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]))
    }
}
