//! The error of a search that cannot begin, or go on.

use std::path::PathBuf;

/// Why schedules cannot be searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SearchError {
    #[error("a search runs one trial again and again, and {} fit", .points.len())]
    SeveralPoints { points: Vec<String> },
    #[error(
        "{point} has no promise that a schedule could break: no ledger, no history, no invariant"
    )]
    NoPromise { point: String },
    #[error("nothing can be drawn for {point}: {why}")]
    NothingToDraw { point: String, why: String },
    #[error("{schedule} cannot be run: {why}")]
    Schedule { schedule: String, why: String },
    #[error("{} has other schedules than its seed and its study draw", .directory.display())]
    OtherSchedules { directory: PathBuf },
}

impl SearchError {
    /// Next step for the user.
    pub fn hint(&self) -> String {
        match self {
            SearchError::SeveralPoints { points } => {
                let shown: Vec<&str> = points.iter().take(SHOWN_MAX).map(String::as_str).collect();
                let more = if points.len() > shown.len() { ", …" } else { "" };
                let shown = shown.join(", ");
                format!("choose with --only, or with trial = \"…\" in [nemesis]: {shown}{more}")
            }
            SearchError::NoPromise { .. } => {
                "give a workload ledger = { insert = \"TABLE\" } and the scenario checks = [\"ledger\"], or history = true \
                 and checks = [{ history = \"serializable\" }], or write promises = [\"CONDITION\"] in [nemesis]"
                    .to_owned()
            }
            SearchError::NothingToDraw { .. } => {
                "lengthen the window, shorten length and settle in [nemesis], or name faults and victims that the \
                 topology has"
                    .to_owned()
            }
            SearchError::Schedule { .. } => {
                "leave the fault out of [nemesis] that cannot be done".to_owned()
            }
            SearchError::OtherSchedules { .. } => {
                "another pgrig wrote it, or its study was changed: search again".to_owned()
            }
        }
    }
}

/// More points than these are a list and not a hint.
const SHOWN_MAX: usize = 8;
