//! What users of the lab hold: nodes, poolers, processes and links that are on this machine or on a
//! host behind a launcher, with the same verbs.

pub(crate) mod copy;
pub(crate) mod lab;
pub(crate) mod limit;
pub(crate) mod link;
pub(crate) mod node;
pub(crate) mod pooler;
pub(crate) mod process;
mod standby;
