//! Histograms, steady state, intervals, comparison.
//!
//! Everything here is a function of its arguments: no clock, no thread, no file, no hidden
//! randomness (what resamples takes a seed). Nothing here panics on empty, constant, NaN or
//! infinite input; where no answer exists, the answer is `None` or an error that says why.
//!
//! Reading order: what one trial yields ([`Latency`], [`Moments`], [`hdr_log`], [`steady`]); what
//! several rounds say ([`sample`], [`Interval`] and the modules that make one); what that proves
//! ([`Expectation`], [`equivalence`], [`holm()`], [`resolution`], [`failure_rate`]); how it grows
//! and is drawn ([`usl`], [`lttb()`]).

mod latency;
mod moments;

pub mod hdr_log;

pub mod steady;

mod mser;
mod theil_sen;

pub mod sample;

mod interval;

pub mod bootstrap;
pub mod ratio;
pub mod sign_test;
pub mod signed_rank;
pub mod student;

mod prng;
mod resample;

mod expectation;

pub mod equivalence;
pub mod failure_rate;
pub mod resolution;

mod holm;

pub mod usl;

mod least_squares;
mod lttb;

mod hdr_payload;

pub use expectation::{Doubt, Expectation, Verdict};
pub use hdr_payload::DecodeError;
pub use holm::holm;
pub use interval::{HEADLINE_ROUNDS_MIN, Interval, Method, NoInterval};
pub use latency::{CurvePoint, Latency};
pub use lttb::lttb;
pub use moments::Moments;
pub use prng::Prng;
pub use resample::{RESAMPLES, Resamples};
pub use steady::{SteadyState, Unsteady, steady_state};
pub use theil_sen::{Slope, theil_sen};
pub use usl::Usl;
