//! The names of an outside server, and of what the rig has there.

/// What an outside server is called in messages.
pub const TARGET: &str = "the target";

/// The schema that the rig writes in on an outside server.
pub const TARGET_SCHEMA: &str = "pgrig";
