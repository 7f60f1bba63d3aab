//! Packages of the distribution that points need and that cannot be had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use spec::{Node, Point};

use crate::fit::misfit::Misfit;

/// Asks for the packages of all these points at once: apt-get takes a second to read its lists. Each point is
/// asked for by itself only if one of them cannot be had.
pub(crate) fn ask<'a>(points: impl Iterator<Item = &'a Point>) {
    let all: BTreeSet<String> = points.flat_map(names).collect();
    let all: Vec<String> = all.into_iter().collect();
    if !all.is_empty() && lab::machine::packages(&all).is_ok() {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).extend(all);
    }
}

/// The reason why the packages of a point's machines cannot be had.
pub(crate) fn misfit(point: &Point) -> Option<Misfit> {
    let names = names(point);
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if names.is_subset(&known) {
        return None;
    }
    let names: Vec<String> = names.into_iter().collect();
    // Points of a study need the same ones.
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let why = asked.entry(names.clone()).or_insert_with(|| {
        let error = lab::machine::packages(&names).err()?;
        Some((error.to_string(), error.hint()))
    });
    let (error, hint) = why.clone()?;
    Some(Misfit {
        what: "packages".to_owned(),
        amount: 1,
        needs: "packages of the distribution".to_owned(),
        has: error,
        hint,
    })
}

/// Names of the packages of a point's machines.
fn names(point: &Point) -> BTreeSet<String> {
    let machines = point.topology.nodes.iter().filter_map(Node::machine);
    machines.flat_map(|machine| machine.packages.clone()).collect()
}

/// The fault in a list of names, and the advice on it.
type Wrong = (String, Option<String>);

/// Names of packages that can be had.
static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Lists of names that were asked for.
static ASKED: Mutex<BTreeMap<Vec<String>, Option<Wrong>>> = Mutex::new(BTreeMap::new());
