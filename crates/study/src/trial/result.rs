//! From what was measured to what the record holds of a trial.

use std::collections::BTreeMap;

use host::monotonic_ns_at;
use measure::LoadMeasurement;
use probe::SamplerReadings;
use record::{
    AttemptEnding, FinishedTrial, MarkKind, MeasuredWindow, Moment, Note, NoteKind, PlannedTrial,
    SkipKind, TimelineMark, Trial,
};
use site::Site;
use site::warm::WarmingResult;
use spec::{ScenarioPhase, metrics};

use crate::clock;
use crate::trial::ending::{ending, generator_doubts};
use crate::trial::figures::{self, Evidence, of_phases};
use crate::trial::host_use::{clock_doubts, gap_doubts, host_uses};
use crate::trial::leaks::Leaks;
use crate::trial::meter::WindowReadings;
use crate::trial::order::TrialOrder;

/// Everything that was measured.
pub(crate) struct TrialEvidence {
    /// What the load has shown; the slow transactions of the server that has the data among it, where they were
    /// asked for.
    pub(crate) measured: LoadMeasurement,
    pub(crate) readings: SamplerReadings,
    pub(crate) metered: WindowReadings,
    pub(crate) warmed: WarmingResult,
    /// What the links let pass before the load.
    pub(crate) crossings: Vec<site::LinkCrossing>,
    /// The findings of the checks, and the fate of servers that lost their power.
    pub(crate) found: check::CheckOutcome,
    /// Session state that a pooler let pass from one client to others.
    pub(crate) leaks: Leaks,
    /// The node of the server that has the data.
    pub(crate) data_node: String,
    /// The host of the server that has the data, if it is on one.
    pub(crate) data_host: Option<String>,
}

/// A trial that is not run at all.
pub(crate) fn skipped(order: &TrialOrder<'_>, why: String) -> FinishedTrial {
    let mut finished = blank(order);
    finished.trial.ending = AttemptEnding::skipped(SkipKind::CannotRunHere, why);
    finished.trial.ended = finished.trial.began;
    finished
}

/// True if a reader will want to look into the ledger, the history and the logs themselves: something is wrong, or could not
/// be found out.
pub(crate) fn needs_its_ledger(trial: &Trial) -> bool {
    let wrong = [
        &metrics::LEDGER_ANOMALIES,
        &metrics::LEDGER_UNJUDGED,
        &metrics::EXPLORE_FAILED,
        &metrics::HISTORY_FORBIDDEN,
        &metrics::HISTORY_UNJUDGED,
    ];
    let is_wrong = |metric: &spec::Metric| {
        let value = trial.metrics.get(metric.name).and_then(|scopes| scopes.get(""));
        value.is_some_and(|count| *count > 0.0)
    };
    trial.ending != AttemptEnding::Done
        || !trial.at_least.is_empty()
        || wrong.into_iter().any(is_wrong)
}

/// Makes a trial of what was measured.
pub(crate) fn fill(order: &TrialOrder<'_>, loaded: TrialEvidence, finished: &mut FinishedTrial) {
    let TrialEvidence { measured, mut readings, mut metered, warmed, crossings, .. } = loaded;
    let TrialEvidence { found, leaks, data_node, data_host, .. } = loaded;
    let LoadMeasurement { outcome, tails, messages } = measured;
    for found in &tails {
        let notes = found.notes.iter().map(|text| format!("{data_node}: {text}"));
        readings.notes.extend(notes);
        if let Some(delta) = readings.deltas.get_mut(&data_node) {
            delta.own_transactions += found.transactions;
        }
    }
    let trial = &mut finished.trial;
    let window = outcome.window;
    let measured = match window {
        Some(window) => figures::all(&Evidence {
            point: order.point,
            outcome: &outcome,
            window,
            readings: &readings,
            metered: &metered,
            warmed: &warmed,
            crossings: &crossings,
            data_host: data_host.as_deref(),
        }),
        None => Vec::new(),
    };
    file(trial, measured.into_iter().chain(found.figures));
    let said = |kind: NoteKind, texts: Vec<String>| {
        texts.into_iter().map(move |text| Note::new(kind, text))
    };
    trial.witnesses = found.witnesses;
    trial.notes.extend(leaks.notes.iter().cloned());
    trial.notes.extend(found.notes);
    trial.notes.extend(said(NoteKind::Load, messages.first));
    trial.notes.extend(said(NoteKind::Warming, warmed.notes));
    let probed = std::mem::take(&mut readings.notes);
    trial.notes.extend(said(NoteKind::Probe, probed));
    trial.notes.extend(said(NoteKind::Generator, generator_doubts(&outcome)));
    if let Some(fleet) = order.fleet {
        trial.hosts = host_uses(fleet, &outcome, &readings, order.origin);
        trial.notes.extend(said(NoteKind::Generator, clock_doubts(&trial.hosts)));
        let own = window.map_or(Vec::new(), |window| {
            let here = |moment: Moment| monotonic_ns_at(order.origin).saturating_add(moment.0);
            host::own_gaps(here(window.open), here(window.close))
        });
        trial.notes.extend(said(NoteKind::Generator, gap_doubts(&trial.hosts, &own)));
    }
    trial.ending = leaks.explain(ending(order, &outcome, &metered, &mut trial.notes));
    trial.window = window;
    trial.actions = std::mem::take(&mut metered.actions);
    finished.marks = phase_marks(window, &order.point.phases);
    finished.marks.append(&mut metered.marks);
    finished.marks.extend(found.marks);
    finished.marks.append(&mut readings.marks);
    finished.marks.sort_by_key(|mark| mark.at);
    finished.samples = readings.samples;
    trial.tail = tails.into_iter().find_map(|found| found.tail);
    finished.intervals = outcome.intervals;
    trial.connecting = outcome.connecting;
    trial.disconnecting = outcome.disconnecting;
    trial.workloads = outcome.workloads;
    trial.generator = outcome.generator;
}

/// Files figures under their metrics and scopes. A value that is not finite is left out; of two with one place the
/// later one stays.
fn file(trial: &mut Trial, figures: impl Iterator<Item = check::TrialFigure>) {
    for check::TrialFigure { metric, scope, value, is_at_least } in
        figures.filter(|one| one.value.is_finite())
    {
        if is_at_least {
            let scopes = trial.at_least.entry(metric.name.to_owned()).or_default();
            scopes.insert(scope.clone());
        }
        trial.metrics.entry(metric.name.to_owned()).or_default().insert(scope, value);
    }
}

fn phase_marks(window: Option<MeasuredWindow>, phases: &[ScenarioPhase]) -> Vec<TimelineMark> {
    let Some(window) = window else { return Vec::new() };
    let mark = |at: Moment, text: &str| TimelineMark {
        at,
        length_ns: 0,
        kind: MarkKind::Phase,
        node: "generator".to_owned(),
        text: text.to_owned(),
    };
    let mut marks = vec![
        mark(window.load_began, "all clients connected"),
        mark(window.open, "window opens"),
        mark(window.close, "window closes"),
    ];
    marks.extend(phases.iter().map(|phase| {
        let part = of_phases::window_of(window, phase);
        let rate = match phase.rate_times {
            1.0 => String::new(),
            times => format!(", rate × {times}"),
        };
        let text = format!("phase {}{rate}", phase.name);
        TimelineMark { length_ns: part.close.since(part.open), ..mark(part.open, &text) }
    }));
    marks
}

/// The end of what each server and service wrote, as far as it is the lab's.
pub(crate) fn log_tails(site: &Site) -> BTreeMap<String, String> {
    let last = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n") + "\n"
    };
    let logs = site.services().filter_map(|one| Some((one.name().to_owned(), one.log_text()?)));
    logs.map(|(name, text)| (name, last(&text))).collect()
}

/// Lines of a log that are kept of a trial that is not done, or whose ledger is kept: a manager of a cluster
/// writes some ten lines a second around a failover.
const LOG_LINES: usize = 1_000;

/// A trial of which nothing is known yet.
pub(crate) fn blank(order: &TrialOrder<'_>) -> FinishedTrial {
    let (started_at, began) = (clock::wall(), clock::now(order.origin));
    let planned = PlannedTrial::new(order.planned, &order.point.name);
    let trial = Trial { started_at, began, ended: began, ..planned.attempt(order.attempt) };
    let (intervals, samples, marks, logs) = Default::default();
    FinishedTrial { trial, intervals, samples, marks, logs }
}
