//! The choice of the commit to measure next, and what is known of the first bad one.

/// The verdict on a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitVerdict {
    /// As good as the good one.
    Good,
    /// As bad as the bad one.
    Bad,
    /// It cannot be built, or the comparison cannot tell in its time.
    Skip,
}

/// Commits between a good and a bad one, in order. The good one is 0, the bad one the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitSearch {
    verdicts: Vec<Option<CommitVerdict>>,
    /// How often each was measured.
    measured: Vec<u32>,
}

/// The last good commit and the first bad one are measured once more: where the machine drifts, a step says what the
/// machine was like in its time.
const REPEATED: u32 = 2;

/// The answer when no commit would say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAnswer {
    /// The first bad commit.
    Commit(usize),
    /// It is one of these: the last good one excluded, the first bad one included.
    Range {
        /// The last good commit.
        good: usize,
        /// The first bad commit.
        bad: usize,
    },
}

impl CommitSearch {
    /// So many commits after the good one, the bad one included.
    pub fn new(commits: usize) -> CommitSearch {
        let mut verdicts = vec![None; commits.max(1) + 1];
        verdicts[0] = Some(CommitVerdict::Good);
        if let Some(last) = verdicts.last_mut() {
            *last = Some(CommitVerdict::Bad);
        }
        let measured = vec![0; verdicts.len()];
        CommitSearch { verdicts, measured }
    }

    /// Notes what was found of a commit. Where it is not what was found before, the commit counts as skipped.
    pub fn note(&mut self, commit: usize, verdict: CommitVerdict) {
        self.measured[commit] += 1;
        self.verdicts[commit] = Some(match self.verdicts[commit] {
            Some(before) if before != verdict => CommitVerdict::Skip,
            _ => verdict,
        });
    }

    /// The last good commit and the first bad one after it.
    pub fn bounds(&self) -> (usize, usize) {
        let is = |at: &usize, verdict| self.verdicts[*at] == Some(verdict);
        let last = self.verdicts.len() - 1;
        // The last commit was given as bad, and the first one as good.
        let bad = (0..=last).find(|at| is(at, CommitVerdict::Bad)).unwrap_or(last);
        // See above.
        let good = (0..bad).rev().find(|at| is(at, CommitVerdict::Good)).unwrap_or(0);
        (good, bad)
    }

    /// The commit to measure next: of those between the bounds of which nothing is known, the one that is
    /// nearest to the middle; then each bound that was measured only once. None where the answer is there.
    pub fn next(&self) -> Option<usize> {
        let (good, bad) = self.bounds();
        let open = (good + 1..bad).filter(|at| self.verdicts[*at].is_none());
        let once = || [bad, good].into_iter().find(|at| self.measured[*at] == 1);
        open.min_by_key(|at| (2 * at).abs_diff(good + bad)).or_else(once)
    }

    /// The answer as far as it is known.
    pub fn answer(&self) -> SearchAnswer {
        match self.bounds() {
            (good, bad) if bad == good + 1 => SearchAnswer::Commit(bad),
            (good, bad) => SearchAnswer::Range { good, bad },
        }
    }

    /// Steps that a search of so many commits takes at most where none is skipped.
    pub fn steps_max(commits: usize) -> u32 {
        commits.max(1).next_power_of_two().ilog2() + REPEATED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_commit_is_found_in_the_logarithm_of_steps() {
        for commits in [1, 2, 3, 7, 64, 100] {
            for first_bad in 1..=commits {
                let mut search = CommitSearch::new(commits);
                let mut steps = 0;
                while let Some(at) = search.next() {
                    search.note(
                        at,
                        if at < first_bad { CommitVerdict::Good } else { CommitVerdict::Bad },
                    );
                    steps += 1;
                }
                assert_eq!(
                    search.answer(),
                    SearchAnswer::Commit(first_bad),
                    "{first_bad} of {commits}"
                );
                assert!(steps <= CommitSearch::steps_max(commits), "{steps} steps of {commits}");
            }
        }
    }

    #[test]
    fn what_is_not_the_same_when_it_is_repeated_is_skipped() {
        let mut search = CommitSearch::new(8);
        let mut times = [0; 9];
        while let Some(at) = search.next() {
            times[at] += 1;
            // The first bad one is 6. 4 was bad when it was measured first.
            let is_bad = at >= 6 || (at == 4 && times[at] == 1);
            search.note(at, if is_bad { CommitVerdict::Bad } else { CommitVerdict::Good });
        }
        assert_eq!(times[4], 2);
        assert_eq!(search.answer(), SearchAnswer::Commit(6));
        assert!(times.iter().all(|times| *times <= 2), "{times:?}");
    }

    #[test]
    fn what_is_skipped_leaves_a_range() {
        let mut search = CommitSearch::new(8);
        let mut order = Vec::new();
        while let Some(at) = search.next() {
            order.push(at);
            let verdict = match at {
                3..=5 => CommitVerdict::Skip,
                ..3 => CommitVerdict::Good,
                _ => CommitVerdict::Bad,
            };
            search.note(at, verdict);
        }
        assert_eq!(order[0], 4);
        assert_eq!(search.answer(), SearchAnswer::Range { good: 2, bad: 6 });
    }
}
