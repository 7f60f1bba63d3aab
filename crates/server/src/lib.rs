//! A PostgreSQL server as its clients see it: from a connection string, the environment and the
//! user's files to a connection; TLS; what a server's errors say; quoting; least versions; and
//! `synchronous_standby_names`.
//!
//! Starts no server and measures nothing. The load engine connects by itself and uses the TLS
//! settings of this crate.

mod address;
mod client_certificate;
mod environment;
pub mod least_version;
pub mod message;
pub mod quote;
mod sync_standbys;
pub mod tls;

pub use address::{Address, AddressError};
pub use client_certificate::Witness;
pub use environment::{keyword_form, os_user, resolve, resolve_conninfo};
pub use sync_standbys::{Demand, Method, NotASetting, Setting};
pub use tls::TlsError;
pub use wire::conninfo::Split;
