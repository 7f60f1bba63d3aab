//! Each anomaly, planted in the history of a clean database, is found and has the right name.

use std::collections::BTreeSet;

use history::{CycleKind, CycleOrder, IsolationAnomaly, IsolationLevel, TransactionOutcome};
use stats::Prng;

use crate::simulated::{Simulation, simulate};
use crate::written::{Plain, Run, history_of, names};

/// Keys and clients of what is planted.
const APART: i64 = 1_000_000;

/// Transactions that show an anomaly, and those that it brings with it.
struct Plant {
    runs: Vec<Run>,
    shows: IsolationAnomaly,
    may_show: Vec<IsolationAnomaly>,
}

/// Where and when something is planted.
struct Place<'p> {
    prng: &'p mut Prng,
    at: u64,
    next_client: u32,
    next_value: i64,
    runs: Vec<Run>,
}

fn cycle(cycle: CycleKind) -> IsolationAnomaly {
    IsolationAnomaly::Cycle(cycle, CycleOrder::Data)
}

impl Place<'_> {
    /// A transaction of a client of its own, at the same time as the others.
    fn run(&mut self, operations: Vec<Plain>) -> &mut Run {
        self.next_client += 1;
        self.run_of(self.next_client, 0, operations)
    }

    /// A transaction of a client in the phase with this number; phases follow each other.
    fn run_of(&mut self, client: u32, phase: u64, operations: Vec<Plain>) -> &mut Run {
        let begun = self.at + phase * 100 + self.prng.below(20) as u64;
        let ended = begun + 50 + self.prng.below(20) as u64;
        let outcome = TransactionOutcome::Committed;
        self.runs.push(Run { client, begun, ended, outcome, operations });
        self.runs.last_mut().unwrap()
    }

    fn value(&mut self) -> i64 {
        self.next_value += 1 + self.prng.below(3) as i64;
        self.next_value
    }

    fn values<const N: usize>(&mut self) -> [i64; N] {
        std::array::from_fn(|_| self.value())
    }

    /// A list with some elements, appended before anything else.
    fn list(&mut self, key: i64) -> Vec<i64> {
        let list: Vec<i64> = (0..self.prng.below(4)).map(|_| self.value()).collect();
        for value in &list {
            let (at, client) = (self.at, self.next_client + 1);
            self.next_client += 1;
            self.run_of(client, 0, vec![Plain::Append(key, *value)]);
            let run = self.runs.last_mut().unwrap();
            (run.begun, run.ended) = (at, at + 1);
        }
        list
    }
}

fn with(list: &[i64], more: &[i64]) -> Vec<i64> {
    [list, more].concat()
}

const X: i64 = APART;

fn g0(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let length = 2 + place.prng.below(4);
    let values: Vec<[i64; 2]> = (0..length).map(|_| place.values()).collect();
    let mut reads = Vec::new();
    for (at, [first, second]) in values.iter().enumerate() {
        let (this, next) = (X + at as i64, X + ((at + 1) % length) as i64);
        place.run(vec![Plain::Append(this, *first), Plain::Append(next, *second)]);
        // The list that this one and the one before wrote: the one before comes last.
        let before = values[(at + length - 1) % length][1];
        reads.push(Plain::ReadList(this, vec![*first, before]));
    }
    place.next_client += 1;
    let client = place.next_client;
    place.run_of(client, 1, reads);
    vec![]
}

fn g1a(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let value = place.value();
    if place.prng.below(2) == 0 {
        let list = place.list(X);
        place.run(vec![Plain::Append(X, value)]).outcome = TransactionOutcome::Failed;
        place.run(vec![Plain::ReadList(X, with(&list, &[value]))]);
    } else {
        place.run(vec![Plain::Write(X, value)]).outcome = TransactionOutcome::Failed;
        place.run(vec![Plain::Read(X, Some(value))]);
    }
    vec![]
}

fn g1b(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, [one, two]) = (place.list(X), place.values());
    place.run(vec![Plain::Append(X, one), Plain::Append(X, two)]);
    place.run(vec![Plain::ReadList(X, with(&list, &[one]))]);
    vec![cycle(CycleKind::GSingle)]
}

fn g1c(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let length = 2 + place.prng.below(4);
    let values: Vec<i64> = (0..length).map(|_| place.value()).collect();
    for at in 0..length {
        let next = (at + 1) % length;
        let read = Plain::ReadList(X + next as i64, vec![values[next]]);
        place.run(vec![Plain::Append(X + at as i64, values[at]), read]);
    }
    vec![]
}

fn dirty_update(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, [one, two]) = (place.list(X), place.values());
    place.run(vec![Plain::Append(X, one)]).outcome = TransactionOutcome::Failed;
    place.run(vec![Plain::Append(X, two)]);
    place.run(vec![Plain::ReadList(X, with(&list, &[one, two]))]);
    vec![IsolationAnomaly::G1a]
}

fn internal(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    place.run(vec![Plain::Append(X, value)]);
    let longer = with(&list, &[value]);
    place.run(vec![Plain::ReadList(X, list), Plain::ReadList(X, longer)]);
    vec![cycle(CycleKind::GSingle)]
}

fn own_write_unseen(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    place.run(vec![Plain::Append(X, value), Plain::ReadList(X, list)]);
    vec![]
}

fn lost_update(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, [one, two]) = (place.list(X), place.values());
    place.run(vec![Plain::ReadList(X, list.clone()), Plain::Append(X, one)]);
    place.run(vec![Plain::ReadList(X, list.clone()), Plain::Append(X, two)]);
    place.run(vec![Plain::ReadList(X, with(&list, &[one, two]))]);
    vec![cycle(CycleKind::GSingle)]
}

fn unwritten(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    place.run(vec![Plain::ReadList(X, with(&list, &[value]))]);
    vec![]
}

fn future_read(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    if place.prng.below(2) == 0 {
        place.run(vec![Plain::ReadList(X, with(&list, &[value])), Plain::Append(X, value)]);
    } else {
        place.run(vec![Plain::Read(X, Some(value)), Plain::Write(X, value)]);
    }
    vec![]
}

fn duplicate(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    place.run(vec![Plain::Append(X, value)]);
    place.run(vec![Plain::ReadList(X, with(&list, &[value, value]))]);
    vec![]
}

fn incompatible(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, [one, two]) = (place.list(X), place.values());
    place.run(vec![Plain::Append(X, one)]);
    place.run(vec![Plain::Append(X, two)]);
    place.run(vec![Plain::ReadList(X, with(&list, &[one, two]))]);
    place.run(vec![Plain::ReadList(X, with(&list, &[two, one]))]);
    vec![]
}

fn cyclic_versions(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let [one, two] = place.values();
    place.run(vec![Plain::Read(X, Some(two)), Plain::Write(X, one)]);
    place.run(vec![Plain::Read(X, Some(one)), Plain::Write(X, two)]);
    vec![cycle(CycleKind::G1c)]
}

fn wrong_total(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let value = 1 + place.prng.below(9) as i64;
    place.run(vec![Plain::Accounts(300, vec![100, 100 + value, 100])]);
    vec![]
}

fn g_single(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    // The reader sees the last of a chain of transactions and not the first one.
    let length = 1 + place.prng.below(4);
    let values: Vec<[i64; 2]> = (0..length).map(|_| place.values()).collect();
    for (at, [read, own]) in values.iter().enumerate() {
        let mut operations = vec![Plain::Append(X + at as i64, *own)];
        if at == 0 {
            operations.push(Plain::Append(X + 100, *read));
        } else {
            operations.push(Plain::ReadList(X + at as i64 - 1, vec![values[at - 1][1]]));
        }
        place.run(operations);
    }
    let last = X + length as i64 - 1;
    let saw = Plain::ReadList(last, vec![values[length - 1][1]]);
    place.run(vec![Plain::ReadList(X + 100, vec![]), saw]);
    vec![]
}

fn long_fork(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let [a, b] = [place.list(X), place.list(X + 1)];
    let [one, two] = place.values();
    place.run(vec![Plain::Append(X, one)]);
    place.run(vec![Plain::Append(X + 1, two)]);
    let list = |key: i64, list: &[i64], more: &[i64]| Plain::ReadList(key, with(list, more));
    place.run(vec![list(X, &a, &[one]), list(X + 1, &b, &[])]);
    place.run(vec![list(X, &a, &[]), list(X + 1, &b, &[two])]);
    vec![]
}

fn g_nonadjacent(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let [b, c, d, two_b, two_d] = place.values();
    let [ka, kb, kc, kd] = [X, X + 1, X + 2, X + 3];
    place.run(vec![Plain::ReadList(ka, vec![]), Plain::Append(kd, two_d)]);
    place.run(vec![Plain::Append(ka, b), Plain::Append(kb, b)]);
    place.run(vec![Plain::Append(kb, two_b), Plain::ReadList(kc, vec![])]);
    place.run(vec![Plain::Append(kc, c), Plain::Append(kd, d)]);
    place.run(vec![Plain::ReadList(kb, vec![b, two_b]), Plain::ReadList(kd, vec![d, two_d])]);
    vec![]
}

fn g2_item(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let length = 2 + place.prng.below(4);
    let lists: Vec<Vec<i64>> = (0..length).map(|at| place.list(X + at as i64)).collect();
    for (at, list) in lists.into_iter().enumerate() {
        let next = (at + 1) % length;
        let value = place.value();
        let read = Plain::ReadList(X + at as i64, list);
        place.run(vec![read, Plain::Append(X + next as i64, value)]);
    }
    vec![]
}

fn stale(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    place.run(vec![Plain::Append(X, value)]);
    place.next_client += 1;
    let client = place.next_client;
    place.run_of(client, 1, vec![Plain::ReadList(X, list)]);
    vec![]
}

/// What a session that sees something old shows beside the guarantee that is broken.
fn of_sessions() -> Vec<IsolationAnomaly> {
    let order = [CycleOrder::Process, CycleOrder::Realtime];
    order.map(|order| IsolationAnomaly::Cycle(CycleKind::GSingle, order)).to_vec()
}

fn monotonic_reads(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    place.run(vec![Plain::Append(X, value)]).ended += 1_000;
    let client = place.next_client + 1;
    place.next_client += 1;
    place.run_of(client, 0, vec![Plain::ReadList(X, with(&list, &[value]))]);
    place.run_of(client, 1, vec![Plain::ReadList(X, list)]);
    of_sessions()
}

fn read_your_writes(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let (list, value) = (place.list(X), place.value());
    let client = place.next_client + 1;
    place.next_client += 1;
    place.run_of(client, 0, vec![Plain::Append(X, value)]);
    place.run_of(client, 1, vec![Plain::ReadList(X, list)]);
    of_sessions()
}

fn writes_follow_reads(place: &mut Place<'_>) -> Vec<IsolationAnomaly> {
    let [one, two] = place.values();
    place.run(vec![Plain::Append(X, one)]).ended += 1_000;
    let client = place.next_client + 1;
    place.next_client += 1;
    place.run_of(client, 0, vec![Plain::ReadList(X, vec![one])]);
    place.run_of(client, 1, vec![Plain::Append(X + 1, two)]);
    place.next_client += 1;
    let other = place.next_client;
    place.run_of(other, 2, vec![Plain::ReadList(X, vec![]), Plain::ReadList(X + 1, vec![two])]);
    of_sessions()
}

type Planter = fn(&mut Place<'_>) -> Vec<IsolationAnomaly>;

fn planted(planter: Planter, shows: IsolationAnomaly, prng: &mut Prng, until: u64) -> Plant {
    let at = prng.below(until as usize) as u64;
    let (next_client, next_value) = (APART as u32, APART);
    let mut place = Place { prng, at, next_client, next_value, runs: Vec::new() };
    let may_show = planter(&mut place);
    Plant { runs: place.runs, shows, may_show }
}

/// Plants an anomaly into 1,000 clean histories; each must show it, and nothing that does not come
/// with it.
fn check(planter: Planter, shows: IsolationAnomaly) {
    for seed in 0..1_000 {
        let mut prng = Prng::new(seed);
        let mut runs = simulate(Simulation::new(IsolationLevel::StrictSerializable), &mut prng);
        let until = runs.iter().map(|run| run.ended).max().unwrap_or(1);
        let plant = planted(planter, shows, &mut prng, until);
        runs.extend(plant.runs);
        prng.shuffle(&mut runs);
        let findings = history::check(&history_of(runs));
        let found = names(&findings);
        let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
        assert!(found.contains(&plant.shows), "seed {seed}, {shows}: {found:?} {words:?}");
        let may: BTreeSet<IsolationAnomaly> = plant.may_show.into_iter().chain([shows]).collect();
        assert!(found.is_subset(&may), "seed {seed}, {shows}: {found:?} {}", words.join("\n"));
    }
}

#[test]
fn values_that_must_not_be_read_are_found() {
    check(g1a, IsolationAnomaly::G1a);
    check(g1b, IsolationAnomaly::G1b);
    check(dirty_update, IsolationAnomaly::DirtyUpdate);
    check(unwritten, IsolationAnomaly::UnwrittenRead);
    check(future_read, IsolationAnomaly::FutureRead);
    check(duplicate, IsolationAnomaly::DuplicateElements);
    check(incompatible, IsolationAnomaly::IncompatibleOrder);
    check(cyclic_versions, IsolationAnomaly::CyclicVersions);
    check(internal, IsolationAnomaly::Internal);
    check(own_write_unseen, IsolationAnomaly::OwnWriteUnseen);
    check(lost_update, IsolationAnomaly::LostUpdate);
    check(wrong_total, IsolationAnomaly::WrongTotal);
}

#[test]
fn cycles_are_found() {
    check(g0, cycle(CycleKind::G0));
    check(g1c, cycle(CycleKind::G1c));
    check(g_single, cycle(CycleKind::GSingle));
    check(long_fork, cycle(CycleKind::LongFork));
    check(g_nonadjacent, cycle(CycleKind::GNonadjacent));
    check(g2_item, cycle(CycleKind::G2Item));
}

#[test]
fn what_only_an_order_forbids_is_found() {
    check(stale, IsolationAnomaly::Cycle(CycleKind::GSingle, CycleOrder::Realtime));
    check(monotonic_reads, IsolationAnomaly::MonotonicReads);
    check(read_your_writes, IsolationAnomaly::ReadYourWrites);
    check(writes_follow_reads, IsolationAnomaly::WritesFollowReads);
}
