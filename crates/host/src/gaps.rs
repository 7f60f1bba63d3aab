//! Stretches in which something that answers all the time did not: a host, a link between two hosts. Pure.

use std::time::Duration;

/// A stretch without an answer, on this machine's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SilentGap {
    /// The last sign before it.
    pub from_ns: u64,
    /// The first sign after it.
    pub to_ns: u64,
}

impl SilentGap {
    /// Its length in nanoseconds.
    pub fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// The part of it between two moments; none where it lies outside.
    fn within(self, from_ns: u64, to_ns: u64) -> Option<SilentGap> {
        let part = SilentGap { from_ns: self.from_ns.max(from_ns), to_ns: self.to_ns.min(to_ns) };
        (part.from_ns < part.to_ns).then_some(part)
    }
}

/// So many are kept of one thing.
const GAPS_MAX: usize = 10_000;

/// The gaps of one thing, as far as those who ask it can see them.
#[derive(Clone, Debug)]
pub(crate) struct SilentGaps {
    /// Shorter ones cannot be told from answers that are late on a busy machine.
    least_ns: u64,
    last_ns: Option<u64>,
    /// In the order of time, apart from each other.
    kept: Vec<SilentGap>,
}

impl SilentGaps {
    /// None so far. Those that are shorter than `least` will not be kept.
    pub(crate) fn new(least: Duration) -> SilentGaps {
        SilentGaps { least_ns: least.as_nanos() as u64, last_ns: None, kept: Vec::new() }
    }

    /// An answer has come.
    pub(crate) fn answered(&mut self, at_ns: u64) {
        if let Some(from_ns) = self.last_ns {
            self.add(SilentGap { from_ns, to_ns: at_ns });
        }
        self.last_ns = Some(at_ns);
    }

    /// Adds a gap. What was known of it before, or touches it, becomes a part of it.
    pub(crate) fn add(&mut self, mut gap: SilentGap) {
        if gap.length_ns() < self.least_ns {
            return;
        }
        let first = self.kept.partition_point(|known| known.to_ns < gap.from_ns);
        let touching = self.kept[first..].iter().take_while(|known| known.from_ns <= gap.to_ns);
        let last = first + touching.count();
        for known in self.kept.drain(first..last) {
            gap.from_ns = gap.from_ns.min(known.from_ns);
            gap.to_ns = gap.to_ns.max(known.to_ns);
        }
        self.kept.insert(first, gap);
        if self.kept.len() > GAPS_MAX {
            self.join_nearest();
        }
    }

    /// Makes one of the two that are nearest to each other. So many are never taken for less than they were.
    fn join_nearest(&mut self) {
        let apart = |at: &usize| self.kept[at + 1].from_ns - self.kept[*at].to_ns;
        if let Some(at) = (0..self.kept.len().saturating_sub(1)).min_by_key(apart) {
            self.kept[at].to_ns = self.kept[at + 1].to_ns;
            self.kept.remove(at + 1);
        }
    }

    /// Their parts between two moments, the one that is not over by `now_ns` included; in the order of time.
    pub(crate) fn between(&self, from_ns: u64, to_ns: u64, now_ns: u64) -> Vec<SilentGap> {
        let open = self.last_ns.map(|from_ns| SilentGap { from_ns, to_ns: now_ns });
        let open = open.filter(|gap| gap.length_ns() >= self.least_ns);
        let parts = self.kept.iter().copied().chain(open);
        union(parts.filter_map(|gap| gap.within(from_ns, to_ns)).collect())
    }

    /// The same without the times in which the one who asks stood still and heard nothing: what is left of a gap is one
    /// only if it is long enough by itself.
    pub(crate) fn between_but(
        &self,
        own: &[SilentGap],
        from_ns: u64,
        to_ns: u64,
        now_ns: u64,
    ) -> Vec<SilentGap> {
        let parts = self.between(from_ns, to_ns, now_ns).into_iter();
        parts
            .flat_map(|gap| {
                let left = without(gap, own);
                // A gap of which nothing is taken away stays as it is, also where a window has cut it.
                let is_whole = left == [gap];
                left.into_iter().filter(move |part| is_whole || part.length_ns() >= self.least_ns)
            })
            .collect()
    }
}

/// What is left of a gap between others, which are in the order of time.
fn without(gap: SilentGap, others: &[SilentGap]) -> Vec<SilentGap> {
    let (mut left, mut reached_ns) = (Vec::new(), gap.from_ns);
    for other in others {
        left.extend(gap.within(reached_ns, other.from_ns));
        reached_ns = reached_ns.max(other.to_ns);
    }
    left.extend(gap.within(reached_ns, gap.to_ns));
    left
}

/// The same time, in stretches that are apart, in the order of time.
pub fn union(mut gaps: Vec<SilentGap>) -> Vec<SilentGap> {
    gaps.sort_unstable();
    let mut apart: Vec<SilentGap> = Vec::new();
    for gap in gaps {
        match apart.last_mut() {
            Some(last) if gap.from_ns <= last.to_ns => last.to_ns = last.to_ns.max(gap.to_ns),
            _ => apart.push(gap),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LEAST: Duration = Duration::from_millis(150);

    fn gaps(told: &[(u64, u64)]) -> Vec<SilentGap> {
        let gap = |(from, to): &(u64, u64)| SilentGap { from_ns: from * MS, to_ns: to * MS };
        told.iter().map(gap).collect()
    }

    #[test]
    fn gaps_are_those_between_answers_inside_a_window() {
        let mut asked = SilentGaps::new(LEAST);
        for at in [1_000, 1_100, 1_200, 1_650, 1_750, 1_950, 2_000] {
            asked.answered(at * MS);
        }
        let check = |from: u64, to: u64, now: u64, expected: &[(u64, u64)]| {
            let found = asked.between(from * MS, to * MS, now * MS);
            assert_eq!(found, gaps(expected), "{from} to {to} at {now}");
        };
        check(0, 9_000, 2_000, &[(1_200, 1_650), (1_750, 1_950)]);
        check(1_500, 9_000, 2_000, &[(1_500, 1_650), (1_750, 1_950)]);
        check(1_300, 1_400, 2_000, &[(1_300, 1_400)]);
        check(0, 1_100, 2_000, &[]);
        // The one that is not over yet.
        check(1_800, 9_000, 3_000, &[(1_800, 1_950), (2_000, 3_000)]);
        check(1_960, 2_500, 3_000, &[(2_000, 2_500)]);
        check(1_960, 2_500, 2_100, &[]);
    }

    #[test]
    fn a_gap_that_is_told_again_and_again_is_one() {
        let mut asked = SilentGaps::new(LEAST);
        for told in gaps(&[(600, 700), (600, 800), (600, 900), (2_000, 2_200), (100, 300)]) {
            asked.add(told);
        }
        assert_eq!(asked.kept, gaps(&[(100, 300), (600, 900), (2_000, 2_200)]));
        asked.add(gaps(&[(250, 2_100)])[0]);
        assert_eq!(asked.kept, gaps(&[(100, 2_200)]));
    }

    #[test]
    fn what_the_one_who_asks_missed_is_no_gap() {
        let check = |told: (u64, u64), own: &[(u64, u64)], expected: &[(u64, u64)]| {
            let mut asked = SilentGaps::new(LEAST);
            asked.add(gaps(&[told])[0]);
            let found = asked.between_but(&gaps(own), 0, 9_000 * MS, 9_000 * MS);
            assert_eq!(found, gaps(expected), "{told:?} without {own:?}");
        };
        check((1_000, 4_000), &[], &[(1_000, 4_000)]);
        check((1_000, 4_000), &[(1_050, 3_990)], &[]);
        check((1_000, 4_000), &[(500, 2_000), (3_950, 5_000)], &[(2_000, 3_950)]);
        check((1_000, 4_000), &[(1_500, 2_000)], &[(1_000, 1_500), (2_000, 4_000)]);
        check((1_000, 4_000), &[(5_000, 6_000)], &[(1_000, 4_000)]);
    }

    #[test]
    fn many_are_never_taken_for_less_than_they_were() {
        let mut asked = SilentGaps::new(LEAST);
        let mut total = 0;
        for number in 0..2 * GAPS_MAX as u64 {
            let from_ns = number * 10_000 * MS;
            let gap = SilentGap { from_ns, to_ns: from_ns + 200 * MS + number };
            total += gap.length_ns();
            asked.add(gap);
        }
        assert_eq!(asked.kept.len(), GAPS_MAX);
        let kept: u64 = asked.kept.iter().map(|gap| gap.length_ns()).sum();
        assert!(kept >= total, "{kept} {total}");
    }
}
