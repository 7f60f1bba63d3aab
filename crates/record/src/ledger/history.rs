//! Contents of a load's ledgers, client by client.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use super::entry::{Header, ReadRow, parse_header};
use super::look::{AcknowledgingServer, ServerLook};
use super::{HashChain, LedgerEntry, LedgerKnowledge, LedgerWrite};
use crate::Moment;
use crate::error::Error;
use crate::inside::Inside;

/// Suffix of a ledger's files: one for each lane, `LANE.ledger`.
pub const SUFFIX: &str = ".ledger";

/// A day of a lane with thousands of transactions a second.
const LEDGER_BYTES_MAX: u64 = 64 << 30;

/// A few milliseconds of reading.
const LINES_A_LOOK: usize = 16_384;

/// The history of every client of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    seed: u64,
    clients: BTreeMap<u32, Vec<LedgerTransaction>>,
    /// Files whose last line was cut off in the middle, as the death of a generator leaves them.
    torn: Vec<String>,
    /// The servers that gave answers.
    givers: Vec<AcknowledgingServer>,
    /// When a client looked at a server, of that number, and whether commits waited for a standby there.
    looks: Vec<LookedAt>,
    /// The rows that clients have read.
    readings: Vec<Reading>,
    /// The clients whose entries are all there.
    whole: BTreeSet<u32>,
    /// The clients that it is about, where that is known: of one that no file tells of nothing is known.
    expected: Option<Range<u32>>,
    /// The files do not say which clients are done: they are taken for whole.
    has_no_ends: bool,
}

/// One transaction of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerTransaction {
    /// Time at which the client was about to send it.
    pub intended: Moment,
    /// Time at which the client heard of its end; without an outcome, the moment of the intent.
    pub ended: Moment,
    /// The outcome.
    pub outcome: LedgerOutcome,
    /// The value that it wrote.
    pub chain: i64,
    /// The rows that it wrote; those that it may have written, where its outcome is unknown.
    pub wrote: LedgerWrite,
    /// True if the client lost its connection before it ran another one.
    pub is_last: bool,
    /// The number of the server that answered, from 1; 0 where it is not known.
    pub(super) giver: u16,
}

/// The number of a server, when a client looked at it, and whether commits waited for a standby there.
pub(super) type LookedAt = (u16, Moment, Option<bool>);

/// One reading of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The client that read it.
    pub(super) reader: u32,
    /// Time at which it was told.
    pub(super) at: Moment,
    /// The row.
    pub(super) seen: ReadRow,
}

/// Outcome of a transaction, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerOutcome {
    /// The server acknowledged it.
    Acknowledged,
    /// The server acknowledged it with a warning that it may not have been replicated.
    AcknowledgedAlone,
    /// It ended well, and wrote no row of the ledger.
    WroteNothing,
    /// It has not happened.
    Failed,
    /// It is unknown, or the generator died before it could note what it heard.
    Unknown,
}

impl LedgerOutcome {
    /// True if the client was told that it is done.
    pub fn is_acknowledged(self) -> bool {
        matches!(self, LedgerOutcome::Acknowledged | LedgerOutcome::AcknowledgedAlone)
    }
}

/// A client's history while it is read.
struct Open {
    chain: HashChain,
    /// True if the last transaction still waits for its outcome.
    is_open: bool,
    /// The number of the server with which the connection stays.
    giver: u16,
}

impl Ledger {
    /// Reads all ledgers of a directory.
    pub fn read(directory: &Path) -> Result<Ledger, Error> {
        Ledger::read_unless(directory, &|| false)
    }

    /// [`Ledger::read`], given up as soon as `is_over`: ledgers of hours take a while.
    pub fn read_unless(directory: &Path, is_over: &dyn Fn() -> bool) -> Result<Ledger, Error> {
        Ledger::read_inside(&Inside::open(directory)?, is_over)
    }

    pub(crate) fn read_inside(
        inside: &Inside,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Ledger, Error> {
        let mut ledger = Ledger::default();
        for entry in inside.entries()? {
            let name = entry.name.to_string_lossy();
            if name.ends_with(SUFFIX) {
                let text = inside.bytes(&entry.name, LEDGER_BYTES_MAX)?;
                let path = || inside.path(&entry.name);
                let added = ledger.add_unless(&name, &text, is_over);
                let is_whole =
                    added.map_err(|(line, why)| Error::Damaged { path: path(), line, why })?;
                if !is_whole {
                    return Err(Error::Interrupted { path: path() });
                }
            }
        }
        Ok(ledger)
    }

    /// The ledger as it was known at a moment: transactions sent later are not in it, and those that
    /// ended later have no outcome yet.
    pub fn as_of(&self, at: Moment) -> Ledger {
        self.as_of_between(at, at)
    }

    /// The ledger of a moment that is not known exactly: what had not ended at the first one has no outcome, and
    /// what was sent by the last one may have been sent.
    pub fn as_of_between(&self, ended_by: Moment, sent_by: Moment) -> Ledger {
        let clients = self.clients.iter().map(|(client, history)| {
            let sent = history.iter().take_while(|transaction| transaction.intended <= sent_by);
            let sent = sent.map(|transaction| match transaction.ended > ended_by {
                true => LedgerTransaction {
                    ended: transaction.intended,
                    outcome: LedgerOutcome::Unknown,
                    giver: 0,
                    ..*transaction
                },
                false => *transaction,
            });
            (*client, sent.collect())
        });
        let (givers, looks) = (self.givers.clone(), self.looks.clone());
        let readings = self.readings.iter().filter(|one| one.at <= ended_by).copied().collect();
        Ledger {
            clients: clients.collect(),
            torn: Vec::new(),
            givers,
            looks,
            readings,
            whole: self.whole.clone(),
            expected: self.expected.clone(),
            ..*self
        }
    }

    /// Adds what one file says. Its last line may be cut off: nothing that follows a line in the
    /// file was sent before the whole line was there, so what it would have said is unknown.
    ///
    /// # Errors
    /// The line, from 1, that cannot stand there, and why.
    pub fn add(&mut self, name: &str, text: &[u8]) -> Result<(), (usize, String)> {
        self.add_unless(name, text, &|| false).map(drop)
    }

    /// True if it was added to its end.
    fn add_unless(
        &mut self,
        name: &str,
        text: &[u8],
        is_over: &dyn Fn() -> bool,
    ) -> Result<bool, (usize, String)> {
        // Without a newline, no line is whole.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            self.torn.push(name.to_owned());
        }
        if whole == 0 {
            return Ok(true);
        }
        let text = str::from_utf8(&text[..whole]).map_err(|error| (0, error.to_string()))?;
        let mut open: BTreeMap<u32, Open> = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if index % LINES_A_LOOK == 0 && is_over() {
                return Ok(false);
            }
            let told = match index {
                0 => parse_header(line).map(|Header { seed, has_ends }| {
                    (self.seed, self.has_no_ends) = (seed, !has_ends);
                }),
                _ => LedgerEntry::parse(line).and_then(|entry| self.take(&mut open, entry)),
            };
            told.map_err(|why| (index + 1, why))?;
        }
        Ok(true)
    }

    fn take(&mut self, open: &mut BTreeMap<u32, Open>, entry: LedgerEntry) -> Result<(), String> {
        let LedgerEntry { client, seq, at, what } = entry;
        let seed = self.seed;
        let begins = || Open { chain: HashChain::new(seed, client), is_open: false, giver: 0 };
        if !open.contains_key(&client) && self.clients.contains_key(&client) {
            return Err(format!("client {client} stands in two ledgers"));
        }
        let history = self.clients.entry(client).or_default();
        let state = open.entry(client).or_insert_with(begins);
        if what == LedgerKnowledge::Intended {
            if seq != history.len() as u64 + 1 {
                let last = history.len();
                return Err(format!("client {client} intends {seq}, its last was {last}"));
            }
            if std::mem::replace(&mut state.is_open, true) {
                // Its outcome was never noted.
                state.chain.unknown();
            }
            let chain = state.chain.value(seq);
            let outcome = LedgerOutcome::Unknown;
            let (intended, ended, is_last, giver) = (at, at, false, state.giver);
            let wrote = LedgerWrite::ONE_EACH;
            history.push(LedgerTransaction {
                intended,
                ended,
                outcome,
                chain,
                wrote,
                is_last,
                giver,
            });
            return Ok(());
        }
        if what == LedgerKnowledge::Disconnected {
            state.giver = 0;
            if let Some(last) = history.last_mut() {
                last.is_last = true;
            }
            return Ok(());
        }
        let last = history.len() as u64;
        if what == LedgerKnowledge::Ended {
            if seq != last {
                return Err(format!("client {client} ends after {seq}, its last was {last}"));
            }
            self.whole.insert(client);
            return Ok(());
        }
        if let LedgerKnowledge::Looked(ServerLook { giver, awaits_standby, lasts }) = what {
            let giver = number_of(&mut self.givers, giver);
            self.looks.push((giver, at, awaits_standby));
            if lasts {
                state.giver = giver;
            }
            if let (true, Some(transaction)) = (state.is_open, history.last_mut()) {
                transaction.giver = giver;
            }
            return Ok(());
        }
        let (true, true, Some(transaction)) = (state.is_open, seq == last, history.last_mut())
        else {
            return Err(format!("client {client} has no open transaction {seq}"));
        };
        if let LedgerKnowledge::Given(giver) = what {
            transaction.giver = number_of(&mut self.givers, giver);
            return Ok(());
        }
        if let LedgerKnowledge::Wrote(wrote) = what {
            transaction.wrote = wrote;
            return Ok(());
        }
        if let LedgerKnowledge::Read(seen) = what {
            self.readings.push(Reading { reader: client, at, seen });
            return Ok(());
        }
        state.is_open = false;
        transaction.ended = at;
        transaction.outcome = match what {
            LedgerKnowledge::Acknowledged => LedgerOutcome::Acknowledged,
            LedgerKnowledge::AcknowledgedAlone => LedgerOutcome::AcknowledgedAlone,
            LedgerKnowledge::WroteNothing => LedgerOutcome::WroteNothing,
            LedgerKnowledge::Failed(_) => LedgerOutcome::Failed,
            _ => LedgerOutcome::Unknown,
        };
        match transaction.outcome {
            LedgerOutcome::Unknown => state.chain.unknown(),
            LedgerOutcome::Failed => {}
            LedgerOutcome::WroteNothing => transaction.wrote = LedgerWrite::NOTHING,
            LedgerOutcome::Acknowledged | LedgerOutcome::AcknowledgedAlone => {
                state.chain.acknowledged(transaction.chain);
            }
        }
        Ok(())
    }

    /// The transactions of each client, the first one at 0.
    pub fn clients(&self) -> impl Iterator<Item = (u32, &[LedgerTransaction])> {
        self.clients.iter().map(|(client, history)| (*client, history.as_slice()))
    }

    /// The transactions of one client.
    pub fn client(&self, client: u32) -> Option<&[LedgerTransaction]> {
        self.clients.get(&client).map(Vec::as_slice)
    }

    /// The server that answered a transaction, where it is known.
    pub fn giver(&self, transaction: &LedgerTransaction) -> Option<AcknowledgingServer> {
        let index = usize::from(transaction.giver).checked_sub(1)?;
        self.givers.get(index).copied()
    }

    /// The longest time between two moments in which no transaction ended well, in nanoseconds.
    pub fn longest_pause_ns(&self, from: Moment, until: Moment) -> u64 {
        let ended_well = |one: &&LedgerTransaction| {
            one.outcome.is_acknowledged() || one.outcome == LedgerOutcome::WroteNothing
        };
        let acknowledged = self.clients.values().flatten().filter(ended_well);
        let inside = acknowledged.map(|one| one.ended).filter(|at| (from..until).contains(at));
        let mut moments: Vec<Moment> = inside.chain([from, until]).collect();
        moments.sort_unstable();
        moments
            .windows(2)
            .map(|pair| pair[1].since(pair[0]))
            .max()
            .expect("both ends of the stretch are moments")
    }

    /// The share of the tenths of a stretch of time in each of which a client had a transaction under
    /// way, or was told how one had ended.
    pub fn load_share(&self, from: Moment, until: Moment) -> f64 {
        const PARTS: u64 = 10;
        let length_ns = until.since(from) / PARTS;
        let mut busy = [false; PARTS as usize];
        let part = |at: Moment| (at.since(from) / length_ns.max(1)).min(PARTS - 1) as usize;
        for one in self.clients.values().flatten() {
            // One that was never heard of may have been over at once.
            if one.ended >= from && one.intended < until {
                busy[part(one.intended)..=part(one.ended.min(until))].fill(true);
            }
        }
        busy.iter().filter(|busy| **busy).count() as f64 / PARTS as f64
    }

    /// The part of it that is about these clients.
    pub fn of_clients(&self, clients: Range<u32>) -> Ledger {
        let part = self.clients.range(clients.clone());
        let part = part.map(|(client, all)| (*client, all.clone()));
        let (torn, givers, looks) = (self.torn.clone(), self.givers.clone(), self.looks.clone());
        let readings = self.readings.iter().filter(|one| clients.contains(&one.reader));
        let readings = readings.copied().collect();
        let whole = self.whole.range(clients.clone()).copied().collect();
        let (clients, expected) = (part.collect(), Some(clients));
        Ledger { clients, torn, givers, looks, readings, whole, expected, ..*self }
    }

    /// The same, about these clients: of those that no file tells of nothing is known.
    #[must_use]
    pub fn about(self, clients: Range<u32>) -> Ledger {
        Ledger { expected: Some(clients), ..self }
    }

    /// True if the client is one of its clients, and not all of its entries are there: its generator was lost.
    pub fn is_cut(&self, client: u32) -> bool {
        let is_its_own = self.clients.contains_key(&client)
            || self.expected.as_ref().is_some_and(|clients| clients.contains(&client));
        is_its_own && !self.has_no_ends && !self.whole.contains(&client)
    }

    /// The clients whose entries are not all there, those that no file tells of included.
    pub fn cut(&self) -> impl Iterator<Item = u32> {
        let told = self.clients.keys().copied();
        let all: BTreeSet<u32> = told.chain(self.expected.clone().into_iter().flatten()).collect();
        all.into_iter().filter(|client| self.is_cut(*client))
    }

    /// What clients saw of their servers.
    pub(super) fn looks(&self) -> &[LookedAt] {
        &self.looks
    }

    /// What its clients have read.
    pub(super) fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Files whose last line was cut off: their generator died while it wrote.
    pub fn torn(&self) -> &[String] {
        &self.torn
    }
}

/// The number of a server, from 1, which it gets when it is first named; 0 once there are too many.
fn number_of(givers: &mut Vec<AcknowledgingServer>, giver: AcknowledgingServer) -> u16 {
    let known = givers.iter().position(|known| *known == giver);
    let index = known.unwrap_or_else(|| {
        givers.push(giver);
        givers.len() - 1
    });
    // 0 is no known server: what it acknowledges has an unknown cover, and is not called safe.
    u16::try_from(index + 1).unwrap_or(0)
}
