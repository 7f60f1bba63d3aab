//! The first page of a run's record: study, machine, variants, and the run's state.

use serde::{Deserialize, Serialize};

use crate::{Comparison, PlannedTrial, UnpreparedPooler};

/// `record.json`: what was run, on what, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordHeader {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// The pgrig that wrote it.
    pub pgrig: String,
    /// The study's name.
    pub study: String,
    /// The profile in which it ran.
    pub profile: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Rounds, where the command line gave other ones than the study.
    pub rounds: Option<u32>,
    /// The pattern that limited it to some points.
    pub only: Option<String>,
    /// The command that runs it again.
    pub again: String,
    /// Wall clock at its beginning, RFC 3339.
    pub started_at: String,
    /// Wall clock at its end, RFC 3339; none while it runs.
    pub ended_at: Option<String>,
    /// State of the run.
    pub state: RunState,
    /// The trials that it is made of, in the order of execution.
    pub plan: Vec<PlannedTrial>,
    /// The machine, the system and what was installed, in the order in which to show them.
    pub facts: Vec<MachineFact>,
    /// Notes for the reader: what was left out and why.
    pub notes: Vec<String>,
    /// Poolers behind which workloads used another protocol than prepared statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unprepared: Vec<UnpreparedPooler>,
    /// What was compared, where `pgrig compare` has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// How schedules of faults were searched, where `pgrig search` has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchTerms>,
}

/// What decides, with the seed, the study and what trials have shown, which schedule a search asks for next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTerms {
    /// The name of the point whose load runs.
    pub trial: String,
    /// Trials that tell the rate of a schedule.
    pub repeats: u64,
}

/// State of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "why")]
pub enum RunState {
    /// It runs, or its end was not recorded: a crash.
    Running,
    /// Every trial of the plan was run.
    Done,
    /// It was stopped; what was measured is here.
    Interrupted,
    /// It could not go on.
    Broken(String),
}

/// Something that is so on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFact {
    /// Subject: machine, system, PostgreSQL, …
    pub group: String,
    /// Name of the fact.
    pub name: String,
    /// The value.
    pub value: String,
}
