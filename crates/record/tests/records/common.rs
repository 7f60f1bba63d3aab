//! A record to begin with.

use std::collections::BTreeMap;

use record::{FORMAT, PlannedTrial, RecordHeader, RunState};
use spec::StudyFolder;

/// The first page of a run that has begun.
pub(crate) fn header() -> RecordHeader {
    RecordHeader {
        format: FORMAT,
        pgrig: "0.1.0".to_owned(),
        study: "mine".to_owned(),
        profile: "quick".to_owned(),
        seed: 42,
        rounds: None,
        only: None,
        again: "pgrig run mine --seed 42".to_owned(),
        started_at: "2026-11-21T10:00:00Z".to_owned(),
        ended_at: None,
        state: RunState::Running,
        plan: vec![planned(1)],
        facts: Vec::new(),
        notes: Vec::new(),
        comparison: None,
        unprepared: Vec::new(),
        search: None,
    }
}

/// A trial of it.
pub(crate) fn planned(number: usize) -> PlannedTrial {
    PlannedTrial {
        number,
        round: 1,
        variant: "plain".to_owned(),
        scenario: "read".to_owned(),
        axes: BTreeMap::from([("clients".to_owned(), "8".to_owned())]),
    }
}

pub(crate) fn folder(is_private: bool) -> StudyFolder {
    let files = [("study.toml", "question = \"?\"\n"), ("sql/read.sql", "SELECT 1;\n")];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    StudyFolder { name: "mine".to_owned(), files: BTreeMap::from(files), is_private }
}
