//! Records in a list, for the page that shows all below a folder.

/// A record as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRecord {
    /// The number in the record's address.
    pub number: usize,
    /// Wall clock at the beginning, RFC 3339.
    pub started_at: String,
    /// The study, or what was compared.
    pub name: String,
    /// The profile of a study; empty for a comparison.
    pub profile: String,
    /// The folder, as seen from the one that is shown.
    pub folder: String,
    /// State of the run.
    pub state: ListedState,
    /// The answer and what was judged; none until somebody has read the record.
    pub read: Option<ListedAnswer>,
    /// Results with the same subject, this one included, that can be drawn over time.
    pub alike: usize,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAnswer {
    /// One sentence, or why the record cannot be read.
    pub sentence: String,
    /// Number of claims that hold, that do not, and of which it cannot be told.
    pub claims: [usize; 3],
}

/// State of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// It runs now: trials that have ended, and trials of the plan.
    Running {
        /// Trials that have ended.
        ended: usize,
        /// Trials of the plan.
        planned: usize,
    },
    /// Every trial was run.
    Done,
    /// It was stopped.
    Interrupted,
    /// It has no end: a crash, or a kill.
    Killed,
    /// It could not go on.
    Broken,
    /// The record is of another version, or damaged.
    Unreadable,
}

impl ListedState {
    /// States that a reader can choose.
    pub(crate) const WORDS: [&'static str; 6] =
        ["running", "done", "interrupted", "killed", "broken", "unreadable"];

    pub(crate) fn word(&self) -> &'static str {
        let [running, done, interrupted, killed, broken, unreadable] = ListedState::WORDS;
        match self {
            ListedState::Running { .. } => running,
            ListedState::Done => done,
            ListedState::Interrupted => interrupted,
            ListedState::Killed => killed,
            ListedState::Broken => broken,
            ListedState::Unreadable => unreadable,
        }
    }

    /// How far it is, for what is running.
    pub(crate) fn course(&self) -> String {
        match self {
            ListedState::Running { ended, planned } => format!("{ended} of {planned} trials"),
            _ => String::new(),
        }
    }

    /// True if a process writes the record now.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, ListedState::Running { .. })
    }
}

impl ListedRecord {
    /// `2026-11-25 03:09`
    pub(crate) fn minute(&self) -> String {
        self.started_at.chars().take(16).map(|one| if one == 'T' { ' ' } else { one }).collect()
    }

    /// True if a report can be made of it.
    pub(crate) fn has_report(&self) -> bool {
        self.state != ListedState::Unreadable
    }
}
