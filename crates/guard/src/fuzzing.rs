//! The answers of a server, for fuzz targets.

use crate::row::{Facts, Observation};

/// Reads a text as each answer that the guard asks a server for.
pub fn answers(text: &str) {
    for outcome in [Facts::read(text).err(), Observation::read(text).err()] {
        assert!(outcome.is_none_or(|why| !why.is_empty()));
    }
}
