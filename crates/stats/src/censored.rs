//! Quantiles of durations of which some had not ended when the observation did.
//!
//! Of a transaction that is still under way only its age is known: it will take at least that long.
//! Left out, the slowest are missing; counted as if it had ended, it is too short. The estimator of
//! Kaplan and Meier (Nonparametric estimation from incomplete observations, JASA 53, 1958) gives the
//! weight of each open duration to those that are longer. Where open durations are the longest of
//! all, the high quantiles are not known, and only a lower bound can be told.

use crate::LatencyHistogram;

/// A quantile, or what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CensoredQuantile {
    /// The duration, ns.
    pub value_ns: u64,
    /// The quantile is at least `value_ns`; how much larger it is, is not known.
    pub is_at_least: bool,
}

/// The quantile (0..1) of durations that ended (`ended`) and of those that had not (`open`, their
/// ages). `None` where nothing was seen, or for a quantile outside of 0..1. A quantile of 1 is the
/// longest duration.
pub fn quantile(
    ended: &LatencyHistogram,
    open: &LatencyHistogram,
    quantile: f64,
) -> Option<CensoredQuantile> {
    if open.is_empty() {
        let value_ns = ended.quantile_ns(quantile)?;
        return Some(CensoredQuantile { value_ns, is_at_least: false });
    }
    if !(0.0..=1.0).contains(&quantile) {
        return None;
    }
    let oldest_ns = open.max_ns()?;
    // Where nothing has ended, the oldest that is under way is the longest.
    let longest_ns = ended.max_ns().unwrap_or(0).max(oldest_ns);
    let beyond = CensoredQuantile { value_ns: longest_ns, is_at_least: true };
    if quantile == 1.0 {
        return Some(CensoredQuantile { is_at_least: longest_ns == oldest_ns, ..beyond });
    }
    // Both by rising duration; what ended at a duration comes before what was still open then.
    let mut at_risk = ended.count() + open.count();
    let mut open = open.buckets().into_iter().peekable();
    let mut survivors = 1.0;
    for (value_ns, count) in ended.buckets() {
        while let Some((_, younger)) = open.next_if(|(age_ns, _)| *age_ns < value_ns) {
            at_risk = at_risk.saturating_sub(younger);
        }
        survivors *= 1.0 - count as f64 / at_risk.max(count) as f64;
        at_risk = at_risk.saturating_sub(count);
        if survivors <= 1.0 - quantile + ROUNDING {
            let value_ns = value_ns.min(ended.max_ns().unwrap_or(value_ns));
            return Some(CensoredQuantile { value_ns, is_at_least: false });
        }
    }
    Some(beyond)
}

/// A product of a thousand factors is off by a little; the next duration must not be taken for it.
const ROUNDING: f64 = 1e-12;

/// Number of durations that are needed to know a quantile: so many that with 95 % confidence the
/// longest of them is not below it, 1 − qⁿ ≥ 0.95 (Wilks, Determination of sample sizes for setting
/// tolerance limits, Annals of Mathematical Statistics 12, 1941). 299 for the 99th percentile,
/// 2,995 for the 99.9th. 1 for quantiles that any sample knows, `u64::MAX` for the maximum, which
/// none does.
pub fn samples_needed(quantile: f64) -> u64 {
    match quantile {
        q if q <= 0.0 => 1,
        q if q >= 1.0 => u64::MAX,
        q => (0.05_f64.ln() / q.ln()).ceil() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut latency = LatencyHistogram::new();
        values.into_iter().for_each(|value| latency.record_ns(value * 1_000_000));
        latency
    }

    #[test]
    fn open_durations_count_as_at_least_their_age() {
        let check = |ended: &LatencyHistogram,
                     open: &LatencyHistogram,
                     q: f64,
                     expected: Option<(u64, bool)>| {
            let found = quantile(ended, open, q);
            let found = found.map(|one| (one.value_ns / 1_000_000, one.is_at_least));
            assert_eq!(found, expected, "{q} of {ended:?} and {open:?}");
        };
        let hundred = of(1..=100);
        check(&hundred, &of([]), 0.99, Some((99, false)));
        check(&of([]), &of([]), 0.5, None);
        check(&hundred, &of([5]), 1.5, None);
        // One client that hangs for ten seconds: the maximum is not known, the median is.
        check(&hundred, &of([10_000]), 0.5, Some((51, false)));
        check(&hundred, &of([10_000]), 1.0, Some((10_000, true)));
        check(&hundred, &of([10_000]), 0.995, Some((10_000, true)));
        // What is open and young says little, and does not pull percentiles down.
        check(&hundred, &of([0; 50]), 0.5, Some((50, false)));
        check(&hundred, &of([0; 50]), 1.0, Some((100, false)));
        // A third never ended: the 90th percentile lies beyond what was seen.
        check(&hundred, &of([200; 50]), 0.5, Some((75, false)));
        check(&hundred, &of([200; 50]), 0.9, Some((200, true)));
        check(&of([]), &of([7]), 0.5, Some((7, true)));
    }

    #[test]
    fn the_estimator_is_that_of_the_textbook() {
        // Survivors by hand: 3 of 4 at 1; the one open at 2 leaves; 3/4 · 1/2 at 3; 0 at 4.
        let (ended, open) = (of([1, 3, 4]), of([2]));
        let at = |q| quantile(&ended, &open, q).map(|one| one.value_ns / 1_000_000);
        assert_eq!((at(0.25), at(0.26), at(0.625), at(0.63)), (Some(1), Some(3), Some(3), Some(4)));
    }

    #[test]
    fn how_many_samples_a_percentile_takes() {
        let check = |q, expected| assert_eq!(samples_needed(q), expected, "{q}");
        check(0.0, 1);
        check(0.5, 5);
        check(0.9, 29);
        check(0.95, 59);
        check(0.99, 299);
        check(0.999, 2995);
        check(1.0, u64::MAX);
    }
}
