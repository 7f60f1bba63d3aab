//! One room that measures: servers that stand are loaded and watched, and what they have shown is returned.
//!
//! `loading` is the act that trials, comparisons and benchmarks have in common: one load, its observers, the samplers of
//! its servers. `steadiness` and `crashes` judge what was seen; `watchdog` ends what hangs. `pair` loads two sides in turn
//! and compares them.
//!
//! Limits: nothing here builds a server, prints, or writes a record.

mod crashes;
mod loading;
mod pair;
mod steadiness;
mod tail;
mod watchdog;

pub use crashes::{ExplainedEnds, NodeDeath, UnaskedCrashes};
pub use loading::{LoadMeasurement, LoadMessages, LoadObserver, PreparedLoad};
pub use pair::*;
pub use steadiness::{Steadiness, judge_steadiness};
pub use tail::{SampledServer, SampledTurns, ServerTail};
pub use watchdog::patiently;
