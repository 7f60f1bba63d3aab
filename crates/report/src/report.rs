//! A record, reduced to what a report shows of it.

use record::{Finished, Header, Paired, Trial};
use spec::Study;
use verdict::Judgement;

use crate::glance::trial_label;
use crate::grouping::{Group, groups};
use crate::noise::{Noise, noise};
use crate::timeline::{self, Timeline, timeline};
use crate::view::Log;

/// Values that all charts over time may hold together: about five megabytes of page.
const CHART_VALUES_MAX: usize = 900_000;

/// Series of a trial, roughly: what the budget is divided by.
const SERIES_TYPICAL: usize = 25;

/// Lines of a server's log that a page shows of a trial that broke.
const LOG_LINES_MAX: usize = 60;

/// A record and what it proves, ready to be written as HTML, Markdown or CSV.
pub struct Report<'a> {
    pub(crate) study: &'a Study,
    pub(crate) header: &'a Header,
    pub(crate) trials: Vec<Trial>,
    pub(crate) pairs: Vec<Paired>,
    pub(crate) timelines: Vec<Option<Timeline>>,
    pub(crate) noise: Vec<Noise>,
    pub(crate) logs: Vec<Log>,
    pub(crate) groups: Vec<Group>,
    pub(crate) judgement: Judgement,
}

impl<'a> Report<'a> {
    /// Takes up a record. Trials come one by one, because everything that was measured second by
    /// second would not fit into memory at once: each is reduced to what a chart can show. `pairs`
    /// is what was measured in pairs.
    ///
    /// # Errors
    /// The first error of the trials' source.
    pub fn new<E>(
        study: &'a Study,
        header: &'a Header,
        finished: impl IntoIterator<Item = Result<Finished, E>>,
        pairs: &[Paired],
    ) -> Result<Report<'a>, E> {
        let cells_max = cells_max(header.plan.len());
        let (mut trials, mut timelines, mut noises) = (Vec::new(), Vec::new(), Vec::new());
        let mut logs = Vec::new();
        for data in finished {
            let data = data?;
            timelines.push(timeline(&data, cells_max));
            noises.push(noise(&data));
            let name = trial_label(study, &data.trial);
            for (node, text) in data.logs {
                let title = format!("trial {} ({name}), {node}", data.trial.number);
                logs.push(Log { title, text: last_lines(&text) });
            }
            trials.push(data.trial);
        }
        timeline::rank_waits(timelines.iter_mut().flatten());
        let groups = groups(study, &trials);
        let judgement = verdict::judge(study, &header.plan, &trials, pairs);
        let (noise, pairs) = (noises, pairs.to_vec());
        Ok(Report { study, header, trials, pairs, timelines, noise, logs, groups, judgement })
    }
}

/// The end of a log, where the reason stands.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
}

/// How finely each of so many trials can be drawn.
fn cells_max(trials: usize) -> usize {
    (CHART_VALUES_MAX / SERIES_TYPICAL / trials.max(1)).clamp(20, 1200)
}
