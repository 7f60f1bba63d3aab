//! A record, reduced to what a report shows of it.

use record::{PairingAttempt, RecordHeader, Trial};
use spec::Study;
use verdict::StudyVerdicts;

use crate::evidence::ChartedTrial;
use crate::glance::trial_label;
use crate::grouping::{Group, groups};
use crate::noise::{Noise, noise};
use crate::timeline::{self, Timeline, timeline};
use crate::view::Log;

/// Values that all charts over time may hold together: about five megabytes of page.
const CHART_VALUES_MAX: usize = 900_000;

/// Series of a trial, roughly: what the budget is divided by.
const SERIES_TYPICAL: usize = 25;

/// Values that charts hold whatever the typical number of series is: trials after that get none.
const CHART_VALUES_LIMIT: usize = 4 * CHART_VALUES_MAX;

/// Text of logs on a page.
const LOGS_BYTES_MAX: usize = 8 << 20;

/// A record and what it proves, ready to be written as HTML, Markdown or CSV.
pub struct Report<'a> {
    pub(crate) study: &'a Study,
    pub(crate) header: &'a RecordHeader,
    pub(crate) trials: Vec<Trial>,
    pub(crate) pairs: Vec<PairingAttempt>,
    pub(crate) timelines: Vec<Option<Timeline>>,
    pub(crate) noise: Vec<Noise>,
    pub(crate) logs: Vec<Log>,
    pub(crate) groups: Vec<Group>,
    pub(crate) judgement: StudyVerdicts,
}

impl<'a> Report<'a> {
    /// Takes up a record. Trials come one by one, because everything that was measured second by
    /// second would not fit into memory at once: each is reduced to what a chart can show. `pairs`
    /// is what was measured in pairs.
    ///
    /// # Errors
    /// The first error of the trials' source.
    pub fn new<E, T: Into<ChartedTrial>>(
        study: &'a Study,
        header: &'a RecordHeader,
        finished: impl IntoIterator<Item = Result<T, E>>,
        pairs: &[PairingAttempt],
    ) -> Result<Report<'a>, E> {
        let cells_max = cells_max(header.plan.len());
        let (mut trials, mut timelines, mut noises) = (Vec::new(), Vec::new(), Vec::new());
        let mut logs = Vec::new();
        let (mut values_left, mut logs_left) = (CHART_VALUES_LIMIT, LOGS_BYTES_MAX);
        for data in finished {
            let data: ChartedTrial = data?.into();
            let timeline = timeline(&data, cells_max).filter(|timeline| {
                let left = values_left.checked_sub(timeline.values());
                // After a timeline that is too much, no other is drawn.
                values_left = left.unwrap_or(0);
                left.is_some()
            });
            timelines.push(timeline);
            noises.push(noise(&data));
            let name = trial_label(study, &data.trial);
            for (node, text) in data.logs {
                let Some(left) = logs_left.checked_sub(text.len()) else { continue };
                logs_left = left;
                logs.push(Log {
                    title: format!("trial {} ({name}), {node}", data.trial.number),
                    text,
                });
            }
            trials.push(data.trial);
        }
        timeline::rank_waits(timelines.iter_mut().flatten());
        let groups = groups(study, &trials);
        let judgement = verdict::judge_record(study, header, &trials, pairs);
        let (noise, pairs) = (noises, pairs.to_vec());
        Ok(Report { study, header, trials, pairs, timelines, noise, logs, groups, judgement })
    }
}

/// Number of cells in which each of so many trials can be drawn.
fn cells_max(trials: usize) -> usize {
    (CHART_VALUES_MAX / SERIES_TYPICAL / trials.max(1)).clamp(20, 1200)
}
