//! The lab on a real PostgreSQL.

mod common;
mod disk;
mod guest;
mod isolation;
mod links;
mod node;
mod pooler;
mod standby;
mod target;
