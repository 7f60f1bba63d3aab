//! The answers of a server, for fuzz targets.

use crate::files::Files;
use crate::row::{ConnectionFacts, ServerObservation};

/// Reads a text as each answer that the guard asks a server for.
pub fn answers(text: &str) {
    let look = ServerObservation::read("reading", text).map_err(|error| error.to_string());
    for outcome in [ConnectionFacts::read(text).err(), Files::read(text).err(), look.err()] {
        assert!(outcome.is_none_or(|why| !why.is_empty()));
    }
}
