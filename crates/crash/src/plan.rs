//! The choice of states to look at: every kind of write is lost, kept and torn in every way, and no two
//! states have the same content.

use std::collections::{BTreeMap, BTreeSet};

use stats::Prng;

use crate::log::{DISKS_MAX, Log, SECTOR_BYTES};
use crate::map::Kind;
use crate::state::{Cursor, Flushes, Lost, State};

/// A request for a plan.
#[derive(Debug, Clone)]
pub struct Request {
    /// Number of states.
    pub states: usize,
    /// It decides what is drawn.
    pub seed: u64,
    /// The effect of flushes.
    pub flushes: Flushes,
    /// Unit that the disk writes whole or not at all, in bytes: a multiple of 512.
    pub sector_bytes: u64,
}

/// A way to choose what a cut takes of the writes that are not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// The cut comes right after a flush.
    Flushed,
    /// All of them survive: the disk has written in order, up to some write.
    All,
    /// None survives.
    None,
    /// Each survives or not, at random.
    Random,
    /// One is lost.
    AllButOne,
    /// One survives.
    One,
    /// Of two to one place the earlier one survives.
    Earlier,
    /// One survives in part.
    Torn,
    /// Of two disks one loses all, and the other one nothing.
    OneDisk,
}

impl Way {
    /// Every way; the last one is of two disks.
    pub const ALL: [Way; 9] = [
        Way::Flushed,
        Way::All,
        Way::None,
        Way::Random,
        Way::AllButOne,
        Way::One,
        Way::Earlier,
        Way::Torn,
        Way::OneDisk,
    ];

    /// Those of a log.
    fn of(log: &Log) -> &'static [Way] {
        match log.disks {
            0 | 1 => &Way::ALL[..Way::ALL.len() - 1],
            _ => &Way::ALL,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Way::Flushed => "right after a flush",
            Way::All => "all unflushed writes kept",
            Way::None => "all unflushed writes lost",
            Way::Random => "a random subset kept",
            Way::AllButOne => "one write lost",
            Way::One => "one write kept",
            Way::Earlier => "an earlier version kept",
            Way::Torn => "one write torn",
            Way::OneDisk => "one disk's unflushed writes lost",
        }
    }
}

/// A state that was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The state.
    pub state: State,
    /// The kind of the write that it is about.
    pub kind: Kind,
    /// The way in which it was chosen.
    pub way: Way,
}

/// States in the order of their cuts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The states.
    pub states: Vec<Planned>,
    /// States that were drawn and had the content of another one.
    pub duplicates: usize,
}

impl Plan {
    /// Number of states about each kind of write, in each way.
    pub fn coverage(&self) -> BTreeMap<Kind, BTreeMap<Way, usize>> {
        let mut coverage: BTreeMap<Kind, BTreeMap<Way, usize>> = BTreeMap::new();
        for planned in &self.states {
            *coverage.entry(planned.kind).or_default().entry(planned.way).or_default() += 1;
        }
        coverage
    }
}

/// Chooses states. `kinds` are those of each request. There may be fewer than were asked for where the
/// log does not have more.
pub fn plan(log: &Log, kinds: &[Vec<Kind>], request: &Request) -> Plan {
    let mut writes: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (number, kinds) in kinds.iter().enumerate() {
        kinds.iter().for_each(|kind| writes.entry(*kind).or_default().push(number));
    }
    let (mut prng, mut seen) = (Prng::new(request.seed), BTreeSet::new());
    let mut plan = Plan::default();
    if writes.is_empty() {
        return plan;
    }
    let writes: Vec<(Kind, Vec<usize>)> = writes.into_iter().collect();
    let epochs = Epochs::of(log, request.flushes);
    let (kinds_count, ways) = (writes.len(), Way::of(log));
    for round in 0..ROUNDS_MAX {
        let missing = request.states.saturating_sub(plan.states.len());
        if missing == 0 {
            break;
        }
        let turns = writes.len() * ways.len();
        let mut drawn: Vec<Planned> = Vec::with_capacity(missing);
        for turn in 0..missing {
            // Another round begins elsewhere: what it lacks are the kinds with few states.
            let turn = turn + round * turns / ROUNDS_MAX;
            let (kind, writes) = &writes[turn % writes.len()];
            // A few states already have every way, each with other kinds.
            let way = ways[(turn / kinds_count + turn % kinds_count) % ways.len()];
            let target = writes[prng.below(writes.len())];
            let state = epochs.state(log, way, target, request, &mut prng);
            drawn.extend(state.map(|state| Planned { state, kind: *kind, way }));
        }
        drawn.sort_by_key(|planned| planned.state.cut);
        let mut cursor = Cursor::new(log, request.flushes);
        let before = plan.states.len();
        for planned in drawn {
            match seen.insert(cursor.overlay(&planned.state).fingerprint()) {
                true => plan.states.push(planned),
                false => plan.duplicates += 1,
            }
        }
        if plan.states.len() == before && round > 0 {
            break;
        }
    }
    plan.states.sort_by_key(|planned| planned.state.cut);
    plan
}

/// For each request the first flush of its disk after it, or the end of the log.
struct Epochs(Vec<usize>);

impl Epochs {
    fn of(log: &Log, flushes: Flushes) -> Epochs {
        let end = log.entries.len();
        let (mut ends, mut next) = (vec![end; end], [end; DISKS_MAX]);
        if flushes == Flushes::Honest {
            for (number, entry) in log.entries.iter().enumerate().rev() {
                let next = &mut next[usize::from(entry.disk)];
                if entry.is_flush() {
                    *next = number;
                }
                ends[number] = *next;
            }
        }
        Epochs(ends)
    }

    /// A state about one write; none where that write has no such one.
    fn state(
        &self,
        log: &Log,
        way: Way,
        target: usize,
        request: &Request,
        prng: &mut Prng,
    ) -> Option<State> {
        let end = self.0[target];
        // The cut comes somewhere after the write, and before the flush.
        let cut = (target + 1 + prng.below(end - target)).max(log.first_cut);
        let pending = request.flushes.pending(log, cut);
        let whole = |write: usize| Lost { write, sectors: 0..log.entries[write].sectors() };
        let others = |lost: &mut dyn FnMut(usize) -> bool| -> Vec<Lost> {
            pending.iter().copied().filter(|write| lost(*write)).map(whole).collect()
        };
        let lost = match way {
            Way::Flushed if request.flushes == Flushes::Lying => return None,
            Way::Flushed => {
                let cut = (end + 1).max(log.first_cut);
                return (end < log.entries.len()).then(|| State { cut, lost: Vec::new() });
            }
            Way::All => Vec::new(),
            Way::None => others(&mut |_| true),
            Way::Random => others(&mut |_| prng.below(2) == 0),
            // The log of the other disk began after it had become durable.
            _ if !pending.contains(&target) => return None,
            Way::AllButOne => vec![whole(target)],
            Way::One => others(&mut |write| write != target),
            Way::Earlier => {
                let blocks: BTreeSet<u64> =
                    log.entries[target].pieces().iter().map(|piece| piece.block).collect();
                let mut hits = |write: usize| {
                    write > target
                        && log.entries[write].pieces().iter().any(|one| blocks.contains(&one.block))
                };
                let lost = others(&mut hits);
                if lost.is_empty() {
                    return None;
                }
                lost
            }
            Way::OneDisk => {
                others(&mut |write| log.entries[write].disk == log.entries[target].disk)
            }
            Way::Torn => {
                let unit = (request.sector_bytes / SECTOR_BYTES).max(1) as u32;
                let units = log.entries[target].sectors().div_ceil(unit) as usize;
                if units < 2 {
                    return None;
                }
                let at = (1 + prng.below(units - 1)) as u32 * unit;
                let end = log.entries[target].sectors();
                let sectors = if prng.below(2) == 0 { 0..at } else { at..end };
                let mut lost = match prng.below(2) {
                    0 => Vec::new(),
                    _ => others(&mut |write| write != target && prng.below(2) == 0),
                };
                lost.push(Lost { write: target, sectors });
                lost
            }
        };
        Some(State { cut, lost })
    }
}

/// After so many attempts at states that are new, the log is taken to have no more.
const ROUNDS_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::state::tests::{log, steps};

    proptest! {
        #[test]
        fn states_differ_and_lose_nothing_that_was_flushed(
            steps in steps(),
            seed: u64,
            lies: bool,
            states in 0..80_usize,
            sector_bytes in prop::sample::select(vec![512_u64, 1024, 4096]),
        ) {
            let (log, _) = log(&steps);
            let kinds: Vec<Vec<Kind>> = log.entries.iter().map(|entry| match entry.is_flush() {
                true => Vec::new(),
                false => vec![Kind::ALL[entry.pieces().len() % 3]],
            }).collect();
            let flushes = if lies { Flushes::Lying } else { Flushes::Honest };
            let request = Request { states, seed, flushes, sector_bytes };
            let planned = plan(&log, &kinds, &request);
            prop_assert!(planned.states.len() <= states);
            let (mut prints, mut last) = (BTreeSet::new(), 0);
            let mut cursor = Cursor::new(&log, flushes);
            for one in &planned.states {
                let State { cut, lost } = &one.state;
                prop_assert!(*cut >= last && *cut <= log.entries.len());
                last = *cut;
                prop_assert!(prints.insert(cursor.overlay(&one.state).fingerprint()));
                let pending = flushes.pending(&log, *cut);
                for lost in lost {
                    prop_assert!(pending.contains(&lost.write), "{one:?}");
                    let sectors = log.entries[lost.write].sectors();
                    prop_assert!(lost.sectors.start < lost.sectors.end);
                    prop_assert!(lost.sectors.end <= sectors);
                    if one.way == Way::Torn {
                        let unit = (sector_bytes / 512) as u32;
                        prop_assert!(lost.sectors.start.is_multiple_of(unit));
                        prop_assert!(lost.sectors.end == sectors || lost.sectors.end.is_multiple_of(unit));
                    }
                }
            }
            // The same seed, the same states.
            prop_assert_eq!(&planned, &plan(&log, &kinds, &request));
        }
    }

    #[test]
    fn a_rare_kind_gets_as_many_states_as_a_common_one() {
        // A thousand writes of one kind, four to a flush, and ten of another.
        let mut steps = Vec::new();
        for number in 0..1000_u64 {
            steps.push(Some((number % 500 * 24, 16, (number % 250) as u8 + 1)));
            if number % 4 == 3 {
                steps.push(None);
            }
        }
        let (log, _) = log(&steps);
        let kinds: Vec<Vec<Kind>> = log
            .entries
            .iter()
            .enumerate()
            .map(|(number, entry)| match (entry.is_flush(), number % 100) {
                (true, _) => Vec::new(),
                (false, 0) => vec![Kind::Control],
                _ => vec![Kind::Heap],
            })
            .collect();
        let request = Request { states: 300, seed: 1, flushes: Flushes::Honest, sector_bytes: 512 };
        let plan = plan(&log, &kinds, &request);
        assert!(plan.states.len() >= 280, "{}", plan.states.len());
        let coverage = plan.coverage();
        let count = |kind: Kind| coverage[&kind].values().sum::<usize>();
        assert!(count(Kind::Control) >= 60, "{coverage:?}");
        // A few states have many ways.
        let few = super::plan(&log, &kinds, &Request { states: 16, ..request });
        let ways: BTreeSet<Way> = few.states.iter().map(|planned| planned.way).collect();
        assert!(ways.len() >= 6, "{ways:?}");
        assert!(coverage[&Kind::Heap].len() >= 7, "{coverage:?}");
    }
}
