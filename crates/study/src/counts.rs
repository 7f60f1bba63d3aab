//! Do the server and the clients count the same?
//!
//! The server's count is that of statements (`pg_stat_statements`), not of commits: autovacuum and
//! the probes commit too. Counted is a statement that every transaction runs exactly once; where
//! scripts have none in common, one of each script.

use std::collections::{BTreeMap, BTreeSet};

use probe::Delta;
use record::WorkloadResult;
use script::{CommandKind, Names, Script, Syntax};
use spec::{NodeKind, Point, statement_label};

use crate::load_plan;

/// What the comparison came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// The server's count.
    pub(crate) server_calls: Option<u64>,
    /// The server's count minus the clients', 0 where they agree as far as they can.
    pub(crate) difference: Option<i64>,
    /// What a reader should know.
    pub(crate) notes: Vec<String>,
}

/// What the clients know of the transactions of a trial, over their whole life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clients {
    /// Transactions that they saw committed.
    pub(crate) acknowledged: u64,
    /// Transactions that may have run a statement all the same.
    pub(crate) doubtful: u64,
}

impl Clients {
    pub(crate) fn of(workloads: &[WorkloadResult]) -> Clients {
        let doubtful = |workload: &WorkloadResult| {
            let counts = &workload.counts_total;
            workload.unknown + counts.failed() + counts.retries + counts.aborted_clients
        };
        Clients {
            acknowledged: workloads.iter().map(|one| one.counts_total.transactions).sum(),
            doubtful: workloads.iter().map(doubtful).sum(),
        }
    }

    /// acknowledged ≤ server's ≤ acknowledged + doubtful; equal where nothing broke.
    pub(crate) fn difference(&self, server_calls: u64) -> i64 {
        let most = self.acknowledged + self.doubtful;
        let nearest = server_calls.clamp(self.acknowledged, most);
        server_calls as i64 - nearest as i64
    }
}

/// Compares the counts of one trial.
pub(crate) fn compare(
    point: &Point,
    workloads: &[WorkloadResult],
    deltas: &BTreeMap<String, Delta>,
) -> Counted {
    let doubt = |note: &str| Counted {
        notes: vec![format!("client and server counts not compared: {note}")],
        ..Counted::default()
    };
    let targets = servers(point);
    let Some(labels) = counted_labels(&scripts(point)) else {
        return doubt("no statement runs exactly once in every transaction");
    };
    let mut server_calls = 0;
    for node in targets {
        let Some(delta) = deltas.get(node) else { return doubt("the server's counts are unknown") };
        if !delta.is_continuous {
            return doubt("the server began its statistics anew");
        }
        match delta.calls(|query| labels.contains(&label(query))) {
            Some(calls) => server_calls += calls,
            None => return doubt("no pg_stat_statements"),
        }
    }
    let difference = Clients::of(workloads).difference(server_calls);
    Counted { server_calls: Some(server_calls), difference: Some(difference), notes: Vec::new() }
}

/// The servers that run the point's statements: those behind a pooler instead of it.
fn servers(point: &Point) -> BTreeSet<&str> {
    let targets = point.workloads.iter().flat_map(|workload| &workload.to);
    let behind = |name: &'_ String| match point.topology.node(name).map(|node| &node.kind) {
        Some(NodeKind::Pgbouncer(pooler)) => point.topology.node(&pooler.to),
        _ => point.topology.node(name),
    };
    targets.filter_map(behind).map(|node| node.name.as_str()).collect()
}

/// What a statement is called, comments before it left out.
pub(crate) fn label(statement: &str) -> String {
    let mut rest = statement.trim_start();
    loop {
        let after = match rest {
            _ if rest.starts_with("--") => rest.split_once('\n').map(|(_, after)| after),
            _ if rest.starts_with("/*") => rest.split_once("*/").map(|(_, after)| after),
            _ => None,
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => return statement_label(rest),
        }
    }
}

/// How often a transaction of a script runs each statement; [`MAYBE`] where that depends.
type Statements = BTreeMap<String, u32>;

const MAYBE: u32 = u32::MAX;

/// The statements of each of a point's scripts.
pub(crate) fn scripts(point: &Point) -> Vec<Statements> {
    let scripts = point.workloads.iter().flat_map(|workload| &workload.scripts);
    scripts.filter(|script| script.weight > 0).map(statements).collect()
}

fn statements(script: &spec::Script) -> Statements {
    let text = load_plan::script(script);
    let syntax = match script.syntax {
        spec::Syntax::Current => Syntax::Current,
        spec::Syntax::NineX => Syntax::NineX,
    };
    let mut statements = Statements::new();
    // A script that cannot be parsed has failed the load with its own words.
    let Ok(script) = Script::parse(&text.name, &text.text, syntax, &mut Names::new()) else {
        return statements;
    };
    let mut depth = 0;
    for command in &script.commands {
        match &command.kind {
            CommandKind::If { .. } => depth += 1,
            CommandKind::EndIf => depth -= 1,
            CommandKind::Sql { template, .. } => {
                let text = String::from_utf8_lossy(template.text());
                let count = statements.entry(label(&text)).or_default();
                let is_certain = depth == 0 && template.statements() == 1;
                *count = if is_certain { count.saturating_add(1) } else { MAYBE };
            }
            _ => {}
        }
    }
    statements
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
    let mut candidates: Vec<&String> =
        open.iter().filter(|(_, count)| **count == 1).map(|(label, _)| label).collect();
    // A statement on a table is nobody else's; BEGIN and END everybody's.
    candidates.sort_by_key(|label| !label.contains(' '));
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

    #[test]
    fn comments_before_a_statement_do_not_name_it() {
        assert_eq!(label("-- why\n/* what */ UPDATE a SET b = 1"), "UPDATE a");
        assert_eq!(label("SELECT f($1)"), "SELECT f");
    }
}
