//! The history of a trial's clients: which anomalies it shows, and how old what they read was.

use history::{
    AnomalyWitness, CLOCK_BOUND_MAX_NS, CycleKind, CycleOrder, FaultKind, History, HistoryFindings,
    HistoryTransaction, IsolationAnomaly, IsolationLevel, LevelJudgement, ReadStaleness,
};
use record::{Note, NoteKind};
use site::Site;
use spec::{Check, Metric, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Judges the history. The scope of a figure is empty; of the age of reads also a workload.
pub fn check(_: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let levels = before.point.checks.iter().filter_map(|check| match check {
        Check::History { level } => Some(*level),
        _ => None,
    });
    let mut outcome = CheckOutcome::default();
    // Two checks of one history are the stricter one.
    let Some(level) = levels.max() else { return Ok(outcome) };
    let mut history = record::read_histories(before.ledger)?;
    history.widen_bounds(before.clocks_within_ns);
    let findings = history::check(&history);
    figures(&findings, level, &mut outcome);
    ages(&history, &findings, &mut outcome);
    words(&findings, level, &mut outcome);
    outcome.witnesses = pictures(&findings, level);
    Ok(outcome)
}

/// Witnesses kept in the record.
const WITNESSES_MAX: usize = 12;

fn figures(findings: &HistoryFindings, level: IsolationLevel, outcome: &mut CheckOutcome) {
    let counted = findings.counted;
    let forbidden: u64 = findings.forbidden(level).map(|(_, count)| count).sum();
    let ordered = |order: CycleOrder| -> u64 {
        let cycles = CycleKind::ALL.iter().map(|cycle| IsolationAnomaly::Cycle(*cycle, order));
        cycles.map(|anomaly| findings.count(anomaly)).sum()
    };
    let disorder = [
        IsolationAnomaly::DuplicateElements,
        IsolationAnomaly::CyclicVersions,
        IsolationAnomaly::FutureRead,
    ];
    let unjudged = findings.faults.iter().filter(|fault| fault.what.unjudged().is_some());
    let (of_hosts, unjudged): (Vec<_>, Vec<_>) = unjudged.partition(|one| is_of_a_host(&one.what));
    // A clock that is wrong is no fault of the history: whether it could have been judged is not known.
    let is_at_least = !of_hosts.is_empty();
    outcome.set_bounded(&metrics::HISTORY_UNJUDGED, "", unjudged.len() as f64, is_at_least);
    for (metric, value) in [
        (&metrics::HISTORY_COMMITTED, counted.committed),
        (&metrics::HISTORY_FAILED, counted.failed),
        (&metrics::HISTORY_UNKNOWN, counted.unknown),
        (&metrics::HISTORY_READS, counted.reads),
        (&metrics::HISTORY_DISORDER, disorder.map(|one| findings.count(one)).iter().sum()),
        (&metrics::HISTORY_PROCESS, ordered(CycleOrder::Process)),
        (&metrics::HISTORY_REALTIME, ordered(CycleOrder::Realtime)),
    ] {
        outcome.set(metric, "", value as f64);
    }
    if let Some(share) = findings.observed.read_share() {
        outcome.set(&metrics::HISTORY_READ_SHARE, "", share);
    }
    // Silence is never "holds": where that nothing was found shows nothing, there is no figure.
    if findings.judge(level) != LevelJudgement::CannotTell {
        outcome.set(&metrics::HISTORY_FORBIDDEN, "", forbidden as f64);
    }
    for (metric, anomaly) in BY_NAME {
        outcome.set(metric, "", findings.count(anomaly) as f64);
    }
}

/// True if a host of clients is at fault, and not the history: its clock, or its loss.
fn is_of_a_host(wrong: &FaultKind) -> bool {
    match wrong {
        FaultKind::ClocksApart { .. } | FaultKind::FileMissing | FaultKind::CutOff => true,
        FaultKind::Line(_) | FaultKind::Gap { .. } | FaultKind::WrittenTwice { .. } => false,
    }
}

/// Anomalies with a metric of their own.
const BY_NAME: [(&Metric, IsolationAnomaly); 18] = [
    (&metrics::HISTORY_G0, IsolationAnomaly::Cycle(CycleKind::G0, CycleOrder::Data)),
    (&metrics::HISTORY_G1A, IsolationAnomaly::G1a),
    (&metrics::HISTORY_G1B, IsolationAnomaly::G1b),
    (&metrics::HISTORY_G1C, IsolationAnomaly::Cycle(CycleKind::G1c, CycleOrder::Data)),
    (&metrics::HISTORY_DIRTY_UPDATE, IsolationAnomaly::DirtyUpdate),
    (&metrics::HISTORY_INTERNAL, IsolationAnomaly::Internal),
    (&metrics::HISTORY_OWN_WRITE_UNSEEN, IsolationAnomaly::OwnWriteUnseen),
    (&metrics::HISTORY_LOST_UPDATE, IsolationAnomaly::LostUpdate),
    (&metrics::HISTORY_G_SINGLE, IsolationAnomaly::Cycle(CycleKind::GSingle, CycleOrder::Data)),
    (&metrics::HISTORY_LONG_FORK, IsolationAnomaly::Cycle(CycleKind::LongFork, CycleOrder::Data)),
    (
        &metrics::HISTORY_G_NONADJACENT,
        IsolationAnomaly::Cycle(CycleKind::GNonadjacent, CycleOrder::Data),
    ),
    (&metrics::HISTORY_G2_ITEM, IsolationAnomaly::Cycle(CycleKind::G2Item, CycleOrder::Data)),
    (&metrics::HISTORY_UNWRITTEN_READ, IsolationAnomaly::UnwrittenRead),
    (&metrics::HISTORY_INCOMPATIBLE_ORDER, IsolationAnomaly::IncompatibleOrder),
    (&metrics::HISTORY_WRONG_TOTAL, IsolationAnomaly::WrongTotal),
    (&metrics::HISTORY_MONOTONIC_READS, IsolationAnomaly::MonotonicReads),
    (&metrics::HISTORY_READ_YOUR_WRITES, IsolationAnomaly::ReadYourWrites),
    (&metrics::HISTORY_WRITES_FOLLOW_READS, IsolationAnomaly::WritesFollowReads),
];

fn ages(history: &History, findings: &HistoryFindings, outcome: &mut CheckOutcome) {
    // An age is counted from the latest moment at which the newer version can have been acknowledged.
    let is_unclocked = |one: &HistoryTransaction| one.bound > CLOCK_BOUND_MAX_NS;
    let is_at_least = history.transactions().iter().any(is_unclocked);
    for (group, staleness) in history.groups().iter().zip(&findings.staleness) {
        let ms = |share| staleness.age_ns(share).map(|ns| ns as f64 / 1e6);
        let behind = |share| staleness.lacking(share).map(f64::from);
        let stale = staleness.stale() as f64 / staleness.reads().max(1) as f64;
        for (metric, value) in [
            (&metrics::READ_AGE_P50_MS, ms(0.5)),
            (&metrics::READ_AGE_P99_MS, ms(0.99)),
            (&metrics::READ_AGE_MAX_MS, ms(1.0)),
            (&metrics::READ_BEHIND_P50, behind(0.5)),
            (&metrics::READ_BEHIND_P99, behind(0.99)),
            (&metrics::READ_BEHIND_MAX, behind(1.0)),
            (&metrics::READ_STALE_SHARE, has_reads(staleness).then_some(stale)),
        ] {
            if let Some(value) = value {
                outcome.set_bounded(metric, &group.workload, value, is_at_least);
            }
        }
    }
}

fn has_reads(staleness: &ReadStaleness) -> bool {
    staleness.reads() > 0
}

fn words(findings: &HistoryFindings, level: IsolationLevel, outcome: &mut CheckOutcome) {
    for fault in &findings.faults {
        outcome.note(format!("history: {fault}"));
    }
    outcome.note(format!("history: {}", findings.observed));
    if findings.judge(level) == LevelJudgement::CannotTell {
        let why: Vec<String> = findings.doubts(level).iter().map(ToString::to_string).collect();
        let why = why.join("; ");
        outcome.note(format!("history: whether it is {level} cannot be told: {why}"));
    }
    for (anomaly, count) in findings.forbidden(level) {
        let least = if findings.is_partial { "at least " } else { "" };
        let text = format!(
            "history: {anomaly} ({}), which {level} forbids, {least}{count} {}",
            anomaly.meaning(),
            if count == 1 { "time" } else { "times" }
        );
        outcome.notes.push(Note::new(NoteKind::History, text));
        let mut witnesses = findings.witnesses.iter().filter(|one| one.anomaly == anomaly);
        if let Some(witness) = witnesses.next() {
            let race = race_of_commit(witness).map(|race| format!("\n  {race}"));
            // Most anomalies are no race of a commit, and need no such line.
            let text = format!("{witness}{}", race.unwrap_or_default());
            outcome.notes.push(Note::new(NoteKind::History, text));
        }
    }
}

/// What is known of PostgreSQL that has the shape of a witness: a commit makes its transaction visible before it
/// releases its predicate locks, and a transaction that only reads can see it in between
/// (docs/isolation.md repeats it by hand).
fn race_of_commit(witness: &AnomalyWitness) -> Option<String> {
    let reader = witness.reader? + 1;
    Some(format!(
        "this shape fits a race of PostgreSQL's serializable level that is known: T{reader} only reads, and saw \
         a commit between its end and the release of its predicate locks (docs/isolation.md)"
    ))
}

/// The smallest witness of each anomaly, those that the level forbids first.
fn pictures(findings: &HistoryFindings, level: IsolationLevel) -> Vec<record::WitnessPicture> {
    let mut witnesses: Vec<&AnomalyWitness> = findings.witnesses.iter().collect();
    witnesses.dedup_by_key(|witness| witness.anomaly);
    witnesses.sort_by_key(|witness| !level.forbids(witness.anomaly));
    witnesses.truncate(WITNESSES_MAX);
    witnesses.into_iter().map(picture).collect()
}

fn picture(witness: &AnomalyWitness) -> record::WitnessPicture {
    let transactions = witness.transactions.iter().map(|seen| {
        let backend = match seen.backend {
            0 => String::new(),
            backend => format!(" (backend {backend})"),
        };
        let (client, number, server) = (seen.client, seen.number, &seen.group.server);
        let outcome = seen.outcome;
        record::PicturedTransaction {
            who: format!("client {client} transaction {number} on {server}{backend}, {outcome}"),
            did: seen.operations.clone(),
            begun: seen.begun,
            ended: seen.ended,
        }
    });
    let links = witness.links.iter().map(|link| record::TransactionOrder {
        from: link.from,
        to: link.to,
        name: link.name.to_owned(),
        why: link.why.clone(),
    });
    record::WitnessPicture {
        anomaly: witness.anomaly.to_string(),
        meaning: witness.anomaly.meaning().to_owned(),
        transactions: transactions.collect(),
        links: links.collect(),
        why: race_of_commit(witness).unwrap_or_else(|| witness.why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hosts_clock_leaves_unjudged_is_no_fault_of_the_history() {
        let check = |lines: &str, expected: (f64, bool)| {
            let text = format!("history 1\ng 0\tprimary\tserializable\tw\nc 1 0 1 1\n{lines}");
            let mut history = History::default();
            history::file::read(&mut history, "0.history", text.as_bytes()).expect("a history");
            let mut outcome = CheckOutcome::default();
            figures(&history::check(&history), IsolationLevel::Serializable, &mut outcome);
            let is_it = |one: &&crate::TrialFigure| one.metric == &metrics::HISTORY_UNJUDGED;
            let figure = outcome.figures.iter().find(is_it).expect("a figure");
            assert_eq!((figure.value, figure.is_at_least), expected, "{lines}");
        };
        let read_at = |begun: u64, ended: u64| {
            format!(
                "b 1 1 100\na 1 5 1\no 1 120\nc 2 0 2 1\nb 2 1 {begun}\nl 2 5 0 1\no 2 {ended}\n"
            )
        };
        check(&read_at(130, 140), (0.0, false));
        // It read what nobody had begun to write.
        check(&read_at(30, 40), (0.0, true));
        check(&format!("{}what\n", read_at(130, 140)), (1.0, false));
        check(&format!("{}what\n", read_at(30, 40)), (1.0, true));
    }

    #[test]
    fn what_a_level_forbids_is_counted_where_it_could_be_judged() {
        let check = |lines: &str, level: IsolationLevel, expected: Option<f64>| {
            let text = format!("history 1\ng 0\tprimary\tserializable\tw\nc 1 0 1 1\n{lines}");
            let mut history = History::default();
            history::file::read(&mut history, "0.history", text.as_bytes()).expect("a history");
            let findings = history::check(&history);
            let mut outcome = CheckOutcome::default();
            figures(&findings, level, &mut outcome);
            words(&findings, level, &mut outcome);
            let seen = outcome.value(&metrics::HISTORY_FORBIDDEN, "");
            assert_eq!(seen, expected, "{lines}");
            let is_told = outcome.notes.iter().any(|note| note.text.contains("cannot be told"));
            assert_eq!(is_told, expected.is_none(), "{lines}");
        };
        let silent = "b 1 1 10\na 1 5 1\no 1 20\n";
        check(silent, IsolationLevel::ReadCommitted, None);
        let clean = "b 1 1 10\na 1 5 1\no 1 20\nc 2 0 2 1\nb 2 1 30\nl 2 5 0 1\no 2 40\n";
        check(clean, IsolationLevel::Serializable, Some(0.0));
        check("", IsolationLevel::Serializable, None);
        check("b 1 1 10\na 1 5 1\nf 1 20\n", IsolationLevel::Serializable, None);
        check(&format!("{clean}what\n"), IsolationLevel::Serializable, None);
        // An anomaly that was found stands, also if the rest could not be judged.
        let aborted =
            format!("{clean}b 1 2 30\na 1 6 1\nf 1 40\nb 2 2 50\nl 2 6 0 1\no 2 60\nwhat\n");
        check(&aborted, IsolationLevel::ReadCommitted, Some(1.0));
        // A line that is lost may have told of the write.
        let unwritten = format!("{clean}b 1 2 30\nl 1 5 1 7\no 1 40\n");
        check(&unwritten, IsolationLevel::ReadCommitted, Some(1.0));
        check(&format!("{unwritten}what\n"), IsolationLevel::ReadCommitted, None);
    }

    /// A host's clock was 5 s behind, which was seen when its clients had noted that they knew it well.
    #[test]
    fn a_clock_that_has_jumped_orders_nothing_and_ages_nothing() {
        let ms = |ms: u64| ms * 1_000_000;
        let text = format!(
            "history 2\ne 1000\ng 0\tprimary\tserializable\tw\nc 1 0 1 1\nc 2 0 2 1\nb 1 1 {}\na 1 5 1\no 1 {}\n\
             b 2 1 {}\nl 2 5 0\no 2 {}\nb 2 2 {}\nl 2 5 0 1\no 2 {}\nz\n",
            ms(1_000),
            ms(1_001),
            ms(3_000),
            ms(3_001),
            ms(9_000),
            ms(9_001)
        );
        let check = |within_ms: u64, realtime: f64, age_ms: f64, is_at_least: bool| {
            let mut history = History::default();
            history::file::read(&mut history, "0.history", text.as_bytes()).expect("a history");
            assert!(history.faults().is_empty(), "{:?}", history.faults());
            history.widen_bounds(ms(within_ms));
            let findings = history::check(&history);
            let mut outcome = CheckOutcome::default();
            figures(&findings, IsolationLevel::StrictSerializable, &mut outcome);
            ages(&history, &findings, &mut outcome);
            assert_eq!(
                outcome.value(&metrics::HISTORY_REALTIME, ""),
                Some(realtime),
                "{within_ms}"
            );
            let is_it = |one: &&crate::TrialFigure| one.metric == &metrics::READ_AGE_MAX_MS;
            let age = outcome.figures.iter().find(is_it).expect("an age");
            assert!((age.value - age_ms).abs() < 1.0, "{within_ms}: {}", age.value);
            assert_eq!(age.is_at_least, is_at_least, "{within_ms}");
        };
        check(0, 1.0, 1_999.0, false);
        check(5_000, 0.0, 0.0, true);
    }

    #[test]
    fn the_shape_of_a_known_race_is_named() {
        let check = |third: &str, is_named: bool| {
            let sessions = "c 1 0 1 1\nc 2 0 2 1\nc 3 0 3 1\nc 4 0 4 1\n";
            let lines = format!(
                "b 1 1 10\nl 1 5 0\nb 2 1 12\na 2 5 1\no 2 20\nb 3 1 25\nl 3 5 0 1\nl 3 6 0\n{third}\
                 a 1 6 2\no 1 35\no 3 40\nb 4 1 50\nl 4 6 0 2\no 4 60\n"
            );
            let text = format!("history 1\ng 0\tprimary\tserializable\tw\n{sessions}{lines}");
            let mut history = History::default();
            history::file::read(&mut history, "0.history", text.as_bytes()).expect("a history");
            let findings = history::check(&history);
            let mut outcome = CheckOutcome::default();
            words(&findings, IsolationLevel::Serializable, &mut outcome);
            let named = "T3 only reads, and saw a commit between its end and the release";
            let notes: Vec<&str> = outcome.notes.iter().map(|note| note.text.as_str()).collect();
            assert!(notes.iter().any(|note| note.contains("G2-item")), "{notes:?}");
            assert_eq!(notes.iter().any(|note| note.contains(named)), is_named, "{notes:?}");
            let pictures = pictures(&findings, IsolationLevel::Serializable);
            assert_eq!(pictures[0].why.contains(named), is_named);
        };
        check("", true);
        // One that writes as well has no part in that race.
        check("a 3 7 9\n", false);
    }
}
