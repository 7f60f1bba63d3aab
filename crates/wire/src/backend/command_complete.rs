//! CommandComplete: a statement succeeded, and how many rows it touched.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// The command tag of a statement that succeeded, such as `UPDATE 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandComplete<'a> {
    /// The tag's characters, without the closing NUL.
    pub tag: &'a [u8],
}

impl<'a> CommandComplete<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        Ok(Self { tag: body.text()? })
    }

    /// Number of rows that the statement returned or changed, if the tag says so.
    pub fn rows(&self) -> Option<u64> {
        let space = self.tag.iter().rposition(|byte| *byte == b' ')?;
        let digits = &self.tag[space + 1..];
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}
