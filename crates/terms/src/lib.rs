//! Terms that a study's text, the load and the lab share, each with one type; numbers and text of
//! strangers as people read them.
//!
//! Reading order: `load` has the terms of clients, `server` those of servers, poolers and links; `number`
//! and `figure` write numbers, `visible` text without control characters, `foreign` text of strangers in each format.
//!
//! Limits: nothing is parsed and nothing is done here.

mod figure;
pub mod foreign;
mod load;
mod number;
mod retry;
mod server;
mod settings;
mod visible;

pub use figure::{figure, figure_with_interval, percent};
pub use load::{OnLoss, Pace, WarmUp};
pub use number::{counted, duration, grouped, scaled, size};
pub use retry::{GiveUp, RetryPause, RetryPolicy};
pub use server::{
    DataPart, Direction, DiskFault, DiskRequest, EndSignal, FailingRequests, FileSystem, PoolMode,
    RequestKind, StopMode, SwallowedFlushes,
};
pub use settings::Settings;
pub use visible::{escaped, visible, visible_in_place};
