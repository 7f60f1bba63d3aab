//! The result of a comparison: the record of a run, before it is written.

use std::path::{Path, PathBuf};

use measure::{ComparisonOptions, PairMeasurement};
use record::comparison::{ComparisonSide, ComparisonStop, DataOrigin};
use record::{
    AttemptEnding, Comparison, MachineFact, Moment, PairingAttempt, RecordHeader, RecordWriter,
    RunState,
};
use spec::StudyFolder;

use super::{ComparisonLoad, ComparisonRequest, ResolvedComparison};
use crate::clock;

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonResult {
    /// The first page.
    pub header: RecordHeader,
    /// The study's folder.
    pub folder: StudyFolder,
    /// What was measured in pairs.
    pub paired: PairingAttempt,
}

impl ComparisonResult {
    /// Writes the record into a directory of its own below `runs`, or into `out`, which must be new or
    /// empty; the directory.
    ///
    /// # Errors
    /// If the directory holds something, or cannot be made or written to.
    pub fn save(self, runs: &Path, out: Option<&Path>) -> Result<PathBuf, record::Error> {
        let state = self.header.state.clone();
        let header = RecordHeader { state: RunState::Running, ..self.header };
        let mut writer = match out {
            Some(out) => RecordWriter::create(out, header, &self.folder)?,
            None => RecordWriter::create_below(runs, header, &self.folder)?,
        };
        writer.add_pairs(&self.paired)?;
        writer.change_header(|header| header.state = state)?;
        Ok(writer.directory().to_owned())
    }
}

impl ComparisonRequest {
    /// What was asked and what the sides are, for the record.
    pub(super) fn comparison(
        &self,
        two: &ResolvedComparison,
        load: &ComparisonLoad,
        servers: [(String, Option<String>); 2],
        data: DataOrigin,
        rate: Option<f64>,
        compared: &PairMeasurement,
    ) -> Comparison {
        let of_side = |side: usize| ComparisonSide {
            variant: two.point.as_ref().map(|(variants, _)| variants[side].clone()),
            version: servers[side].0.clone(),
            bin: two.installations[side].as_ref().map(|one| one.bin().display().to_string()),
            source: self.sides[side].source.clone(),
            server: servers[side].1.clone(),
            settings: self.sides[side].settings.clone(),
            initdb: self.sides[side].initdb.iter().map(ToString::to_string).collect(),
            sql: self.sides[side].sql.as_ref().map(|path| path.display().to_string()),
        };
        let (workload, set) = match load {
            ComparisonLoad::Study(..) => Default::default(),
            ComparisonLoad::Options(options) => {
                (options.words.clone(), options.set(&self.sides, &two.production))
            }
        };
        let ComparisonOptions { name, commit, is_self, precision, threshold, confidence, .. } =
            &self.common;
        Comparison {
            commit: commit.clone(),
            name: name.clone(),
            workload,
            a: of_side(0),
            b: of_side(1),
            point: two.point.as_ref().map(|(_, point)| point.clone()),
            is_self: *is_self,
            data,
            data_file: match &self.asked {
                ComparisonLoad::Options(options) => {
                    options.data.path().map(|path| path.display().to_string())
                }
                ComparisonLoad::Study(..) => None,
            },
            set,
            rate,
            precision: *precision,
            threshold: *threshold,
            horizon_s: self.common.horizon.map(|horizon| horizon.as_secs_f64()),
            confidence: *confidence,
            decides: compared.decides.clone(),
            differences: compared.differences.clone(),
            fail_on: self.common.fail_on,
            given: two.production.given.clone(),
        }
    }

    /// The record of a run with nothing but these pairs. What was measured before an interruption, or
    /// before a side failed, counts.
    pub(super) fn found(
        &self,
        two: &ResolvedComparison,
        comparison: Comparison,
        facts: Vec<MachineFact>,
        compared: PairMeasurement,
    ) -> ComparisonResult {
        let PairMeasurement { shown, series, notes, .. } = compared;
        let ResolvedComparison { study, folder, .. } = two;
        let ComparisonOptions { command, started_at, seed, precision, .. } = &self.common;
        let [below, above] = [0, 1].map(|side: usize| &study.points[side].name);
        let seconds = shown.seconds;
        let header = RecordHeader {
            format: record::FORMAT,
            pgrig: env!("CARGO_PKG_VERSION").to_owned(),
            study: folder.name.clone(),
            profile: study.profile.name().to_owned(),
            seed: *seed,
            rounds: None,
            only: None,
            again: command.clone(),
            started_at: started_at.clone(),
            ended_at: Some(clock::wall()),
            state: match shown.stop {
                ComparisonStop::Interrupted => RunState::Interrupted,
                _ => RunState::Done,
            },
            plan: Vec::new(),
            facts,
            notes,
            comparison: Some(comparison),
            unprepared: Vec::new(),
            search: None,
        };
        let paired = PairingAttempt {
            number: 1,
            attempt: 1,
            above: above.variant.clone(),
            below: below.variant.clone(),
            scenario: above.scenario.clone(),
            below_scenario: None,
            axes: above.axes.iter().cloned().collect(),
            below_axes: None,
            ending: AttemptEnding::Done,
            started_at: started_at.clone(),
            began: Moment(0),
            ended: Moment((seconds * 1e9) as u64),
            precision: *precision,
            series,
            shown,
        };
        ComparisonResult { header, folder: folder.clone(), paired }
    }
}
