//! Checks after a trial: they compare what the clients wrote with the rows that exist, and run
//! PostgreSQL's own tools.
//!
//! A check is a function `(site, before) → Outcome` in a file of its own, and a row of `CHECKS`.
//! It does nothing at a point that does not ask for it. [`prepare`] does what a check needs before
//! the clients connect; [`all`] first mends what the timeline has broken, as far as checks need it.
//!
//! Limits: no load, no probes, no clock; [`TrialFacts`] has the facts of the trial.

mod error;
mod outcome;

mod amcheck;
mod checksums;
mod counts;
mod explain;
mod explore;
mod history;
mod ledger;
mod placement;
mod queries;
mod repair;
mod restore;
mod rows;
mod same_objects;
mod same_rows;
pub mod statements;
mod written;

use site::Site;

pub use counts::check as counts;
pub use error::Error;
pub use explore::{RecoveredState, again, check as explore};

/// Readers of kept files, for fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::explore::read_list as states;
}
pub use history::check as history;
pub use ledger::check as ledger;
pub use ledger::prepare;
pub use outcome::{CheckOutcome, TrialFacts, TrialFigure};
pub use queries::{QueryValues, values};
pub use restore::{back_up, check as restore};

type Check = fn(&mut Site, &TrialFacts<'_>) -> Result<CheckOutcome, Error>;

/// The checks that look at running servers, in the order in which they are made: the last one shuts
/// servers down.
const CHECKS: [Check; 9] = [
    ledger::check,
    history::check,
    amcheck::check,
    placement::check,
    explain::check,
    queries::check,
    same_rows::check,
    same_objects::check,
    checksums::check,
];

/// The statements of a check whose query the study writes; none of other checks.
pub fn sql_of(check: &spec::Check) -> Vec<String> {
    match check {
        spec::Check::Sql(check) => vec![check.sql.clone()],
        spec::Check::Explain(explain) => {
            let (mut statements, query) = explain::statements(explain);
            statements.extend([query, explain::READ.to_owned()]);
            statements
        }
        _ => Vec::new(),
    }
}

/// Makes the checks of a point that look at its servers as the load has left them.
pub fn all(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    repair::repair(site, before)?;
    let mut all = CheckOutcome::default();
    for check in CHECKS {
        all.add(check(site, before)?);
    }
    Ok(all)
}
