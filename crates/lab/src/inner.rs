//! The objects of a lab: the only place where something is started, signalled or written.
//!
//! [`Objects`] does what a [`crate::verb::Verb`] asks, for handles in this process and for those of a
//! rig on another machine.

mod flush;
mod initdb;
mod lab;
mod link;
mod network;
mod node;
mod objects;
mod packages;
mod pooler;
mod port;
mod powered;
mod process;
mod program;
mod shared;
mod station;
mod switch;
pub(crate) mod templates;
mod tool;

pub(crate) use lab::Lab;
pub(crate) use objects::Objects;
pub(crate) use shared::Shared;
