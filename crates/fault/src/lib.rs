//! Breakable parts that a topology is built from.
//!
//! [`disk`] is a disk whose power can be cut, [`link`] a way between two servers that can be slow,
//! and be cut.

pub mod disk;
pub mod link;
