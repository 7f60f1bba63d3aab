//! ReadyForQuery: the server waits for the next query, and says where the session stands.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// Status of a session between queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionStatus {
    /// Outside a transaction block.
    Idle,
    /// In a transaction block.
    InTransaction,
    /// In a transaction block that failed; only ROLLBACK gets out.
    Failed,
}

impl TransactionStatus {
    pub(super) fn parse(body: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        let indicator = body.byte()?;
        Self::from_indicator(indicator)
            .ok_or_else(|| body.malformed("its transaction status is none of I, T and E"))
    }

    /// The status behind the one byte of a ReadyForQuery body.
    #[inline]
    pub fn from_indicator(indicator: u8) -> Option<Self> {
        match indicator {
            b'I' => Some(Self::Idle),
            b'T' => Some(Self::InTransaction),
            b'E' => Some(Self::Failed),
            _ => None,
        }
    }

    /// The byte that stands for it on the wire.
    pub fn indicator(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::InTransaction => b'T',
            Self::Failed => b'E',
        }
    }
}
