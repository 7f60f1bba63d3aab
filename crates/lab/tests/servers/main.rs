//! The lab on a real PostgreSQL.

mod common;
mod isolation;
mod node;
mod target;
