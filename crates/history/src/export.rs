//! Writes a history as Elle and elle-cli read it, for a second opinion.
//!
//! There, a transaction is two operations, its invocation and its completion, in the order of time. A
//! process whose transaction has an unknown outcome never acts again: its client goes on under another
//! number.

use std::io::{self, Write};

use crate::history::{History, ObjectKind, Operation, TransactionOutcome};

/// Other checkers' name for the kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationModel {
    /// Appends and reads of lists.
    ListAppend,
    /// Writes and reads of registers.
    RwRegister,
    /// Reads of all balances.
    Bank,
}

/// Notation of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportNotation {
    /// A map for each line, in extensible data notation.
    Edn,
    /// An array of objects.
    Json,
}

/// An invocation or a completion.
struct Event {
    at: u64,
    transaction: u32,
    is_end: bool,
    process: u64,
}

/// Writes the transactions with operations of a model, without their other operations.
pub fn export(
    history: &History,
    model: OperationModel,
    notation: ExportNotation,
    out: &mut impl Write,
) -> io::Result<()> {
    let events = events(history, model);
    let (open, between, close) = match notation {
        ExportNotation::Edn => ("", "\n", "\n"),
        ExportNotation::Json => ("[", ",\n", "]\n"),
    };
    out.write_all(open.as_bytes())?;
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            out.write_all(between.as_bytes())?;
        }
        let writer = Writer { history, model, notation };
        writer.event(index, event, out)?;
    }
    out.write_all(close.as_bytes())
}

fn events(history: &History, model: OperationModel) -> Vec<Event> {
    let clients = history.sessions().iter().map(|session| u64::from(session.client) + 1).max();
    let clients = clients.unwrap_or(1);
    let mut lives = std::collections::HashMap::new();
    let mut events = Vec::new();
    let mut order: Vec<u32> = (0..history.transactions().len() as u32).collect();
    order.sort_by_key(|number| history.transactions()[*number as usize].begun);
    for number in order {
        let transaction = &history.transactions()[number as usize];
        if !history.operations(transaction).iter().any(|one| is_of(history, model, one)) {
            continue;
        }
        let client = history.session(transaction).client;
        let life = lives.entry(client).or_insert(0);
        let process = u64::from(client) + *life * clients;
        let is_unknown = transaction.outcome == TransactionOutcome::Unknown;
        *life += u64::from(is_unknown);
        let begun = transaction.begun;
        let ended = if is_unknown { begun } else { transaction.ended };
        let event = |at, is_end| Event { at, transaction: number, is_end, process };
        events.extend([event(begun, false), event(ended, true)]);
    }
    // At one moment, what begins comes first: two that touch count as concurrent.
    events.sort_by_key(|event| (event.at, event.is_end));
    events
}

fn is_of(history: &History, model: OperationModel, operation: &Operation) -> bool {
    match operation.key() {
        Some(key) => match history.key(key).0 {
            ObjectKind::List => model == OperationModel::ListAppend,
            ObjectKind::Register => model == OperationModel::RwRegister,
        },
        None => model == OperationModel::Bank,
    }
}

struct Writer<'h> {
    history: &'h History,
    model: OperationModel,
    notation: ExportNotation,
}

impl Writer<'_> {
    fn event(&self, index: usize, event: &Event, out: &mut impl Write) -> io::Result<()> {
        let transaction = &self.history.transactions()[event.transaction as usize];
        let kind = match (event.is_end, transaction.outcome) {
            (false, _) => "invoke",
            (true, TransactionOutcome::Committed) => "ok",
            (true, TransactionOutcome::Failed) => "fail",
            (true, TransactionOutcome::Unknown) => "info",
        };
        let f = if self.model == OperationModel::Bank { "read" } else { "txn" };
        let Event { at, process, .. } = event;
        match self.notation {
            ExportNotation::Edn => write!(
                out,
                "{{:index {index}, :type :{kind}, :process {process}, :time {at}, :f :{f}, :value "
            )?,
            ExportNotation::Json => write!(
                out,
                "{{\"index\":{index},\"type\":\"{kind}\",\"process\":{process},\"time\":{at},\
                 \"f\":\"{f}\",\"value\":"
            )?,
        }
        let is_known = event.is_end && transaction.outcome == TransactionOutcome::Committed;
        let operations = self.history.operations(transaction).iter();
        let mut mine = operations.filter(|one| is_of(self.history, self.model, one));
        if self.model == OperationModel::Bank {
            self.balances(mine.next_back(), is_known, out)?;
        } else {
            out.write_all(b"[")?;
            for (at, operation) in mine.enumerate() {
                if at > 0 {
                    out.write_all(self.comma())?;
                }
                self.operation(operation, is_known, out)?;
            }
            out.write_all(b"]")?;
        }
        out.write_all(b"}")
    }

    fn comma(&self) -> &'static [u8] {
        match self.notation {
            ExportNotation::Edn => b" ",
            ExportNotation::Json => b",",
        }
    }

    fn nothing(&self) -> &'static str {
        match self.notation {
            ExportNotation::Edn => "nil",
            ExportNotation::Json => "null",
        }
    }

    fn operation(
        &self,
        operation: &Operation,
        is_known: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let name = |key| self.history.key(key).1;
        let nothing = || self.nothing().to_owned();
        let (f, key, value) = match *operation {
            Operation::Append { key, value } => ("append", name(key), value.to_string()),
            Operation::Write { key, value } => ("w", name(key), value.to_string()),
            Operation::Read { key, value } if is_known => ("r", name(key), value.to_string()),
            Operation::ReadList { key, list } if is_known => {
                let comma = String::from_utf8_lossy(self.comma());
                let elements = self.history.elements(list).iter().map(i64::to_string);
                let elements = elements.collect::<Vec<_>>().join(&comma);
                ("r", name(key), format!("[{elements}]"))
            }
            Operation::Read { key, .. }
            | Operation::ReadList { key, .. }
            | Operation::ReadNothing { key } => ("r", name(key), nothing()),
            Operation::ReadAccounts { .. } => return Ok(()),
        };
        match self.notation {
            ExportNotation::Edn => write!(out, "[:{f} {key} {value}]"),
            ExportNotation::Json => write!(out, "[\"{f}\",{key},{value}]"),
        }
    }

    fn balances(
        &self,
        operation: Option<&Operation>,
        is_known: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Some(Operation::ReadAccounts { balances, .. }) = operation.filter(|_| is_known) else {
            return out.write_all(self.nothing().as_bytes());
        };
        out.write_all(b"{")?;
        for (account, balance) in self.history.elements(*balances).iter().enumerate() {
            if account > 0 {
                out.write_all(self.comma())?;
            }
            match self.notation {
                ExportNotation::Edn => write!(out, "{account} {balance}")?,
                ExportNotation::Json => write!(out, "\"{account}\":{balance}")?,
            }
        }
        out.write_all(b"}")
    }
}
