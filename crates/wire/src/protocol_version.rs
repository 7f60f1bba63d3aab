//! The version of the frontend/backend protocol.

use std::fmt;

/// A protocol version as it stands on the wire: major in the upper 16 bits, minor in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion(u32);

impl ProtocolVersion {
    /// Version that every supported server speaks; cancel keys have 4 bytes.
    pub const V3_0: Self = Self::new(3, 0);
    /// PostgreSQL 18 and later: cancel keys of 4 to 256 bytes. (3.1 was never used.)
    pub const V3_2: Self = Self::new(3, 2);

    /// A version from its two numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// The version from the word in a message.
    pub const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// The word to put in a message.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// The part before the point.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The part after the point.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}
