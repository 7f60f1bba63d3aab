//! The tail of the latency, and its causes: slow transactions, joined with samples of what their
//! backends did.
//!
//! A load keeps its slowest transactions ([`SlowestTransactions`]), each with its backend and its span. A sampler
//! notes again and again what every backend waits for ([`ActivitySamples`]). [`attribute`] joins the two: the
//! seconds that transactions above a quantile took, by cause and by wait event ([`SlowTransactions`]).
//!
//! No I/O and no clock: times are nanoseconds since the start of the run.

mod accounts;
mod activity;
mod attribute;
mod background;
mod cause;
mod event;
mod overlap;
mod report;
mod slowest;
mod strata;

pub use accounts::ProcessTimes;
pub use activity::{
    ActivityLook, ActivitySamples, BackendLook, BackgroundActivity, HeldLock, LockHolder,
    SamplingMethod,
};
pub use attribute::{TailSource, attribute};
pub use cause::DelayCause;
pub use event::event_key;
pub use report::{SlowTransactions, TailShare, WaitShare};
pub use slowest::{SlowTransaction, SlowestTransactions};

/// Beginning of the names of a load's threads, by which a sampler knows them.
pub const LOAD_THREAD: &str = "lane";
