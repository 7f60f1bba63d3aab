//! A user's data: reading a file of data, loading it into a server, and keeping built data; and a user's settings, read
//! from files of production ([`read_configuration`]). A [`BaseBackup`] is copied and never opened in place.
//!
//! [`ImportSource::look`] reads a file before anything is built, [`ImportSource::fits`] compares it with
//! an installation, and [`ImportSource::load`] has psql or pg_restore of that installation load it. A
//! [`BuildCache`] keeps the data directory that came out of it, under a [`BuildKey`] of everything that it was
//! made from.
//!
//! Limits: it loads into servers of this machine's lab. It reads no study.

mod base_backup;
mod cache;
mod configuration;
mod error;
mod in_database;
mod key;
mod list;
mod others;
mod program;
mod source;

pub use base_backup::BaseBackup;
pub use cache::{BuildCache, RemovedData};
pub use configuration::read_configuration;
pub use error::Error;
pub use key::BuildKey;
pub use source::{ImportSource, ScriptVariables};
