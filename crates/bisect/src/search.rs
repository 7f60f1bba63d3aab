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
}

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
        CommitSearch { verdicts }
    }

    /// Notes what was found of a commit.
    pub fn note(&mut self, commit: usize, verdict: CommitVerdict) {
        self.verdicts[commit] = Some(verdict);
    }

    /// The last good commit and the first bad one after it.
    pub fn bounds(&self) -> (usize, usize) {
        let is = |at: &usize, verdict| self.verdicts[*at] == Some(verdict);
        let last = self.verdicts.len() - 1;
        let bad = (0..=last).find(|at| is(at, CommitVerdict::Bad)).unwrap_or(last);
        let good = (0..bad).rev().find(|at| is(at, CommitVerdict::Good)).unwrap_or(0);
        (good, bad)
    }

    /// The commit to measure next: of those between the bounds of which nothing is known, the one that is
    /// nearest to the middle. None where the answer is there.
    pub fn next(&self) -> Option<usize> {
        let (good, bad) = self.bounds();
        let open = (good + 1..bad).filter(|at| self.verdicts[*at].is_none());
        open.min_by_key(|at| (2 * at).abs_diff(good + bad))
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
        commits.max(1).next_power_of_two().ilog2()
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
