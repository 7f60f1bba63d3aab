//! The lab on a real PostgreSQL.

mod common;
mod disk;
mod isolation;
mod node;
mod pooler;
mod standby;
mod target;
