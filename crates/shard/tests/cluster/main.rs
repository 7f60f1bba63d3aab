//! Clusters on real servers.

mod bad_input;
mod common;
mod crashes;
mod deploy;
mod moving;
mod reference;
mod secrets;
mod stuck;
mod undo;
