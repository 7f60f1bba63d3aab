//! A database in memory, at a level of one's choice, and clients whose steps it takes in random order.

use std::collections::{BTreeMap, BTreeSet};

use history::{IsolationLevel, TransactionOutcome};
use stats::Prng;

use crate::written::{Plain, Run};

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulation {
    /// Read committed: each statement sees what is committed, a row that another one has changed is
    /// waited for (here: the transaction fails). Repeatable read: a snapshot, and the first to commit
    /// wins. Serializable and stricter: what was read must be unchanged at the commit.
    pub(crate) level: IsolationLevel,
    pub(crate) clients: u32,
    pub(crate) transactions: u32,
    /// Keys used at one time; a key gets at most some twenty appends.
    pub(crate) keys: i64,
}

impl Simulation {
    pub(crate) fn new(level: IsolationLevel) -> Simulation {
        Simulation { level, clients: 5, transactions: 60, keys: 3 }
    }
}

/// Values by what they belong to. Accounts are one value, under a name of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    List(i64),
    Register(i64),
    Accounts,
}

type Store = BTreeMap<Name, Vec<i64>>;

const TOTAL: i64 = 300;

struct Client {
    open: Option<Open>,
}

struct Open {
    begun: u64,
    snapshot: Store,
    versions: BTreeMap<Name, u64>,
    left: u32,
    reads: BTreeSet<Name>,
    /// What it has written: the elements appended to a list, or the new value of something else.
    writes: BTreeMap<Name, Vec<i64>>,
    operations: Vec<Plain>,
    has_failed: bool,
}

struct World {
    level: IsolationLevel,
    store: Store,
    versions: BTreeMap<Name, u64>,
    /// Rows that an open transaction has changed, at read committed.
    locks: BTreeMap<Name, u32>,
    next_value: i64,
    runs: Vec<Run>,
}

/// A history that a database of this level makes.
pub(crate) fn simulate(simulation: Simulation, prng: &mut Prng) -> Vec<Run> {
    let mut world = World {
        level: simulation.level,
        store: Store::from([(Name::Accounts, vec![TOTAL / 3; 3])]),
        versions: BTreeMap::new(),
        locks: BTreeMap::new(),
        next_value: 1,
        runs: Vec::new(),
    };
    let mut clients: Vec<Client> = (0..simulation.clients).map(|_| Client { open: None }).collect();
    let mut begun = 0;
    let mut now = 0;
    loop {
        now += 1;
        let number = prng.below(clients.len());
        let client = number as u32;
        let Some(open) = &mut clients[number].open else {
            if begun < simulation.transactions {
                begun += 1;
                clients[number].open = Some(world.begin(now, prng));
            } else if clients.iter().all(|client| client.open.is_none()) {
                break;
            }
            continue;
        };
        if open.left > 0 && !open.has_failed {
            open.left -= 1;
            let epoch = i64::from(begun) / 30 * simulation.keys;
            world.act(client, open, epoch + prng.below(simulation.keys as usize) as i64, prng);
        } else if let Some(open) = clients[number].open.take() {
            world.end(client, open, now, prng);
        }
    }
    world.runs
}

impl World {
    fn begin(&self, now: u64, prng: &mut Prng) -> Open {
        Open {
            begun: now,
            snapshot: self.store.clone(),
            versions: self.versions.clone(),
            left: 1 + prng.below(4) as u32,
            reads: BTreeSet::new(),
            writes: BTreeMap::new(),
            operations: Vec::new(),
            has_failed: false,
        }
    }

    /// What a transaction sees of a value, its own writes included.
    fn seen(&self, open: &Open, name: Name) -> Vec<i64> {
        let from =
            if self.level == IsolationLevel::ReadCommitted { &self.store } else { &open.snapshot };
        let mut seen = from.get(&name).cloned().unwrap_or_default();
        match (name, open.writes.get(&name)) {
            (Name::List(_), Some(own)) => seen.extend(own),
            (_, Some(own)) => seen.clone_from(own),
            (_, None) => {}
        }
        seen
    }

    fn act(&mut self, client: u32, open: &mut Open, key: i64, prng: &mut Prng) {
        match prng.below(6) {
            0 | 1 => {
                open.operations.push(Plain::ReadList(key, self.seen(open, Name::List(key))));
                open.reads.insert(Name::List(key));
            }
            2 => {
                let value = self.seen(open, Name::Register(key)).first().copied();
                open.operations.push(Plain::Read(key, value));
                open.reads.insert(Name::Register(key));
            }
            3 => {
                let value = self.value();
                if self.may_write(client, open, Name::List(key)) {
                    open.operations.push(Plain::Append(key, value));
                    open.writes.entry(Name::List(key)).or_default().push(value);
                }
            }
            4 => {
                let value = self.value();
                if self.may_write(client, open, Name::Register(key)) {
                    open.operations.push(Plain::Write(key, value));
                    open.writes.insert(Name::Register(key), vec![value]);
                }
            }
            _ if self.level == IsolationLevel::ReadCommitted || prng.below(2) == 0 => {
                open.operations.push(Plain::Accounts(TOTAL, self.seen(open, Name::Accounts)));
                open.reads.insert(Name::Accounts);
            }
            _ => {
                let mut balances = self.seen(open, Name::Accounts);
                open.reads.insert(Name::Accounts);
                let amount = prng.below(5) as i64;
                balances[prng.below(3)] -= amount;
                balances[prng.below(3)] += amount;
                if self.may_write(client, open, Name::Accounts) {
                    open.writes.insert(Name::Accounts, balances);
                }
            }
        }
    }

    fn value(&mut self) -> i64 {
        self.next_value += 1;
        self.next_value
    }

    /// At read committed a row that another one has changed is locked.
    fn may_write(&mut self, client: u32, open: &mut Open, name: Name) -> bool {
        if self.level == IsolationLevel::ReadCommitted {
            open.has_failed |= *self.locks.entry(name).or_insert(client) != client;
        }
        !open.has_failed
    }

    fn end(&mut self, client: u32, open: Open, now: u64, prng: &mut Prng) {
        let Open { begun, versions, reads, writes, operations, has_failed, .. } = open;
        self.locks.retain(|_, owner| *owner != client);
        let is_unchanged = |name: &&Name| self.versions.get(name) == versions.get(name);
        let may_commit = !has_failed
            && match self.level {
                IsolationLevel::ReadCommitted => true,
                IsolationLevel::RepeatableRead => writes.keys().all(|name| is_unchanged(&name)),
                _ => reads.iter().chain(writes.keys()).all(|name| is_unchanged(&name)),
            };
        let is_lost = prng.below(20) == 0;
        let commits = may_commit && !(is_lost && prng.below(2) == 0) && prng.below(20) > 0;
        if commits {
            for (name, new) in writes {
                *self.versions.entry(name).or_default() += 1;
                let value = self.store.entry(name).or_default();
                match name {
                    Name::List(_) => value.extend(new),
                    _ => *value = new,
                }
            }
        }
        let outcome = match (is_lost, commits) {
            (true, _) => TransactionOutcome::Unknown,
            (false, true) => TransactionOutcome::Committed,
            (false, false) => TransactionOutcome::Failed,
        };
        self.runs.push(Run { client, begun, ended: now, outcome, operations });
    }
}
