//! Histograms, steady state, intervals, comparison.
//!
//! Everything here is a function of its arguments: no clock, no thread, no file, no hidden
//! randomness (what draws numbers takes a seed). Nothing here panics on empty, constant, NaN or
//! infinite input; where no answer exists, the answer is `None` or an error that says why.
//!
//! Reading order: what one trial yields ([`LatencyHistogram`], [`DurationSums`], [`hdr_log`], [`steady`]); what
//! several rounds say ([`sample`], [`ConfidenceInterval`], [`centre`] and [`ratio`], which choose among the
//! modules that make one; [`serial`] asks whether the rounds may be taken for independent); what
//! that proves ([`Expectation`], [`equivalence`], [`holm()`], [`discoveries`], [`resolution`], [`failure_rate`], [`failed_share`], [`rarity`]). [`ThresholdDistribution`]
//! says which load to try next, [`isotonic()`] how latency rises with load, [`is_rate_missed`] if clients kept
//! up with one.

mod latency;
mod moments;

pub mod hdr_log;

pub mod steady;

mod change;
mod mser;
mod standstill;

pub mod sample;

mod interval;

pub mod best;
pub mod censored;
pub mod centre;
mod planned;
pub mod rarity;
pub mod ratio;
pub mod sequence;
pub mod serial;
pub mod sign_test;
pub mod signed_rank;
pub mod student;

mod prng;
mod slope;

mod isotonic;
mod rate;
mod threshold;

mod expectation;

pub mod equivalence;
pub mod failed_share;
pub mod failure_rate;
pub mod resolution;
pub mod scalability;

mod evalues;
mod holm;

mod counters;
mod hdr_payload;

pub use evalues::discoveries;
pub use expectation::{Expectation, ExpectationVerdict, UndecidedReason};
pub use hdr_payload::DecodeError;
pub use holm::{FAMILY_ERROR, holm};
pub use interval::{ConfidenceInterval, HEADLINE_ROUNDS_MIN, IntervalMethod, NoInterval};
pub use isotonic::isotonic;
pub use latency::LatencyHistogram;
pub use moments::DurationSums;
pub use prng::{Prng, mix};
pub use rate::is_rate_missed;
pub use slope::TimeSlope;
pub use steady::{
    DetectableFall, IntervalSummary, SteadyState, UnsteadyReason, WindowQuantity, WindowShift,
    detectable, steady_state,
};
pub use threshold::ThresholdDistribution;
