//! A lab on another host, and the line to it.
//!
//! `pgrig host` starts this program there in [`host::Role::Lab`]; [`serve()`] is what it does: it opens
//! a lab of that host and has [`crate::inner::Objects`] obey each verb that arrives, as a lab of this
//! process does. [`Remote`] is this end. A question is one line of JSON, and so is its answer. Objects
//! of the lab have numbers that this end gives them, and are made and dropped in the order of the
//! lines.

mod failure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod line;
mod message;
mod serve;

pub(crate) use line::Remote;
pub(crate) use message::Opening;
pub use serve::serve;
