//! Whether a standby had a commit when it was acknowledged.

use std::collections::BTreeMap;

use super::{Ledger, LedgerOutcome, LedgerTransaction};
use crate::Moment;

/// A stretch of time in which the primary acknowledged commits that no standby needed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncoveredCommits {
    /// Time at which it began.
    pub from: Moment,
    /// Time at which it was over, or the primary dead: what was sent later went to another one.
    pub until: Moment,
}

impl UncoveredCommits {
    /// True if the transaction may have been committed in it: some time between its intent and its
    /// acknowledgement lies inside.
    fn may_hold(&self, transaction: &LedgerTransaction) -> bool {
        transaction.ended >= self.from && transaction.intended <= self.until
    }
}

/// Whether a standby had confirmed a commit when it was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitCover {
    /// One had: commits of its server waited for a standby, and nothing said that this one no longer did.
    Covered,
    /// None needed to: the primary alone acknowledged it.
    Alone,
    /// Nobody knows: the server was not looked at then, or the setting changed.
    Unknown,
}

/// What looks at servers and the records of guards say of commits.
pub(super) struct CoverEvidence<'l> {
    exposed: &'l [UncoveredCommits],
    /// By server: when clients looked, and whether commits waited for a standby, in the order of time.
    looks: BTreeMap<u16, Vec<(Moment, Option<bool>)>>,
}

/// What a server says holds for so long after nobody has looked again, as when it died, and before the first look.
const LOOK_NS_MAX: u64 = 1_000_000_000;

impl<'l> CoverEvidence<'l> {
    pub(super) fn of(ledger: &Ledger, exposed: &'l [UncoveredCommits]) -> CoverEvidence<'l> {
        let mut looks: BTreeMap<u16, Vec<(Moment, Option<bool>)>> = BTreeMap::new();
        for (giver, at, awaits_standby) in ledger.looks() {
            looks.entry(*giver).or_default().push((*at, *awaits_standby));
        }
        looks.values_mut().for_each(|looks| looks.sort_unstable_by_key(|(at, _)| *at));
        CoverEvidence { exposed, looks }
    }

    /// What covered an acknowledged transaction. The looks before, during and after it must agree.
    pub(super) fn cover(&self, transaction: &LedgerTransaction) -> CommitCover {
        if transaction.outcome == LedgerOutcome::AcknowledgedAlone
            || self.exposed.iter().any(|window| window.may_hold(transaction))
        {
            return CommitCover::Alone;
        }
        let Some(looks) = self.looks.get(&transaction.giver) else { return CommitCover::Unknown };
        let (sent, ended) = (transaction.intended, transaction.ended);
        let first = looks.partition_point(|(at, _)| *at <= sent);
        let last = looks.partition_point(|(at, _)| *at < ended);
        let is_near_begin = first > 0 || looks[first].0.since(sent) <= LOOK_NS_MAX;
        let is_near_end = last < looks.len() || ended.since(looks[last - 1].0) <= LOOK_NS_MAX;
        if !is_near_begin || !is_near_end {
            return CommitCover::Unknown;
        }
        let around = &looks[first.saturating_sub(1)..looks.len().min(last + 1)];
        let all = |awaits: bool| around.iter().all(|(_, one)| *one == Some(awaits));
        match (all(true), all(false)) {
            (true, _) => CommitCover::Covered,
            (_, true) => CommitCover::Alone,
            _ => CommitCover::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{LedgerRows, check};

    #[test]
    fn a_commit_is_covered_alone_or_not_known() {
        // Looks at these moments, in milliseconds, and a lost transaction from the one to the other.
        let check = |looks: &[(u64, &str)], (sent, ended): (u64, u64), expected: CommitCover| {
            let look = |(ms, awaits): &(u64, &str)| {
                format!("s 0 0 {} 9 71 1 10.0.0.3 5432 {awaits}\n", ms * 1_000_000)
            };
            let looks_text: String = looks.iter().map(look).collect();
            let [from, until] = [sent, ended].map(|ms| ms * 1_000_000);
            let text = format!("ledger 4 seed 1\n{looks_text}i 0 1 {from}\na 0 1 {until}\n");
            let mut ledger = Ledger::default();
            ledger.add("0.ledger", text.as_bytes()).unwrap();
            let found = check(&ledger, &LedgerRows { insert: Some(Vec::new()), update: None }, &[]);
            assert_eq!(found.lost, 1);
            let cover = match (found.lost_alone, found.lost_cover_unknown) {
                (0, 0) => CommitCover::Covered,
                (1, 0) => CommitCover::Alone,
                _ => CommitCover::Unknown,
            };
            assert_eq!(cover, expected, "{looks:?} {sent} {ended}");
        };
        check(&[], (100, 110), CommitCover::Unknown);
        check(&[(50, "1"), (250, "1")], (100, 110), CommitCover::Covered);
        check(&[(50, "0"), (250, "0")], (100, 110), CommitCover::Alone);
        // The setting changed in the meantime, or may have.
        check(&[(50, "1"), (250, "0")], (100, 110), CommitCover::Unknown);
        check(&[(50, "0"), (250, "1")], (100, 110), CommitCover::Unknown);
        check(&[(50, "1"), (105, "0"), (250, "1")], (100, 110), CommitCover::Unknown);
        check(&[(50, "1"), (250, "-")], (100, 110), CommitCover::Unknown);
        // Before and after, it is what it was then.
        check(
            &[(20, "0"), (50, "1"), (105, "1"), (250, "1"), (300, "0")],
            (100, 110),
            CommitCover::Covered,
        );
        // The last word of a server that died, and the first one of a server that was just looked at.
        check(&[(50, "1")], (1_000, 1_040), CommitCover::Covered);
        check(&[(50, "1")], (1_000, 1_060), CommitCover::Unknown);
        check(&[(1_900, "0")], (1_000, 1_010), CommitCover::Alone);
        check(&[(2_100, "0")], (1_000, 1_010), CommitCover::Unknown);
        // It stood still for a minute, and said the same before and after.
        check(&[(50, "1"), (61_000, "1")], (100, 60_000), CommitCover::Covered);
    }

    #[test]
    fn what_a_guard_or_a_warning_says_comes_first() {
        let check = |outcome: &str, exposed: &[UncoveredCommits], expected: (u64, u64)| {
            let look = "9 71 1 - 5432 1";
            let text = format!(
                "ledger 4 seed 1\ns 0 0 5 {look}\ni 0 1 10\n{outcome} 0 1 20\ns 0 1 25 {look}\n"
            );
            let mut ledger = Ledger::default();
            ledger.add("0.ledger", text.as_bytes()).unwrap();
            let rows = LedgerRows { insert: Some(Vec::new()), update: None };
            let found = check(&ledger, &rows, exposed);
            assert_eq!((found.lost_alone, found.acknowledged_alone), expected, "{outcome}");
        };
        check("a", &[], (0, 0));
        check("w", &[], (1, 1));
        check("a", &[UncoveredCommits { from: Moment(15), until: Moment(18) }], (1, 1));
        check("a", &[UncoveredCommits { from: Moment(22), until: Moment(30) }], (0, 0));
    }
}
