//! Choice of the claims that decide a study: verdicts are corrected for each other among these
//! only.

use crate::claim::Claim;
use crate::problem::Problems;

/// The rank of a claim among those of its study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimRank {
    /// One of all: the study marks no headline, and every verdict about a value is corrected for
    /// the others.
    Alike,
    /// One of the few questions that decide: corrected for each other.
    Headline,
    /// Beside the headlines: its verdict is that of its own interval.
    Aside,
}

impl ClaimRank {
    /// True where its verdict has to stand beside those of others.
    pub fn is_corrected(self) -> bool {
        self != ClaimRank::Aside
    }
}

/// The more questions decide, the less each of them is decided: more are not asked at once.
const HEADLINES_MAX: usize = 5;

/// Ranks the claims: those beside a marked one stand aside. More than [`HEADLINES_MAX`] marks are a
/// mistake.
pub(crate) fn rank(claims: &mut [Claim], problems: &Problems) {
    if claims.iter().all(|claim| claim.rank != ClaimRank::Headline) {
        return;
    }
    for claim in claims.iter_mut().filter(|claim| claim.rank == ClaimRank::Alike) {
        claim.rank = ClaimRank::Aside;
    }
    for claim in claims.iter().filter(|one| one.rank == ClaimRank::Headline).skip(HEADLINES_MAX) {
        let message = format!("more than {HEADLINES_MAX} claims of this profile are headlines");
        let hint = "mark the questions that the study is asked; the others keep their own interval";
        problems.hinted(&claim.span, message, hint);
    }
}
