//! ParameterStatus: a setting that the server reports of its own accord.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// A reported setting and its value now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterStatus<'a> {
    /// The setting, such as `server_version`.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> ParameterStatus<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        Ok(Self { name: body.text()?, value: body.text()? })
    }
}
