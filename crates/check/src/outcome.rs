//! Input and findings of a check.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use probe::CounterDelta;
use record::ledger::UncoveredCommits;
use record::{
    MeasuredWindow, Moment, Note, NoteKind, TimelineMark, WitnessPicture, WorkloadResult,
};
use server::LoadControl;
use spec::{Metric, TrialPoint};

use crate::queries::QueryValues;

/// The facts that are known of a trial when its checks begin.
#[derive(Clone, Copy, Debug)]
pub struct TrialFacts<'a> {
    /// The point that was run.
    pub point: &'a TrialPoint,
    /// The beginning of the clock of its moments.
    pub origin: Instant,
    /// The user's wish for the end: what takes long is given up then.
    pub control: &'a LoadControl,
    /// Directory of its clients' ledger, if they keep one.
    pub ledger: &'a Path,
    /// Times at which a commit may have been on the primary alone.
    pub exposed: &'a [UncoveredCommits],
    /// The window, if it opened.
    pub window: Option<MeasuredWindow>,
    /// Times at which servers were killed or lost their power.
    pub faults: &'a [Moment],
    /// The servers and fronts that stand still since an action has paused them.
    pub paused: &'a [String],
    /// The servers of whose data a power cut has left nothing.
    pub lost: &'a [String],
    /// Some of the clients were lost with their host: the measurements are those of the others.
    pub has_lost_clients: bool,
    /// The bound of all moments of clients, in nanoseconds, where the clock of a host has jumped: what was noted before that
    /// was seen has a narrower one of its own. 0 where none has.
    pub clocks_within_ns: u64,
    /// The measurements of the clients.
    pub workloads: &'a [WorkloadResult],
    /// The values of the study's queries before the load, where they are compared with later ones.
    pub values: &'a QueryValues,
    /// The counts of each server from before the first client came until after the last one left.
    pub deltas: &'a BTreeMap<String, CounterDelta>,
}

/// Findings of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckOutcome {
    /// The figures.
    pub figures: Vec<TrialFigure>,
    /// Notes for the reader.
    pub notes: Vec<Note>,
    /// Marks for the timeline.
    pub marks: Vec<TimelineMark>,
    /// Anomalies in the clients' history.
    pub witnesses: Vec<WitnessPicture>,
}

/// A figure of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialFigure {
    /// Metric of the figure.
    pub metric: &'static Metric,
    /// Scope of the figure: a workload, a server, a query; empty for the trial as a whole.
    pub scope: String,
    /// The value.
    pub value: f64,
    /// True if it may be larger: not everything could be judged.
    pub is_at_least: bool,
}

impl TrialFigure {
    /// The figure of a metric in a scope.
    #[must_use]
    pub fn new(metric: &'static Metric, scope: &str, value: f64) -> TrialFigure {
        TrialFigure::bounded(metric, scope, value, false)
    }

    /// The same, of which only a lower bound may be known.
    #[must_use]
    pub fn bounded(
        metric: &'static Metric,
        scope: &str,
        value: f64,
        is_at_least: bool,
    ) -> TrialFigure {
        TrialFigure { metric, scope: scope.to_owned(), value, is_at_least }
    }
}

impl CheckOutcome {
    /// Adds a figure.
    pub fn set(&mut self, metric: &'static Metric, scope: &str, value: f64) {
        self.set_bounded(metric, scope, value, false);
    }

    /// Adds a figure of which only a lower bound may be known.
    pub fn set_bounded(
        &mut self,
        metric: &'static Metric,
        scope: &str,
        value: f64,
        is_at_least: bool,
    ) {
        self.figures.push(TrialFigure::bounded(metric, scope, value, is_at_least));
    }

    /// Adds what a reader should know of a check.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(Note::new(NoteKind::Check, text));
    }

    /// The figure of a metric and scope.
    pub fn value(&self, metric: &Metric, scope: &str) -> Option<f64> {
        let is_it = |figure: &&TrialFigure| figure.metric == metric && figure.scope == scope;
        self.figures.iter().find(is_it).map(|figure| figure.value)
    }

    /// Adds what another check found.
    pub fn add(&mut self, other: CheckOutcome) {
        self.figures.extend(other.figures);
        self.notes.extend(other.notes);
        self.marks.extend(other.marks);
        self.witnesses.extend(other.witnesses);
    }
}
