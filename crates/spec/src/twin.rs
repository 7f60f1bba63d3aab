//! The A/A of a study: one point that is measured twice in every round, as a member like any other.
//!
//! Two points that are the same differ by the machine's noise and nothing else, which shows what
//! the study cannot resolve. A study that compares throughput gets its twin without asking.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::claim::{About, Claim};
use crate::point::Point;
use crate::profile::Profile;
use crate::study::Named;
use crate::workload::Pace;

/// A point and its second copy, as indices of the study's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
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
    points: &mut Vec<Point>,
    variants: &mut Vec<Named>,
    claims: &[Claim],
    profile: Profile,
) -> Option<Twin> {
    if profile == Profile::Smoke {
        return None;
    }
    let candidates = claims.iter().flat_map(compared).filter(|index| is_plain(&points[*index]));
    let of = candidates.min_by_key(|index| {
        let point = &points[*index];
        let cost = point.load_ms_max() * u64::from(point.rounds);
        (Reverse(point.rounds.min(ROUNDS_ENOUGH)), cost, *index)
    })?;
    let mut copy = points[of].clone();
    let at = variants.iter().position(|variant| variant.name == copy.name.variant)?;
    copy.name.variant.push_str("-again");
    while variants.iter().any(|variant| variant.name == copy.name.variant) {
        copy.name.variant.push_str("-again");
    }
    copy.is_twin = true;
    let says = format!("{}, measured again (A/A)", variants[at].label());
    variants.insert(at + 1, Named { name: copy.name.variant.clone(), says });
    points.push(copy);
    Some(Twin { of, point: points.len() - 1 })
}

/// The points whose throughput a claim holds against each other.
fn compared(claim: &Claim) -> Vec<usize> {
    let About::Value { value, .. } = &claim.about else { return Vec::new() };
    let throughput = value.references().iter().filter(|one| one.metric.name == "tps");
    let points: BTreeSet<usize> = throughput.map(|one| one.point).collect();
    if points.len() < 2 { Vec::new() } else { points.into_iter().collect() }
}

/// Whether a point runs often enough, in closed loop, under steady load and without a fault on the
/// way.
fn is_plain(point: &Point) -> bool {
    let is_closed = point.workloads.iter().all(|workload| workload.pace == Pace::Closed);
    let is_steady = point.must_be_steady && point.timeline.is_empty() && point.checks.is_empty();
    point.rounds >= 2 && is_closed && is_steady
}
