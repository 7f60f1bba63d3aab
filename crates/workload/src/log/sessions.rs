//! Entries of sessions become executions: a text and its duration on two lines are joined, parameters stand in the
//! detail, a text that was seen before is not parsed again, statements of one transaction are kept in their order.

use std::collections::HashMap;

use super::LogEntry;
use super::message::{StatementDetail, StatementMessage, statement_detail, statement_message};
use crate::mask::{KnownPlace, masked, places, values};
use crate::snapshot::CallFilter;
use crate::sql::{ReadStatement, TransactionWord, UnreadableSql, read};
use crate::tally::{CallOrigin, CallTotals, StatementProtocol, StatementTally, TransactionShape};

/// Texts that are remembered; beyond, the memory begins anew.
const KNOWN_MAX: usize = 500_000;

/// Statements of one transaction that are kept in their order.
const TRANSACTION_MAX: usize = 64;

/// Different transactions that are kept.
const SHAPES_MAX: usize = 10_000;

/// A text that was parsed.
#[derive(Clone)]
enum KnownText {
    Statement { at: (usize, usize), places: Vec<(u32, KnownPlace)> },
    Unreadable(UnreadableSql),
}

/// An execution whose duration has not come yet.
struct PendingCall {
    text: String,
    detail: String,
    protocol: StatementProtocol,
    transaction: String,
}

#[derive(Default)]
struct LogSession {
    pending: Option<PendingCall>,
    /// Statements since BEGIN, or of the same virtual transaction.
    open: Vec<(usize, usize)>,
    has_begun: bool,
    transaction: String,
}

/// Reads the entries of a log, in their order.
pub struct SessionReader {
    sessions: HashMap<String, LogSession>,
    known: HashMap<u128, KnownText>,
    shapes: HashMap<Vec<(usize, usize)>, u64>,
    filter: CallFilter,
    keeps_values: bool,
    plans: Vec<(String, f64)>,
    entries: u64,
    with_parameters: u64,
    executions: u64,
    shortest_ms: f64,
    cut_parameters: u64,
    /// Calls of which the log does not say how long they took.
    without_duration: u64,
    dropped_shapes: u64,
}

impl SessionReader {
    /// A reader of the entries that pass the filter; values of calls are kept only where the user wants them.
    pub fn new(filter: CallFilter, keeps_values: bool) -> SessionReader {
        SessionReader {
            sessions: HashMap::new(),
            known: HashMap::new(),
            shapes: HashMap::new(),
            filter,
            keeps_values,
            plans: Vec::new(),
            entries: 0,
            with_parameters: 0,
            executions: 0,
            shortest_ms: f64::INFINITY,
            cut_parameters: 0,
            without_duration: 0,
            dropped_shapes: 0,
        }
    }

    /// True if the filter lets an entry pass.
    fn passes(&self, entry: &LogEntry) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        let filter = &self.filter;
        is(&filter.database, &entry.database)
            && is(&filter.role, &entry.role)
            && is(&filter.application, &entry.application)
            && filter.since.is_none_or(|since| entry.at.is_some_and(|at| at >= since))
            && filter.until.is_none_or(|until| entry.at.is_some_and(|at| at < until))
    }

    /// Takes the next entry; `place` says where it stands.
    pub fn take(&mut self, entry: &LogEntry, place: &str, tally: &mut StatementTally) {
        if entry.severity != "LOG" || !self.passes(entry) {
            return;
        }
        self.entries += 1;
        let call = |text: &str, protocol| PendingCall {
            text: text.to_owned(),
            detail: entry.detail.clone(),
            protocol,
            transaction: entry.transaction.clone(),
        };
        let (call, duration) = match statement_message(&entry.message) {
            StatementMessage::Statement { duration_ms, text } => {
                (call(text, StatementProtocol::Simple), duration_ms)
            }
            StatementMessage::Execute { duration_ms, is_named, text } => {
                let named = [StatementProtocol::Extended, StatementProtocol::Prepared];
                (call(text, named[usize::from(is_named)]), duration_ms)
            }
            StatementMessage::Duration(duration) => {
                let session = self.sessions.get_mut(&entry.session);
                if let Some(pending) = session.and_then(|session| session.pending.take()) {
                    self.execute(&entry.session, &pending, Some(duration), place, tally);
                }
                return;
            }
            StatementMessage::Plan { duration_ms, text } => {
                // Bounded: it is used only where the log has nothing else.
                if self.executions == 0 && self.plans.len() < KNOWN_MAX {
                    self.plans.push((text.to_owned(), duration_ms));
                }
                return;
            }
            StatementMessage::Sampling => {
                tally.notes.insert(
                    "a setting that decides which statements are logged changed while the log was written".to_owned(),
                );
                return;
            }
            StatementMessage::Preparation | StatementMessage::Other => return,
        };
        let before = self.sessions.entry(entry.session.clone()).or_default().pending.take();
        if let Some(before) = before {
            self.execute(&entry.session, &before, None, place, tally);
        }
        match duration {
            Some(_) => self.execute(&entry.session, &call, duration, place, tally),
            None => {
                if let Some(session) = self.sessions.get_mut(&entry.session) {
                    session.pending = Some(call);
                }
            }
        }
    }

    /// Counts an execution.
    fn execute(
        &mut self,
        session: &str,
        call: &PendingCall,
        duration: Option<f64>,
        place: &str,
        tally: &mut StatementTally,
    ) {
        self.executions += 1;
        match duration {
            Some(duration) => self.shortest_ms = self.shortest_ms.min(duration),
            None => self.without_duration += 1,
        }
        // A log counts no rows. Calls without a duration are named at the end.
        let amount = CallTotals { calls: 1, time_ms: duration.unwrap_or(0.0), rows: 0 };
        let origin = CallOrigin { place, protocol: Some(call.protocol), is_normalised: false };
        let (mut parameters, mut text) = (Vec::new(), call.text.as_str());
        match statement_detail(&call.detail) {
            StatementDetail::Parameters { values, is_cut } => {
                self.with_parameters += 1;
                self.cut_parameters += u64::from(is_cut);
                if !is_cut {
                    parameters = values;
                }
            }
            StatementDetail::Prepared(prepared) => {
                if let Ok(statements) = read(text)
                    && let [ReadStatement::Execute(arguments)] = &statements[..]
                {
                    parameters = (1..).zip(arguments.iter().cloned()).collect();
                }
                text = prepared;
            }
            StatementDetail::Nothing => {}
        }
        let mask = masked(text);
        match self.known.get(&mask.digest).cloned() {
            Some(KnownText::Statement { at, places }) => {
                tally.count(at, &amount, origin);
                if self.keeps_values {
                    parameters.extend(values(text, &mask, &places));
                    tally.keep(at, parameters);
                }
                self.note(session, &call.transaction, at);
            }
            Some(KnownText::Unreadable(why)) => {
                tally.unreadable.entry(why).or_default().add(&amount);
            }
            None => self.parse(session, call, text, parameters, &amount, origin, tally),
        }
    }

    /// Parses a text that was not seen before.
    #[allow(clippy::too_many_arguments)]
    fn parse(
        &mut self,
        session: &str,
        call: &PendingCall,
        text: &str,
        parameters: Vec<(u32, Option<String>)>,
        amount: &CallTotals,
        origin: CallOrigin<'_>,
        tally: &mut StatementTally,
    ) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let mask = masked(text);
        let statements = match read(text) {
            Ok(statements) => statements,
            Err(why) => {
                self.known.insert(mask.digest, KnownText::Unreadable(why));
                tally.unreadable.entry(why).or_default().add(amount);
                return;
            }
        };
        let is_single = statements.len() == 1;
        let mut amount = *amount;
        for statement in statements {
            match statement {
                ReadStatement::Query(query) => {
                    let known = places(&mask, &query.constants);
                    let constants =
                        query.constants.iter().map(|one| (one.parameter, one.value.clone()));
                    let row = parameters.iter().cloned().chain(constants).collect();
                    let at = tally.add(query, &amount, origin);
                    if self.keeps_values {
                        tally.keep(at, row);
                    }
                    if let (true, Some(places)) = (is_single, known) {
                        self.known.insert(mask.digest, KnownText::Statement { at, places });
                    }
                    self.note(session, &call.transaction, at);
                }
                ReadStatement::Transaction(word) => {
                    tally.transaction_control.add(&amount);
                    self.bound(session, word);
                }
                ReadStatement::Execute(_) => {
                    let unreadable = tally.unreadable.entry(UnreadableSql::UnknownPrepared);
                    unreadable.or_default().add(&amount);
                }
                ReadStatement::Utility(utility) => {
                    tally.left_out.entry(utility).or_default().add(&amount);
                }
            }
            // The whole text has one duration; each of its statements was called.
            amount.time_ms = 0.0;
        }
    }

    /// Notes a statement of a transaction.
    fn note(&mut self, session: &str, transaction: &str, at: (usize, usize)) {
        let state = self.sessions.get_mut(session);
        let state = state.expect("a session is known from its first entry on");
        // Without BEGIN, statements belong together if their virtual transaction is one and the same.
        let is_within = !transaction.is_empty() && !transaction.ends_with("/0");
        if !state.has_begun && (!is_within || state.transaction != transaction) {
            let ended = std::mem::take(&mut state.open);
            state.transaction = transaction.to_owned();
            if is_within {
                state.open.push(at);
            }
            self.shape(ended);
            return;
        }
        if state.open.len() <= TRANSACTION_MAX {
            state.open.push(at);
        }
    }

    /// Begins or ends a transaction.
    fn bound(&mut self, session: &str, word: TransactionWord) {
        let state = self.sessions.get_mut(session);
        let state = state.expect("a session is known from its first entry on");
        let ended = match word {
            TransactionWord::Savepoint => return,
            TransactionWord::Rollback => {
                state.open.clear();
                Vec::new()
            }
            TransactionWord::Begin | TransactionWord::Commit => std::mem::take(&mut state.open),
        };
        state.has_begun = word == TransactionWord::Begin;
        state.transaction.clear();
        self.shape(ended);
    }

    /// Counts a transaction of several statements.
    fn shape(&mut self, statements: Vec<(usize, usize)>) {
        if statements.len() < 2 {
            return;
        }
        if statements.len() > TRANSACTION_MAX
            || self.shapes.len() >= SHAPES_MAX && !self.shapes.contains_key(&statements)
        {
            self.dropped_shapes += 1;
            return;
        }
        *self.shapes.entry(statements).or_default() += 1;
    }

    /// Ends the log: what is left is counted. The number of executions.
    pub fn finish(mut self, tally: &mut StatementTally) -> u64 {
        let sessions: Vec<String> = self.sessions.keys().cloned().collect();
        for session in sessions {
            let state = self.sessions.get_mut(&session);
            if let Some(pending) = state.and_then(|state| state.pending.take()) {
                self.execute(&session, &pending, None, "end", tally);
            }
            if let Some(state) = self.sessions.get_mut(&session) {
                let open = std::mem::take(&mut state.open);
                self.shape(open);
            }
        }
        if self.executions == 0 {
            for (text, duration) in std::mem::take(&mut self.plans) {
                self.executions += 1;
                let amount = CallTotals { calls: 1, time_ms: duration, rows: 0 };
                let call = PendingCall {
                    text,
                    detail: String::new(),
                    protocol: StatementProtocol::Simple,
                    transaction: String::new(),
                };
                let origin =
                    CallOrigin { place: "auto_explain", protocol: None, is_normalised: false };
                self.parse("", &call, &call.text, Vec::new(), &amount, origin, tally);
            }
            if self.executions > 0 {
                tally.notes.insert(
                    "calls are those of which auto_explain wrote a plan: a biased sample"
                        .to_owned(),
                );
            }
        }
        if self.shortest_ms.is_finite() && self.shortest_ms >= 1.0 && self.executions >= 100 {
            tally.notes.insert(format!(
                "no call took less than {:.0} ms: the log has a threshold (log_min_duration_statement) and is a biased sample",
                self.shortest_ms.floor()
            ));
        }
        if self.without_duration > 0 {
            tally.notes.insert(format!(
                "{} calls have no duration in the log and are in no share of the time (log_duration, or \
                 log_min_duration_statement = 0)",
                self.without_duration
            ));
        }
        if self.cut_parameters > 0 {
            tally.notes.insert(format!(
                "the values of {} calls were cut (log_parameter_max_length) and are not used",
                self.cut_parameters
            ));
        }
        if self.dropped_shapes > 0 {
            tally.notes.insert(format!(
                "{} transactions were too long or too different to be kept; their statements stand alone",
                self.dropped_shapes
            ));
        }
        let mut shapes: Vec<TransactionShape> = self
            .shapes
            .drain()
            .map(|(statements, count)| TransactionShape { statements, count })
            .collect();
        shapes.sort_by(|a, b| b.count.cmp(&a.count).then(a.statements.cmp(&b.statements)));
        tally.transactions = shapes;
        self.executions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallied(lines: &[(&str, &str, &str, &str)]) -> StatementTally {
        let mut tally = StatementTally::default();
        let mut reader = SessionReader::new(CallFilter::default(), true);
        for (session, transaction, message, detail) in lines {
            let entry = LogEntry {
                session: (*session).to_owned(),
                transaction: (*transaction).to_owned(),
                severity: "LOG".to_owned(),
                message: (*message).to_owned(),
                detail: (*detail).to_owned(),
                ..LogEntry::default()
            };
            reader.take(&entry, "line", &mut tally);
        }
        reader.finish(&mut tally);
        tally
    }

    #[test]
    fn an_execution_counts_once() {
        let check = |lines: &[(&str, &str, &str, &str)], calls: u64, time: f64, values: &[&str]| {
            let tally = tallied(lines);
            assert_eq!(tally.statements.len(), 1, "{lines:?}");
            let amount = tally.statements[0].amount;
            assert_eq!((amount.calls, amount.time_ms), (calls, time), "{lines:?}");
            let rows = tally.statements[0].variants.iter().flat_map(|one| &one.values.rows);
            let seen: Vec<&str> =
                rows.flatten().filter_map(|(_, value)| value.as_deref()).collect();
            assert_eq!(seen, values, "{lines:?}");
        };
        let text = "select a from t where b = $1";
        check(
            &[
                ("1", "", &format!("duration: 1 ms  parse <unnamed>: {text}"), ""),
                (
                    "1",
                    "",
                    &format!("duration: 2 ms  bind <unnamed>: {text}"),
                    "parameters: $1 = '5'",
                ),
                (
                    "1",
                    "",
                    &format!("duration: 4 ms  execute <unnamed>: {text}"),
                    "parameters: $1 = '5'",
                ),
            ],
            1,
            4.0,
            &["5"],
        );
        check(
            &[
                ("1", "", "statement: select a from t where b = 5", ""),
                ("2", "", "statement: select a from t where b = 'x'", ""),
                ("1", "", "duration: 3 ms", ""),
                ("2", "", "duration: 4 ms", ""),
            ],
            2,
            7.0,
            &["5", "x"],
        );
        check(
            &[(
                "1",
                "",
                "duration: 1 ms  statement: execute q(3)",
                "prepare: prepare q(int) as select a from t where b = $1",
            )],
            1,
            1.0,
            &["3"],
        );
        check(
            &[
                ("1", "", "duration: 1 ms  statement: select a from t where b = 1", ""),
                ("1", "", "duration: 2 ms  statement: select a from t where b = 2", ""),
            ],
            2,
            3.0,
            &["1", "2"],
        );
    }

    #[test]
    fn statements_of_a_transaction_stay_together() {
        let check = |lines: &[(&str, &str, &str, &str)], expected: &[(usize, u64)]| {
            let shapes = tallied(lines).transactions;
            let found: Vec<(usize, u64)> =
                shapes.iter().map(|one| (one.statements.len(), one.count)).collect();
            assert_eq!(found, expected, "{lines:?}");
        };
        let run = |text: &'static str| ("1", "3/0", text, "");
        check(
            &[
                run("duration: 1 ms  statement: begin"),
                run("duration: 1 ms  statement: select a from t where b = 1"),
                run("duration: 1 ms  statement: update t set a = 1 where b = 1"),
                run("duration: 1 ms  statement: commit"),
            ],
            &[(2, 1)],
        );
        check(
            &[
                run("duration: 1 ms  statement: begin"),
                run("duration: 1 ms  statement: select a from t where b = 1"),
                run("duration: 1 ms  statement: update t set a = 1 where b = 1"),
                run("duration: 1 ms  statement: rollback"),
            ],
            &[],
        );
        check(
            &[
                ("1", "3/17", "duration: 1 ms  statement: select a from t where b = 1", ""),
                ("1", "3/17", "duration: 1 ms  statement: update t set a = 1 where b = 1", ""),
                ("1", "3/18", "duration: 1 ms  statement: update t set a = 1 where b = 1", ""),
            ],
            &[(2, 1)],
        );
        check(
            &[
                run("duration: 1 ms  statement: select 1"),
                run("duration: 1 ms  statement: select 2"),
            ],
            &[],
        );
    }

    #[test]
    fn values_are_not_kept_unless_they_are_wanted() {
        let mut tally = StatementTally::default();
        let mut reader = SessionReader::new(CallFilter::default(), false);
        let message = "duration: 1 ms  statement: select a from t where b = 'secret99'".to_owned();
        let entry = LogEntry { severity: "LOG".to_owned(), message, ..LogEntry::default() };
        for _ in 0..3 {
            reader.take(&entry, "line", &mut tally);
        }
        reader.finish(&mut tally);
        assert_eq!(tally.statements[0].amount.calls, 3);
        assert!(!format!("{tally:?}").contains("secret99"));
    }
}
