//! Party whose fault a failure was, from typed errors and SQLSTATEs: a server, or unknown. To blame
//! anything else takes a proof.

use std::error::Error;
use std::io;

use load::{LoadError, LoadOutcome, RowsError};

use crate::full_disk::is_full;
use record::FaultyParty;

/// Classes of errors that a server has of its own, whatever it is asked: connections, resources,
/// shutdowns, the system, damage.
const OF_SERVER: [&str; 6] = ["08", "53", "57P", "58", "XX", "F0"];

/// Classes of errors in what is asked: not supported, data, names and syntax.
const OF_STATEMENT: [&str; 6] = ["0A", "22", "26", "3D", "3F", "42"];

/// Blames by what a load has heard: each error's SQLSTATE.
pub(crate) fn of_load(outcome: &LoadOutcome) -> FaultyParty {
    let counts = || outcome.workloads.iter().map(|one| &one.counts_total);
    let has_succeeded = counts().any(|counts| counts.transactions > 0);
    let states = counts().flat_map(|counts| counts.errors.keys());
    of_states(states.map(String::as_str), has_succeeded)
}

/// A statement is proven to be the study's fault by what a server said of it, if nothing ever went well.
fn of_states<'s>(states: impl Iterator<Item = &'s str>, has_succeeded: bool) -> FaultyParty {
    let states: Vec<&str> = states.collect();
    let any = |classes: &[&str], state: &str| classes.iter().any(|class| state.starts_with(class));
    if states.iter().any(|state| any(&OF_SERVER, state)) {
        return FaultyParty::Server;
    }
    // Without any, the client itself has found something that it cannot do.
    match !has_succeeded && states.iter().all(|state| any(&OF_STATEMENT, state)) {
        true => FaultyParty::Study,
        false => FaultyParty::Unknown,
    }
}

/// Blames for an error of a statement of the rig's own.
pub(crate) fn of_sql(error: &postgres::Error) -> FaultyParty {
    let Some(state) = error.code() else {
        // No answer of a server is a server's fault.
        return FaultyParty::Server;
    };
    match of_states([state.code()].into_iter(), true) {
        FaultyParty::Server => FaultyParty::Server,
        _ => FaultyParty::Unknown,
    }
}

/// Blames for an error of a statement of the study's; none where the statement itself is wrong.
pub(crate) fn of_study_sql(error: &postgres::Error) -> Option<FaultyParty> {
    let states = error.code().map(|state| state.code());
    match of_states(states.into_iter(), false) {
        // Without an SQLSTATE no server has answered.
        FaultyParty::Study if states.is_some() => None,
        FaultyParty::Study => Some(FaultyParty::Server),
        fault => Some(fault),
    }
}

/// Blames for a load that did not come to its end.
pub(crate) fn of_load_error(error: &LoadError) -> FaultyParty {
    match error {
        LoadError::OpenFiles { .. } => FaultyParty::Machine,
        LoadError::System { source, .. } if is_full(source) => FaultyParty::Machine,
        // What the study says, found before any server was asked.
        LoadError::Script(_) | LoadError::Statement { .. } | LoadError::Variable { .. } => {
            FaultyParty::Study
        }
        // The query returned no row, or too many. A server that could not be asked may be at fault.
        LoadError::Rows { source, .. }
            if !matches!(**source, RowsError::Connect(_) | RowsError::Query(_)) =>
        {
            FaultyParty::Study
        }
        _ => FaultyParty::Unknown,
    }
}

/// Blames for what the rig does with its servers before and after a load, by the error that is below the others.
pub(crate) fn of(error: &(dyn Error + 'static)) -> FaultyParty {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<postgres::Error>() {
            return of_sql(error);
        }
        let kind = error.downcast_ref().map(io::Error::kind);
        if matches!(kind, Some(io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)) {
            return FaultyParty::Rig;
        }
        next = error.source();
    }
    FaultyParty::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_the_studys_only_by_proof() {
        let check = |states: &[&str], has_succeeded, expected| {
            let found = of_states(states.iter().copied(), has_succeeded);
            assert_eq!(found, expected, "{states:?}");
        };
        check(&["XX001"], false, FaultyParty::Server);
        check(&["XX001", "42P01"], false, FaultyParty::Server);
        check(&["08006"], true, FaultyParty::Server);
        check(&["57P02"], true, FaultyParty::Server);
        check(&["53100"], true, FaultyParty::Server);
        check(&["42P01"], false, FaultyParty::Study);
        check(&["22012", "42601"], false, FaultyParty::Study);
        check(&[], false, FaultyParty::Study);
        // What could be done before is not wrong in itself.
        check(&["42P01"], true, FaultyParty::Unknown);
        check(&["23505"], false, FaultyParty::Unknown);
        check(&["57014"], false, FaultyParty::Unknown);
    }
}
