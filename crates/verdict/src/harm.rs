//! Harm that clients suffered: acknowledged transactions that are gone, and servers that acknowledged at the
//! same time. It is said first, whatever a study claims.

use std::collections::BTreeMap;

use record::Trial;
use spec::{Claim, ClaimSubject, Metric, MetricDirection, MetricSource, metrics};
use terms::{figure, grouped};

use crate::name::trial_name;
use crate::rounds::value_of;

/// Kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HarmKind {
    /// Acknowledged transactions are gone.
    Lost,
    /// A server acknowledged transactions after another one had been promoted and had acknowledged some.
    Split,
}

/// Harm of one kind, over all trials of a run. Every attempt is asked, whatever its ending.
#[derive(Clone, Debug, PartialEq)]
pub struct HarmCount {
    /// The kind.
    pub kind: HarmKind,
    /// Transactions, of all these trials together: those that were lost, or those that an earlier primary
    /// acknowledged beside a later one.
    pub transactions: f64,
    /// Trials that show it.
    pub trials: usize,
    /// Trials in which it could be seen.
    pub of: usize,
    /// Number and point of the trial that shows most of it.
    pub worst: (usize, String),
    /// Transactions of that trial.
    pub worst_transactions: f64,
    /// For how long that trial's servers acknowledged side by side in a split, in milliseconds.
    pub worst_ms: Option<f64>,
}

impl HarmKind {
    /// The kind in one word.
    pub fn name(self) -> &'static str {
        match self {
            HarmKind::Lost => "lost",
            HarmKind::Split => "split",
        }
    }

    fn metric(self) -> &'static Metric {
        match self {
            HarmKind::Lost => &metrics::LEDGER_LOST,
            HarmKind::Split => &metrics::LEDGER_SPLIT,
        }
    }
}

impl HarmCount {
    /// In a sentence that begins with its kind.
    #[must_use]
    pub fn words(&self) -> String {
        let HarmCount { kind, transactions, trials, of, worst, worst_transactions, worst_ms } =
            self;
        let count = |count: f64| grouped(count as u64);
        let commits = if *transactions == 1.0 { "commit" } else { "commits" };
        let (number, point) = worst;
        let all = count(*transactions);
        let place = match trials {
            1 if *of == 1 => format!("in the one trial, {point}"),
            1 => format!("in 1 of {of} trials: trial {number}, {point}"),
            _ => format!(
                "in {trials} of {of} trials; most in trial {number}, {point}: {}",
                count(*worst_transactions)
            ),
        };
        let kind = kind.name();
        match self.kind {
            HarmKind::Lost => format!("{kind}: {all} acknowledged {commits}, {place}"),
            HarmKind::Split => {
                let long = worst_ms.map(|ms| format!(", for {} s there", figure(ms / 1e3)));
                // Only a rig that measured the time can say how long it lasted.
                let long = long.unwrap_or_default();
                format!(
                    "{kind}: two servers acknowledged at once, {all} {commits} by the earlier primary, \
                     {place}{long}"
                )
            }
        }
    }
}

/// The harm of all trials, a kind each: what was lost, then what was split. Empty where there was none.
#[must_use]
pub fn harms(trials: &[Trial]) -> Vec<HarmCount> {
    [HarmKind::Lost, HarmKind::Split].into_iter().filter_map(|kind| of_kind(kind, trials)).collect()
}

fn of_kind(kind: HarmKind, trials: &[Trial]) -> Option<HarmCount> {
    // The attempt at a trial that shows most counts.
    let mut worst_of: BTreeMap<usize, (f64, &Trial)> = BTreeMap::new();
    for trial in trials {
        let Some(value) = value_of(trial, kind.metric(), "") else { continue };
        let known = worst_of.entry(trial.number).or_insert((value, trial));
        if value > known.0 {
            *known = (value, trial);
        }
    }
    let harmed: Vec<(f64, &Trial)> =
        worst_of.values().filter(|(value, _)| *value > 0.0).copied().collect();
    let (worst_transactions, worst) =
        harmed.iter().copied().reduce(|one, other| if other.0 > one.0 { other } else { one })?;
    let long = value_of(worst, &metrics::LEDGER_SPLIT_MS, "");
    Some(HarmCount {
        kind,
        transactions: harmed.iter().map(|(value, _)| value).sum(),
        trials: harmed.len(),
        of: worst_of.len(),
        worst: (worst.number, trial_name(worst)),
        worst_transactions,
        worst_ms: long.filter(|ms| kind == HarmKind::Split && *ms > 0.0),
    })
}

/// True if a claim is true only of trials in which checks have found harm: it is false where they have found
/// none. Such a claim holds where something was lost, damaged or split, and no reader should take that for
/// good news.
pub(crate) fn needs_harm(claim: &Claim) -> bool {
    let ClaimSubject::Every { condition, .. } = &claim.about else { return false };
    let asked = condition.metrics();
    // What is no finding of a check may have any value.
    let sound = |free: f64| -> Vec<f64> {
        let value = |metric: &&Metric| match metric.better {
            _ if !is_finding(metric) => free,
            MetricDirection::Lower => 0.0,
            MetricDirection::Higher | MetricDirection::Neither => free.max(1.0),
        };
        asked.iter().map(value).collect()
    };
    asked.iter().any(|metric| is_finding(metric))
        && ![0.0, 1e300].into_iter().any(|free| condition.is_true(&sound(free)))
}

/// True of what checks count, and of two primaries. How many transactions failed or waited for nobody is no
/// finding, and neither are times and shares.
fn is_finding(metric: &Metric) -> bool {
    let by_checks = matches!(metric.source.by, MetricSource::LedgerAndRows | MetricSource::Check);
    let of_split = [metrics::LEDGER_SPLIT.name, metrics::TWO_PRIMARIES_MS.name];
    (by_checks && metric.unit.is_empty()) || of_split.contains(&metric.name)
}
