//! The names of an outside server, and of what the rig has there.

/// Name of an outside server in messages.
pub const TARGET: &str = "the target";

/// The schema that the rig writes in on an outside server.
pub const TARGET_SCHEMA: &str = "pgrig";
