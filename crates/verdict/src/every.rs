//! What is true of trials: of every single one, or of one at least.

use record::{Figure, Status, Trial};
use spec::{Condition, Quantifier, Study};

use crate::judge::{Found, Measured, Verdict, trial_name};
use crate::rounds::figure_of;
use crate::truth::truth;

/// Judges a condition on every trial of some points, on the figures of one part of it if `of` names
/// one. Of a void trial, whose figures are worthless, what must hold everywhere is asked all the
/// same; what shall hold once must hold in a trial that counts.
pub(crate) fn judge(
    study: &Study,
    quantifier: Quantifier,
    condition: &Condition,
    of: &str,
    points: &[usize],
    trials: &[Trial],
) -> Found {
    let mut seen = 0u64;
    let mut unseen = 0u64;
    let mut failed: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let ran = |trial: &&Trial| match (&trial.status, quantifier) {
        (Status::Done, _) | (Status::Void(_), Quantifier::Every) => true,
        (Status::Void(_), Quantifier::Some) => false,
        (Status::Skipped(_) | Status::Failed(_), _) => false,
    };
    for trial in trials.iter().filter(ran) {
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        if !point.is_some_and(|point| points.contains(&point)) {
            continue;
        }
        let metrics = condition.metrics().iter();
        let figures: Option<Vec<Figure>> =
            metrics.map(|metric| figure_of(trial, metric.name, of)).collect();
        let Some(figures) = figures else {
            unseen += 1;
            continue;
        };
        match truth(condition, &figures) {
            Some(true) => seen += 1,
            Some(false) => {
                seen += 1;
                failed.push(describe(trial, condition, &figures));
            }
            None => open.push(describe(trial, condition, &figures)),
        }
    }
    let failures = failed.len() as u64;
    let mut why = Vec::new();
    if failures > 0 && quantifier == Quantifier::Every {
        let more = failed.len().saturating_sub(SHOWN_MAX);
        failed.truncate(SHOWN_MAX);
        why.append(&mut failed);
        if more > 0 {
            why.push(format!("and {more} more"));
        }
    }
    if unseen > 0 {
        let names: Vec<&str> = condition.metrics().iter().map(|metric| metric.name).collect();
        let trials = if unseen == 1 { "trial" } else { "trials" };
        why.push(format!("{unseen} {trials} without {}", names.join(", ")));
    }
    why.extend(open.iter().take(SHOWN_MAX).cloned());
    let verdict = match (seen, failures) {
        (0, _) => Verdict::CannotTell,
        (seen, failures) if quantifier == Quantifier::Some && failures < seen => Verdict::Holds,
        (_, 0) if quantifier == Quantifier::Every && open.is_empty() => Verdict::Holds,
        (_, 0) => Verdict::CannotTell,
        _ if quantifier == Quantifier::Some && !open.is_empty() => Verdict::CannotTell,
        _ => Verdict::DoesNotHold,
    };
    if seen == 0 && unseen == 0 && open.is_empty() {
        why.push("no such trial was run".to_owned());
    }
    let measured = match seen {
        0 => Measured::Nothing,
        trials => Measured::Count { trials, failures, rate_max: rate_max(failures, trials) },
    };
    Found { measured, verdict, why: why.join("; "), p: None }
}

/// More than these are not read.
const SHOWN_MAX: usize = 3;

/// The rate of failures that so many trials do not rule out, at 95 %: 3/n for none.
pub(crate) fn rate_max(failures: u64, trials: u64) -> f64 {
    if failures == 0 {
        return stats::failure_rate::rule_of_three(trials);
    }
    stats::failure_rate::rate_upper_bound(failures, trials, 0.95).unwrap_or(1.0)
}

fn describe(trial: &Trial, condition: &Condition, figures: &[Figure]) -> String {
    let names = condition.metrics().iter().map(|metric| metric.name);
    let sign = |figure: &Figure| if figure.is_at_least { ">" } else { "=" };
    let values: Vec<String> = names
        .zip(figures)
        .map(|(name, figure)| format!("{name} {} {}", sign(figure), figure.value))
        .collect();
    format!("trial {} ({}): {}", trial.number, trial_name(trial), values.join(", "))
}
