//! One line of a history file: the figures of one record, kept after the record is gone.

use serde::{Deserialize, Serialize};

/// The version of the lines.
const FORMAT: u32 = 1;

/// One result in a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastResult {
    format: u32,
    /// Time at which the run began, in RFC 3339.
    pub time: String,
    /// The commit that it measured, if that is known.
    pub commit: Option<String>,
    /// The fingerprint of its machine.
    pub machine: String,
    /// The name of its study.
    pub study: String,
    /// The answer in one sentence.
    pub answer: String,
    /// The absolute path of its record.
    pub record: String,
    /// What it is about; none in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ResultSubject>,
    /// Why it is no whole result; none for one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<PastMark>,
    /// The figures.
    pub figures: Vec<PastFigure>,
}

/// What a result is about: results of different subjects are never joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultSubject {
    /// Sides, data and load, in a form that is compared.
    pub key: String,
    /// The same for people, besides the name of the study; may be empty.
    pub words: String,
}

/// Why a result is not a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PastMark {
    /// A check of the rig, with little data and short times.
    Smoke,
    /// It was interrupted.
    Interrupted,
    /// The end was not recorded.
    Killed,
    /// It could not go on.
    Broken,
}

impl PastMark {
    /// For people and for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PastMark::Smoke => "smoke",
            PastMark::Interrupted => "interrupted",
            PastMark::Killed => "killed",
            PastMark::Broken => "broken",
        }
    }
}

/// One figure of a result in a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastFigure {
    /// The point or side that it belongs to.
    pub benchmark: String,
    /// The name of the metric.
    pub name: String,
    /// The unit; empty for a ratio.
    pub unit: String,
    /// The value, which is finite.
    pub value: f64,
    /// The lower bound of its interval, where there is one.
    pub low: Option<f64>,
    /// The upper bound of its interval, where there is one.
    pub high: Option<f64>,
    /// True if more is better.
    pub more_is_better: bool,
}

impl PastResult {
    /// A result of this version without figures.
    pub fn new(time: &str, machine: &str, study: &str, answer: &str, record: &str) -> PastResult {
        PastResult {
            format: FORMAT,
            time: time.to_owned(),
            commit: None,
            machine: machine.to_owned(),
            study: study.to_owned(),
            answer: answer.to_owned(),
            record: record.to_owned(),
            subject: None,
            mark: None,
            figures: Vec::new(),
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// A line that is not JSON, lacks a member or has another version; the message names which.
    pub fn read(line: &str) -> Result<PastResult, String> {
        let result: PastResult = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match result.format {
            FORMAT => Ok(result),
            other => Err(format!("it has format {other}, and this pgrig reads format {FORMAT}")),
        }
    }

    /// The line, without its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers have a JSON form")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_refused_with_a_reason() {
        let mut result =
            PastResult::new("2026-11-23T05:00:00Z", "m", "compare", "B is slower.", "/r");
        result.figures.push(PastFigure {
            benchmark: "B ÷ A".to_owned(),
            name: "throughput".to_owned(),
            unit: String::new(),
            value: 0.9,
            low: Some(0.8),
            high: None,
            more_is_better: true,
        });
        let line = result.line();
        assert_eq!(PastResult::read(&line), Ok(result));
        let refused = |line: &str| PastResult::read(line).expect_err("refused");
        let subject = Some(ResultSubject { key: "k".to_owned(), words: String::new() });
        let marked = PastResult {
            subject,
            mark: Some(PastMark::Killed),
            ..PastResult::read(&line).expect("read")
        };
        assert_eq!(PastResult::read(&marked.line()), Ok(marked));
        assert!(refused(&line.replace("\"format\":1", "\"format\":2")).contains("format 2"));
        assert!(refused(&line.replace("\"study\"", "\"other\"")).contains("study"));
        assert!(refused(&line.replace("0.9", "null")).contains("invalid type"));
        assert!(!refused("[[[").is_empty());
    }
}
