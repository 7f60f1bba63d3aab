//! pg_amcheck after a trial: every table and index of the database, and whether each row is in its
//! indexes.

use lab::Server;
use site::{Site, SiteNode};
use spec::{Check, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::rows;

/// Runs pg_amcheck on every server that the point has checked. The scope of a figure is a server,
/// and empty for all of them together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let mut sum = None;
    let mut found: Vec<(&SiteNode, Vec<String>)> = Vec::new();
    for check in &before.point.checks {
        match check {
            Check::Amcheck { node } => {
                let node = site.whom(node.as_ref())?;
                found.push((node, one(node)?));
            }
            Check::AmcheckEverywhere => {
                let primary = &site.primary_now()?.name;
                for node in &site.nodes {
                    match one(node) {
                        Ok(complaints) => found.push((node, complaints)),
                        Err(why) if node.name == *primary => return Err(why),
                        // It is down, or ends meanwhile: that is for its manager to say.
                        Err(why) => {
                            outcome.note(format!("{PROGRAM} has not seen {}: {why}", node.name));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    for (node, complaints) in found {
        let corruptions = complaints.len() as f64;
        outcome.set(&metrics::AMCHECK_CORRUPTIONS, &node.name, corruptions);
        // A sum begins with the first server.
        sum = Some(sum.unwrap_or(0.0) + corruptions);
        for complaint in complaints.iter().take(SHOWN_MAX) {
            outcome.note(format!("{PROGRAM} on {}: {complaint}", node.name));
        }
    }
    if let Some(sum) = sum {
        outcome.set(&metrics::AMCHECK_CORRUPTIONS, "", sum);
    }
    Ok(outcome)
}

const PROGRAM: &str = "pg_amcheck";

/// The complaints of pg_amcheck about one server.
fn one(node: &SiteNode) -> Result<Vec<String>, Error> {
    let name = || node.name.clone();
    let mut arguments = vec!["--no-password", "--heapallindexed"];
    if !rows::is_standby(node)? {
        // A server in recovery can neither create the extension nor take the locks.
        arguments.extend(["--install-missing", "--parent-check"]);
    }
    // Making the extension, which may be there, must not wait for a standby that is gone, nor fail because a
    // manager refuses writes for now.
    let options = "-c synchronous_commit=local -c default_transaction_read_only=off";
    let environment = [("PGOPTIONS", options)];
    let (code, out, said) = match &node.server {
        Server::Node(server) => server.run_client(PROGRAM, &arguments, &environment)?,
        Server::Managed(server) => server.run_client(PROGRAM, &arguments, &environment)?,
        Server::Target(_) => {
            return Err(Error::NotOurs { program: PROGRAM, node: name(), would: "change" });
        }
    };
    if let Some(0 | 2) = code {
        return Ok(complaints(&out));
    }
    // What failed stands before the details.
    let mut lines = said.trim().lines();
    let said = lines.clone().find(|line| line.contains("error:")).or_else(|| lines.next_back());
    let said = said.unwrap_or("it died").to_owned();
    Err(Error::Program { program: PROGRAM, node: name(), said })
}

/// More than these are not read.
const SHOWN_MAX: usize = 5;

/// Each complaint in one line: the place, then what is indented below it.
fn complaints(out: &str) -> Vec<String> {
    let mut complaints: Vec<String> = Vec::new();
    for line in out.lines().filter(|line| !line.trim().is_empty()) {
        match complaints.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(complaint) => {
                complaint.push(' ');
                complaint.push_str(line.trim());
            }
            None => complaints.push(line.to_owned()),
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::complaints;

    #[test]
    fn a_complaint_is_a_place_and_what_is_wrong_there() {
        let out = "heap table \"postgres.public.t\", block 0, offset 3:\n    xmin 7 precedes\n\
                   btree index \"postgres.public.t_pkey\":\n    ERROR:  heap tuple (0,1) lacks\n    \
                   HINT:  retry\n\n";
        assert_eq!(
            complaints(out),
            [
                "heap table \"postgres.public.t\", block 0, offset 3: xmin 7 precedes",
                "btree index \"postgres.public.t_pkey\": ERROR:  heap tuple (0,1) lacks HINT:  retry",
            ]
        );
        assert!(complaints("").is_empty());
    }
}
