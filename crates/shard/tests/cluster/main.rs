//! Clusters on real servers.

mod bad_input;
mod common;
mod crashes;
mod definitions;
mod deploy;
mod forgotten;
mod functions;
mod moving;
mod restored;
mod schedules;
mod secrets;
mod stuck;
