//! Breakable parts that a topology is built from.
//!
//! [`disk`] is a disk whose power can be cut.

pub mod disk;
