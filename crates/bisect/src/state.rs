//! The state of a bisection, as it is kept in its directory: `bisect.json` and a record for each step.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::repository::Commit;
use crate::search::CommitVerdict;

/// The version of `bisect.json` that this pgrig writes and reads.
const FORMAT: u32 = 1;

/// The state of a bisection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BisectionState {
    /// Version of the format.
    pub format: u32,
    /// The command that was run.
    pub command: String,
    /// Wall clock when it began, RFC 3339.
    pub started_at: String,
    /// The figure that decides.
    pub figure: String,
    /// The error that all steps together may have.
    pub error: f64,
    /// The good commit, those after it, the bad one.
    pub commits: Vec<Commit>,
    /// The steps that were measured, in this order.
    pub steps: Vec<ComparisonStep>,
    /// The answer, in sentences.
    pub answer: String,
    /// The first commit that may be the first bad one, and the last: one and the same where it is known.
    pub first_bad: Option<[usize; 2]>,
    /// Upper bound of the probability that the answer is wrong.
    pub error_used: f64,
}

/// A comparison of a commit with the good one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonStep {
    /// The commit, by its place.
    pub commit: usize,
    /// The kind of the step.
    pub kind: StepKind,
    /// The verdict; none where it was interrupted.
    pub verdict: CommitVerdict,
    /// Commit ÷ good: value, lower and upper bound.
    pub ratio: Option<[f64; 3]>,
    /// The duration, building included, in seconds.
    pub seconds: f64,
    /// Why it was skipped.
    pub why: Option<String>,
    /// The record, below the directory of the bisection.
    pub record: Option<String>,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The good commit against the bad one.
    Effect,
    /// The good commit against itself.
    Identical,
    /// A commit between.
    Search,
}

/// The file of a state.
const FILE: &str = "bisect.json";

impl BisectionState {
    /// The state of a bisection that begins.
    pub fn new(
        command: &str,
        started_at: &str,
        figure: &str,
        error: f64,
        commits: Vec<Commit>,
    ) -> BisectionState {
        BisectionState {
            format: FORMAT,
            command: command.to_owned(),
            started_at: started_at.to_owned(),
            figure: figure.to_owned(),
            error,
            commits,
            steps: Vec::new(),
            answer: String::new(),
            first_bad: None,
            error_used: 0.0,
        }
    }

    /// Reads it from its directory.
    pub fn read(directory: &Path) -> Result<BisectionState, Error> {
        let path = directory.join(FILE);
        let failed = |why: String| Error::State { path: path.clone(), why };
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let state: BisectionState =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        match state.format == FORMAT && !state.commits.is_empty() {
            true => Ok(state),
            false => Err(failed(format!("it has format {}", state.format))),
        }
    }

    /// Writes it as a whole.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(FILE);
        let failed = |why: String| Error::State { path: path.clone(), why };
        let text = self.json();
        let new = directory.join(".bisect.json.new");
        std::fs::write(&new, text + "\n")
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|error| failed(error.to_string()))
    }

    /// All of it.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a state is plain data")
    }

    /// The last step of a kind: earlier ones of the preflight did not show what they must.
    pub fn step(&self, kind: StepKind) -> Option<&ComparisonStep> {
        self.steps.iter().rfind(|step| step.kind == kind)
    }

    /// The steps of the search since the last one of the preflight, which decides what good and bad are.
    pub(crate) fn searched(&self) -> impl Iterator<Item = &ComparisonStep> {
        let from = self.steps.iter().rposition(|step| step.kind != StepKind::Search);
        // Without a preflight, all steps are of the search.
        self.steps.iter().skip(from.map_or(0, |last| last + 1))
    }
}
