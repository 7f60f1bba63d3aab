//! Terms that a study's text, the load and the lab share: each has one type.
//!
//! Reading order: `load` has the terms of clients, `server` those of servers, poolers and links.
//!
//! Limits: nothing is parsed and nothing is done here.

mod load;
mod server;

pub use load::{OnLoss, Pace, WarmUp};
pub use server::{
    Direction, DiskFault, DiskRequest, EndSignal, FileSystem, PoolMode, StopMode, Swallowed,
};
