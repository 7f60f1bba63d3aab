//! Claims about trials: about every single one, or about one at least.
//!
//! Every attempt that was ever made is asked. One that shows the contrary refutes what is said of
//! every trial, however it ended and whether or not a later attempt was steadier. Only complete
//! attempts support it. A trial in scope that broke, was never run or does not show what is asked
//! leaves the claim open: it can still be refuted, but it does not hold.

use std::collections::{BTreeMap, BTreeSet};

use record::{
    AttemptEnding, EndingReason, FaultyParty, HostUse, MetricFigure, PlannedTrial, Trial, VoidKind,
};
use spec::{
    HostGapEffect, Metric, MetricDirection, OnLoss, Quantifier, Study, TrialCondition, metrics,
};

use crate::claim_verdict::{ClaimFinding, ClaimMeasurement, Verdict};
use crate::host_gaps;
use crate::left_out;
use crate::name::{point_name, trial_name};
use crate::rounds::{figure_of, value_of};
use crate::truth::truth;

/// A condition on trials, and the trials that it speaks of.
#[derive(Clone, Copy)]
pub(crate) struct TrialQuestion<'a> {
    pub(crate) study: &'a Study,
    pub(crate) quantifier: Quantifier,
    pub(crate) condition: &'a TrialCondition,
    /// The part of a trial whose figures are meant; empty for those of the whole trial.
    pub(crate) of: &'a str,
    /// Indices of the points whose trials it speaks of.
    pub(crate) points: &'a [usize],
}

/// Judges a condition on every trial of some points. `plan` is what the run consists of: a trial of
/// it that was not run keeps the claim open.
pub(crate) fn judge(
    question: TrialQuestion<'_>,
    plan: &[PlannedTrial],
    trials: &[Trial],
) -> ClaimFinding {
    let TrialQuestion { study, quantifier, condition, points, .. } = question;
    let asked = asked(study, condition, points);
    let mut by_number: BTreeMap<(usize, String), Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        if point.is_some_and(|point| asked.contains(&point)) {
            by_number.entry((trial.number, trial_name(trial))).or_default().push(trial);
        }
    }
    let shown: Vec<Shown> = by_number.values().map(|attempts| question.trial(attempts)).collect();

    let refuted: Vec<String> = shown.iter().flat_map(|one| one.refutes.clone()).collect();
    let mut open: Vec<String> = shown.iter().filter_map(|one| one.open.clone()).collect();
    open.splice(0..0, never_run(study, &asked, plan, trials));
    let supports = shown.iter().filter(|one| one.supports).count();
    let seen = shown.iter().filter(|one| one.supports || !one.refutes.is_empty()).count() as u64;
    let failed = |one: &&Shown| match quantifier {
        Quantifier::Every => !one.refutes.is_empty(),
        Quantifier::Some => !one.supports && !one.refutes.is_empty(),
    };
    let failures = shown.iter().filter(failed).count() as u64;
    let verdict = match quantifier {
        Quantifier::Every if !refuted.is_empty() => Verdict::DoesNotHold,
        Quantifier::Every if supports > 0 && open.is_empty() => Verdict::Holds,
        Quantifier::Some if supports > 0 && open.is_empty() => Verdict::Holds,
        Quantifier::Some if supports == 0 && seen > 0 && open.is_empty() => Verdict::DoesNotHold,
        Quantifier::Every | Quantifier::Some => Verdict::CannotTell,
    };
    let mut why = Vec::new();
    if quantifier == Quantifier::Every {
        why.extend(first_few(refuted));
    }
    why.extend(first_few(open));
    why.extend(partly_left_out(study, &asked, plan));
    if shown.is_empty() && why.is_empty() {
        why.push("no such trial was run".to_owned());
    } else if seen == 0 && why.is_empty() {
        why.push("no such trial was run to its end".to_owned());
    }
    let measured = match seen {
        0 => ClaimMeasurement::Nothing,
        trials => {
            let rates = stats::failure_rate::rates(failures, trials);
            ClaimMeasurement::Count { quantifier, trials, failures, rates }
        }
    };
    ClaimFinding { measured, verdict, why: why.join("; "), p: None }
}

/// Planned trials of some points that have no attempt in the record: the run was interrupted, or
/// something stopped it.
fn never_run(
    study: &Study,
    asked: &[usize],
    plan: &[PlannedTrial],
    trials: &[Trial],
) -> Option<String> {
    let run: BTreeSet<usize> = trials.iter().map(|trial| trial.number).collect();
    let is_asked = |planned: &&PlannedTrial| {
        let point = study.point(&planned.variant, &planned.scenario, &planned.axes);
        point.is_some_and(|point| asked.contains(&point))
    };
    let planned: Vec<&PlannedTrial> = plan.iter().filter(is_asked).collect();
    let missing: Vec<&&PlannedTrial> =
        planned.iter().filter(|planned| !run.contains(&planned.number)).collect();
    let first = missing.first()?;
    let name = point_name(&first.variant, &first.scenario, &first.axes);
    Some(match (missing.len(), planned.len()) {
        (1, _) => format!("trial {} ({name}) was planned and not run", first.number),
        (missing, all) => format!(
            "{missing} of {all} planned trials were not run (the first: trial {}, {name})",
            first.number
        ),
    })
}

/// Points that the claim speaks of and the run left out, as with `--only`. The verdict is about the
/// rest, and says so. The second copy of a point adds none.
fn partly_left_out(study: &Study, asked: &[usize], plan: &[PlannedTrial]) -> Option<String> {
    let planned = left_out::planned(study, plan)?;
    let copy = study.twin.map(|twin| twin.point);
    let asked: Vec<usize> = asked.iter().copied().filter(|point| Some(*point) != copy).collect();
    let left: Vec<&usize> = asked.iter().filter(|point| !planned.contains(point)).collect();
    let first = **left.first()?;
    Some(format!(
        "this run left out {} of the {} points that the claim is about (the first: {})",
        left.len(),
        asked.len(),
        study.points[first].name
    ))
}

/// The points whose trials can have the figures; all, where none can: then each trial says so.
pub(crate) fn asked(study: &Study, condition: &TrialCondition, points: &[usize]) -> Vec<usize> {
    let can_have = |point: &&usize| {
        condition.metrics().iter().all(|metric| study.points[**point].can_have(metric))
    };
    match points.iter().filter(can_have).copied().collect::<Vec<usize>>() {
        none if none.is_empty() => points.to_vec(),
        some => some,
    }
}

/// Answer of all attempts at one trial.
#[derive(Default)]
struct Shown {
    /// A complete attempt shows that it is so.
    supports: bool,
    /// Attempts that show the contrary, in words.
    refutes: Vec<String>,
    /// Why the trial leaves it open, in words.
    open: Option<String>,
}

/// Answer of an attempt.
enum AttemptAnswer {
    Yes,
    No(Vec<MetricFigure>),
    /// Nothing, for this reason.
    Nothing(String),
}

impl TrialQuestion<'_> {
    fn trial(&self, attempts: &[&Trial]) -> Shown {
        let mut shown = Shown::default();
        let mut broken = None;
        for attempt in attempts {
            let name = name(attempt);
            match (&attempt.ending, self.answer(attempt)) {
                (ending, AttemptAnswer::No(values))
                    if self.quantifier == Quantifier::Every || ending.is_complete() =>
                {
                    shown.refutes.push(format!("{name}: {}", self.figures(&values)));
                }
                // What broke it may be what the claim excludes: no later attempt makes up for it,
                // unless it is proven that no server had a part in it.
                (AttemptEnding::Failed(_), _) => {
                    let words = format!("{name} {}", failed_words(&attempt.ending));
                    match attempt.ending.stays_open() {
                        true => shown.open = Some(words),
                        false => broken = Some(words),
                    }
                }
                (AttemptEnding::Interrupted(_), _) => {
                    let words = format!("{name} was interrupted: {}", attempt.ending.headline());
                    match attempt.ending.stays_open() {
                        true => shown.open = Some(words),
                        false => broken = Some(words),
                    }
                }
                // What cannot run here is out of scope.
                (AttemptEnding::Skipped(_), _) => {}
                // What ran, but not as the study asks, can refute and nothing else.
                (AttemptEnding::Void(reason), answer) if !attempt.ending.is_complete() => {
                    let has_figure = matches!(answer, AttemptAnswer::Yes | AttemptAnswer::No(_));
                    if reason.kind == VoidKind::AllFailed || !has_figure {
                        shown.open = Some(format!("{name} is void: {}", attempt.ending.headline()));
                    }
                }
                (_, AttemptAnswer::No(_)) => {}
                (_, AttemptAnswer::Yes) => shown.supports = true,
                (_, AttemptAnswer::Nothing(why)) => shown.open = Some(format!("{name} {why}")),
            }
        }
        if !shown.supports && shown.open.is_none() {
            shown.open = broken;
        }
        shown
    }

    fn answer(&self, trial: &Trial) -> AttemptAnswer {
        let metrics = self.condition.metrics();
        let mut figures = Vec::new();
        for metric in metrics {
            match figure_of(trial, metric, self.of) {
                Some(figure) => figures.push(figure),
                None => return AttemptAnswer::Nothing(missing(trial, metric)),
            }
        }
        let all = || metrics.iter().zip(&figures);
        if let Some(host) = trial.lost_clients()
            && let Some((metric, _)) =
                all().find(|(metric, figure)| metric.needs_every_client() && !figure.is_at_least)
        {
            let clients = host.load.expect("lost_clients finds hosts with a load").clients;
            let (host, name) = (&host.name, metric.name);
            return AttemptAnswer::Nothing(format!(
                "lost host {host} with {clients} of its clients: {name} is that of the others"
            ));
        }
        if let Some((host, bound_ns)) = trial.unclocked_host()
            && let Some(metric) = metrics.iter().find(|one| one.compares_moments_of_clients())
        {
            let text = format!("leaves it open: {} takes the order of time, and", metric.name);
            return AttemptAnswer::Nothing(format!("{text} {}", clock_words(host, bound_ns)));
        }
        let Some(is_true) = truth(self.condition, &figures) else {
            return AttemptAnswer::Nothing(self.open_words(trial, &figures));
        };
        if let Some(why) = self.owed_to_a_clock(trial, &figures, is_true) {
            return AttemptAnswer::Nothing(why);
        }
        if let Some(why) = self.owed_to_a_host(trial, &figures, is_true) {
            return AttemptAnswer::Nothing(why);
        }
        if !is_true && self.quantifier == Quantifier::Every {
            return AttemptAnswer::No(figures);
        }
        if let Some(why) = marred(self.study, trial) {
            return AttemptAnswer::Nothing(why);
        }
        if all().any(|(metric, figure)| says_that_nothing_is_lost(metric, figure.value))
            && let Some(why) = self.nothing_to_lose(trial)
        {
            return AttemptAnswer::Nothing(why);
        }
        if is_true { AttemptAnswer::Yes } else { AttemptAnswer::No(figures) }
    }

    /// Why nothing could have been lost in a trial: no row was promised, no transaction was
    /// under way when the fault came, or there was no load in much of the window.
    fn nothing_to_lose(&self, trial: &Trial) -> Option<String> {
        // A trial without a ledger has no such figure; it is refused below for what it lacks.
        let unjudged = value_of(trial, &metrics::LEDGER_UNJUDGED, "").unwrap_or(0.0);
        if unjudged > 0.0 {
            let whose = if unjudged == 1.0 { "1 client" } else { &format!("{unjudged} clients") };
            return Some(format!("lost the rest of the ledger of {whose}, with their generator"));
        }
        match acknowledged(trial, self.of) {
            Some(count) if count > 0.0 => {}
            Some(_) => return Some("acknowledged no transaction".to_owned()),
            None => return Some(format!("has no {}", metrics::LEDGER_ACKNOWLEDGED.name)),
        }
        let in_flight = value_of(trial, &metrics::LEDGER_IN_FLIGHT, "");
        if in_flight.is_some_and(|count| count == 0.0) {
            return Some("had no transaction in flight at the fault".to_owned());
        }
        let share = |of| value_of(trial, &metrics::LEDGER_LOAD_SHARE, of);
        let share = share(self.of).or_else(|| share(""))?;
        (share < LOAD_SHARE_MIN).then(|| {
            let percent = share * 100.0;
            format!("had clients at work in {percent:.0} % of its window only")
        })
    }

    /// Why lower bounds of figures leave the condition open.
    fn open_words(&self, trial: &Trial, figures: &[MetricFigure]) -> String {
        let all = || self.condition.metrics().iter().zip(figures);
        let is_age = |(metric, figure): (&&Metric, &MetricFigure)| {
            figure.is_at_least && metric.is_age_of_reads()
        };
        match trial.unclocked_host() {
            _ if all().any(|(metric, figure)| is_unjudged_for_a_host(metric, figure)) => format!(
                "has a part of its history that was not judged, as {}",
                clients_doubt(trial)
            ),
            Some((host, bound_ns)) if all().any(is_age) => format!(
                "leaves it open: {}, and {}",
                self.figures(figures),
                clock_words(host, bound_ns)
            ),
            _ => format!("leaves it open: {}", self.figures(figures)),
        }
    }

    /// Why a pause between what clients on several hosts heard shows nothing: the clocks of these hosts are
    /// so far apart that the condition may have the other answer.
    fn owed_to_a_clock(
        &self,
        trial: &Trial,
        figures: &[MetricFigure],
        is_true: bool,
    ) -> Option<String> {
        let (host, bound_ns) = trial.unclocked_host()?;
        let off_ms = 2.0 * bound_ns as f64 / 1e6;
        let moved = |by_ms: f64| -> Vec<MetricFigure> {
            let figures = self.condition.metrics().iter().zip(figures);
            let moved = figures.map(|(metric, figure)| match *metric {
                one if one.name == metrics::ACK_PAUSE_MAX_MS.name => {
                    MetricFigure { value: (figure.value + by_ms).max(0.0), ..*figure }
                }
                _ => *figure,
            });
            moved.collect()
        };
        let is_same = |figures: Vec<MetricFigure>| truth(self.condition, &figures) == Some(is_true);
        (!is_same(moved(-off_ms)) || !is_same(moved(off_ms))).then(|| {
            let words = clock_words(host, bound_ns);
            format!("leaves it open: {}, and {words}", self.figures(figures))
        })
    }

    /// Why what was measured shows nothing: a host stood still, was cut off from a server or had a
    /// full disk, so that without it the condition may have the other answer.
    fn owed_to_a_host(
        &self,
        trial: &Trial,
        figures: &[MetricFigure],
        is_true: bool,
    ) -> Option<String> {
        let lost = trial.host_time_lost()?;
        // Without a window, nothing is known of the share that was taken.
        let window_s = trial.window.map_or(0.0, |window| window.seconds());
        let is_same = |figures: &[MetricFigure]| truth(self.condition, figures) == Some(is_true);
        let metrics = self.condition.metrics();
        let best: Vec<MetricFigure> = metrics
            .iter()
            .zip(figures)
            .map(|(metric, figure)| host_gaps::without(metric, *figure, &lost, window_s))
            .collect();
        if host_gaps::mixtures(figures, &best).iter().all(|mixture| is_same(mixture)) {
            return None;
        }
        let may_wait =
            metrics.iter().any(|metric| metric.effect_of_host_gaps() == HostGapEffect::Lengthens);
        Some(format!(
            "leaves it open: {}, and {} may be due to that",
            host_gaps::words(&lost, may_wait),
            self.figures(figures)
        ))
    }

    fn figures(&self, figures: &[MetricFigure]) -> String {
        let names = self.condition.metrics().iter().map(|metric| metric.name);
        let sign = |figure: &MetricFigure| if figure.is_at_least { ">" } else { "=" };
        let values: Vec<String> = names
            .zip(figures)
            .map(|(name, figure)| format!("{name} {} {}", sign(figure), figure.value))
            .collect();
        values.join(", ")
    }
}

/// True if a part of a history is not judged for the sake of a host of clients: its clock, or its loss.
fn is_unjudged_for_a_host(metric: &Metric, figure: &MetricFigure) -> bool {
    figure.is_at_least && metric.name == metrics::HISTORY_UNJUDGED.name
}

/// Why a trial has no figure of a metric, as far as its hosts tell.
fn missing(trial: &Trial, metric: &Metric) -> String {
    let is_history = metric.name == metrics::HISTORY_FORBIDDEN.name;
    match trial.unclocked_host().filter(|_| is_history) {
        Some((host, bound_ns)) => {
            format!("has no {}: {}", metric.name, clock_words(host, bound_ns))
        }
        None => format!("has no {}", metric.name),
    }
}

/// How well a clock is known.
fn clock_words(host: &HostUse, bound_ns: u64) -> String {
    let ms = bound_ns as f64 / 1e6;
    format!("the clock of host {} is known to ± {ms:.1} ms only", host.name)
}

/// What became of the hosts of clients, where a history is not judged as a whole for their sake.
fn clients_doubt(trial: &Trial) -> String {
    match trial.lost_clients() {
        Some(host) => format!("host {} with clients is lost", host.name),
        None => "the clocks of the clients are apart".to_owned(),
    }
}

/// Why a trial that came to its end shows nothing: clients gave up although nothing that they
/// were connected to was ended, or a server crashed.
pub(crate) fn marred(study: &Study, trial: &Trial) -> Option<String> {
    // A trial in which nothing looked for crashes has no such figure: claims about crashes have no
    // value there.
    let crashes = value_of(trial, &metrics::UNASKED_CRASHES, "").unwrap_or(0.0);
    if crashes > 0.0 {
        return Some("had a server that crashed unasked".to_owned());
    }
    let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
    let point = point.map(|point| &study.points[point]);
    // Where clients do not come back, an action may end them.
    if point.is_some_and(|point| point.on_loss == OnLoss::Abort && !point.timeline.is_empty()) {
        return None;
    }
    let aborted: u64 = trial.workloads.iter().map(|one| one.counts_total.aborted_clients).sum();
    (aborted > 0).then(|| format!("lost {aborted} of its clients, who gave up"))
}

/// The share of a window in which clients must have been at work: one tenth of it may be missing.
const LOAD_SHARE_MIN: f64 = 0.9;

/// True if a value of a metric says that acknowledged transactions are there. That a server did not
/// survive needs no transaction to be true.
fn says_that_nothing_is_lost(metric: &Metric, value: f64) -> bool {
    let is_destruction = metric.better == MetricDirection::Higher && value == 0.0;
    metric.is_about_acknowledged() && !is_destruction
}

/// Acknowledged transactions of a part; of a part that is no workload, those of the trial.
fn acknowledged(trial: &Trial, of: &str) -> Option<f64> {
    let acknowledged = |of| value_of(trial, &metrics::LEDGER_ACKNOWLEDGED, of);
    acknowledged(of).or_else(|| acknowledged(""))
}

/// The first of many reasons, and how many more there are.
fn first_few(mut reasons: Vec<String>) -> Vec<String> {
    let more = reasons.len().saturating_sub(SHOWN_MAX);
    reasons.truncate(SHOWN_MAX);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    reasons
}

/// More than these are not read.
const SHOWN_MAX: usize = 3;

/// That an attempt failed, and why. A crash of a server is told once, of the trial, and not of each claim and gate
/// that it decides.
pub(crate) fn failed_words(ending: &AttemptEnding) -> String {
    match ending {
        AttemptEnding::Failed(EndingReason { kind: FaultyParty::Server, .. }) => {
            "failed by a server's fault".to_owned()
        }
        ending => format!("failed: {}", ending.headline()),
    }
}

/// `trial 3, attempt 2 (variant/scenario)`.
fn name(trial: &Trial) -> String {
    let attempt = match trial.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    format!("trial {}{attempt} ({})", trial.number, trial_name(trial))
}
