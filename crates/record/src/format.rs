//! The version of the format of records.

/// The version of the record's format that this pgrig writes.
///
/// A change of what a file of a record contains increases it. A record of another format is refused: no
/// format was released yet.
pub const FORMAT: u32 = 5;
