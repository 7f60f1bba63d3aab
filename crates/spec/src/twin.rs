//! The A/A of a study: one point that is measured twice in every round, as a member like any other.
//!
//! Two points that are the same differ by the machine's noise and nothing else, which shows what
//! the study cannot resolve. A study that compares throughput gets its twin without asking.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use terms::Pace;

use crate::catalogue::metrics;
use crate::check::Check;
use crate::claim::{Claim, ClaimSubject};
use crate::data::DataReset;
use crate::named::NamedItem;
use crate::point::TrialPoint;
use crate::profile::StudyProfile;

/// A point and its second copy, as indices of the study's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwinPoint {
    /// The point that is measured twice.
    pub of: usize,
    /// The copy.
    pub point: usize,
}

/// Enough rounds for an interval without assuming a distribution.
const ROUNDS_ENOUGH: u32 = 6;

/// Adds the twin of the cheapest point whose throughput a claim compares with another point's, in
/// closed loop, to the points and, as a variant of its own, to the variants. None where nothing of
/// the kind is compared, and in profile smoke, whose figures mean nothing.
pub(crate) fn add(
    points: &mut Vec<TrialPoint>,
    variants: &mut Vec<NamedItem>,
    claims: &[Claim],
    profile: StudyProfile,
) -> Option<TwinPoint> {
    if profile == StudyProfile::Smoke {
        return None;
    }
    let compared = claims.iter().map(compared).filter(|points| points.len() >= 2);
    let compared: Vec<BTreeSet<usize>> = compared.collect();
    let candidates = compared.iter().flatten().filter(|index| is_plain(&points[**index]));
    let of = candidates.copied().min_by_key(|index| {
        let point = &points[*index];
        let cost = point.load_ms_max() * u64::from(point.rounds);
        (Reverse(point.rounds.min(ROUNDS_ENOUGH)), cost, *index)
    })?;
    // Points of one variant share its servers, and so does the copy where only such points are
    // compared; servers of its own would add the difference between servers to the noise.
    let variant = &points[of].name.variant;
    let is_other = |index: &usize| points[*index].name.variant != *variant;
    // Where each trial begins with a copy of the data, nothing of a server outlives it.
    let has_own_servers = points[of].data.reset == DataReset::Keep
        && compared.iter().any(|points| points.contains(&of) && points.iter().any(is_other));
    let mut copy = points[of].clone();
    let at = variants.iter().position(|variant| variant.name == copy.name.variant)?;
    copy.name.variant.push_str("-again");
    while variants.iter().any(|variant| variant.name == copy.name.variant) {
        copy.name.variant.push_str("-again");
    }
    copy.has_own_servers = has_own_servers;
    let says = format!("{}, measured again (A/A)", variants[at].label());
    variants.insert(at + 1, NamedItem { name: copy.name.variant.clone(), says });
    points.push(copy);
    Some(TwinPoint { of, point: points.len() - 1 })
}

/// The points whose throughput a claim speaks of: where there are several, it compares them.
fn compared(claim: &Claim) -> BTreeSet<usize> {
    let ClaimSubject::Value { value, .. } = &claim.about else { return BTreeSet::new() };
    let throughput = value.references().iter().filter(|one| one.metric == &metrics::TPS);
    throughput.map(|one| one.point).collect()
}

/// True if a point runs often enough, in closed loop, under steady load, without a fault on the way
/// and without a check that takes time or changes what the next trial finds.
fn is_plain(point: &TrialPoint) -> bool {
    let is_closed = point.workloads.iter().all(|workload| workload.pace == Pace::Closed);
    let is_quiet = point.checks.iter().all(|check| *check == Check::Counts);
    let is_steady = point.must_be_steady && point.timeline.is_empty() && is_quiet;
    point.rounds >= 2 && is_closed && is_steady
}
