//! A PostgreSQL server as its clients see it: from a connection string, the environment and the
//! user's files to a connection; TLS; what a server's errors say; quoting; least versions; and
//! `synchronous_standby_names`.
//!
//! Starts no server and measures nothing. The load engine's clients and every other session begin by
//! the same code ([`dial`]).

mod client;
mod client_certificate;
mod connect;
mod control;
pub mod dial;
mod environment;
pub mod least_version;
mod limits;
pub mod message;
pub mod quote;
mod stream;
mod sync_standbys;
pub mod tls;

pub use client::{Client, CopyIn, Transaction, connect, connect_async};
pub use client_certificate::CertificateRequestWitness;
pub use connect::{Canceller, ConnectError};
pub use control::{LoadControl, StopUrgency};
pub use environment::{keyword_form, os_user, own_conninfo, resolve, resolve_conninfo};
pub use limits::{LimitReached, Limits};
pub use stream::SessionStream;
pub use sync_standbys::{NotASetting, StandbyDemand, SyncMethod, SyncStandbysSetting};
pub use tls::TlsError;
pub use wire::Password;
pub use wire::conninfo::{
    Conninfo, ConninfoError, PasswordSource, SplitConninfo, hide_passwords, shown_word,
};
