//! The directory of a comparison.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Comparison, FORMAT, Look};
use crate::allowance::Allowance;
use crate::error::Error;
use crate::finished::Lines;
use crate::inside::Inside;
use crate::reader::Stamp;
use crate::{files, finished, weight};

/// The file by which a directory is known as a comparison's.
pub const COMPARISON: &str = "comparison.json";

const LOOKS: &str = "looks.jsonl";

/// Folded stacks of A and of B.
const PROFILES: [&str; 2] = ["profile-a.folded", "profile-b.folded"];

/// True if a directory looks like a comparison. Its contents are checked when it is opened.
#[must_use]
pub fn is_comparison(directory: &Path) -> bool {
    directory.join(COMPARISON).symlink_metadata().is_ok()
}

/// Makes the directory of a record: `out`, which must be new or empty, or one below `runs` that is named
/// by the day and `kind`.
///
/// # Errors
/// If the directory holds something, or cannot be made.
pub fn make_directory(
    runs: &Path,
    out: Option<&Path>,
    started_at: &str,
    kind: &str,
) -> Result<PathBuf, Error> {
    match out {
        Some(directory) => files::make_empty(directory),
        None => files::make_numbered(runs, started_at, kind),
    }
}

impl Comparison {
    /// Writes it into a directory of its own below `runs`, or into `out`, which must be new or
    /// empty; the directory.
    ///
    /// # Errors
    /// If the directory holds something, or cannot be made or written to.
    pub fn save(&self, runs: &Path, out: Option<&Path>) -> Result<PathBuf, Error> {
        let directory = make_directory(runs, out, &self.started_at, "compare")?;
        files::write(&directory.join(LOOKS), |out| finished::lines(out, &self.shown.looks))?;
        if let Some(profile) = &self.shown.profile {
            for (name, folded) in PROFILES.iter().zip(&profile.folded) {
                files::write(&directory.join(name), |out| out.write_all(folded.as_bytes()))?;
            }
        }
        files::write(&directory.join(COMPARISON), |out| files::json(out, &self.without_looks()))?;
        files::sync_directory(&directory)?;
        Ok(directory)
    }

    /// Makes the directory `out`, so that nothing is measured for a place that cannot be written.
    ///
    /// # Errors
    /// If it cannot be made, or is not empty.
    pub fn reserve(out: &Path) -> Result<(), Error> {
        files::make_empty(out).map(drop)
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is not there, damaged, or of another format.
    pub fn open(directory: &Path) -> Result<Comparison, Error> {
        let inside = Inside::open(directory)?;
        let path = inside.path(COMPARISON);
        let text = inside.text(COMPARISON, finished::JSON_BYTES_MAX)?;
        let damaged = |error: serde_json::Error| Error::Damaged {
            path: path.clone(),
            line: error.line(),
            why: error.to_string(),
        };
        let stamp: Stamp = serde_json::from_str(&text).map_err(damaged)?;
        if stamp.format != FORMAT {
            return Err(Error::Format { path, found: stamp.format, writer: stamp.pgrig });
        }
        let mut comparison: Comparison = serde_json::from_str(&text).map_err(damaged)?;
        if inside.has(LOOKS) {
            let mut allowance = Allowance::of_record();
            let mut lines = Lines::open(&inside, LOOKS)?;
            while let Some(look) = lines.next::<Look>()? {
                let bytes = size_of::<Look>() + weight::map(&look.ratios);
                allowance.keep(bytes, &inside.path(LOOKS))?;
                comparison.shown.looks.push(look);
            }
        }
        if let Some(profile) = &mut comparison.shown.profile {
            for (name, folded) in PROFILES.iter().zip(&mut profile.folded) {
                *folded = inside.text(name, finished::JSON_BYTES_MAX)?;
            }
        }
        Ok(comparison)
    }

    /// The same for a file of which its looks are no part.
    fn without_looks(&self) -> Comparison {
        let mut found = self.clone();
        found.shown.looks.clear();
        found
    }

    /// `comparison.json`, for programs.
    ///
    /// # Panics
    /// Never: all keys are texts.
    #[must_use]
    pub fn json(&self) -> String {
        let json =
            serde_json::to_string_pretty(&self.without_looks()).expect("every key is a text");
        terms::escaped(&json).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::comparison::{
        Background, DataOrigin, Figure, Instances, Look, Metric, Profile, Ratio, Shown, Side, Stop,
        Verdict,
    };

    use super::*;
    use crate::Conditions;

    fn comparison() -> Comparison {
        let ratio = Ratio {
            value: 0.9,
            lower: 0.88,
            upper: 0.92,
            confidence: 0.975,
            n: 100,
            method: "confidence sequence".to_owned(),
        };
        let figure = Figure {
            metric: Metric::Throughput,
            unit: "1/s".to_owned(),
            a: 1_000.0,
            b: 900.0,
            b_over_a: Some(ratio),
            verdict: Verdict::Worse,
            deciding: true,
        };
        let quiet = Background { idle_cpus: Some(0.01), ..Background::default() };
        let ratios = BTreeMap::from([(Metric::Throughput, [0.9, 0.8, 1.0])]);
        Comparison {
            format: FORMAT,
            pgrig: "0.1.0".to_owned(),
            started_at: "2026-11-23T04:00:00Z".to_owned(),
            command: "pgrig compare --self -S".to_owned(),
            commit: None,
            name: Some("selects".to_owned()),
            workload: "-S".to_owned(),
            set: vec![("shared_buffers".to_owned(), "1GB".to_owned())],
            decides: Metric::DECIDING.to_vec(),
            notes: Vec::new(),
            answer: "B is slower.".to_owned(),
            point: None,
            rate: None,
            a: Side { version: "15.20".to_owned(), ..Side::default() },
            b: Side::default(),
            is_self: true,
            data: DataOrigin::Copied,
            threshold: 0.03,
            confidence: 0.95,
            facts: Vec::new(),
            shown: Shown {
                turn: None,
                identical: None,
                clients: 1,
                block_ms: 200,
                rest_ms: 5,
                pairs: 200,
                seconds: 44.0,
                seed: 1,
                stop: Stop::Precision,
                figures: vec![figure],
                instances: Instances { segments: 25, ..Instances::default() },
                background: [quiet, quiet],
                waits: Vec::new(),
                tails: crate::comparison::Tails::default(),
                plans: Vec::new(),
                conditions: Conditions { steal_share: 0.01, ..Conditions::default() },
                doubts: vec!["one".to_owned()],
                profile: Some(Profile {
                    seconds: 60.0,
                    folded: ["postgres;main 70\n", "postgres;main 80\n"].map(str::to_owned),
                }),
                looks: vec![Look {
                    pairs: 4,
                    seconds: 1.0,
                    segment: Some(0.9),
                    is_exchanged: true,
                    ratios,
                    background: [Background { checkpoints: 1, ..quiet }, quiet],
                }],
            },
        }
    }

    #[test]
    fn what_is_saved_is_read_again() {
        let runs = tempfile::tempdir().expect("a directory");
        let saved = comparison();
        let directory = saved.save(runs.path(), None).expect("saved");
        assert_eq!(directory, runs.path().join("2026-11-23-compare-1"));
        assert_eq!(Comparison::open(&directory).expect("read"), saved);
        let second = saved.save(runs.path(), None).expect("saved");
        assert_eq!(second, runs.path().join("2026-11-23-compare-2"));
        let taken = saved.save(runs.path(), Some(&second));
        assert!(matches!(taken, Err(Error::Io { .. })), "{taken:?}");
    }

    #[test]
    fn another_format_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = r#"{"format": 1, "answer": ""}"#;
        std::fs::write(directory.path().join(COMPARISON), text).expect("written");
        let read = Comparison::open(directory.path());
        assert!(matches!(read, Err(Error::Format { found: 1, .. })), "{read:?}");
    }
}
