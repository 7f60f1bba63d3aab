//! Packages of the distribution that a point needs and that cannot be had.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use spec::{Node, Point};

use crate::fit::misfit::Misfit;

/// The reason why the packages of a point's machines cannot be had.
pub(crate) fn misfit(point: &Point) -> Option<Misfit> {
    let machines = point.topology.nodes.iter().filter_map(Node::machine);
    let mut names: Vec<String> = machines.flat_map(|machine| machine.packages.clone()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
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

/// The fault in a list of names, and the advice on it.
type Wrong = (String, Option<String>);

/// Lists of names that were asked for.
static ASKED: Mutex<BTreeMap<Vec<String>, Option<Wrong>>> = Mutex::new(BTreeMap::new());
