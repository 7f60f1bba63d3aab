//! Stretches in which nothing succeeded: what an outage is to the clients. Pure.

use record::Moment;

/// Shorter ones are not kept: a checkpoint, not an outage.
const SHORTEST_NS: u64 = 50_000_000;
/// So many are kept of one lane, the longest ones: a few transactions a second leave more gaps, and an outage is
/// longer than these.
const MOST: usize = 10_000;

/// A stretch of a load in which no transaction of a workload succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// The last success before it, or the load's beginning.
    pub from: Moment,
    /// The first success after it, or the end.
    pub to: Moment,
}

impl Standstill {
    /// The length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to.since(self.from) as f64 / 1e9
    }
}

/// The standstills of one lane: from and to, in nanoseconds since the run began.
#[derive(Debug, Default)]
pub(crate) struct LaneStandstills {
    last: u64,
    kept: Vec<(u64, u64)>,
}

impl LaneStandstills {
    pub(crate) fn begin(&mut self, now: u64) {
        self.last = now;
    }

    /// A transaction succeeded, or nothing will any more.
    pub(crate) fn ends(&mut self, now: u64) {
        if now.saturating_sub(self.last) >= SHORTEST_NS {
            self.keep((self.last, now));
        }
        self.last = self.last.max(now);
    }

    fn keep(&mut self, new: (u64, u64)) {
        let length = |(from, to): &(u64, u64)| to - from;
        if self.kept.len() == MOST {
            let shortest = self.kept.iter().enumerate().min_by_key(|(_, one)| length(one));
            match shortest {
                Some((index, shortest)) if length(shortest) < length(&new) => {
                    self.kept.remove(index)
                }
                _ => return,
            };
        }
        self.kept.push(new);
    }

    pub(crate) fn take(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.kept)
    }
}

/// Standstills that all lanes had together.
pub(crate) fn common<'a>(mut lanes: impl Iterator<Item = &'a [(u64, u64)]>) -> Vec<Standstill> {
    // Where every lane was lost, nobody can tell of a standstill.
    let first = lanes.next().unwrap_or_default().to_vec();
    let together = lanes.fold(first, |one, other| intersect(&one, other));
    let long = together.into_iter().filter(|(from, to)| to.saturating_sub(*from) >= SHORTEST_NS);
    long.map(|(from, to)| Standstill { from: Moment(from), to: Moment(to) }).collect()
}

fn intersect(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut a, mut b) = (0, 0);
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (one.get(a), other.get(b)) {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        if from < to {
            both.push((from, to));
        }
        if x.1 < y.1 { a += 1 } else { b += 1 }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_standstill_is_common_to_all_lanes() {
        let check = |lanes: &[&[(u64, u64)]], expected: &[(u64, u64)]| {
            let scaled: Vec<Vec<(u64, u64)>> = lanes
                .iter()
                .map(|lane| lane.iter().map(|(from, to)| (from * MS, to * MS)).collect())
                .collect();
            let found: Vec<_> = common(scaled.iter().map(Vec::as_slice))
                .iter()
                .map(|one| (one.from.0 / MS, one.to.0 / MS))
                .collect();
            assert_eq!(found, expected, "{lanes:?}");
        };
        check(&[], &[]);
        check(&[&[(100, 900)]], &[(100, 900)]);
        check(&[&[(100, 900), (1_000, 2_000)], &[(500, 1_500)]], &[(500, 900), (1_000, 1_500)]);
        check(&[&[(100, 900)], &[]], &[]);
        check(&[&[(100, 900)], &[(870, 2_000)]], &[]);
    }

    #[test]
    fn successes_end_standstills() {
        let mut lane = LaneStandstills::default();
        lane.begin(10 * MS);
        for at in [20, 40, 340, 350] {
            lane.ends(at * MS);
        }
        assert_eq!(lane.take(), [(40 * MS, 340 * MS)]);
    }

    #[test]
    fn an_outage_is_kept_after_ever_so_many_gaps() {
        let mut lane = LaneStandstills::default();
        lane.begin(0);
        let gaps = MOST as u64 + 10;
        (1..=gaps).for_each(|n| lane.ends(n * 100 * MS));
        let outage = (gaps * 100 * MS, (gaps * 100 + 5_000) * MS);
        lane.ends(outage.1);
        lane.ends(outage.1 + 100 * MS);
        let kept = lane.take();
        assert_eq!((kept.len(), kept.last()), (MOST, Some(&outage)));
        assert!(kept.is_sorted());
    }
}
