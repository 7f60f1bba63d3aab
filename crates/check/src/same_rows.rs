//! The rows of two servers of a topology, compared.

use std::time::{Duration, Instant};

use lab::wait_until;
use site::{Site, SiteNode};
use spec::{Check, SameRows, metrics};
use verify::{ComparedServer, PairMember, ServerPair, TableFilter};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Compares the rows of the pairs of servers that the point names. The figures are of all pairs together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let asked = before.point.checks.iter().filter_map(|check| match check {
        Check::SameRows(asked) => Some(asked),
        _ => None,
    });
    let mut all: Option<FoundRows> = None;
    let began = Instant::now();
    for asked in asked {
        wait_for_subscriber(site, &asked.nodes);
        let found = compare(pair(site, &asked.nodes)?, asked)?;
        found.notes.iter().for_each(|note| outcome.note(note.clone()));
        let sum = all.get_or_insert_default();
        sum.rows += found.rows;
        sum.bytes += found.bytes;
        sum.different += found.different;
        sum.extra += found.extra;
    }
    if let Some(all) = all {
        outcome.set(&metrics::ROWS_COMPARED, "", all.rows as f64);
        outcome.set(&metrics::ROWS_COMPARED_BYTES, "", all.bytes as f64);
        outcome.set(&metrics::ROWS_COMPARE_S, "", began.elapsed().as_secs_f64());
        outcome.set(&metrics::ROWS_DIFFERENT, "", all.different as f64);
        outcome.set(&metrics::ROWS_EXTRA, "", all.extra as f64);
    }
    Ok(outcome)
}

/// What a comparison has found.
#[derive(Debug, Default, PartialEq)]
struct FoundRows {
    rows: u64,
    bytes: u64,
    different: u64,
    extra: u64,
    notes: Vec<String>,
}

/// Two servers of the site, each in one state of its database.
pub(crate) fn pair(site: &Site, nodes: &[String; 2]) -> Result<ServerPair, Error> {
    let node = |name: &String| site.node(name).ok_or_else(|| site::Error::NoServer(name.clone()));
    pair_of([node(&nodes[0])?, node(&nodes[1])?])
}

fn pair_of(nodes: [&SiteNode; 2]) -> Result<ServerPair, Error> {
    let begin = |node: &SiteNode| -> Result<ComparedServer, Error> {
        Ok(ComparedServer::begin(&node.name, node.connect()?)?)
    };
    Ok(ServerPair::new([begin(nodes[0])?, begin(nodes[1])?])?)
}

fn compare(mut pair: ServerPair, asked: &SameRows) -> Result<FoundRows, Error> {
    let filter = TableFilter { tables: asked.tables.clone(), schemas: Vec::new() };
    let extra = asked.extra.as_ref().map(|name| match *name == asked.nodes[0] {
        true => PairMember::One,
        false => PairMember::Other,
    });
    let tables = pair.tables(&filter)?;
    let compared = pair.rows(&tables, extra, |_| {})?;
    let mut found = FoundRows {
        different: tables.unlike.len() as u64,
        notes: tables.unlike.into_iter().chain(tables.left_out).collect(),
        ..FoundRows::default()
    };
    for table in compared {
        found.rows += table.rows[0];
        found.bytes += table.bytes;
        found.different += table.different;
        found.extra += table.extra;
        found.notes.extend(table.named);
        if table.is_at_least {
            found.notes.push(format!("{}: at least so many rows differ", table.name));
        }
    }
    Ok(found)
}

/// A subscriber that still gets changes has them before it is compared; one that does not get them in time has
/// other rows, which the comparison finds.
fn wait_for_subscriber(site: &Site, nodes: &[String; 2]) {
    for name in nodes {
        let is_enabled = "SELECT EXISTS (SELECT FROM pg_subscription WHERE subenabled)";
        let is_enabled = site.node(name).and_then(|node| node.server.value(is_enabled).ok()?);
        if is_enabled.as_deref() != Some("t") {
            continue;
        }
        let Ok(mut catching_up) = site.caught_up(name) else { continue };
        let reached = || Ok::<_, Error>(catching_up.is_reached().unwrap_or(false).then_some(()));
        // Whether it was reached in time is told by the rows.
        _ = wait_until(CATCHES_UP_WITHIN, reached);
    }
}

/// The time for a subscriber to get what its publisher has.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use lab::Server;
    use testing::servers;

    use super::*;

    fn site_node(name: &str, node: lab::Node) -> SiteNode {
        let server = Server::Node(Box::new(node));
        SiteNode { name: name.to_owned(), server, conninfo: String::new(), schema: None }
    }

    #[test]
    fn rows_of_two_nodes_are_compared_as_the_study_asks() {
        let (old, _lab) = servers::server(&[]);
        let (new, _other_lab) = servers::server(&[]);
        let nodes = [site_node("old", old), site_node("new", new)];
        let run = |at: usize, sql: &str| nodes[at].connect().unwrap().batch_execute(sql).unwrap();
        (0..2).for_each(|at| run(at, "CREATE TABLE log (note text); CREATE TABLE seen (id int)"));
        run(0, "INSERT INTO log VALUES ('a'), ('b')");
        run(1, "INSERT INTO log VALUES ('a'), ('c'); DROP TABLE seen");
        let compare = |tables: &[&str], extra: Option<&str>| {
            let asked = SameRows {
                nodes: ["old".to_owned(), "new".to_owned()],
                tables: tables.iter().map(|name| (*name).to_owned()).collect(),
                extra: extra.map(str::to_owned),
            };
            compare(pair_of([&nodes[0], &nodes[1]])?, &asked)
        };
        let check = |tables: &[&str], extra: Option<&str>, expected: (u64, u64, u64, &[&str])| {
            let mut found = compare(tables, extra).unwrap();
            found.notes.sort();
            let (rows, different, extra, notes) = expected;
            assert_eq!((found.rows, found.different, found.extra), (rows, different, extra));
            assert_eq!(found.notes, notes);
        };
        let [only_old, only_new] = ["log (b): only on old", "log (c): only on new"];
        check(&["log"], None, (2, 2, 0, &[only_old, only_new]));
        check(&["log"], Some("new"), (2, 1, 1, &[only_old]));
        check(&["log"], Some("old"), (2, 1, 1, &[only_new]));
        check(&[], None, (2, 3, 0, &[only_old, only_new, "new has no table seen"]));
        let error = compare(&["stok"], None).unwrap_err();
        assert!(error.is_of_study(), "{error}");
    }
}
