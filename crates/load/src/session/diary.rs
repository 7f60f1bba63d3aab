//! Notes of a client on its transactions in a history.

use history::TransactionOutcome;
use history::file::list_of;
use script::{HistoryNote, NoteOperand, Value, Variable};

use crate::{
    ledger_statements::LedgerStatement,
    notes::VALUES,
    session::{LaneContext, Session},
    work::rows_of_tag,
};

/// One client's part of a history.
#[derive(Debug)]
pub(crate) struct Diary {
    /// Clients of the whole load.
    clients: u64,
    /// Transactions so far; one that is tried again is another one.
    number: u64,
    /// The server process of the connection; 0 for none.
    backend: i32,
    /// The history tells of the connection.
    is_told: bool,
    is_open: bool,
    /// Writes of the transaction that are noted, without those that were taken back.
    writes: u32,
    /// The savepoints of the transaction, and the number of writes when each was set.
    savepoints: Vec<(String, u32)>,
    /// What the tags of the current command have said so far.
    tags: ChangedRows,
}

/// The rows that the statements of a command have changed, as far as their tags say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChangedRows {
    /// The rows that INSERT, UPDATE, DELETE or MERGE has changed.
    changed: Option<u64>,
    /// The rows that SELECT has returned, which may be those that a function or a WITH has written.
    returned: Option<u64>,
}

impl ChangedRows {
    fn add(&mut self, tag: &[u8]) {
        let has_word = |words: &[&[u8]]| words.iter().any(|word| tag.starts_with(word));
        let counted = if has_word(&[b"INSERT ", b"UPDATE ", b"DELETE ", b"MERGE "]) {
            &mut self.changed
        } else if has_word(&[b"SELECT "]) {
            &mut self.returned
        } else {
            // Other tags, such as those of CALL and DO, say nothing of rows.
            return;
        };
        let rows = rows_of_tag(tag);
        *counted = Some(match *counted {
            Some(before) => before + rows,
            None => rows,
        });
    }

    /// True if a write of the command has not happened. CALL and DO say nothing of rows.
    fn are_none(self) -> bool {
        self.changed.or(self.returned) == Some(0)
    }
}

impl Diary {
    pub(super) fn new(clients: u64) -> Diary {
        Diary {
            clients,
            number: 0,
            backend: 0,
            is_told: false,
            is_open: false,
            writes: 0,
            savepoints: Vec::new(),
            tags: ChangedRows::default(),
        }
    }

    /// A statement has succeeded that may set a savepoint or go back to one.
    fn take_savepoint(&mut self, statement: &LedgerStatement) {
        let at = |name: &String| self.savepoints.iter().rposition(|(known, _)| known == name);
        match statement {
            LedgerStatement::Savepoint(name) => self.savepoints.push((name.clone(), self.writes)),
            LedgerStatement::RollsBackTo(name) => {
                if let Some(at) = at(name) {
                    self.savepoints.truncate(at + 1);
                    self.writes = self.savepoints[at].1;
                }
            }
            LedgerStatement::Releases(name) => {
                if let Some(at) = at(name) {
                    self.savepoints.truncate(at);
                }
            }
            _ => {}
        }
    }

    /// Another connection has taken the place of the last one.
    pub(super) fn disconnected(&mut self) {
        (self.backend, self.is_told) = (0, false);
    }
}

impl Session {
    /// The server process that serves this connection.
    pub(crate) fn hears_backend(&mut self, backend: i32) {
        self.backend = backend;
        if let Some(diary) = self.diary() {
            (diary.backend, diary.is_told) = (backend, false);
        }
    }

    fn diary(&mut self) -> Option<&mut Diary> {
        self.account.as_mut()?.diary.as_mut()
    }

    /// A transaction begins, or is tried again: as another one, with other values.
    pub(super) fn begin_in_diary(&mut self, cx: &mut LaneContext<'_>, now: u64) {
        let (id, group) = (self.id, self.workload as u32);
        let has_notes = !cx.program.scripts[self.script].notes.is_empty();
        // The script says nothing that a history could tell.
        let (true, Some(slots)) = (has_notes, cx.program.history) else { return };
        // The load keeps no history.
        let (Some(diary), Some(history)) = (self.diary(), &mut cx.history) else { return };
        if !std::mem::replace(&mut diary.is_told, true) {
            let backend = diary.backend;
            history.note(|recorder, out| recorder.connected(out, id, group, backend, now));
        }
        diary.number += 1;
        diary.is_open = true;
        diary.writes = 0;
        diary.savepoints.clear();
        let number = diary.number;
        let first = (number * diary.clients + u64::from(id)) * VALUES;
        history.note(|recorder, out| recorder.begins(out, id, number, now));
        self.variables.set(slots.value, Value::Int(first as i64));
        self.variables.set(slots.ms, Value::Int((now / 1_000_000) as i64));
    }

    /// The client knows how its transaction ended, or that it will not know.
    pub(super) fn end_in_diary(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        outcome: TransactionOutcome,
    ) {
        let id = self.id;
        // The load keeps no history.
        let Some(diary) = self.diary() else { return };
        if std::mem::take(&mut diary.is_open)
            && let Some(history) = &mut cx.history
        {
            history.note(|recorder, out| recorder.ends(out, id, outcome, now));
        }
    }

    /// A try has failed, and another one follows.
    pub(super) fn try_again_in_diary(&mut self, cx: &mut LaneContext<'_>, now: u64) {
        let may_be_there = self.account.as_ref().is_some_and(|account| account.may_be_there());
        let outcome =
            if may_be_there { TransactionOutcome::Unknown } else { TransactionOutcome::Failed };
        self.end_in_diary(cx, now, outcome);
        self.begin_in_diary(cx, now);
    }

    /// The notes of the current command; none where no history is kept.
    pub(super) fn notes<'p>(&self, cx: &LaneContext<'p>) -> &'p [HistoryNote] {
        let notes = cx.program.scripts[self.script].notes.get(self.command);
        notes.map_or(&[], |notes| notes)
    }

    /// True if the current command reads something that goes into the history.
    pub(super) fn reads_for_diary(&self, cx: &LaneContext<'_>) -> bool {
        self.notes(cx).iter().any(HistoryNote::is_read)
    }

    /// The current command is about to be sent: what it writes is noted before.
    pub(super) fn write_in_diary(&mut self, cx: &mut LaneContext<'_>) -> Result<(), String> {
        let id = self.id;
        if let Some(diary) = self.diary() {
            diary.tags = ChangedRows::default();
        }
        for note in self.notes(cx) {
            let (key, value) = match *note {
                HistoryNote::Append { key, value } | HistoryNote::Write { key, value } => {
                    (self.operand(cx, key)?, self.operand(cx, value)?)
                }
                _ => continue,
            };
            let Some(history) = &mut cx.history else { continue };
            history.note_write(|recorder, out| match note {
                HistoryNote::Append { .. } => recorder.appends(out, id, key, value),
                _ => recorder.writes(out, id, key, value),
            });
            if let Some(diary) = self.diary() {
                diary.writes += 1;
            }
        }
        Ok(())
    }

    /// A statement of the current command is complete, with this tag.
    pub(super) fn tag_in_diary(&mut self, tag: &[u8]) {
        if let Some(diary) = self.diary() {
            diary.tags.add(tag);
        }
    }

    /// The current command has succeeded: its writes are withdrawn if it has changed no row, and those that
    /// it has taken back to a savepoint.
    pub(super) fn end_command_in_diary(&mut self, cx: &mut LaneContext<'_>) {
        // Most loads keep no history.
        if self.account.is_none() {
            return;
        }
        let id = self.id;
        let written = self.notes(cx).iter().filter(|note| note.is_write()).count() as u32;
        let statements = cx.program.scripts[self.script].ledger_statements.get(self.command);
        // The history does not tell of this transaction.
        let Some(diary) = self.diary().filter(|diary| diary.is_open) else { return };
        let before = diary.writes;
        if written > 0 && diary.tags.are_none() {
            diary.writes -= written.min(diary.writes);
        }
        for statement in statements.into_iter().flatten() {
            diary.take_savepoint(statement);
        }
        let withdrawn = before - diary.writes;
        if let (1.., Some(history)) = (withdrawn, &mut cx.history) {
            history.note(|recorder, out| recorder.withdraws(out, id, withdrawn));
        }
    }

    /// The current command has returned its rows: the first value of the last one is what it read.
    pub(super) fn read_in_diary(
        &mut self,
        cx: &mut LaneContext<'_>,
        row: Option<&[u8]>,
    ) -> Result<(), String> {
        let id = self.id;
        // What the command reads does not belong to the history.
        let Some(note) = self.notes(cx).iter().find(|note| note.is_read()) else { return Ok(()) };
        match *note {
            HistoryNote::List { key } | HistoryNote::Accounts { total: key } => {
                let key = self.operand(cx, key)?;
                // The load keeps no history.
                let Some(history) = &mut cx.history else { return Ok(()) };
                history.elements.clear();
                // Where nothing was written there is no row, or NULL: the client has read an empty list.
                list_of(row.unwrap_or_default(), &mut history.elements)
                    .map_err(|error| error.to_string())?;
                history.note_elements(|recorder, out, elements| match note {
                    HistoryNote::List { .. } => recorder.has_read_list(out, id, key, elements),
                    _ => recorder.has_read_accounts(out, id, key, elements),
                });
            }
            HistoryNote::Register { key } => {
                let key = self.operand(cx, key)?;
                let not =
                    |text: &[u8]| format!("\"{}\" is no integer", String::from_utf8_lossy(text));
                let integer = |text: &[u8]| {
                    let number =
                        str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
                    number.ok_or_else(|| not(text))
                };
                let value: Option<i64> = row.map(integer).transpose()?;
                // The load keeps no history.
                let Some(history) = &mut cx.history else { return Ok(()) };
                history.note(|recorder, out| recorder.has_read(out, id, key, value));
            }
            HistoryNote::Append { .. } | HistoryNote::Write { .. } => {}
        }
        Ok(())
    }

    fn operand(&self, cx: &LaneContext<'_>, operand: NoteOperand) -> Result<i64, String> {
        let slot = match operand {
            NoteOperand::Integer(number) => return Ok(number),
            NoteOperand::Variable(slot) => slot,
        };
        if let Variable::Value(Value::Int(number)) = self.variables.get(slot) {
            return Ok(*number);
        }
        let mut text = Vec::new();
        self.variables.write(slot, &mut text);
        let number = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| {
            let (name, text) = (cx.program.names.name(slot), String::from_utf8_lossy(&text));
            format!(":{name}, which a note of a history names, is \"{text}\" and not an integer")
        })
    }
}
