//! Histograms, steady state, intervals, comparison.
//!
//! Everything here is a function of its arguments: no clock, no thread, no file, no hidden
//! randomness (what resamples takes a seed). Nothing here panics on empty, constant, NaN or
//! infinite input; where no answer exists, the answer is `None` or an error that says why.
//!
//! Reading order: what one trial yields ([`Latency`], [`Moments`]).

mod latency;
mod moments;

mod hdr_payload;

pub use hdr_payload::DecodeError;
pub use latency::{CurvePoint, Latency};
pub use moments::Moments;
