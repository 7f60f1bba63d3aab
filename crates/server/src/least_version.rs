//! The oldest major versions of PostgreSQL that parts of the rig work with.

/// Servers that the rig starts.
pub const LAB: u32 = 13;

/// Primaries that `pgrig guard` guards: those with `pg_stat_replication.reply_time` and
/// `pg_monitor`.
pub const GUARD: u32 = 10;

/// Nodes of a sharded cluster: subscriptions that skip what came from elsewhere are new in 15.
pub const SHARD: u32 = 15;
