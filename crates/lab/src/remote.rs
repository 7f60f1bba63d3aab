//! A lab on another host, and the line to it.
//!
//! `pgrig host` starts this program there in [`host::Role::Lab`]; [`serve()`] is what it does: it has a
//! lab of that host and does with it what it is asked. [`RemoteLab`] is this end. A question is one
//! line of JSON, and so is its answer. Objects of the lab (nodes, poolers, processes, links, copies of
//! data, limits) have numbers that this end gives them.
//!
//! Questions about different objects are answered independently of each other: a limit can be
//! lifted while a server recovers. Objects are made and dropped in the order of the lines.

mod failure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod line;
mod objects;
mod serve;
mod verb;

pub(crate) use failure::Failure;
pub(crate) use line::RemoteLab;
pub use serve::serve;
pub(crate) use verb::{
    ClientRun, Listing, MadeNode, MadeProgram, NodeVerb, Opening, Ran, RelayWish, Verb,
};
