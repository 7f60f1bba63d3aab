//! pg_checksums after a trial: whether every block still is what it was written as.

use lab::{Checksums, Node, StopMode};
use site::Site;
use spec::{Check, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Shuts down every server that the point has checked, and runs pg_checksums there. The scope of a
/// figure is a server, and empty for all of them together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let mut sum = None;
    for check in &before.point.checks {
        let Check::Checksums { node } = check else { continue };
        let name = site.whom(node.as_ref())?.name.clone();
        let Some(server) = site.server_mut(&name) else {
            return Err(Error::NotOurs { program: PROGRAM, node: name, would: "stop" });
        };
        let found = shut_down_and_check(server)?;
        outcome.set(&metrics::CHECKSUM_FAILURES, &name, found.bad as f64);
        // A sum begins with the first server.
        sum = Some(sum.unwrap_or(0.0) + found.bad as f64);
        for complaint in found.complaints {
            outcome.note(format!("{PROGRAM} on {name}: {complaint}"));
        }
    }
    if let Some(sum) = sum {
        outcome.set(&metrics::CHECKSUM_FAILURES, "", sum);
    }
    Ok(outcome)
}

const PROGRAM: &str = "pg_checksums";

fn shut_down_and_check(server: &mut Node) -> Result<Checksums, lab::Error> {
    if server.is_running()? {
        server.stop(StopMode::Fast)?;
    }
    server.check_checksums()
}
