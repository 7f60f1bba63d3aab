//! The state machines against real servers and real clients.

mod channel_binding;
mod conninfo;
mod exchanges;
mod logins;
mod pgbench;
mod server;
mod trace;

// The reader of a message's body is the crate's own affair.
#[allow(dead_code)]
#[path = "../../src/cursor.rs"]
mod cursor;

use wire::ProtocolError;
