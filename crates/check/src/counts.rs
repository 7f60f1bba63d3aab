//! Do the server and the clients count the same?
//!
//! The server's count is that of statements (`pg_stat_statements`), not of commits: autovacuum and
//! the probes commit too. Counted is a statement that every transaction runs exactly once; where
//! scripts have none in common, one of each script.

use std::collections::BTreeSet;

use record::WorkloadResult;
use site::Site;
use spec::{Check, NodeKind, TrialPoint, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::statements::{Statements, label, scripts};

/// Transactions of a trial as its clients know them, over their whole life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Clients {
    /// Transactions that they saw committed.
    acknowledged: u64,
    /// Transactions that may have run a statement all the same.
    doubtful: u64,
}

impl Clients {
    fn of(workloads: &[WorkloadResult]) -> Clients {
        let doubtful = |workload: &WorkloadResult| {
            let counts = &workload.counts_total;
            // Each try that failed has its error, also of transactions that were given up because
            // time was over.
            let errors: u64 = counts.errors.values().sum();
            workload.unknown + errors + counts.aborted_clients
        };
        Clients {
            acknowledged: workloads.iter().map(|one| one.counts_total.transactions).sum(),
            doubtful: workloads.iter().map(doubtful).sum(),
        }
    }

    /// acknowledged ≤ server's ≤ acknowledged + doubtful; equal where nothing broke.
    fn difference(&self, server_calls: u64) -> i64 {
        let most = self.acknowledged + self.doubtful;
        let nearest = server_calls.clamp(self.acknowledged, most);
        server_calls as i64 - nearest as i64
    }
}

/// Compares the counts of one trial: `server_calls`, and `count_difference`, 0 where the two agree as
/// far as they can.
///
/// # Errors
/// None; what cannot be compared is noted.
pub fn check(_: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let TrialFacts { point, workloads, .. } = before;
    let mut outcome = CheckOutcome::default();
    if !point.checks.contains(&Check::Counts) {
        return Ok(outcome);
    }
    match server_calls(before) {
        Ok(calls) => {
            let difference = Clients::of(workloads).difference(calls);
            outcome.set(&metrics::SERVER_CALLS, "", calls as f64);
            outcome.set(&metrics::COUNT_DIFFERENCE, "", difference as f64);
        }
        Err(Uncounted(why)) => {
            outcome.note(format!("client and server counts not compared: {why}"));
        }
    }
    Ok(outcome)
}

/// Reason why the server's count is not known.
struct Uncounted(&'static str);

fn server_calls(before: &TrialFacts<'_>) -> Result<u64, Uncounted> {
    let TrialFacts { point, deltas, .. } = before;
    if before.has_lost_clients {
        return Err(Uncounted("some of the clients were lost with their host"));
    }
    let labels = counted_labels(&scripts(point));
    let labels = labels.ok_or(Uncounted("no statement runs exactly once in every transaction"))?;
    let mut server_calls = 0;
    for node in servers(point) {
        let delta = deltas.get(node).ok_or(Uncounted("the server's counts are unknown"))?;
        if !delta.is_continuous {
            return Err(Uncounted("the server began its statistics anew"));
        }
        let calls = delta.calls(|query| labels.contains(&label(query)));
        server_calls += calls.ok_or(Uncounted("no pg_stat_statements"))?;
    }
    Ok(server_calls)
}

/// The servers that run the point's statements: those behind a pooler instead of it.
fn servers(point: &TrialPoint) -> BTreeSet<&str> {
    let targets = point.workloads.iter().flat_map(|workload| &workload.to);
    let behind = |name: &'_ String| match point.topology.node(name).map(|node| &node.kind) {
        Some(NodeKind::Pgbouncer(pooler)) => point.topology.node(&pooler.to),
        _ => point.topology.node(name),
    };
    targets.filter_map(behind).map(|node| node.name.as_str()).collect()
}

/// The fewest statements such that every script runs exactly one of them, once.
fn counted_labels(scripts: &[Statements]) -> Option<BTreeSet<String>> {
    let mut chosen = BTreeSet::new();
    choose(scripts, &mut chosen).then_some(chosen)
}

fn choose(scripts: &[Statements], chosen: &mut BTreeSet<String>) -> bool {
    let runs = |statements: &Statements, chosen: &BTreeSet<String>| -> u32 {
        let counts = chosen.iter().filter_map(|label| statements.get(label));
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    };
    if scripts.iter().any(|statements| runs(statements, chosen) > 1) {
        return false;
    }
    let Some(open) = scripts.iter().find(|statements| runs(statements, chosen) == 0) else {
        return true;
    };
    // Those without a table or a function are utility statements: pg_stat_statements counts each of them once for
    // a session that has prepared it, and BEGIN and END are everybody's.
    let candidates: Vec<&String> = open
        .iter()
        .filter(|(label, count)| **count == 1 && label.contains(' '))
        .map(|(label, _)| label)
        .collect();
    candidates.into_iter().any(|label| {
        chosen.insert(label.clone());
        choose(scripts, chosen) || {
            chosen.remove(label);
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::MAYBE;

    fn chosen(scripts: &[&[(&str, u32)]]) -> Option<Vec<String>> {
        let scripts = scripts.iter().map(|statements| {
            statements.iter().map(|(label, count)| ((*label).to_owned(), *count)).collect()
        });
        let scripts: Vec<Statements> = scripts.collect();
        counted_labels(&scripts).map(|labels| labels.into_iter().collect())
    }

    #[test]
    fn a_statement_that_every_transaction_runs_once_is_counted() {
        let check = |scripts: &[&[(&str, u32)]], expected: Option<&[&str]>| {
            let expected = expected.map(|labels| labels.iter().map(|l| l.to_string()).collect());
            assert_eq!(chosen(scripts), expected, "{scripts:?}");
        };
        check(&[&[("BEGIN", 1), ("UPDATE a", 1), ("UPDATE b", 1)]], Some(&["UPDATE a"]));
        check(&[&[("UPDATE a", 2), ("UPDATE b", 1)]], Some(&["UPDATE b"]));
        check(&[&[("SELECT f", MAYBE)]], None);
        check(&[&[("BEGIN", 1), ("INSERT a", MAYBE), ("COMMIT", 1)]], None);
        check(&[&[("SELECT a", 1)], &[("SELECT b", 1)]], Some(&["SELECT a", "SELECT b"]));
        // `SELECT a` would count the second script's transactions twice.
        check(
            &[&[("SELECT a", 1), ("SELECT c", 1)], &[("SELECT a", 2), ("SELECT b", 1)]],
            Some(&["SELECT b", "SELECT c"]),
        );
        check(&[], Some(&[]));
    }

    #[test]
    fn counts_agree_within_what_nobody_knows() {
        let clients = Clients { acknowledged: 100, doubtful: 3 };
        let check = |server, expected| assert_eq!(clients.difference(server), expected);
        check(100, 0);
        check(103, 0);
        check(104, 1);
        check(98, -2);
    }
}
