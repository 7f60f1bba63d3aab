//! Course of a load over its window: second by second, and its backlog.

use std::collections::BTreeMap;

use record::LoadInterval;

use super::evidence::Evidence;

/// By how many transactions the backlog grew from the first to the last quarter of the window, as a
/// share of those that were due in it.
pub(super) fn growth(backlog: &[u64], ended: u64) -> f64 {
    let quarter = (backlog.len() / 4).max(1);
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
    let (Some(first), Some(last)) = (backlog.get(..quarter), backlog.rchunks(quarter).next())
    else {
        return 0.0;
    };
    let grown = (mean(last) - mean(first)).max(0.0);
    if grown == 0.0 { 0.0 } else { grown / (ended as f64 + grown) }
}

/// Successful transactions in each whole second of the window.
pub(super) fn seconds(evidence: &Evidence<'_>, index: Option<usize>) -> Vec<f64> {
    let open = evidence.window.open;
    let whole = (evidence.window.seconds() + 1e-6).floor() as usize;
    let mut seconds = vec![0.0; whole];
    for interval in &evidence.outcome.intervals {
        if interval.start < open || index.is_some_and(|index| interval.workload != index) {
            continue;
        }
        let second = interval.start.since(open) / 1_000_000_000;
        if let Some(sum) = usize::try_from(second).ok().and_then(|at| seconds.get_mut(at)) {
            *sum += interval.counts.transactions as f64;
        }
    }
    seconds
}

/// The lengths of the runs of seconds in which nothing succeeded.
pub(super) fn standstills(seconds: &[f64]) -> Vec<usize> {
    let runs = seconds.chunk_by(|before, after| (*before == 0.0) == (*after == 0.0));
    runs.filter(|run| run[0] == 0.0).map(<[f64]>::len).collect()
}

/// Transactions that were due and not started at the end of each interval of the window.
pub(super) fn backlog(evidence: &Evidence<'_>, index: Option<usize>) -> Vec<u64> {
    let window = evidence.window;
    let inside = |interval: &&LoadInterval| {
        interval.start >= window.open
            && interval.start < window.close
            && index.is_none_or(|index| interval.workload == index)
    };
    let mut by_start: BTreeMap<u64, u64> = BTreeMap::new();
    for interval in evidence.outcome.intervals.iter().filter(inside) {
        *by_start.entry(interval.start.0).or_default() += interval.backlog;
    }
    by_start.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standstills_are_runs_of_seconds_without_a_success() {
        let check = |seconds: &[f64], expected: &[usize]| {
            assert_eq!(standstills(seconds), expected, "{seconds:?}");
        };
        check(&[], &[]);
        check(&[5.0, 1.0], &[]);
        check(&[0.0, 0.0, 7.0, 0.0], &[2, 1]);
        check(&[7.0, 0.0, 0.0, 0.0, 1.0], &[3]);
    }
}
