//! The order of a register's versions, as the uses of each in time and by clients tell it.
//!
//! In an order of all transactions that agrees with time, a version is there from its write to the next
//! one. If a use of one version had ended before a use of another one began, the one was overwritten
//! before the other: P. Gibbons and E. Korach, "Testing Shared Memories" (1997). What follows from it counts for strict
//! serializable only.

use std::cmp::Ordering;

use crate::evidence::{Dependency, Edge, Evidence};
use crate::index::Map;
use crate::registers::{UnorderedRegister, Version};
use crate::{History, TransactionOutcome};

/// Versions looked at, in the order of their zones, for the first one that is known to follow.
const LOOKED_AT_MAX: usize = 32;

/// Versions noted as following one by the order of clients. More would find no more than smaller
/// witnesses.
const FOLLOWING_MAX: usize = 8;

/// When a version was used, by its writer and its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    version: Version,
    /// The end of the use that ended first.
    first_end: u64,
    /// The beginning of the use that began last.
    last_begin: u64,
}

impl Zone {
    /// Where versions that are in order in time have their place.
    fn low(self) -> u64 {
        self.first_end.min(self.last_begin)
    }
}

/// The place in time of each version that a transaction left; in their order.
fn zones(history: &History, register: &UnorderedRegister) -> Vec<Zone> {
    let all = history.transactions();
    let zone = |version: Version| {
        let (mut first_end, mut last_begin) = match register.writers[version as usize] {
            Some(writer) => (all[writer as usize].latest(), all[writer as usize].earliest()),
            None if version == 0 => (0, 0),
            None => return None,
        };
        for reader in register.readers(version) {
            first_end = first_end.min(all[reader as usize].latest());
            last_begin = last_begin.max(all[reader as usize].earliest());
        }
        Some(Zone { version, first_end, last_begin })
    };
    let mut zones: Vec<Zone> = (0..register.writers.len() as Version).filter_map(zone).collect();
    // No value comes first, whatever else began at zero.
    zones.sort_by_key(|zone| (zone.version != 0, zone.low(), zone.version));
    zones
}

/// For each transaction that wrote a register, the least place in time of what it left.
pub(crate) fn places(history: &History, registers: &[UnorderedRegister]) -> Map<u32, u64> {
    let mut places: Map<u32, u64> = Map::default();
    for register in registers {
        for zone in zones(history, register) {
            if let Some(writer) = register.writers[zone.version as usize] {
                let place = places.entry(writer).or_insert(u64::MAX);
                *place = zone.low().min(*place);
            }
        }
    }
    places
}

/// Adds the dependencies that follow from the order of time, and of clients.
pub(crate) fn infer(history: &History, register: &UnorderedRegister, evidence: &mut Evidence) {
    let zones = zones(history, register);
    for (at, zone) in zones.iter().enumerate() {
        let later = zones[at + 1..].iter().take(LOOKED_AT_MAX);
        let is_later = |one: &&Zone| zone.version == 0 || zone.first_end < one.last_begin;
        if let Some(next) = later.copied().find(|one| is_later(&one)) {
            follow(register, zone.version, next.version, &mut evidence.by_time);
        }
    }
    let mut following: Map<Version, Vec<Version>> = Map::default();
    for (before, after) in by_clients(history, register) {
        let known = following.entry(before).or_default();
        if known.len() < FOLLOWING_MAX && !known.contains(&after) {
            known.push(after);
            follow(register, before, after, &mut evidence.by_client);
        }
    }
}

/// One version was overwritten before another one was written: so were its readers.
fn follow(register: &UnorderedRegister, before: Version, after: Version, edges: &mut Vec<Edge>) {
    // The first version of a register has no writer, and nothing comes before it.
    let (key, Some(to)) = (register.key, register.writers[after as usize]) else { return };
    let mut add = |from: u32, dependency| {
        if from != to {
            edges.push(Edge { from, to, key, dependency });
        }
    };
    if let Some(writer) = register.writers[before as usize] {
        add(writer, Dependency::Write);
    }
    register.readers(before).for_each(|reader| add(reader, Dependency::Anti));
}

/// A use of a version, in the order of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VersionUse {
    client: u32,
    number: u64,
    transaction: u32,
    /// A transaction reads what others left before it writes.
    is_write: bool,
    version: Version,
}

impl VersionUse {
    fn order(&self, other: &VersionUse) -> Ordering {
        let key = |one: &VersionUse| (one.client, one.number, one.is_write, one.version);
        key(self).cmp(&key(other))
    }
}

/// Pairs of versions that one client used in two transactions, one after the other. A transaction of which
/// its client heard nothing may have committed after the next one.
fn by_clients(history: &History, register: &UnorderedRegister) -> Vec<(Version, Version)> {
    let of = |transaction: u32, version: Version, is_write: bool| {
        let one = &history.transactions()[transaction as usize];
        let (client, number) = (history.session(one).client, one.number);
        VersionUse { client, number, transaction, is_write, version }
    };
    let writes = (0..).zip(&register.writers);
    let writes = writes.filter_map(|(version, writer)| Some(of((*writer)?, version, true)));
    let reads = register.reads.iter().map(|(version, reader)| of(*reader, *version, false));
    let mut uses: Vec<VersionUse> = reads.chain(writes).collect();
    uses.sort_by(VersionUse::order);
    let mut pairs = Vec::new();
    let mut last: Option<(u32, Version)> = None;
    for mine in uses.chunk_by(|one, next| one.transaction == next.transaction) {
        let (first, end) = (mine[0], mine[mine.len() - 1]);
        if let Some((_, before)) = last.filter(|(client, _)| *client == first.client)
            && before != first.version
        {
            pairs.push((before, first.version));
        } else if last.is_some_and(|(client, _)| client != first.client) {
            last = None;
        }
        let outcome = history.transactions()[end.transaction as usize].outcome;
        if outcome == TransactionOutcome::Committed {
            last = Some((end.client, end.version));
        }
    }
    pairs
}
