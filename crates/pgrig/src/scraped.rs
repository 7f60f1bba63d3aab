//! `--metrics` of `run` and `compare`: what goes on, as OpenMetrics.

use std::collections::BTreeMap;

use measure::{ComparedFigure, PairProgress};
use openmetrics::{FamilyType, MetricsDestination, MetricsText, Publisher};
use study::{LoadStage, StudyEvent};

use crate::complaint::Complaint;
use console::terminal::{self, UNSURE, styled};

/// A place where somebody may look; it is shown nothing if nobody has asked for it.
pub(crate) struct Scraped<T> {
    publisher: Option<Publisher>,
    figures: T,
}

impl<T: Figures> Scraped<T> {
    /// Opens the place, and says where it is.
    pub(crate) fn open(
        place: Option<&MetricsDestination>,
        figures: T,
    ) -> Result<Scraped<T>, Complaint> {
        Ok(Scraped { publisher: console::publisher(place, figures.text())?, figures })
    }

    /// Takes something in, and shows it.
    pub(crate) fn show(&mut self, change: impl FnOnce(&mut T)) {
        // Nobody asked for metrics, or their place could not be written.
        let Some(publisher) = &self.publisher else { return };
        change(&mut self.figures);
        if let Err(error) = publisher.publish(self.figures.text()) {
            terminal::narrate(styled(UNSURE, format_args!("{error}; no more of it is tried")));
            self.publisher = None;
        }
    }
}

/// Figures that make a text.
pub(crate) trait Figures {
    fn text(&self) -> String;
}

/// A run of a study.
#[derive(Default)]
pub(crate) struct OfRun {
    study: String,
    planned: usize,
    /// Finished trials, by their ending.
    ended: BTreeMap<&'static str, u64>,
    trial: Option<OfTrial>,
    left_s: f64,
    pairs: Option<OfPairs>,
}

struct OfPairs {
    pairs: usize,
    /// Throughput: the ratio and its bounds, each with its label.
    ratio: Vec<(&'static str, f64)>,
}

struct OfTrial {
    number: usize,
    variant: String,
    scenario: String,
    round: u32,
    tps: Option<f64>,
    p99_ms: Option<f64>,
    backlog: u64,
}

impl OfRun {
    pub(crate) fn of(study: &str) -> OfRun {
        OfRun { study: study.to_owned(), ..OfRun::default() }
    }

    pub(crate) fn hear(&mut self, event: &StudyEvent<'_>) {
        match event {
            StudyEvent::Begins { trials, .. } => self.planned = *trials,
            StudyEvent::TrialBegins { planned, point, left_s, .. } => {
                self.left_s = *left_s;
                self.trial = Some(OfTrial {
                    number: planned.number,
                    variant: point.variant.clone(),
                    scenario: point.scenario.clone(),
                    round: planned.round,
                    tps: None,
                    p99_ms: None,
                    backlog: 0,
                });
            }
            StudyEvent::Load { stage, left_s } => {
                self.left_s = *left_s;
                if let (Some(trial), LoadStage::Measuring { tps, p99_ms, backlog, .. }) =
                    (&mut self.trial, stage)
                {
                    (trial.tps, trial.p99_ms, trial.backlog) = (Some(*tps), *p99_ms, *backlog);
                }
            }
            StudyEvent::TrialEnded { trial, .. } => {
                *self.ended.entry(trial.ending.word()).or_default() += 1;
                self.trial = None;
            }
            StudyEvent::Pairs { progress, left_s } => {
                self.left_s = *left_s;
                let throughput = record::comparison::ComparedMetric::Throughput;
                let figure = progress.figures.iter().find(|figure| figure.metric == throughput);
                let ratio = figure.and_then(|figure| figure.ratio);
                let ratio = ratio.iter().flat_map(bounds).collect();
                self.pairs = Some(OfPairs { pairs: progress.pairs, ratio });
            }
            StudyEvent::PairsEnded { .. } => self.pairs = None,
            _ => {}
        }
    }
}

impl Figures for OfRun {
    fn text(&self) -> String {
        let mut text = MetricsText::default();
        let help = "The study that runs.";
        text.family("run", FamilyType::Info, help).sample(&[("study", &self.study)], 1);
        text.gauge("run_trials_planned", "Trials of this run.", Some(self.planned));
        let mut ended =
            text.family("run_trials", FamilyType::Counter, "Finished trials, by ending.");
        for ending in ["done", "failed", "void"] {
            // An ending that is not among them was the end of no trial.
            ended.sample(&[("ending", ending)], self.ended.get(ending).copied().unwrap_or(0));
        }
        let help = "Estimate of the time until the end of the run.";
        text.gauge("run_left_seconds", help, Some(self.left_s));
        let trial = self.trial.as_ref();
        let mut now = text.family("run_trial", FamilyType::Info, "The trial under way.");
        if let Some(trial) = trial {
            let (number, round) = (trial.number.to_string(), trial.round.to_string());
            let labels = [
                ("trial", &*number),
                ("round", &*round),
                ("variant", &*trial.variant),
                ("scenario", &*trial.scenario),
            ];
            now.sample(&labels, 1);
        }
        let help = "Transactions a second of the trial under way.";
        text.gauge("run_tps", help, trial.and_then(|trial| trial.tps));
        let help = "99th percentile of latency of the trial under way.";
        let p99 = trial.and_then(|trial| trial.p99_ms);
        text.gauge("run_latency_p99_seconds", help, p99.map(|ms| ms / 1e3));
        let help = "Transactions due and not started, of the trial under way.";
        text.gauge("run_backlog", help, trial.map(|trial| trial.backlog));
        let help = "Pairs of blocks so far, where variants are measured in pairs.";
        text.gauge("run_pairs", help, self.pairs.as_ref().map(|of| of.pairs));
        let help = "Throughput of one variant ÷ that of the other, and its interval so far.";
        let mut ratios = text.family("run_pairs_throughput_ratio", FamilyType::Gauge, help);
        for (bound, value) in self.pairs.iter().flat_map(|of| &of.ratio) {
            ratios.sample(&[("bound", bound)], value);
        }
        text.end()
    }
}

/// A ratio and its bounds, each with its label.
fn bounds(ratio: &stats::ConfidenceInterval) -> [(&'static str, f64); 3] {
    [("point", ratio.point), ("low", ratio.low), ("high", ratio.high)]
}

/// A comparison of two servers.
#[derive(Default)]
pub(crate) struct OfComparison {
    pairs: usize,
    seconds: f64,
    figures: Vec<ComparedFigure>,
}

impl OfComparison {
    pub(crate) fn look(&mut self, progress: &PairProgress<'_>) {
        (self.pairs, self.seconds) = (progress.pairs, progress.seconds);
        self.figures = progress.figures.to_vec();
    }
}

impl Figures for OfComparison {
    fn text(&self) -> String {
        let mut text = MetricsText::default();
        text.gauge("compare_pairs", "Pairs of blocks so far.", Some(self.pairs));
        let help = "Time that the measurement has taken.";
        text.gauge("compare_measured_seconds", help, Some(self.seconds));
        let help = "Value of a side so far, in the figure's own unit.";
        let mut values = text.family("compare_value", FamilyType::Gauge, help);
        for figure in &self.figures {
            for (side, value) in ["a", "b"].into_iter().zip(figure.sides) {
                let (name, unit) = (figure.metric.name(), figure.metric.unit());
                values.sample(&[("figure", name), ("side", side), ("unit", unit)], value);
            }
        }
        let help = "B ÷ A and its interval so far.";
        let mut ratios = text.family("compare_ratio", FamilyType::Gauge, help);
        for figure in &self.figures {
            for (bound, value) in figure.ratio.iter().flat_map(bounds) {
                ratios.sample(&[("figure", figure.metric.name()), ("bound", bound)], value);
            }
        }
        text.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_shows_its_ratios() {
        let ratio = stats::ConfidenceInterval {
            low: 0.4,
            high: 0.6,
            ..stats::ConfidenceInterval::exact(0.5, 8)
        };
        let figure = ComparedFigure {
            metric: record::comparison::ComparedMetric::P99,
            sides: [2.0, 1.0],
            ratio: Some(ratio),
            is_background: false,
        };
        let text = OfComparison { pairs: 8, seconds: 4.0, figures: vec![figure] }.text();
        for line in [
            "pgrig_compare_pairs 8",
            "pgrig_compare_value{figure=\"p99\",side=\"a\",unit=\"ms\"} 2",
            "pgrig_compare_ratio{figure=\"p99\",bound=\"high\"} 0.6",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line:?} in {text}");
        }
    }

    /// Queries of the dashboards name what is exposed; those of `bench` are tested in its own room.
    #[test]
    fn dashboards_ask_for_what_there_is() {
        let known = OfRun::default().text() + &OfComparison::default().text();
        let boards = [include_str!("../../../docs/grafana/pgrig-load.json")];
        let mut asked = 0;
        for name in boards.iter().flat_map(|board| openmetrics::names(board)) {
            if !name.starts_with("pgrig_run") && !name.starts_with("pgrig_compare") {
                continue;
            }
            asked += 1;
            assert!(openmetrics::has(&known, name), "{name} is not exposed");
        }
        assert!(asked >= 8, "{asked} queries");
    }
}
