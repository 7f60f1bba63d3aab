//! Two servers, compared: rows, sequences, and what their catalogs say of tables, columns, indexes, constraints,
//! triggers, owners and grants.
//!
//! Reading order: `session` begins a snapshot on a server, `table` lists its tables, `pair` compares two servers,
//! `rows` their rows and `objects` their catalogs.
//!
//! Limits: each server is read by one session in one read-only transaction. Nothing but SELECT is sent, whose lock is
//! ACCESS SHARE. Settings are those of the transaction, so that a pooler's server keeps none of them.

mod error;
mod objects;
mod pair;
mod rows;
mod session;
mod table;

pub use error::Error;
pub use objects::ObjectComparison;
pub use pair::{PairMember, ServerPair};
pub use rows::{ROWS_SORTED_MAX, TableComparison};
pub use session::{ComparedServer, LOCK_WAIT_S, ServerDescription};
pub use table::{ComparedTable, TableFilter, TableList};
