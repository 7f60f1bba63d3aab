//! A state that a power cut could have left, and its content.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use stats::mix;

use crate::log::{DISKS_MAX, DiskLog, RequestOperation, SECTOR_BYTES, SECTORS};

/// One thing that a power cut could have left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskState {
    /// The requests that the disk had taken: those before this number.
    pub cut: usize,
    /// The losses among the writes that no flush had made durable; the rest of them is kept.
    pub lost: Vec<LostSectors>,
}

/// Sectors of a write that are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostSectors {
    /// The number of the request.
    pub write: usize,
    /// The sectors, from the write's first one.
    pub sectors: Range<u32>,
}

/// The effect of flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushEffect {
    /// They make durable what was written before.
    Honest,
    /// Nothing.
    Lying,
}

impl FlushEffect {
    /// The writes that nothing has made durable when the disks have taken the requests before `cut`.
    pub fn pending(self, log: &DiskLog, cut: usize) -> Vec<usize> {
        let durable = self.durable(log, cut);
        let first = durable
            .iter()
            .take(log.disks)
            .min()
            .copied()
            .expect("a log is that of at least one disk");
        let is_pending = |number: &usize| {
            let entry = &log.entries[*number];
            !entry.is_flush() && *number >= durable[usize::from(entry.disk)]
        };
        (first..cut).filter(is_pending).collect()
    }

    /// The request of each disk before which all its writes are durable then.
    fn durable(self, log: &DiskLog, cut: usize) -> [usize; DISKS_MAX] {
        let mut durable = [0; DISKS_MAX];
        if self == FlushEffect::Lying {
            return durable;
        }
        let (mut missing, mut found) = (log.disks, [Found::Nothing; DISKS_MAX]);
        for (number, entry) in log.entries[..cut].iter().enumerate().rev() {
            if missing == 0 {
                break;
            }
            let disk = usize::from(entry.disk);
            let next = match (&entry.what, found[disk]) {
                (RequestOperation::Flush, Found::Nothing)
                | (RequestOperation::FlushBegins, Found::End) => Found::Flush,
                (RequestOperation::FlushEnds, Found::Nothing) => Found::End,
                _ => continue,
            };
            found[disk] = next;
            if next == Found::Flush {
                durable[disk] = number;
                missing -= 1;
            }
        }
        durable
    }
}

/// What a search backwards for the last flush of a disk that has ended has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// The end; what it made durable was there when it began.
    End,
    Flush,
}

/// The differences from the image from before the log: for each block the source of each sector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateOverlay {
    blocks: BTreeMap<u64, [Sector; SECTORS]>,
    print: u64,
}

/// The source of a sector's content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sector {
    /// 0: from the image; else one more than its place in the file of contents.
    source: u64,
    sum: u64,
}

impl StateOverlay {
    /// Each block that differs: its number, and for each sector one more than its place in the file of
    /// contents, or 0 for the image's.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (u64, [u64; SECTORS])> {
        self.blocks.iter().map(|(block, sectors)| (*block, sectors.map(|sector| sector.source)))
    }

    /// A number that is the same for overlays of the same content, and differs for others but by an
    /// accident of one in 2⁶⁴.
    pub fn fingerprint(&self) -> u64 {
        self.print
    }

    fn put(&mut self, block: u64, place: usize, sector: Sector) {
        let old = &mut self.blocks.entry(block).or_default()[place];
        let print = |sector: Sector| match sector.source {
            0 => 0,
            _ => mix(mix(block * SECTORS as u64 + place as u64) ^ sector.sum),
        };
        self.print = self.print.wrapping_sub(print(*old)).wrapping_add(print(sector));
        *old = sector;
    }

    /// Applies a write but for the sectors that `is_lost` names.
    fn apply(&mut self, log: &DiskLog, write: usize, is_lost: impl Fn(u32) -> bool) {
        let mut number = 0;
        for piece in log.entries[write].pieces() {
            let content = &log.contents[piece.content as usize];
            for index in 0..usize::from(piece.sectors) {
                if !is_lost(number) {
                    let source = content.position + index as u64 * SECTOR_BYTES + 1;
                    let sector = Sector { source, sum: content.sums[index] };
                    self.put(piece.block, usize::from(piece.first) + index, sector);
                }
                number += 1;
            }
        }
    }
}

/// Assembles states of one log. It is fast where each state's cut is not before the last one's.
#[derive(Debug)]
pub struct StateCursor<'l> {
    log: &'l DiskLog,
    flushes: FlushEffect,
    /// The content that is durable when each disk had taken its requests before `next`.
    durable: StateOverlay,
    next: [usize; DISKS_MAX],
}

impl<'l> StateCursor<'l> {
    /// At the beginning of a log.
    pub fn new(log: &'l DiskLog, flushes: FlushEffect) -> StateCursor<'l> {
        StateCursor { log, flushes, durable: StateOverlay::default(), next: [0; DISKS_MAX] }
    }

    /// The content of a state.
    pub fn overlay(&mut self, state: &DiskState) -> StateOverlay {
        let durable = self.flushes.durable(self.log, state.cut);
        if durable.iter().zip(self.next).any(|(durable, next)| *durable < next) {
            (self.durable, self.next) = (StateOverlay::default(), [0; DISKS_MAX]);
        }
        // Disks share no block: the order between them does not count.
        for (disk, (next, durable)) in self.next.iter_mut().zip(durable).enumerate() {
            let of_it = |write: &usize| usize::from(self.log.entries[*write].disk) == disk;
            for write in (*next..durable).filter(of_it) {
                self.durable.apply(self.log, write, |_| false);
            }
            *next = durable;
        }
        let mut overlay = self.durable.clone();
        let mut lost: BTreeMap<usize, Vec<&Range<u32>>> = BTreeMap::new();
        for one in &state.lost {
            lost.entry(one.write).or_default().push(&one.sectors);
        }
        for write in self.flushes.pending(self.log, state.cut) {
            let lost = lost.get(&write).map_or(&[][..], Vec::as_slice);
            overlay.apply(self.log, write, |sector| {
                lost.iter().any(|sectors| sectors.contains(&sector))
            });
        }
        overlay
    }
}

/// `CUT WRITE:FROM-TO …`
impl fmt::Display for DiskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cut)?;
        self.lost.iter().try_for_each(|lost| {
            write!(f, " {}:{}-{}", lost.write, lost.sectors.start, lost.sectors.end)
        })
    }
}

/// A text that is no state's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a state of a disk")]
pub struct MalformedState;

impl FromStr for DiskState {
    type Err = MalformedState;

    fn from_str(text: &str) -> Result<DiskState, MalformedState> {
        let mut words = text.split_whitespace();
        let cut = words.next().and_then(|word| word.parse().ok()).ok_or(MalformedState)?;
        let lost = words.map(|word| {
            let (write, sectors) = word.split_once(':')?;
            let (from, to) = sectors.split_once('-')?;
            Some(LostSectors {
                write: write.parse().ok()?,
                sectors: from.parse().ok()?..to.parse().ok()?,
            })
        });
        Ok(DiskState { cut, lost: lost.collect::<Option<_>>().ok_or(MalformedState)? })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::DiskLogEncoder;

    /// A log of writes (first sector, sectors, byte) and of flushes, which begin and end in turn, with the
    /// contents' file.
    pub(crate) fn log(steps: &[Option<(u64, usize, u8)>]) -> (DiskLog, Vec<u8>) {
        let (mut encoder, mut out, mut contents) =
            (DiskLogEncoder::default(), Vec::new(), Vec::new());
        let mut is_flushing = false;
        for (number, step) in steps.iter().enumerate() {
            match step {
                None => {
                    match is_flushing {
                        false => encoder.flush_begins(number as u64, &mut out),
                        true => encoder.flush_ends(number as u64, &mut out),
                    }
                    is_flushing = !is_flushing;
                }
                Some((sector, sectors, byte)) => {
                    let data = vec![*byte; sectors * 512];
                    encoder.write(number as u64, sector * 512, &data, &mut out);
                }
            }
        }
        let log = match out.is_empty() {
            true => DiskLog::default(),
            false => DiskLog::read(&mut out.as_slice(), &mut contents).unwrap(),
        };
        (log, contents)
    }

    pub(crate) fn steps() -> impl Strategy<Value = Vec<Option<(u64, usize, u8)>>> {
        let step = prop::option::weighted(0.8, (0..40_u64, 1..20_usize, 1..=5_u8));
        prop::collection::vec(step, 1..40)
    }

    /// The sectors of a state, by a plain model: a byte for each.
    fn model(
        steps: &[Option<(u64, usize, u8)>],
        flushes: FlushEffect,
        state: &DiskState,
    ) -> Vec<u8> {
        let (mut durable, mut cache) = (vec![0; 64], vec![0; 64]);
        // What a flush under way covers, and the first write after its beginning.
        let (mut covered, mut first) = (None, 0);
        for (number, step) in steps[..state.cut].iter().enumerate() {
            match step {
                None => match covered.take() {
                    None => covered = Some((cache.clone(), number)),
                    Some(_) if flushes == FlushEffect::Lying => {}
                    Some((content, begin)) => (durable, first) = (content, begin),
                },
                Some((sector, sectors, byte)) => {
                    for index in 0..*sectors {
                        cache[*sector as usize + index] = *byte;
                    }
                }
            }
        }
        for (number, step) in steps.iter().enumerate().take(state.cut).skip(first) {
            let Some((sector, sectors, byte)) = step else { continue };
            for index in 0..*sectors {
                let is_lost = |lost: &LostSectors| {
                    lost.write == number && lost.sectors.contains(&(index as u32))
                };
                if !state.lost.iter().any(is_lost) {
                    durable[*sector as usize + index] = *byte;
                }
            }
        }
        durable
    }

    fn content(overlay: &StateOverlay, contents: &[u8]) -> Vec<u8> {
        let mut sectors = vec![0; 64];
        for (block, sources) in overlay.blocks() {
            for (place, source) in sources.into_iter().enumerate().filter(|(_, at)| *at > 0) {
                let data = &contents[source as usize - 1..][..512];
                assert!(data.iter().all(|byte| *byte == data[0]));
                sectors[block as usize * 8 + place] = data[0];
            }
        }
        sectors
    }

    proptest! {
        #[test]
        fn a_state_is_what_a_disk_would_hold(
            steps in steps(),
            losses in prop::collection::vec((any::<prop::sample::Index>(), 0..20_u32, 1..20_u32), 0..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
            lies: bool,
        ) {
            let (log, contents) = log(&steps);
            let flushes = if lies { FlushEffect::Lying } else { FlushEffect::Honest };
            let mut cursor = StateCursor::new(&log, flushes);
            let mut prints: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            for cut in cuts {
                let cut = cut.index(steps.len() + 1);
                let lost = losses.iter().map(|(write, from, sectors)| LostSectors {
                    write: write.index(steps.len()),
                    sectors: *from..from + sectors,
                });
                let state = DiskState { cut, lost: lost.collect() };
                let overlay = cursor.overlay(&state);
                let is = content(&overlay, &contents);
                prop_assert_eq!(&is, &model(&steps, flushes, &state));
                // One fingerprint, one content; written zeros are told from what was never written.
                let before = prints.insert(overlay.fingerprint(), is.clone());
                prop_assert!(before.is_none_or(|before| before == is));
                prop_assert_eq!(state.to_string().parse(), Ok(state));
            }
        }
    }

    #[test]
    fn of_two_disks_each_keeps_what_it_has_flushed_itself() {
        let write = |at: u64, byte: u8, encoder: &mut DiskLogEncoder, out: &mut Vec<u8>| {
            encoder.write(at, 0, &[byte; 512], out);
        };
        let (mut data, mut wal) =
            ((DiskLogEncoder::default(), Vec::new()), (DiskLogEncoder::default(), Vec::new()));
        write(1, 1, &mut data.0, &mut data.1);
        write(2, 2, &mut wal.0, &mut wal.1);
        wal.0.flush_begins(3, &mut wal.1);
        write(4, 4, &mut wal.0, &mut wal.1);
        wal.0.flush_ends(5, &mut wal.1);
        data.0.flush_begins(6, &mut data.1);
        data.0.flush_ends(7, &mut data.1);
        write(8, 6, &mut data.0, &mut data.1);
        let mut contents = Vec::new();
        let mut log = DiskLog::read(&mut data.1.as_slice(), &mut contents).unwrap();
        log.read_another(&mut wal.1.as_slice(), &mut contents, usize::MAX).unwrap();
        assert_eq!((log.disks, log.entries.len(), log.flushes()), (2, 8, 2));
        let at = |ns| log.entries.partition_point(|entry| entry.at_ns < ns);
        // A flush of one disk that has not ended keeps nothing, and one that has ended keeps what was there
        // when it began.
        for (cut, pending) in
            [(3, vec![0, 1]), (4, vec![0, 1, 3]), (5, vec![0, 3]), (6, vec![0, 3]), (7, vec![3])]
        {
            assert_eq!(FlushEffect::Honest.pending(&log, cut), pending, "{cut}");
        }
        assert_eq!(FlushEffect::Honest.pending(&log, 8), [3, 7]);
        let mut cursor = StateCursor::new(&log, FlushEffect::Honest);
        let mut bytes = |state: &str| -> Vec<(u64, u8)> {
            let overlay = cursor.overlay(&state.parse().unwrap());
            let blocks = overlay.blocks().filter(|(_, sources)| sources[0] > 0);
            blocks.map(|(block, sources)| (block, contents[sources[0] as usize - 1])).collect()
        };
        use crate::log::DISK_BLOCKS as WAL;
        assert_eq!(bytes("8"), [(0, 6), (WAL, 4)]);
        assert_eq!(bytes("8 3:0-1"), [(0, 6), (WAL, 2)]);
        assert_eq!(bytes("8 7:0-1"), [(0, 1), (WAL, 4)]);
        // What the flush covers is lost while it is under way, and what came meanwhile is kept.
        assert_eq!(bytes("4 0:0-1 1:0-1"), [(WAL, 4)]);
        // Its own disk's flush has kept it.
        assert_eq!(bytes("8 0:0-1 1:0-1"), [(0, 6), (WAL, 4)]);
        assert_eq!(at(3), 2);
        log.begin_at(3);
        assert_eq!(log.first_cut, 2);
    }

    #[test]
    fn of_three_disks_the_third_one_has_blocks_and_flushes_of_its_own() {
        let (mut logs, mut contents) = (Vec::new(), Vec::new());
        for disk in 0..DISKS_MAX as u64 {
            let (mut encoder, mut out) = (DiskLogEncoder::default(), Vec::new());
            // That of the last one comes first, so that its loss is no earlier moment of all three.
            encoder.write(3 - disk, 0, &[disk as u8 + 1; 512], &mut out);
            // All but the last one flush.
            if disk + 1 < DISKS_MAX as u64 {
                encoder.flush_begins(10 + disk, &mut out);
                encoder.flush_ends(20 + disk, &mut out);
            }
            logs.push(out);
        }
        let mut log = DiskLog::read(&mut logs[0].as_slice(), &mut contents).unwrap();
        for other in &logs[1..] {
            log.read_another(&mut other.as_slice(), &mut contents, usize::MAX).unwrap();
        }
        assert_eq!(log.disks, 3);
        let end = log.entries.len();
        assert_eq!(FlushEffect::Honest.pending(&log, end), [0]);
        let mut cursor = StateCursor::new(&log, FlushEffect::Honest);
        let state = DiskState { cut: end, lost: Vec::new() };
        let overlay = cursor.overlay(&state);
        let blocks = overlay.blocks().map(|(block, sources)| {
            (block / crate::log::DISK_BLOCKS, contents[sources[0] as usize - 1])
        });
        assert_eq!(blocks.collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3)]);
        let kinds: Vec<Vec<crate::WriteKind>> = log
            .entries
            .iter()
            .map(|entry| if entry.is_flush() { Vec::new() } else { vec![crate::WriteKind::Heap] })
            .collect();
        let request = crate::StatePlanRequest {
            states: 50,
            seed: 1,
            flushes: FlushEffect::Honest,
            sector_bytes: 512,
        };
        let plan = crate::plan(&log, &kinds, &request);
        let lost_of_third = |one: &crate::PlannedState| one.state.lost.iter().any(|l| l.write == 0);
        assert!(plan.states.iter().any(lost_of_third));
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for text in ["", "x", "1 2", "1 2:3", "1 2:3-x", "-1"] {
            assert_eq!(text.parse::<DiskState>(), Err(MalformedState), "{text}");
        }
    }
}
