//! A client's knowledge of the transaction that it runs, where it keeps a ledger or a history.

use history::TransactionOutcome;
use record::{
    Moment,
    ledger::{HashChain, LedgerEntry, LedgerKnowledge, LedgerWrite, ReadRow},
};
use script::{Pipeline, SqlTemplate, Value, VariableSlot};
use wire::backend::ErrorResponse;

use crate::{
    LedgerTables,
    program::{Effect, Program},
    session::{
        Block, LaneContext, Session, SessionState, diary::Diary, look::Looks, writes::Writes,
    },
    tally::Ending,
};

/// One client's account.
#[derive(Debug)]
pub(crate) struct Account {
    /// The part of the ledger, if there is one.
    pub(super) chained: Option<ClientLedger>,
    /// The part of the history, if there is one.
    pub(super) diary: Option<Diary>,
    /// The transaction under way.
    open: Option<Open>,
}

/// One client's part of a ledger.
#[derive(Debug)]
pub(super) struct ClientLedger {
    chain: HashChain,
    seq: u64,
    value: i64,
    /// The rows of the transaction under way.
    writes: Writes,
    pub(super) looks: Looks,
}

/// The answers so far to the transaction under way.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    /// It stands in the ledger.
    is_numbered: bool,
    /// A statement that carries `:ledger_seq`, or that the history notes, was sent since the last block
    /// ended.
    is_marked: bool,
    /// Something that was sent has been committed, or may have been: an error afterwards does not undo it.
    is_committed: bool,
    /// A block with a marked statement is prepared for a two-phase commit.
    is_prepared: bool,
    /// The script has rolled back a block with a marked statement.
    is_rolled_back: bool,
    /// The last result.
    last: Last,
    /// The server warned that no standby may have it.
    is_alone: bool,
    /// The SQLSTATE of the error that ended it.
    sqlstate: Option<[u8; 5]>,
}

/// The last result of a block, as far as it decides on its end.
#[derive(Clone, Copy, Debug, Default)]
enum Last {
    #[default]
    Other,
    Prepared,
    RolledBack,
}

impl Open {
    /// True if an error does not undo all of it.
    fn may_be_there(&self) -> bool {
        self.is_committed || self.is_prepared
    }
}

impl Account {
    pub(super) fn may_be_there(&self) -> bool {
        self.open.is_some_and(|open| open.may_be_there())
    }
}

impl Session {
    /// Opens an account for this client, where its program keeps a ledger, whose seed is given, or a
    /// history. `clients` are those of the whole load.
    pub(crate) fn open_account(&mut self, program: &Program, seed: Option<u64>, clients: u64) {
        let chained = program.ledger.zip(seed).map(|(slots, seed)| {
            self.variables.set(slots.client, Value::Int(i64::from(self.id)));
            ClientLedger {
                chain: HashChain::new(seed, self.id),
                seq: 0,
                value: 0,
                writes: Writes::default(),
                looks: Looks::default(),
            }
        });
        let diary = program.history.map(|_| Diary::new(clients));
        if chained.is_some() || diary.is_some() {
            self.account = Some(Box::new(Account { chained, diary, open: None }));
        }
    }

    /// A transaction begins: numbers it, and notes that it is intended.
    pub(crate) fn intend(&mut self, cx: &mut LaneContext<'_>, now: u64) {
        // The client keeps neither a ledger nor a history.
        let Some(account) = &mut self.account else { return };
        let script = &cx.program.scripts[self.script];
        let chained = account.chained.as_mut().filter(|_| script.is_numbered);
        let is_numbered = chained.is_some();
        if is_numbered || !script.notes.is_empty() {
            account.open = Some(Open { is_numbered, ..Open::default() });
        }
        if let (Some(chained), Some(slots)) = (chained, cx.program.ledger) {
            chained.seq += 1;
            chained.writes = Writes::default();
            chained.value = chained.chain.value(chained.seq);
            self.variables.set(slots.seq, Value::Int(chained.seq as i64));
            self.variables.set(slots.chain, Value::Int(chained.value));
            // What the last transaction was told says nothing of this one.
            for told in [slots.read_client, slots.read_seq, slots.wrote] {
                self.variables.set(told, Value::Null);
            }
            self.note(cx, now, LedgerKnowledge::Intended);
        }
        self.begin_in_diary(cx, now);
    }

    /// The current command is about to be sent.
    pub(super) fn account_for_command(&mut self, cx: &LaneContext<'_>, template: &SqlTemplate) {
        let is_noted = !self.notes(cx).is_empty();
        // The script of the transaction has nothing for the ledger or the history.
        let Some(open) = self.open_transaction() else { return };
        let is_numbered = cx.program.ledger.is_some_and(|it| template.slots().contains(&it.seq));
        open.is_marked |= is_noted || is_numbered;
        let statements = &cx.program.scripts[self.script].ledger_statements;
        let is_synchronised = self.pipeline == Pipeline::Off;
        if let (Some(statements), Some(writes)) = (statements.get(self.command), self.writes()) {
            writes.sends(statements);
            if is_synchronised {
                writes.syncs();
            }
        }
    }

    /// A Sync is sent in a pipeline.
    pub(super) fn account_for_sync(&mut self) {
        if let Some(writes) = self.writes() {
            writes.syncs();
        }
    }

    /// The rows of the transaction under way, where it stands in the ledger.
    fn writes(&mut self) -> Option<&mut Writes> {
        let account = self.account.as_mut()?;
        account.open.filter(|open| open.is_numbered)?;
        account.chained.as_mut().map(|chained| &mut chained.writes)
    }

    /// A result is complete. What its tag says of the transaction holds whatever follows it.
    pub(crate) fn account_for_tag(&mut self, tag: &[u8]) {
        if let Some(writes) = self.writes() {
            writes.complete(tag);
        }
        // The result belongs to no transaction that a ledger or a history tells of.
        let Some(open) = self.open_transaction() else { return };
        open.last = Last::Other;
        match tag {
            b"COMMIT\0" => open.is_committed = true,
            b"PREPARE TRANSACTION\0" => {
                open.is_prepared |= open.is_marked;
                open.last = Last::Prepared;
            }
            b"COMMIT PREPARED\0" => (open.is_committed, open.is_prepared) = (true, false),
            b"ROLLBACK PREPARED\0" => {
                open.is_rolled_back |= std::mem::take(&mut open.is_prepared);
                open.last = Last::RolledBack;
            }
            b"ROLLBACK\0" => open.last = Last::RolledBack,
            _ => {}
        }
    }

    /// The server is ready. In no block, without an error since it was ready before, what it has done is
    /// committed, unless the script has rolled it back.
    pub(crate) fn account_for_ready(&mut self, has_failed: bool) {
        // A Parse commits nothing.
        if self.state == SessionState::Parsing {
            return;
        }
        let has_failed = has_failed || self.state == SessionState::RollingBack;
        let is_outside = self.block == Block::Outside;
        if let Some(writes) = self.writes() {
            writes.ready(is_outside, has_failed);
        }
        if !is_outside {
            return;
        }
        // A later part of a pipeline may have been sent.
        let is_all = self.reply.awaiting <= 1 && self.pipeline == Pipeline::Off;
        // The answer belongs to no transaction that a ledger or a history tells of.
        let Some(open) = self.open_transaction() else { return };
        match open.last {
            _ if has_failed => {}
            Last::Other => open.is_committed = true,
            Last::Prepared => {}
            Last::RolledBack => open.is_rolled_back |= open.is_marked,
        }
        if is_all {
            open.is_marked = false;
        }
    }

    /// The current command has ended in an error. Outside of a block, and in answer to a COMMIT, what a
    /// proxy says of the server behind it does not tell whether that has committed.
    pub(crate) fn account_for_error(&mut self, sqlstate: &str) {
        let is_unsure = self.block == Block::Outside && leaves_open(sqlstate);
        if let Some(open) = self.open_transaction() {
            open.sqlstate = sqlstate.as_bytes().try_into().ok();
            open.is_committed |= is_unsure;
        }
    }

    /// A notice: it may be the one that says that a commit no longer waits for its standby.
    pub(crate) fn account_for_notice(&mut self, notice: &ErrorResponse<'_>) {
        // The notice belongs to no transaction that a ledger or a history tells of.
        let Some(open) = self.open_transaction() else { return };
        // The message may be translated; the name of the function that says it is not.
        open.is_alone |= notice.field(b'R') == Some(b"SyncRepWaitForLSN");
    }

    /// The connection is gone, in the middle of a transaction or between two.
    pub(crate) fn account_for_loss(&mut self, cx: &mut LaneContext<'_>, now: u64) {
        self.note(cx, now, LedgerKnowledge::Disconnected);
        if let Some(diary) = self.account.as_mut().and_then(|account| account.diary.as_mut()) {
            diary.disconnected();
        }
    }

    /// The transaction has ended as pgbench counts it.
    pub(crate) fn note_end(&mut self, cx: &mut LaneContext<'_>, now: u64, ending: Ending) {
        // No ledger and no history waits for the end of this transaction.
        let Some(open) = self.open_transaction().copied() else { return };
        let told = match (ending, open.may_be_there()) {
            // The script has committed one part and not another one.
            (Ending::Good, true) if open.is_rolled_back || open.is_prepared => {
                LedgerKnowledge::Unknown
            }
            (Ending::Good, true) if open.is_alone => LedgerKnowledge::AcknowledgedAlone,
            (Ending::Good, true) => LedgerKnowledge::Acknowledged,
            // The script has rolled back, or nothing was sent.
            (Ending::Good, false) => LedgerKnowledge::Failed(None),
            (_, true) => LedgerKnowledge::Unknown,
            (_, false) => LedgerKnowledge::Failed(open.sqlstate),
        };
        let is_nothing = ending == Ending::Good && self.has_written_nothing(cx, &told);
        let what = if is_nothing { LedgerKnowledge::WroteNothing } else { told };
        self.close_transaction(cx, now, what, told);
    }

    /// True if a transaction that ended as `told` has written no row of the ledger: no statement that writes
    /// one was sent, or the tags of all of them say so, or the script does.
    fn has_written_nothing(&mut self, cx: &LaneContext<'_>, told: &LedgerKnowledge) -> bool {
        let says_so = cx.program.ledger.is_some_and(|slots| self.is_false(slots.wrote));
        // A workload that only reads has done all that it was to do.
        let only_reads = cx.program.ledger_tables.as_ref().is_some_and(LedgerTables::are_none);
        let Some(writes) = self.writes() else { return false };
        match told {
            LedgerKnowledge::Acknowledged | LedgerKnowledge::AcknowledgedAlone => {
                !only_reads && (says_so || writes.committed() == LedgerWrite::NOTHING)
            }
            LedgerKnowledge::Failed(_) => !writes.is_marked(),
            _ => false,
        }
    }

    /// True if a variable is 0 or false.
    fn is_false(&self, slot: VariableSlot) -> bool {
        let mut text = Vec::new();
        self.variables.write(slot, &mut text);
        matches!(text.trim_ascii(), b"0" | b"f" | b"false" | b"FALSE")
    }

    /// The client gives the transaction up, or has lost its connection. It is unknown whether it has
    /// happened if the server owed an answer to something that may have committed it; if no COMMIT was
    /// sent, it has failed.
    pub(crate) fn note_unfinished(&mut self, cx: &mut LaneContext<'_>, now: u64) {
        let may_commit = self.owes_a_commit(cx);
        // The client was between two transactions, or nothing tells of this one.
        let Some(open) = self.open_transaction().copied() else { return };
        let what = match open.may_be_there() || may_commit {
            true => LedgerKnowledge::Unknown,
            false => LedgerKnowledge::Failed(open.sqlstate),
        };
        self.close_transaction(cx, now, what, what);
    }

    /// The rig ends the transaction under way. What the server says from then on may be due to that, so
    /// that only a block without a COMMIT is known to have failed.
    pub(crate) fn note_given_up(&mut self, cx: &mut LaneContext<'_>, now: u64) {
        let has_failed = self.block != Block::Outside && !self.owes_a_commit(cx);
        // The client was between two transactions, or nothing tells of this one.
        let Some(open) = self.open_transaction().copied() else { return };
        let what = match has_failed && !open.may_be_there() {
            true => LedgerKnowledge::Failed(open.sqlstate),
            false => LedgerKnowledge::Unknown,
        };
        self.close_transaction(cx, now, what, what);
    }

    /// True if what the server has not answered yet may commit the transaction.
    fn owes_a_commit(&self, cx: &LaneContext<'_>) -> bool {
        // What a pipeline has sent is not looked into.
        if self.pipeline != Pipeline::Off {
            return true;
        }
        if self.reply.awaiting == 0 || self.state != SessionState::Awaiting {
            return false;
        }
        let program = cx.program;
        let number = program.scripts[self.script].statements.get(self.command).copied().flatten();
        let effect = number.map(|number| program.statements[number].effect);
        match (self.block, effect) {
            (Block::Failed, _) | (_, Some(Effect::Begins)) => false,
            (Block::Inside, Some(Effect::Other)) => false,
            // Outside of a block each statement is a transaction. The end of a pipeline has no statement.
            (Block::Outside, _) | (_, None) | (_, Some(Effect::Commits)) => true,
        }
    }

    fn open_transaction(&mut self) -> Option<&mut Open> {
        self.account.as_mut()?.open.as_mut()
    }

    /// Notes `what` became of the transaction's rows in the ledger, and what was `told` of it in the history.
    fn close_transaction(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        what: LedgerKnowledge,
        told: LedgerKnowledge,
    ) {
        let wrote = self.wrote(cx, &what);
        let account =
            self.account.as_mut().expect("a transaction that is closed was in an account");
        let is_numbered = account.open.take().is_some_and(|open| open.is_numbered);
        if let (true, Some(chained)) = (is_numbered, &mut account.chained) {
            match what {
                LedgerKnowledge::Acknowledged | LedgerKnowledge::AcknowledgedAlone => {
                    chained.chain.acknowledged(chained.value);
                }
                LedgerKnowledge::Unknown => chained.chain.unknown(),
                _ => {}
            }
            let is_told =
                matches!(told, LedgerKnowledge::Acknowledged | LedgerKnowledge::AcknowledgedAlone);
            let seen = self.seen(cx).map(LedgerKnowledge::Read).filter(|_| is_told);
            let before = seen.into_iter().chain(wrote.map(LedgerKnowledge::Wrote));
            before.for_each(|before| self.note(cx, now, before));
            self.note(cx, now, what);
        }
        let outcome = match told {
            LedgerKnowledge::Acknowledged | LedgerKnowledge::AcknowledgedAlone => {
                TransactionOutcome::Committed
            }
            LedgerKnowledge::Failed(_) => TransactionOutcome::Failed,
            _ => TransactionOutcome::Unknown,
        };
        self.end_in_diary(cx, now, outcome);
    }

    /// The rows that the transaction has written, or may have where its outcome is unknown, unless it is one
    /// in each table.
    fn wrote(&mut self, cx: &LaneContext<'_>, what: &LedgerKnowledge) -> Option<LedgerWrite> {
        let tables = cx.program.ledger_tables.as_ref();
        let writes = self.writes()?;
        let wrote = match what {
            LedgerKnowledge::Acknowledged | LedgerKnowledge::AcknowledgedAlone => {
                writes.committed()
            }
            LedgerKnowledge::Unknown => writes.possible(),
            _ => return None,
        };
        let has = |table: fn(&LedgerTables) -> bool| tables.is_none_or(table);
        let is_usual = (wrote.insert == 1 || !has(|tables| tables.insert.is_some()))
            && (wrote.update || !has(|tables| tables.update.is_some()));
        // Of what is unknown, only what may be there matters.
        (!is_usual && wrote != LedgerWrite::NOTHING).then_some(wrote)
    }

    /// The row that the transaction under way has read, if its script says so. No transaction has number 0.
    fn seen(&self, cx: &LaneContext<'_>) -> Option<ReadRow> {
        let slots = cx.program.ledger?;
        let (client, seq) = (self.number(slots.read_client)?, self.number(slots.read_seq)?);
        let seq = u64::try_from(seq).ok().filter(|seq| *seq > 0)?;
        Some(ReadRow { client: u32::try_from(client).ok()?, seq })
    }

    /// The value of a variable, if it is a whole number.
    fn number(&self, slot: VariableSlot) -> Option<i64> {
        let mut text = Vec::new();
        self.variables.write(slot, &mut text);
        str::from_utf8(&text).ok()?.trim().parse().ok()
    }

    /// The last entry of the client in its ledger, if it keeps one.
    pub(crate) fn last_entry(&self, now: u64) -> Option<LedgerEntry> {
        let chained = self.account.as_ref()?.chained.as_ref()?;
        Some(LedgerEntry {
            client: self.id,
            seq: chained.seq,
            at: Moment(now),
            what: LedgerKnowledge::Ended,
        })
    }

    pub(super) fn note(&self, cx: &mut LaneContext<'_>, now: u64, what: LedgerKnowledge) {
        let chained = self.account.as_ref().and_then(|account| account.chained.as_ref());
        if let (Some(chained), Some(ledger)) = (chained, &mut cx.ledger) {
            ledger.note(LedgerEntry { client: self.id, seq: chained.seq, at: Moment(now), what });
        }
    }
}

/// True if an error with this SQLSTATE does not tell whether the statement has taken effect. Class 08 are
/// failures of a connection, and 40003 says so. XX000 is what PL/Proxy passes on when it loses a server.
fn leaves_open(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || matches!(sqlstate, "40003" | "XX000")
}
