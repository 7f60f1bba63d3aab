//! What lies between two flushes of a disk: the moments at which a cut can still lose a write, and the ways
//! in which it can.

use std::collections::BTreeMap;
use std::ops::Range;

use stats::Prng;

use crate::log::{DISKS_MAX, DiskLog, RequestOperation, SECTOR_BYTES, SECTORS};
use crate::plan::LossPattern;
use crate::state::FlushEffect;

/// What is known of each request.
pub(crate) struct Epochs {
    requests: Vec<Request>,
    disks: usize,
    first_cut: usize,
    /// Sectors of a unit that the disk writes whole or not at all.
    unit: u64,
}

/// What is known of a request.
#[derive(Clone, Copy)]
struct Request {
    /// The end of the first flush of its disk that covers it, or the end of the log.
    end: usize,
    /// The beginning of that flush; none at the end of the log.
    began: Option<usize>,
    /// True if a write of some disk was taken between the two.
    is_met: bool,
    /// The first write to one of its blocks after it and before that end.
    again: Option<usize>,
    /// True if it is a write of several units of the disk.
    is_divided: bool,
}

impl Epochs {
    pub(crate) fn of(log: &DiskLog, flushes: FlushEffect, sector_bytes: u64) -> Epochs {
        let end = log.entries.len();
        let none = Request { end, began: None, is_met: false, again: None, is_divided: false };
        let mut requests = vec![none; end];
        // Of each disk: the flush that is next, and the end of the one that is being passed.
        let (mut next, mut passed) = ([none; DISKS_MAX], [None; DISKS_MAX]);
        let mut writes_after = vec![0_usize; end + 1];
        for (number, entry) in log.entries.iter().enumerate().rev() {
            let disk = usize::from(entry.disk);
            writes_after[number] = writes_after[number + 1] + usize::from(!entry.is_flush());
            match entry.what {
                _ if flushes == FlushEffect::Lying => {}
                RequestOperation::Flush => {
                    next[disk] = Request { end: number, began: Some(number), ..none };
                }
                RequestOperation::FlushEnds => passed[disk] = Some(number),
                RequestOperation::FlushBegins => {
                    // One that never ended keeps nothing.
                    if let Some(end) = passed[disk].take() {
                        let is_met = writes_after[number] > writes_after[end];
                        next[disk] = Request { end, began: Some(number), is_met, ..none };
                    }
                }
                RequestOperation::Write(_) => {}
            }
            requests[number] = next[disk];
        }
        let unit = (sector_bytes / SECTOR_BYTES).max(1);
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        for (number, entry) in log.entries.iter().enumerate().rev() {
            let request = &mut requests[number];
            let blocks = || entry.pieces().iter().map(|piece| piece.block);
            let again = blocks().filter_map(|block| last.get(&block)).min().copied();
            request.again = again.filter(|again| *again < request.end);
            request.is_divided = units(log, number, unit).len() > 1;
            last.extend(blocks().map(|block| (block, number)));
        }
        Epochs { requests, disks: log.disks, first_cut: log.first_cut, unit }
    }

    /// True if a state of that way can be about the write.
    pub(crate) fn allows(&self, way: LossPattern, write: usize) -> bool {
        let request = &self.requests[write];
        // A write that was durable before the first cut can come is in every state.
        let can_be_lost = !self.cuts(way, write).is_empty();
        can_be_lost
            && match way {
                LossPattern::Flushed => request.began.is_some(),
                LossPattern::Earlier => request.again.is_some(),
                LossPattern::Torn => request.is_divided,
                LossPattern::DuringFlush => request.is_met,
                LossPattern::OneDisk => self.disks > 1,
                LossPattern::All
                | LossPattern::None
                | LossPattern::Random
                | LossPattern::AllButOne
                | LossPattern::One => true,
            }
    }

    /// The cuts at which a state of that way is about the write.
    pub(crate) fn cuts(&self, way: LossPattern, write: usize) -> Range<usize> {
        let Request { end, began, again, .. } = self.requests[write];
        let cuts = match way {
            LossPattern::Flushed => end + 1..end + 2,
            LossPattern::Earlier => again.unwrap_or(write) + 1..end + 1,
            LossPattern::DuringFlush => began.unwrap_or(write) + 2..end + 1,
            _ => write + 1..end + 1,
        };
        cuts.start.max(self.first_cut)..cuts.end
    }

    /// The request at which the flush that covers a write begins.
    pub(crate) fn flush_began(&self, write: usize) -> usize {
        self.requests[write].began.unwrap_or(self.requests.len())
    }

    /// The end of the interval between two flushes that a write lies in.
    pub(crate) fn interval(&self, write: usize) -> usize {
        self.requests[write].end
    }

    /// The sectors of each unit of a write.
    pub(crate) fn units(&self, log: &DiskLog, write: usize) -> Vec<Range<u32>> {
        units(log, write, self.unit)
    }

    /// Writes in such an order that neighbours lie between different flushes.
    pub(crate) fn spread(
        &self,
        writes: impl Iterator<Item = usize>,
        prng: &mut Prng,
    ) -> Vec<usize> {
        let mut intervals: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for write in writes {
            intervals.entry(self.interval(write)).or_default().push(write);
        }
        let mut intervals: Vec<Vec<usize>> = intervals.into_values().collect();
        prng.shuffle(&mut intervals);
        intervals.iter_mut().for_each(|writes| prng.shuffle(writes));
        let mut spread = Vec::new();
        while !intervals.is_empty() {
            spread.extend(intervals.iter_mut().filter_map(Vec::pop));
            intervals.retain(|writes| !writes.is_empty());
        }
        spread
    }
}

/// The sectors of each unit of a write: the disk's units begin at multiples of their size on the disk,
/// wherever the write begins.
fn units(log: &DiskLog, write: usize, unit: u64) -> Vec<Range<u32>> {
    let pieces = log.entries[write].pieces();
    let Some(piece) = pieces.first() else { return Vec::new() };
    let first = piece.block * SECTORS as u64 + u64::from(piece.first);
    let end = log.entries[write].sectors();
    let mut units = Vec::new();
    let mut at = 0;
    while at < end {
        let next = ((first + u64::from(at)) / unit + 1) * unit - first;
        let next = (next as u32).min(end);
        units.push(at..next);
        at = next;
    }
    units
}
