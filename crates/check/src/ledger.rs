//! The ledger of a trial: the tables that it is compared with before and after the load, and what
//! was found.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use record::ledger::{
    self, Ledger, LedgerAnomaly, LedgerFindings, LedgerRow, LedgerRows, SplitAcknowledgements,
};
use record::{MeasuredWindow, Moment, Note, NoteKind};
use server::StopUrgency;
use site::{Site, SiteNode};
use spec::{Check, TrialPoint, Workload, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::rows::{self, Table};

/// Before the load: every table of a ledger must be there, and hold nothing that this ledger knows
/// nothing of.
pub fn prepare(point: &TrialPoint, site: &Site) -> Result<(), Error> {
    let keeps = |workload: &&Workload| workload.ledger.is_some();
    for workload in point.workloads.iter().filter(keeps) {
        let mut texts = workload.scripts.iter().map(|script| script.text().text);
        if !texts.any(|text| text.contains(":ledger_seq")) {
            return Err(Error::LedgerNotWritten { workload: workload.name.clone() });
        }
        let reads = workload.ledger.as_ref().is_some_and(|ledger| ledger.read.is_some());
        let mut texts = workload.scripts.iter().map(|script| script.text().text);
        if reads && !texts.any(|text| text.contains("ledger_read_seq")) {
            return Err(Error::ReadingNotSaid { workload: workload.name.clone() });
        }
    }
    for node in checked_nodes(point, site)? {
        // What a standby has is what its primary has.
        let node = if rows::is_standby(node)? { site.data_node() } else { node };
        for table in tables(point) {
            site.parts(node, table)?.iter().try_for_each(rows::prepare)?;
        }
    }
    Ok(())
}

/// Findings of a check of the ledger.
#[derive(Debug, Default)]
struct Checked {
    /// The findings of each workload that keeps a ledger, by its name, on each server that was looked at.
    workloads: Vec<(String, LedgerFindings)>,
    /// The longest time inside the window without an acknowledgement, in nanoseconds: of each
    /// workload that keeps a ledger, and of all together under an empty name.
    pauses: Vec<(String, u64)>,
    /// Transactions in flight when a server was killed or lost its power, the least of all such
    /// moments; none where there was none.
    in_flight: Option<usize>,
    /// The share of the window in which clients were at work, of each workload that keeps a ledger and
    /// of all together under an empty name.
    load_shares: Vec<(String, f64)>,
    /// Tables that a server could not read.
    unreadable: usize,
    /// The servers that acknowledged, of each workload that writes rows of a ledger, and of all together under an
    /// empty name, where they are known.
    splits: Vec<(String, SplitAcknowledgements)>,
    notes: Vec<Note>,
}

/// After the load: reads the ledger, and the rows from each server that the point has checked, by
/// two ways. A server that has lost all its data has no row. The scope of a figure is a workload,
/// and empty for all of them together.
pub fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let checked = check_all(site, before)?;
    let mut outcome = CheckOutcome::default();
    figures(&checked, &mut outcome);
    outcome.notes = checked.notes;
    Ok(outcome)
}

/// The fate of a workload's acknowledged transactions.
#[derive(Clone, Copy, Default)]
pub(crate) struct AcknowledgedFate {
    pub(crate) acknowledged: u64,
    /// How many of them are missing now.
    pub(crate) lost: u64,
}

/// The same of each workload that keeps a ledger, over all servers that the point has checked.
pub(crate) fn kept(
    site: &Site,
    before: &TrialFacts<'_>,
) -> Result<BTreeMap<String, AcknowledgedFate>, Error> {
    let before = TrialFacts { exposed: &[], window: None, faults: &[], lost: &[], ..*before };
    let checked = check_all(site, &before)?;
    let mut all: BTreeMap<String, AcknowledgedFate> = BTreeMap::new();
    for (name, found) in checked.workloads {
        let kept = all.entry(name).or_default();
        kept.acknowledged += found.acknowledged;
        kept.lost += found.lost;
    }
    Ok(all)
}

fn check_all(site: &Site, before: &TrialFacts<'_>) -> Result<Checked, Error> {
    let TrialFacts { point, window, faults, .. } = *before;
    let nodes = checked_nodes(point, site)?;
    if nodes.is_empty() {
        return Ok(Checked::default());
    }
    let ledger = of_trial(before)?;
    // A client of which nothing more is known may have been answered all the time.
    let is_whole =
        ledger_keepers(point).all(|clients| !clients.clone().any(|one| ledger.is_cut(one)));
    let pauses = window.filter(|_| is_whole).map(|window| pauses(point, &ledger, window));
    // No figure says anything of a pause that cannot be told.
    let pauses = pauses.unwrap_or_default();
    let in_flight = faults.iter().map(|at| in_flight(&ledger, *at)).min();
    let load_shares = window.map(|window| load_shares(point, &ledger, window, faults));
    // Without a window there is no share of it.
    let load_shares = load_shares.unwrap_or_default();
    let splits = splits(point, &ledger);
    let mut checked = Checked { pauses, in_flight, load_shares, splits, ..Checked::default() };
    for name in ledger.torn() {
        let text = format!("the ledger {name} ends in the middle of a line");
        checked.notes.push(Note::new(NoteKind::Check, text));
    }
    for (index, node) in nodes.iter().enumerate() {
        let looked = Looked { node, is_first: index == 0 };
        one_node(site, looked, &ledger, before, &mut checked)?;
    }
    Ok(checked)
}

/// Findings in the rows of one server on a ledger: all workloads together, and whether a table could not
/// be read.
pub(crate) fn of_node(
    site: &Site,
    node: &SiteNode,
    ledger: &Ledger,
    before: &TrialFacts<'_>,
) -> Result<(LedgerFindings, Vec<Note>, bool), Error> {
    let mut checked = Checked::default();
    one_node(site, Looked { node, is_first: true }, ledger, before, &mut checked)?;
    let mut all = LedgerFindings::default();
    checked.workloads.iter().for_each(|(_, findings)| all.merge(findings));
    Ok((all, checked.notes, checked.unreadable > 0))
}

/// The rows of a server in the tables of each workload that keeps a ledger, and the ledger of its clients.
pub(crate) fn rows_of_node(
    site: &Site,
    node: &SiteNode,
    ledger: &Ledger,
    point: &TrialPoint,
) -> Result<Vec<(String, Ledger, LedgerRows)>, Error> {
    let tables = tables(point);
    let parts = tables.iter().map(|table| site.parts(node, table));
    let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
    let read = tables.iter().copied().zip(rows::read(&parts)?);
    let read: Vec<(&str, Table)> =
        read.map(|(table, rows)| Ok((table, rows?))).collect::<Result<_, Error>>()?;
    let clients = clients(point);
    let mut all = Vec::new();
    for (index, workload) in point.workloads.iter().enumerate() {
        let Some(tables) = &workload.ledger else { continue };
        let take = |name: &Option<String>| {
            let name = name.as_deref()?;
            let table = &read.iter().find(|(other, _)| *other == name)?.1;
            let mine = table.rows().iter();
            let mine = mine.filter(|row| is_mine(row, name, index, point, &clients));
            Some(mine.copied().collect::<Vec<_>>())
        };
        let rows = LedgerRows { insert: take(&tables.insert), update: take(&tables.update) };
        all.push((workload.name.clone(), ledger.of_clients(clients[index].clone()), rows));
    }
    Ok(all)
}

/// The ledger of a trial's clients.
pub(crate) fn of_trial(before: &TrialFacts<'_>) -> Result<Ledger, Error> {
    let is_over = || before.control.urgency() != StopUrgency::None;
    let ledger = Ledger::read_unless(before.ledger, &is_over)?;
    // A point without clients has no ledger.
    let expected = clients(before.point).last().map_or(0, |last| last.end);
    Ok(ledger.about(0..expected))
}

/// Transactions that had been sent and not answered at a moment.
fn in_flight(ledger: &Ledger, at: Moment) -> usize {
    let is_open = |(_, history): &(u32, &[ledger::LedgerTransaction])| {
        let last = history.iter().rev().find(|one| one.intended <= at);
        last.is_some_and(|one| {
            // Of one without an outcome nothing more was ever heard.
            let unheard =
                one.outcome == ledger::LedgerOutcome::Unknown && one.ended == one.intended;
            one.ended > at || unheard
        })
    };
    ledger.clients().filter(is_open).count()
}

/// In how much of the window, up to the first fault, clients were at work.
fn load_shares(
    point: &TrialPoint,
    ledger: &Ledger,
    window: MeasuredWindow,
    faults: &[Moment],
) -> Vec<(String, f64)> {
    let first = faults.iter().min().copied().unwrap_or(window.close);
    let until = first.clamp(window.open, window.close);
    let keepers = point.workloads.iter().zip(clients(point));
    let keepers = keepers.filter(|(workload, _)| workload.ledger.is_some());
    let each = keepers.map(|(workload, clients)| {
        let own = ledger.of_clients(clients);
        (workload.name.clone(), own.load_share(window.open, until))
    });
    each.chain([(String::new(), ledger.load_share(window.open, until))]).collect()
}

/// The clients of each workload that keeps a ledger.
fn ledger_keepers(point: &TrialPoint) -> impl Iterator<Item = Range<u32>> {
    let keepers = point.workloads.iter().zip(clients(point));
    keepers.filter(|(workload, _)| workload.ledger.is_some()).map(|(_, clients)| clients)
}

fn splits(point: &TrialPoint, ledger: &Ledger) -> Vec<(String, SplitAcknowledgements)> {
    // Readers do not ask for their server.
    let writes = |workload: &Workload| {
        workload.ledger.as_ref().is_some_and(|it| it.insert.is_some() || it.update.is_some())
    };
    let writers = point.workloads.iter().zip(clients(point)).filter(|(one, _)| writes(one));
    let (mut splits, mut unknown) = (Vec::new(), 0);
    for (workload, clients) in writers {
        let (split, unnamed) = SplitAcknowledgements::of(&ledger.of_clients(clients));
        unknown += unnamed;
        splits.extend(split.map(|split| (workload.name.clone(), split)));
    }
    let all = SplitAcknowledgements::of(ledger).0;
    splits.extend(all.map(|split| (String::new(), SplitAcknowledgements { unknown, ..split })));
    splits
}

fn pauses(point: &TrialPoint, ledger: &Ledger, window: MeasuredWindow) -> Vec<(String, u64)> {
    let pause = |name: &str, ledger: &Ledger| {
        (name.to_owned(), ledger.longest_pause_ns(window.open, window.close))
    };
    let keepers = point.workloads.iter().zip(clients(point));
    let keepers = keepers.filter(|(workload, _)| workload.ledger.is_some());
    let each =
        keepers.map(|(workload, clients)| pause(&workload.name, &ledger.of_clients(clients)));
    each.chain([pause("", ledger)]).collect()
}

/// A server whose rows are checked.
#[derive(Clone, Copy)]
struct Looked<'s> {
    node: &'s SiteNode,
    is_first: bool,
}

fn one_node(
    site: &Site,
    looked: Looked<'_>,
    ledger: &Ledger,
    before: &TrialFacts<'_>,
    checked: &mut Checked,
) -> Result<(), Error> {
    let Looked { node, is_first } = looked;
    let TrialFacts { point, exposed, lost, .. } = *before;
    let tables = tables(point);
    let parts = tables.iter().map(|table| {
        let mut parts = site.parts(node, table)?;
        parts.retain(|part| !lost.contains(&part.node.name));
        Ok(parts)
    });
    let parts: Vec<_> = parts.collect::<Result<_, Error>>()?;
    let mut read: Vec<(&str, Table)> = Vec::new();
    for (table, rows) in tables.into_iter().zip(rows::read(&parts)?) {
        let rows = match rows {
            Err(error) if error.is_damage() => {
                checked.unreadable += 1;
                let text = format!("none of its rows is there for anybody: {error}");
                checked.notes.push(Note::new(NoteKind::Ledger, text));
                Table::unreadable()
            }
            read => read?,
        };
        checked.notes.extend(rows.note.iter().map(|text| Note::new(NoteKind::Check, text)));
        read.push((table, rows));
    }
    let clients = clients(point);
    let mut differing: BTreeSet<&str> = BTreeSet::new();
    for (index, workload) in point.workloads.iter().enumerate() {
        let Some(tables) = &workload.ledger else { continue };
        let take = |name: &Option<String>, rows: fn(&Table) -> &[LedgerRow]| {
            let name = name.as_deref()?;
            let table = &read.iter().find(|(other, _)| *other == name)?.1;
            let mine = rows(table).iter().filter(|row| is_mine(row, name, index, point, &clients));
            Some(mine.copied().collect::<Vec<_>>())
        };
        let insert = take(&tables.insert, Table::rows);
        let update = take(&tables.update, Table::rows);
        let ledger = ledger.of_clients(clients[index].clone());
        let rows = LedgerRows { insert, update };
        let is_over = || before.control.urgency() != StopUrgency::None;
        let found = ledger::check_unless(&ledger, &rows, exposed, &is_over);
        let interrupted = || record::Error::Interrupted { path: before.ledger.to_owned() };
        let mut findings = found.ok_or_else(interrupted)?;
        // Whoever wrote it: a reader reads what others write.
        let of_others = read.iter().find(|(other, _)| tables.read.as_deref() == Some(*other));
        if let Some((_, table)) = of_others {
            ledger::check_seen(&ledger, table.rows(), &mut findings);
        }
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
        let said = unsaid(&workload.name, &ledger, &findings).into_iter();
        checked
            .notes
            .extend(said.filter(|_| is_first).map(|text| Note::new(NoteKind::Check, text)));
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

/// True if the workload has to account for a row: it is one of its clients', or nobody's at all and
/// the workload is the first that writes the table.
fn is_mine(
    row: &LedgerRow,
    table: &str,
    index: usize,
    point: &TrialPoint,
    clients: &[Range<u32>],
) -> bool {
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
fn clients(point: &TrialPoint) -> Vec<Range<u32>> {
    let mut first = 0;
    let ranges = point.workloads.iter().map(|workload| {
        let range = first..first + workload.clients;
        first = range.end;
        range
    });
    ranges.collect()
}

fn only_anomalies(findings: LedgerFindings) -> LedgerFindings {
    LedgerFindings {
        intended: 0,
        acknowledged: 0,
        acknowledged_alone: 0,
        acknowledged_cover_unknown: 0,
        acknowledged_in_part: 0,
        wrote_nothing: 0,
        wrote_nothing_present: 0,
        failed: 0,
        unknown: 0,
        present: 0,
        unknown_present: 0,
        seen: 0,
        unjudged: 0,
        ..findings
    }
}

/// What a ledger does not say, for people.
fn unsaid(workload: &str, ledger: &Ledger, findings: &LedgerFindings) -> Vec<String> {
    let mut words = Vec::new();
    let cut: Vec<String> = ledger.cut().map(|client| client.to_string()).collect();
    if let Some(first) = cut.first() {
        let shown = cut[..cut.len().min(CLIENTS_SHOWN_MAX)].join(", ");
        let more = if cut.len() > CLIENTS_SHOWN_MAX { ", …" } else { "" };
        let who = match cut.len() {
            1 => format!("client {first}"),
            count => format!("{count} clients ({shown}{more})"),
        };
        let rows = findings.unjudged_rows;
        words.push(format!(
            "the ledger of {who} of {workload} is cut off, because their generator was lost: {rows} of their rows are \
             not judged, and what may be lost of them beyond the ledger is not known"
        ));
    }
    if findings.wrote_nothing > 0 {
        let (count, present) = (findings.wrote_nothing, findings.wrote_nothing_present);
        let present = match present {
            0 => String::new(),
            _ => format!(
                "; {present} of them are there all the same, so the statements do not tell what they write: have \
                 the script set ledger_wrote"
            ),
        };
        words.push(format!(
            "transactions of {workload} that ended well and wrote no row of the ledger: {count}{present}"
        ));
    }
    words
}

/// Clients that a note names.
const CLIENTS_SHOWN_MAX: usize = 5;

/// Findings for people: a line for each kind, and its first examples.
fn words(workload: &str, node: &SiteNode, findings: &LedgerFindings) -> Vec<String> {
    let mut words = Vec::new();
    for anomaly in LedgerAnomaly::ALL {
        let count = findings.count(anomaly);
        if count == 0 {
            continue;
        }
        let place = format!("{workload} on {}", node.name);
        words.push(format!("{place}: {} × {count}", anomaly.word()));
        let examples = findings.examples.iter().filter(|example| example.anomaly == anomaly);
        words.extend(examples.map(|example| example.to_string()));
        if anomaly == LedgerAnomaly::Lost {
            // What a rewind of that server has thrown away.
            words.extend(findings.lost_of.iter().map(|(giver, count)| {
                format!("of the lost ones, {count} were acknowledged by {giver}")
            }));
            words.push(covered(findings));
        }
    }
    words
}

/// Tells what covered the lost transactions.
fn covered(findings: &LedgerFindings) -> String {
    let (covered, alone) = (findings.lost_covered(), findings.lost_alone);
    let unknown = match findings.lost_cover_unknown {
        0 => String::new(),
        count => format!(
            "; of {count} it is not known: nobody saw the server's settings at that time, or they changed"
        ),
    };
    format!(
        "of the lost ones, {covered} were confirmed by a standby before they were acknowledged, and {alone} were \
         acknowledged by the primary alone{unknown}"
    )
}

/// A client that has no row cannot change it: nothing was ever written there.
fn unprepared(
    tables: &spec::LedgerLayout,
    findings: &LedgerFindings,
    read: &[(&str, Table)],
    ledger: &Ledger,
) -> Option<String> {
    let is_missed = findings.lost > 0 || findings.acknowledged_in_part > 0;
    let name = tables.update.as_deref().filter(|_| is_missed)?;
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
fn tables(point: &TrialPoint) -> BTreeSet<&str> {
    let ledgers = point.workloads.iter().filter_map(|workload| workload.ledger.as_ref());
    ledgers
        .flat_map(|ledger| [&ledger.insert, &ledger.update, &ledger.read])
        .flatten()
        .map(String::as_str)
        .collect()
}

/// The servers on which the ledger is checked.
fn checked_nodes<'s>(point: &TrialPoint, site: &'s Site) -> Result<Vec<&'s SiteNode>, Error> {
    let asked = point.checks.iter().filter_map(|check| match check {
        Check::Ledger { node } => Some(site.whom(node.as_ref())),
        _ => None,
    });
    Ok(asked.collect::<Result<_, _>>()?)
}

fn figures(checked: &Checked, outcome: &mut CheckOutcome) {
    let mut all = LedgerFindings::default();
    let mut by_name: Vec<(&str, LedgerFindings)> = Vec::new();
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
    let unreadable = checked.unreadable;
    for (scope, findings) in &by_name {
        outcome.set(&metrics::LEDGER_UNJUDGED, scope, findings.unjudged as f64);
        // What is not known may have been lost as well.
        let is_at_least = findings.unjudged > 0;
        // Where nothing was lost, the loss took no time.
        let span_ns = findings.lost_span.map_or(0, |(first, last)| last.since(first));
        for (metric, value) in [
            (&metrics::LEDGER_INTENDED, findings.intended as f64),
            (&metrics::LEDGER_ACKNOWLEDGED, findings.acknowledged as f64),
            (&metrics::LEDGER_ACKNOWLEDGED_ALONE, findings.acknowledged_alone as f64),
            (
                &metrics::LEDGER_ACKNOWLEDGED_COVER_UNKNOWN,
                findings.acknowledged_cover_unknown as f64,
            ),
            (&metrics::LEDGER_ACKNOWLEDGED_IN_PART, findings.acknowledged_in_part as f64),
            (&metrics::LEDGER_WROTE_NOTHING, findings.wrote_nothing as f64),
            (&metrics::LEDGER_WROTE_NOTHING_PRESENT, findings.wrote_nothing_present as f64),
            (&metrics::LEDGER_UNJUDGED_ROWS, findings.unjudged_rows as f64),
            (&metrics::LEDGER_FAILED, findings.failed as f64),
            (&metrics::LEDGER_UNKNOWN, findings.unknown as f64),
            (&metrics::LEDGER_UNKNOWN_PRESENT, findings.unknown_present as f64),
            (&metrics::LEDGER_PRESENT, findings.present as f64),
            (&metrics::LEDGER_LOST, findings.lost as f64),
            (&metrics::LEDGER_LOST_ALONE, findings.lost_alone as f64),
            (&metrics::LEDGER_LOST_COVER_UNKNOWN, findings.lost_cover_unknown as f64),
            (&metrics::LEDGER_LOST_MAX_RUN, findings.lost_max_run as f64),
            (&metrics::LEDGER_LOST_SPAN_MS, span_ns as f64 / 1e6),
            (&metrics::LEDGER_HOLES, findings.holes as f64),
            (&metrics::LEDGER_FAILED_PRESENT, findings.failed_present as f64),
            (&metrics::LEDGER_DOUBLED, findings.doubled as f64),
            (&metrics::LEDGER_INVENTED, findings.invented as f64),
            (&metrics::LEDGER_BROKEN, findings.broken as f64),
            (&metrics::LEDGER_TORN, findings.torn as f64),
            (&metrics::LEDGER_SCAN_DIFFERENCES, findings.scan_differences as f64),
            (&metrics::LEDGER_SEEN, findings.seen as f64),
            (&metrics::LEDGER_VANISHED, findings.vanished as f64),
            (&metrics::LEDGER_ANOMALIES, (findings.anomalies() as usize + unreadable) as f64),
            (&metrics::LEDGER_UNREADABLE, unreadable as f64),
        ] {
            outcome.set_bounded(metric, scope, value, is_at_least);
        }
        let is_at_least = is_at_least || findings.lost_cover_unknown > 0;
        let covered = findings.lost_covered() as f64;
        outcome.set_bounded(&metrics::LEDGER_LOST_COVERED, scope, covered, is_at_least);
    }
    for (scope, ns) in &checked.pauses {
        outcome.set(&metrics::ACK_PAUSE_MAX_MS, scope, *ns as f64 / 1e6);
    }
    for (scope, share) in &checked.load_shares {
        outcome.set(&metrics::LEDGER_LOAD_SHARE, scope, *share);
    }
    for (scope, split) in &checked.splits {
        outcome.set(&metrics::LEDGER_SERVER_UNKNOWN, scope, split.unknown as f64);
        // Acknowledgements of servers that are not known may have been a second primary's.
        let is_at_least = split.unknown > 0;
        for (metric, value) in [
            (&metrics::LEDGER_SERVERS, split.servers as f64),
            (&metrics::LEDGER_SPLIT, split.acknowledged as f64),
            (&metrics::LEDGER_SPLIT_MS, split.at_least_ns as f64 / 1e6),
            (&metrics::LEDGER_SPLIT_MAX_MS, split.at_most_ns as f64 / 1e6),
        ] {
            outcome.set_bounded(metric, scope, value, is_at_least);
        }
    }
    if let Some(count) = checked.in_flight {
        outcome.set(&metrics::LEDGER_IN_FLIGHT, "", count as f64);
    }
}
