//! Packages of the distribution that points need and that cannot be had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use spec::{TopologyNode, TrialPoint};

use crate::fit::misfit::PointMisfit;

/// Asks for the packages of all these points at once: apt-get takes a second to read its lists. Each point is
/// asked for by itself only if one of them cannot be had.
pub(crate) fn ask<'a>(points: impl Iterator<Item = &'a TrialPoint>) {
    wrong(points.flat_map(names).collect());
}

/// Why the packages of a point's machines cannot be had.
pub(crate) fn misfit(point: &TrialPoint) -> Option<PointMisfit> {
    let (error, hint) = wrong(names(point))?;
    Some(PointMisfit {
        what: "packages".to_owned(),
        amount: 1,
        needs: "packages of the distribution".to_owned(),
        has: error,
        hint,
    })
}

/// The fault in these names; none if all can be had.
fn wrong(names: BTreeSet<String>) -> Option<Wrong> {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known =
        |(had, why): (&BTreeSet<String>, &Option<Wrong>)| why.is_none() && names.is_subset(had);
    if names.is_empty() || asked.iter().any(is_known) {
        return None;
    }
    let ask = |names: &BTreeSet<String>| {
        let names: Vec<String> = names.iter().cloned().collect();
        let error = lab::machine::packages(&names).err()?;
        Some((error.to_string(), error.hint()))
    };
    asked.entry(names).or_insert_with_key(ask).clone()
}

/// Names of the packages of a point's machines.
fn names(point: &TrialPoint) -> BTreeSet<String> {
    let machines = point.topology.nodes.iter().filter_map(TopologyNode::machine);
    machines.flat_map(|machine| machine.packages.clone()).collect()
}

/// The fault in a list of names, and the advice on it.
type Wrong = (String, Option<String>);

/// Names that were asked for.
static ASKED: Mutex<BTreeMap<BTreeSet<String>, Option<Wrong>>> = Mutex::new(BTreeMap::new());
