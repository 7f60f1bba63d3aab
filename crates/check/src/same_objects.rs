//! What the catalogs of two servers of a topology say, compared.

use site::Site;
use spec::{Check, metrics};
use verify::TableFilter;

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::same_rows::pair;

/// Compares the objects of the pairs of servers that the point names. The figures are of all pairs together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let asked = before.point.checks.iter().filter_map(|check| match check {
        Check::SameObjects { nodes } => Some(nodes),
        _ => None,
    });
    let mut sums: Option<(usize, usize, usize)> = None;
    for nodes in asked {
        let found = pair(site, nodes)?.objects(&TableFilter::default())?;
        let shown = found.different.iter().chain(&found.behind).take(SHOWN_MAX);
        shown.for_each(|text| outcome.note(text.clone()));
        let (compared, unlike, behind) = sums.unwrap_or_default(); // the first pair: nothing is summed yet
        let compared = compared + found.compared;
        sums = Some((compared, unlike + found.different.len(), behind + found.behind.len()));
    }
    if let Some((compared, different, behind)) = sums {
        outcome.set(&metrics::OBJECTS_COMPARED, "", compared as f64);
        outcome.set(&metrics::OBJECTS_DIFFERENT, "", different as f64);
        outcome.set(&metrics::SEQUENCES_BEHIND, "", behind as f64);
    }
    Ok(outcome)
}

/// Objects that are named.
const SHOWN_MAX: usize = 10;
