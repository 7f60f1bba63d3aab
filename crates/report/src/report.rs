//! A record, reduced to what a report shows of it, and the report as one HTML file.

use record::{PairingAttempt, RecordHeader, Trial};
use spec::Study;
use verdict::StudyVerdicts;

use crate::comparison::Unmeasured;
use crate::evidence::ChartedTrial;
use crate::glance::trial_label;
use crate::grouping::{Group, groups, label};
use crate::json::Json;
use crate::marked::Marked;
use crate::noise::{Noise, noise};
use crate::page::{StudyPage, rendered};
use crate::timeline::{self, Timeline, timeline};
use crate::view::{Log, Table};
use crate::{
    actions, claims, comparison, data, environment, glance, latency_tables, pairs, picture, proof,
    tables, tail_tables, trust, witnesses,
};

/// Values that all charts over time may hold together: about five megabytes of page.
const CHART_VALUES_MAX: usize = 900_000;

/// Series of a trial, roughly: what the budget is divided by.
const SERIES_TYPICAL: usize = 25;

/// Values that charts hold whatever the typical number of series is: trials after that get none.
const CHART_VALUES_LIMIT: usize = 4 * CHART_VALUES_MAX;

/// Text of logs on a page.
const LOGS_BYTES_MAX: usize = 8 << 20;

/// Anchor and title of each section, in the order of the page.
const SECTIONS: [(&str, &str); 7] = [
    ("claims", "Claims"),
    ("comparisons", "Comparisons"),
    ("time", "Time"),
    ("latency", "Latency"),
    ("proof", "Proof"),
    ("trust", "Can it be trusted?"),
    ("again", "Environment"),
];

/// Sections about trials.
const OF_TRIALS: [&str; 4] = ["time", "latency", "proof", "trust"];

/// More tables than these before the reader has asked for them are a wall.
const LATENCY_TABLES_MAX: usize = 4;

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

impl Report<'_> {
    /// The whole report as one HTML file that needs nothing beside it.
    #[must_use]
    pub fn html(&self) -> String {
        let Report { study, header, trials, .. } = self;
        let comparisons = comparison::comparisons(study, trials, &self.groups);
        let (mut latency_tables, percentiles) = latency_tables::latency(&self.groups, trials);
        let (proof_words, proof) = proof::proof(study, trials, &self.groups);
        let (mut trust_words, mut trust) =
            trust::trust(study, trials, &self.noise, &self.judgement);
        trust.extend(actions::table(study, trials));
        trust_words.extend(header.notes.iter().cloned());
        let comparison = header.comparison.as_ref();
        let has_trials = comparison.is_none();
        let is_shown = |(id, _): &&(&str, &str)| has_trials || !OF_TRIALS.contains(id);
        let sections = SECTIONS.iter().filter(is_shown).copied().collect();
        let tidy = |tables: Vec<Table>| -> Vec<Table> {
            tables.into_iter().map(Table::without_empty_columns).collect()
        };
        let own = verdict::tables(study, &header.facts, trials);
        let (first_tables, tables) = tables::tables(&own, header);
        let (charts, positions) = self.charts();
        let (pairs, curves) = pairs::pairs(study, comparison, &self.pairs, comparisons.data.len());
        let curves = comparisons.data.into_iter().chain(curves).collect();
        latency_tables.extend(tail_tables::of_groups(&self.groups, trials));
        latency_tables.iter_mut().skip(LATENCY_TABLES_MAX).for_each(|table| table.folded = true);
        let has_percentiles = !percentiles.is_empty();
        let data = Json::Object(vec![
            ("trials", Json::List(charts)),
            ("percentiles", Json::List(percentiles)),
            ("curves", Json::List(curves)),
        ]);
        let page = StudyPage {
            study: study.name.clone(),
            question: study.question.clone(),
            subtitle: environment::subtitle(header),
            answer: claims::answer(study, &self.judgement, header),
            harm: self.judgement.harm.iter().map(verdict::HarmCount::words).collect(),
            first_tables: tidy(first_tables),
            picture: picture::picture(study, &self.judgement),
            tallies: claims::tallies(&self.judgement),
            sections,
            has_trials,
            has_published: self.judgement.judged().any(|claim| claim.published.is_some()),
            claims: claims::rows(study, &self.judgement),
            left_out: self.judgement.left_out_words(),
            notes: study.notes.iter().map(|note| Marked::new(note)).collect(),
            tables: tidy(tables),
            pairs,
            comparisons: comparisons.dots,
            curves: comparisons.curves,
            published: comparison::published_table(study, trials, &self.groups, Unmeasured::Listed),
            rounds: glance::rounds(trials),
            glance: glance::glance(study, trials, &self.timelines, &positions),
            has_percentiles,
            latency_tables: tidy(latency_tables),
            proof_words,
            proof: tidy(proof),
            witnesses: witnesses::witnesses(trials),
            trust_words,
            trust: tidy(trust),
            logs: self.logs.clone(),
            command: header.again.clone(),
            environment: environment::facts(header),
            settings: tidy(environment::tables(study, header)),
            scripts: environment::script_texts(study),
            colophon: colophon(header),
            data: data.to_string(),
        };
        rendered(&page)
    }

    /// Every trial that has a course over time, and where on the page it went.
    fn charts(&self) -> (Vec<Json>, Vec<Option<usize>>) {
        let mut charts = Vec::new();
        let mut positions = vec![None; self.trials.len()];
        // The first line of the first group is what the study names first.
        let first = self.groups.first().and_then(|group| group.lines.first());
        let first = first.and_then(|line| line.trials.first()).copied();
        for (index, trial) in self.trials.iter().enumerate() {
            if let Some(timeline) = &self.timelines[index] {
                positions[index] = Some(charts.len());
                let scenario = label(&self.study.scenarios, &trial.scenario);
                let variant = label(&self.study.variants, &trial.variant);
                let first = first == Some(index);
                charts.push(data::trial(trial, (scenario, variant), timeline, first));
            }
        }
        (charts, positions)
    }
}

fn colophon(header: &record::RecordHeader) -> String {
    format!("Written by pgrig {} from the record of {}.", header.pgrig, header.started_at)
}

/// Number of cells in which each of so many trials can be drawn.
fn cells_max(trials: usize) -> usize {
    (CHART_VALUES_MAX / SERIES_TYPICAL / trials.max(1)).clamp(20, 1200)
}
