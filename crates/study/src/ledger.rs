//! The ledger of a trial: whose clients keep one, the tables that it is held against before and
//! after the load, and what came of it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use record::ledger::{Anomaly, Exposure, Findings, Ledger, Outcome, Row, Rows, check};
use record::{Ending, Moment, Note, NoteKind, Trial, Window};
use spec::{Check, Point, Workload};

use crate::rows::{self, Table};
use crate::site::Site;
use crate::site_node::SiteNode;

/// Where the files of a trial's ledger go, and what seeds its chains; none where no client keeps
/// one.
pub(crate) fn plan(point: &Point, directory: &Path, seed: u64) -> Option<load::LedgerPlan> {
    point
        .workloads
        .iter()
        .any(|workload| workload.ledger.is_some())
        .then(|| load::LedgerPlan { directory: directory.display().to_string(), seed })
}

/// Before the load: every table of a ledger must be there, and hold nothing that this ledger knows
/// nothing of.
///
/// # Errors
/// What is missing or in the way, and what to do about it.
pub(crate) fn prepare(point: &Point, site: &Site) -> Result<(), String> {
    let keeps = |workload: &&Workload| workload.ledger.is_some();
    for workload in point.workloads.iter().filter(keeps) {
        let texts = workload.scripts.iter().map(|script| crate::load_plan::script(script).text);
        if !texts.into_iter().any(|text| text.contains(":ledger_seq")) {
            return Err(format!(
                "workload {} keeps a ledger, but no script of it writes :ledger_seq",
                workload.name
            ));
        }
    }
    for node in checked_nodes(point, site) {
        // What a standby has is what its primary has.
        let node = if rows::is_standby(node)? { site.data_node() } else { node };
        for table in tables(point) {
            site.parts(node, table)?.iter().try_for_each(rows::prepare)?;
        }
    }
    Ok(())
}

/// What a check of the ledger has found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Of each workload that keeps one, by its name, on each server that was looked at.
    pub(crate) workloads: Vec<(String, Findings)>,
    /// The longest time inside the window without an acknowledgement, in nanoseconds: of each
    /// workload that keeps a ledger, and of all together under an empty name.
    pub(crate) pauses: Vec<(String, u64)>,
    /// Transactions in flight when a server was killed or lost its power, the least of all such
    /// moments; none where there was none.
    pub(crate) in_flight: Option<usize>,
    pub(crate) notes: Vec<Note>,
}

/// After the load: reads the ledger from `directory`, and the rows from each server that the point
/// has checked, by two ways. `exposed` are the stretches in which the primary was alone; `window`
/// is the load's; `faults` are the moments at which servers were killed or lost their power.
///
/// # Errors
/// When ledger or rows cannot be read.
pub(crate) fn check_all(
    point: &Point,
    site: &Site,
    directory: &Path,
    exposed: &[Exposure],
    window: Option<Window>,
    faults: &[Moment],
) -> Result<Checked, String> {
    let nodes = checked_nodes(point, site);
    if nodes.is_empty() {
        return Ok(Checked::default());
    }
    let ledger = Ledger::read(directory).map_err(|error| error.to_string())?;
    let pauses = window.map(|window| pauses(point, &ledger, window)).unwrap_or_default();
    let in_flight = faults.iter().map(|at| in_flight(&ledger, *at)).min();
    let mut checked = Checked { pauses, in_flight, ..Checked::default() };
    for name in ledger.torn() {
        let text = format!("the ledger {name} ends in the middle of a line");
        checked.notes.push(Note::new(NoteKind::Check, text));
    }
    for (index, node) in nodes.iter().enumerate() {
        let looked = Looked { node, is_first: index == 0 };
        one_node(point, site, looked, &ledger, exposed, &mut checked)?;
    }
    Ok(checked)
}

/// Transactions that were sent and not heard of at a moment.
fn in_flight(ledger: &Ledger, at: Moment) -> usize {
    let is_open = |(_, history): &(u32, &[record::ledger::Transaction])| {
        let last = history.iter().rev().find(|one| one.intended <= at);
        last.is_some_and(|one| {
            // Of one without an outcome nothing more was ever heard.
            let unheard = one.outcome == Outcome::Unknown && one.ended == one.intended;
            one.ended > at || unheard
        })
    };
    ledger.clients().filter(is_open).count()
}

fn pauses(point: &Point, ledger: &Ledger, window: Window) -> Vec<(String, u64)> {
    let pause = |name: &str, ledger: &Ledger| {
        (name.to_owned(), ledger.longest_pause_ns(window.open, window.close))
    };
    let keepers = point.workloads.iter().zip(clients(point));
    let keepers = keepers.filter(|(workload, _)| workload.ledger.is_some());
    let each =
        keepers.map(|(workload, clients)| pause(&workload.name, &ledger.of_clients(clients)));
    each.chain([pause("", ledger)]).collect()
}

/// A server that is looked at.
#[derive(Clone, Copy)]
struct Looked<'s> {
    node: &'s SiteNode,
    is_first: bool,
}

fn one_node(
    point: &Point,
    site: &Site,
    looked: Looked<'_>,
    ledger: &Ledger,
    exposed: &[Exposure],
    checked: &mut Checked,
) -> Result<(), String> {
    let Looked { node, is_first } = looked;
    let mut read: Vec<(&str, Table)> = Vec::new();
    for table in tables(point) {
        let rows = rows::read(&site.parts(node, table)?)?;
        checked.notes.extend(rows.note.iter().map(|text| Note::new(NoteKind::Check, text)));
        read.push((table, rows));
    }
    let clients = clients(point);
    let mut differing: BTreeSet<&str> = BTreeSet::new();
    for (index, workload) in point.workloads.iter().enumerate() {
        let Some(tables) = &workload.ledger else { continue };
        let take = |name: &Option<String>, rows: fn(&Table) -> &[Row]| {
            let name = name.as_deref()?;
            let table = &read.iter().find(|(other, _)| *other == name)?.1;
            let mine = rows(table).iter().filter(|row| is_mine(row, name, index, point, &clients));
            Some(mine.copied().collect::<Vec<_>>())
        };
        let insert = take(&tables.insert, Table::rows);
        let update = take(&tables.update, Table::rows);
        let ledger = ledger.of_clients(clients[index].clone());
        let mut findings = check(&ledger, &Rows { insert, update }, exposed);
        for name in [&tables.insert, &tables.update].into_iter().flatten() {
            let Some((name, table)) = read.iter_mut().find(|(other, _)| *other == name) else {
                continue;
            };
            if let (true, Some(by_index)) = (differing.insert(name), &mut table.by_index) {
                findings.compare_scans(name, &mut table.by_scan, by_index);
            }
        }
        let said = words(&workload.name, node, &findings).into_iter();
        checked.notes.extend(said.map(|text| Note::new(NoteKind::Ledger, text)));
        let said = unprepared(tables, &findings, &read, &ledger);
        checked.notes.extend(said.map(|text| Note::new(NoteKind::Check, text)));
        if !is_first {
            // What was intended and acknowledged is the same on every server.
            findings = only_anomalies(findings);
        }
        checked.workloads.push((workload.name.clone(), findings));
    }
    Ok(())
}

/// Whether a row is this workload's to account for: one of its clients', or nobody's at all and it
/// is the first that writes the table.
fn is_mine(row: &Row, table: &str, index: usize, point: &Point, clients: &[Range<u32>]) -> bool {
    let writes = |workload: &Workload| {
        let tables = workload.ledger.as_ref();
        let named = |name: &Option<String>| name.as_deref() == Some(table);
        tables.is_some_and(|tables| named(&tables.insert) || named(&tables.update))
    };
    let client = row.client.and_then(|client| u32::try_from(client).ok());
    let mut writers = (0..point.workloads.len()).filter(|index| writes(&point.workloads[*index]));
    let owner =
        client.and_then(|client| writers.clone().find(|writer| clients[*writer].contains(&client)));
    owner.or_else(|| writers.next()) == Some(index)
}

/// The numbers of each workload's clients, as the load engine gives them out.
fn clients(point: &Point) -> Vec<Range<u32>> {
    let mut first = 0;
    let ranges = point.workloads.iter().map(|workload| {
        let range = first..first + workload.clients;
        first = range.end;
        range
    });
    ranges.collect()
}

fn only_anomalies(findings: Findings) -> Findings {
    Findings {
        intended: 0,
        acknowledged: 0,
        acknowledged_alone: 0,
        failed: 0,
        unknown: 0,
        present: 0,
        unknown_present: 0,
        ..findings
    }
}

/// What was found, for people: a line for each kind, and its first examples.
fn words(workload: &str, node: &SiteNode, findings: &Findings) -> Vec<String> {
    let mut words = Vec::new();
    for anomaly in Anomaly::ALL {
        let count = findings.count(anomaly);
        if count == 0 {
            continue;
        }
        let place = format!("{workload} on {}", node.name);
        words.push(format!("{place}, {count} times: {}", anomaly.word()));
        let examples = findings.examples.iter().filter(|example| example.anomaly == anomaly);
        words.extend(examples.map(|example| example.to_string()));
    }
    words
}

/// A client that has no row cannot change it: what looks like a loss was never written.
fn unprepared(
    tables: &spec::Ledger,
    findings: &Findings,
    read: &[(&str, Table)],
    ledger: &Ledger,
) -> Option<String> {
    let name = tables.update.as_deref().filter(|_| findings.lost > 0)?;
    let rows = read.iter().find(|(other, _)| *other == name)?.1.rows();
    let there: BTreeSet<i64> = rows.iter().filter_map(|row| row.client).collect();
    let mut acknowledged = ledger.clients().filter(|(_, history)| {
        history.iter().any(|transaction| transaction.outcome.is_acknowledged())
    });
    let (client, _) = acknowledged.find(|(client, _)| !there.contains(&i64::from(*client)))?;
    Some(format!(
        "{name} has no row of client {client}, and an UPDATE of no row changes nothing; if none \
         was ever made, the data's script must make one for each client, from 0"
    ))
}

/// The tables that the ledgers of a point name, each once.
fn tables(point: &Point) -> BTreeSet<&str> {
    let ledgers = point.workloads.iter().filter_map(|workload| workload.ledger.as_ref());
    ledgers
        .flat_map(|ledger| [&ledger.insert, &ledger.update])
        .flatten()
        .map(String::as_str)
        .collect()
}

/// The servers on which the ledger is checked.
fn checked_nodes<'s>(point: &Point, site: &'s Site) -> Vec<&'s SiteNode> {
    let nodes = point.checks.iter().filter_map(|check| match check {
        Check::Ledger { node: Some(name) } => site.node(name),
        Check::Ledger { node: None } => Some(site.data_node()),
        Check::Counts
        | Check::Placement
        | Check::Amcheck { .. }
        | Check::Checksums { .. }
        | Check::Restore { .. }
        | Check::Explain(_) => None,
    });
    nodes.collect()
}

/// The figures of what was found: metric, scope, value. The scope is a workload, and empty for all
/// of them together.
pub(crate) fn figures(checked: &Checked) -> Vec<(&'static str, String, f64)> {
    let mut all = Findings::default();
    let mut by_name: Vec<(&str, Findings)> = Vec::new();
    for (name, findings) in &checked.workloads {
        all.merge(findings);
        match by_name.iter_mut().find(|(other, _)| other == name) {
            Some((_, sum)) => sum.merge(findings),
            None => by_name.push((name, findings.clone())),
        }
    }
    if !by_name.is_empty() {
        by_name.push(("", all));
    }
    let figures = by_name.iter().flat_map(|(scope, findings)| {
        let span_ns = findings.lost_span.map_or(0, |(first, last)| last.since(first));
        [
            ("ledger_intended", findings.intended as f64),
            ("ledger_acknowledged", findings.acknowledged as f64),
            ("ledger_acknowledged_alone", findings.acknowledged_alone as f64),
            ("ledger_failed", findings.failed as f64),
            ("ledger_unknown", findings.unknown as f64),
            ("ledger_unknown_present", findings.unknown_present as f64),
            ("ledger_present", findings.present as f64),
            ("ledger_lost", findings.lost as f64),
            ("ledger_lost_alone", findings.lost_alone as f64),
            ("ledger_lost_covered", (findings.lost - findings.lost_alone) as f64),
            ("ledger_lost_max_run", findings.lost_max_run as f64),
            ("ledger_lost_span_ms", span_ns as f64 / 1e6),
            ("ledger_holes", findings.holes as f64),
            ("ledger_failed_present", findings.failed_present as f64),
            ("ledger_doubled", findings.doubled as f64),
            ("ledger_invented", findings.invented as f64),
            ("ledger_broken", findings.broken as f64),
            ("ledger_torn", findings.torn as f64),
            ("ledger_scan_differences", findings.scan_differences as f64),
            ("ledger_anomalies", findings.anomalies() as f64),
        ]
        .map(|(metric, value)| (metric, (*scope).to_owned(), value))
    });
    let pauses = checked.pauses.iter();
    let pauses = pauses.map(|(scope, ns)| ("ack_pause_max_ms", scope.clone(), *ns as f64 / 1e6));
    let in_flight = checked.in_flight.iter();
    let in_flight = in_flight.map(|n| ("ledger_in_flight", String::new(), *n as f64));
    figures.chain(pauses).chain(in_flight).collect()
}

/// Whether somebody will want to look into the ledger itself: something is wrong, or nobody could
/// say.
pub(crate) fn is_worth_keeping(trial: &Trial) -> bool {
    let anomalies = trial.metrics.get("ledger_anomalies").and_then(|scopes| scopes.get(""));
    matches!(trial.ending, Ending::Failed(_)) || anomalies.is_some_and(|count| *count > 0.0)
}
