//! SQLSTATE: the five characters by which errors are counted.

use std::fmt;

/// A SQLSTATE, such as `40001`. Five bytes, copied freely.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// Stands for an error that carried no SQLSTATE.
    pub const UNKNOWN: Self = Self(*b"?????");
    /// The client asked for something that two transactions could not both have.
    pub const SERIALIZATION_FAILURE: Self = Self(*b"40001");
    /// The server broke a cycle of waits by failing this transaction.
    pub const DEADLOCK_DETECTED: Self = Self(*b"40P01");
    /// An earlier statement of this transaction failed.
    pub const IN_FAILED_SQL_TRANSACTION: Self = Self(*b"25P02");
    /// The password was wrong.
    pub const INVALID_PASSWORD: Self = Self(*b"28P01");
    /// The role does not exist or may not log in, or no pg_hba.conf entry fits.
    pub const INVALID_AUTHORIZATION: Self = Self(*b"28000");
    /// The database does not exist.
    pub const INVALID_CATALOG_NAME: Self = Self(*b"3D000");
    /// A message that has no place there; of a pooler, whatever it refuses.
    pub const PROTOCOL_VIOLATION: Self = Self(*b"08P01");
    /// The server's connection slots are all taken.
    pub const TOO_MANY_CONNECTIONS: Self = Self(*b"53300");
    /// A name that does not exist, such as a setting's.
    pub const UNDEFINED_OBJECT: Self = Self(*b"42704");
    /// The statement was cancelled, by a user or by a timeout.
    pub const QUERY_CANCELED: Self = Self(*b"57014");
    /// The server or an administrator ended this session.
    pub const ADMIN_SHUTDOWN: Self = Self(*b"57P01");
    /// Another backend crashed, and the server ends all sessions.
    pub const CRASH_SHUTDOWN: Self = Self(*b"57P02");
    /// The server is starting up, shutting down or in recovery.
    pub const CANNOT_CONNECT_NOW: Self = Self(*b"57P03");

    /// The SQLSTATE in `bytes`; [`SqlState::UNKNOWN`] unless they are five letters or digits.
    pub const fn from_bytes(bytes: &[u8]) -> Self {
        let Some((code, [])) = bytes.split_first_chunk::<5>() else {
            return Self::UNKNOWN;
        };
        let mut at = 0;
        while at < code.len() {
            if !code[at].is_ascii_alphanumeric() {
                return Self::UNKNOWN;
            }
            at += 1;
        }
        Self(*code)
    }

    /// The five characters.
    pub fn as_str(&self) -> &str {
        // Only ASCII gets in, so this cannot fail.
        std::str::from_utf8(&self.0).unwrap_or("?????")
    }

    /// The first two characters: the class, such as `40` (transaction rollback).
    pub fn class(&self) -> &str {
        &self.as_str()[..2]
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlState({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_characters_or_unknown() {
        let check = |input: &[u8], expected: &str| {
            assert_eq!(SqlState::from_bytes(input).to_string(), expected);
        };
        check(b"40P01", "40P01");
        check(b"", "?????");
        check(b"4000", "?????");
        check(b"400011", "?????");
        check(b"\xff\xff\xff\xff\xff", "?????");
        assert_eq!(SqlState::DEADLOCK_DETECTED.class(), "40");
    }
}
