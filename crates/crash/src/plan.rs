//! The choice of states to look at: every kind of write is lost, kept and torn in every way, between many
//! flushes, and no two states have the same content.

use std::collections::{BTreeMap, BTreeSet};

use stats::Prng;

use crate::epochs::Epochs;
use crate::log::DiskLog;
use crate::map::WriteKind;
use crate::state::{DiskState, FlushEffect, LostSectors, StateCursor};

/// A request for a plan.
#[derive(Debug, Clone)]
pub struct StatePlanRequest {
    /// Number of states.
    pub states: usize,
    /// It decides what is drawn.
    pub seed: u64,
    /// The effect of flushes.
    pub flushes: FlushEffect,
    /// Unit that the disk writes whole or not at all, in bytes: a multiple of 512.
    pub sector_bytes: u64,
}

/// A way to choose what a cut takes of the writes that are not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossPattern {
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
    /// The earlier one of two writes to one place survives.
    Earlier,
    /// One survives in part.
    Torn,
    /// A flush is under way: what it covers is lost, and what came meanwhile survives.
    DuringFlush,
    /// One of several disks loses everything, the others nothing.
    OneDisk,
}

impl LossPattern {
    /// Every way.
    pub const ALL: [LossPattern; 10] = [
        LossPattern::Flushed,
        LossPattern::All,
        LossPattern::None,
        LossPattern::Random,
        LossPattern::AllButOne,
        LossPattern::One,
        LossPattern::Earlier,
        LossPattern::Torn,
        LossPattern::DuringFlush,
        LossPattern::OneDisk,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            LossPattern::Flushed => "right after a flush",
            LossPattern::All => "all unflushed writes kept",
            LossPattern::None => "all unflushed writes lost",
            LossPattern::Random => "a random subset kept",
            LossPattern::AllButOne => "one write lost",
            LossPattern::One => "one write kept",
            LossPattern::Earlier => "an earlier version kept",
            LossPattern::Torn => "one write torn",
            LossPattern::DuringFlush => "a flush under way, later writes kept",
            LossPattern::OneDisk => "one disk's unflushed writes lost",
        }
    }

    /// Why a log may have no state of this way.
    pub fn needs(self) -> &'static str {
        match self {
            LossPattern::Flushed => "a flush that is done",
            LossPattern::Earlier => "two writes to one place between two flushes",
            LossPattern::Torn => "a write of several of the disk's sectors",
            LossPattern::DuringFlush => "a write that was taken during a flush",
            LossPattern::OneDisk => "several disks",
            LossPattern::All
            | LossPattern::None
            | LossPattern::Random
            | LossPattern::AllButOne
            | LossPattern::One => "a write",
        }
    }
}

/// A state that was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedState {
    /// The state.
    pub state: DiskState,
    /// The kind of the write that it is about.
    pub kind: WriteKind,
    /// The way in which it was chosen.
    pub way: LossPattern,
    /// The write that it is about; none for a state about no write.
    pub write: Option<usize>,
}

/// States in the order of their cuts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatePlan {
    /// The states.
    pub states: Vec<PlannedState>,
    /// States that were drawn and had the content of another one.
    pub duplicates: usize,
    /// The kinds of write that the log has, with the ways in which a state can be about one.
    pub possible: BTreeSet<(WriteKind, LossPattern)>,
}

/// Chooses states. `kinds` are those of each request. There may be fewer than were asked for where the
/// log does not have more.
///
/// Kinds of write and ways take turns, the rarest kind first. The states of one kind and way are about
/// writes between different flushes as long as there are such, and then about different writes.
pub fn plan(log: &DiskLog, kinds: &[Vec<WriteKind>], request: &StatePlanRequest) -> StatePlan {
    let (mut prng, mut seen) = (Prng::new(request.seed), BTreeSet::new());
    let mut plan = StatePlan::default();
    let epochs = Epochs::of(log, request.flushes, request.sector_bytes);
    let mut turns = turns(&epochs, kinds, &mut prng);
    plan.possible = turns.iter().map(|turn| (turn.kind, turn.way)).collect();
    let mut next = 0;
    for _ in 0..ROUNDS_MAX {
        let missing = request.states.saturating_sub(plan.states.len());
        if missing == 0 || turns.is_empty() {
            break;
        }
        let mut drawn: Vec<(usize, PlannedState)> = Vec::with_capacity(missing);
        for _ in 0..missing {
            let number = next % turns.len();
            next += 1;
            let Turn { kind, way, writes, taken, .. } = &mut turns[number];
            let write = writes[*taken % writes.len()];
            *taken += 1;
            let state = draw(log, &epochs, *way, write, request, &mut prng);
            let planned = PlannedState { state, kind: *kind, way: *way, write: Some(write) };
            drawn.push((number, planned));
        }
        drawn.sort_by_key(|(_, planned)| planned.state.cut);
        let mut cursor = StateCursor::new(log, request.flushes);
        turns.iter_mut().for_each(|turn| turn.is_fresh = false);
        for (number, planned) in drawn {
            match seen.insert(cursor.overlay(&planned.state).fingerprint()) {
                true => {
                    turns[number].is_fresh = true;
                    plan.states.push(planned);
                }
                false => plan.duplicates += 1,
            }
        }
        // Of these nothing new is left; those that had no turn in this round have theirs next.
        turns.retain(|turn| turn.is_fresh || turn.taken < turn.writes.len());
        next = 0;
    }
    plan.states.sort_by_key(|planned| planned.state.cut);
    plan
}

/// The states about one kind of write, of one way.
struct Turn {
    kind: WriteKind,
    way: LossPattern,
    /// The writes that they can be about; neighbours lie between different flushes.
    writes: Vec<usize>,
    /// Number of states that were drawn.
    taken: usize,
    /// True if a state of the last round was new.
    is_fresh: bool,
}

/// All that are possible. Neighbours differ in their kind, and a few already have every way.
fn turns(epochs: &Epochs, kinds: &[Vec<WriteKind>], prng: &mut Prng) -> Vec<Turn> {
    let mut writes: BTreeMap<WriteKind, Vec<usize>> = BTreeMap::new();
    for (number, kinds) in kinds.iter().enumerate() {
        kinds.iter().for_each(|kind| writes.entry(*kind).or_default().push(number));
    }
    let mut writes: Vec<(WriteKind, Vec<usize>)> = writes.into_iter().collect();
    writes.sort_by_key(|(_, writes)| writes.len());
    let count = writes.len();
    let mut turns = Vec::new();
    for turn in 0..count * LossPattern::ALL.len() {
        let (kind, writes) = &writes[turn % count];
        let way = LossPattern::ALL[(turn / count + turn % count) % LossPattern::ALL.len()];
        let possible = writes.iter().copied().filter(|write| epochs.allows(way, *write));
        let writes = epochs.spread(possible, prng);
        if !writes.is_empty() {
            turns.push(Turn { kind: *kind, way, writes, taken: 0, is_fresh: true });
        }
    }
    turns
}

/// A state about one write, which the way allows.
fn draw(
    log: &DiskLog,
    epochs: &Epochs,
    way: LossPattern,
    target: usize,
    request: &StatePlanRequest,
    prng: &mut Prng,
) -> DiskState {
    let moments = epochs.cuts(way, target);
    let cut = moments.start + prng.below(moments.len());
    let pending = request.flushes.pending(log, cut);
    let whole = |write: usize| LostSectors { write, sectors: 0..log.entries[write].sectors() };
    let others = |lost: &mut dyn FnMut(usize) -> bool| -> Vec<LostSectors> {
        pending.iter().copied().filter(|write| lost(*write)).map(whole).collect()
    };
    let lost = match way {
        LossPattern::Flushed | LossPattern::All => Vec::new(),
        LossPattern::None => others(&mut |_| true),
        LossPattern::Random => others(&mut |_| prng.below(2) == 0),
        LossPattern::AllButOne => vec![whole(target)],
        LossPattern::One => others(&mut |write| write != target),
        LossPattern::Earlier => {
            let blocks: BTreeSet<u64> =
                log.entries[target].pieces().iter().map(|piece| piece.block).collect();
            let hits = |write: usize| {
                log.entries[write].pieces().iter().any(|one| blocks.contains(&one.block))
            };
            others(&mut |write| write > target && hits(write))
        }
        LossPattern::OneDisk => {
            others(&mut |write| log.entries[write].disk == log.entries[target].disk)
        }
        LossPattern::DuringFlush => {
            let (began, is_one) = (epochs.flush_began(target), prng.below(2) == 0);
            let disk = log.entries[target].disk;
            let covers = |write: usize| write < began && log.entries[write].disk == disk;
            others(&mut |write| covers(write) && (!is_one || write == target))
        }
        LossPattern::Torn => {
            let mut lost = match prng.below(2) {
                0 => Vec::new(),
                _ => others(&mut |write| write != target && prng.below(2) == 0),
            };
            let torn = tear(&epochs.units(log, target), prng);
            lost.extend(torn.into_iter().map(|sectors| LostSectors { write: target, sectors }));
            lost
        }
    };
    DiskState { cut, lost }
}

/// What is lost of a write of several units of the disk: its beginning, its end, something in its middle, or
/// units here and there; never all and never nothing.
fn tear(units: &[std::ops::Range<u32>], prng: &mut Prng) -> Vec<std::ops::Range<u32>> {
    let count = units.len();
    let at = 1 + prng.below(count - 1);
    let (first, last) = (units[0].start, units[count - 1].end);
    let one = match prng.below(4) {
        0 => first..units[at].start,
        1 if count > 2 => {
            let from = 1 + prng.below(count - 2);
            units[from].start..units[from + 1 + prng.below(count - 1 - from)].start
        }
        2 if count > 2 => {
            // The unit at `at` is lost, and the first one is kept.
            let is_lost =
                |index: usize, prng: &mut Prng| index == at || index > 0 && prng.below(2) == 0;
            let each = units.iter().enumerate();
            let lost = each.filter(|(index, _)| is_lost(*index, prng));
            return lost.map(|(_, unit)| unit.clone()).collect();
        }
        _ => units[at].start..last,
    };
    Vec::from([one])
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
            sector_bytes in prop::sample::select(vec![512_u64, 1024, 4096, 8192]),
        ) {
            let (log, _) = log(&steps);
            let kinds: Vec<Vec<WriteKind>> = log.entries.iter().map(|entry| match entry.is_flush() {
                true => Vec::new(),
                false => vec![WriteKind::ALL[entry.pieces().len() % 3]],
            }).collect();
            let flushes = if lies { FlushEffect::Lying } else { FlushEffect::Honest };
            let request = StatePlanRequest { states, seed, flushes, sector_bytes };
            let planned = plan(&log, &kinds, &request);
            prop_assert!(planned.states.len() <= states);
            let (mut prints, mut last) = (BTreeSet::new(), 0);
            let mut cursor = StateCursor::new(&log, flushes);
            for one in &planned.states {
                let DiskState { cut, lost } = &one.state;
                prop_assert!(*cut >= last && *cut <= log.entries.len());
                last = *cut;
                prop_assert!(prints.insert(cursor.overlay(&one.state).fingerprint()));
                let pending = flushes.pending(&log, *cut);
                for lost in lost {
                    prop_assert!(pending.contains(&lost.write), "{one:?}");
                    let sectors = log.entries[lost.write].sectors();
                    prop_assert!(lost.sectors.start < lost.sectors.end);
                    prop_assert!(lost.sectors.end <= sectors);
                    if one.way == LossPattern::Torn {
                        // The disk's units begin at multiples of their size on the disk.
                        let piece = log.entries[lost.write].pieces()[0];
                        let first = piece.block * 8 + u64::from(piece.first);
                        let is_edge = |sector: u32| {
                            [0, sectors].contains(&sector)
                                || (first + u64::from(sector)).is_multiple_of(sector_bytes / 512)
                        };
                        prop_assert!(is_edge(lost.sectors.start) && is_edge(lost.sectors.end));
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
                steps.extend([None, None]);
            }
        }
        let (log, _) = log(&steps);
        let kinds: Vec<Vec<WriteKind>> = log
            .entries
            .iter()
            .enumerate()
            .map(|(number, entry)| match (entry.is_flush(), number % 100) {
                (true, _) => Vec::new(),
                (false, 0) => vec![WriteKind::Control],
                _ => vec![WriteKind::Heap],
            })
            .collect();
        let request = StatePlanRequest {
            states: 300,
            seed: 1,
            flushes: FlushEffect::Honest,
            sector_bytes: 512,
        };
        let plan = plan(&log, &kinds, &request);
        assert!(plan.states.len() >= 280, "{}", plan.states.len());
        let count = |kind: WriteKind| plan.states.iter().filter(|one| one.kind == kind).count();
        assert!(count(WriteKind::Control) >= 60, "{}", count(WriteKind::Control));
        // A few states have many ways, and the rarest kind is met first.
        let few = super::plan(&log, &kinds, &StatePlanRequest { states: 16, ..request });
        let ways: BTreeSet<LossPattern> = few.states.iter().map(|planned| planned.way).collect();
        assert!(ways.len() >= 6, "{ways:?}");
        assert_eq!(
            super::plan(&log, &kinds, &StatePlanRequest { states: 1, ..request.clone() }).states[0]
                .kind,
            WriteKind::Control
        );
        // No interval is met twice in one way while another one is not met at all.
        for way in [LossPattern::AllButOne, LossPattern::Torn] {
            let cuts =
                plan.states.iter().filter(|one| (one.kind, one.way) == (WriteKind::Heap, way));
            let flushes = cuts.map(|one| {
                log.entries[..one.state.cut].iter().filter(|entry| entry.is_flush_end()).count()
            });
            let flushes: Vec<usize> = flushes.collect();
            assert_eq!(flushes.iter().collect::<BTreeSet<_>>().len(), flushes.len(), "{way:?}");
        }
    }

    #[test]
    fn the_middle_of_a_request_is_lost_and_the_ends_are_those_of_the_disks_sectors() {
        // Twenty-four sectors from the third one on, on a disk that writes eight whole.
        let (log, _) = log(&[Some((3, 24, 1)), None, None]);
        let request = StatePlanRequest {
            states: 400,
            seed: 3,
            flushes: FlushEffect::Honest,
            sector_bytes: 4096,
        };
        let plan = plan(&log, &[vec![WriteKind::Heap], Vec::new(), Vec::new()], &request);
        let torn = plan.states.iter().filter(|one| one.way == LossPattern::Torn);
        let torn: BTreeSet<Vec<(u32, u32)>> = torn
            .map(|one| {
                one.state.lost.iter().map(|lost| (lost.sectors.start, lost.sectors.end)).collect()
            })
            .collect();
        for lost in [vec![(0, 5)], vec![(5, 13)], vec![(21, 24)], vec![(5, 13), (21, 24)]] {
            assert!(torn.contains(&lost), "{lost:?} of {torn:?}");
        }
    }
}
