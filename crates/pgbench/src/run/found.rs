//! The result of a search or a sweep.

use measure::LoadMeasurement;

use crate::options::RunOptions;
use crate::search::capacity::CapacityResult;
use crate::search::curve::Curve;

/// The result of a search.
pub(super) struct SearchResult {
    /// The confirming run whose load is nearest to the answer, or the last one that was tried.
    pub(super) options: RunOptions,
    pub(super) measured: LoadMeasurement,
    pub(super) curve: Curve,
    /// In words, for the user; and whether it is an answer.
    pub(super) words: String,
    pub(super) is_answer: bool,
    /// Lines beside it, each with its name.
    pub(super) details: Vec<(String, String)>,
    /// Of `--capacity`.
    pub(super) capacity: Option<CapacityResult>,
}
