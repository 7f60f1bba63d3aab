//! Check that every row of a PL/Proxy cluster that was built is still there, and in its place.

use site::Site;
use spec::{Check, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Counts the rows of the cluster and holds them against those that were built.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    if !before.point.checks.contains(&Check::Placement) {
        return Ok(outcome);
    }
    let now = site.audit().map_err(Error::Counting)?;
    if let (Some(built), Some(now)) = (&site.rows_built, now) {
        let lost = built.rows.iter().map(|(table, rows)| {
            // A table that is gone has lost all its rows.
            let left = now.rows.get(table).copied().unwrap_or(0);
            (rows - left).max(0)
        });
        outcome.set(&metrics::ROWS_MISPLACED, "", now.misplaced as f64);
        outcome.set(&metrics::ROWS_LOST, "", lost.sum::<i64>() as f64);
    }
    Ok(outcome)
}
