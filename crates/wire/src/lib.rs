//! The PostgreSQL protocol without sockets: frames, messages, start-up, authentication, conninfo.
//!
//! Nothing here reads or writes anything but memory. A caller that owns a socket does this:
//!
//! 1. [`conninfo`] turns what the user gave, the environment and the files that the caller has
//!    read into hosts to try, a user and a database.
//! 2. [`tls`] says whether to ask for encryption and what the one-byte answer means.
//! 3. [`startup`] takes the bytes that arrive, appends the bytes to send, and ends in a
//!    [`startup::SessionFacts`] or in one clear error.
//! 4. [`frontend`] appends messages to the caller's buffer, [`frame`] finds the answers in what
//!    arrived, and [`backend`] decodes those that matter, borrowing from the input.
//!
//! Limits: protocol 3.0 and 3.2; no GSSAPI, no SSPI, no replication. Every length is bounded
//! before anything is allocated for it, and no input panics.

pub mod auth;
pub mod backend;
pub mod conninfo;
pub mod frame;
pub mod frontend;
pub mod protocol_error;
pub mod protocol_version;
pub mod sql_state;
pub mod startup;
pub mod tag;
pub mod tls;

mod cursor;
mod excerpt;
mod password;

pub use backend::BackendMessage;
pub use excerpt::excerpt;
pub use frame::MessageFrame;
pub use password::Password;
pub use protocol_error::ProtocolError;
pub use protocol_version::ProtocolVersion;
pub use sql_state::SqlState;
