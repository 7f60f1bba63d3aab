//! The volatile cache of a disk: what was written since the last flush, and what becomes of it
//! when the power fails. Pure; positions and lengths are bytes, in whole sectors of 512.
//!
//! Limits: of several writes to one sector since the last flush only the last can survive; a real
//! disk may also have kept one before it.

use std::collections::BTreeMap;

use stats::Prng;

/// Smallest unit that the kernel sends to a block device, in bytes.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Smallest unit that a file system usually writes, in bytes.
const BLOCK_BYTES: usize = 4096;

/// Writes that a flush has not made durable yet.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By number of the block.
    blocks: BTreeMap<u64, Block>,
}

/// One block of which some sectors were written.
#[derive(Debug, Clone)]
struct Block {
    data: Box<[u8; BLOCK_BYTES]>,
    /// One bit for each sector that was written.
    written: u8,
}

/// A piece that goes to the medium.
pub(crate) struct Piece<'a> {
    pub(crate) offset: u64,
    pub(crate) data: &'a [u8],
}

/// The effect of a cut on the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheLoss {
    /// Bytes that were in the cache.
    pub(crate) pending: u64,
    /// How many of these bytes are lost.
    pub(crate) dropped: u64,
    /// Blocks of which a part is lost and a part survives.
    pub(crate) torn_blocks: u64,
}

impl Cache {
    /// Takes a write; `false` if it is not made of whole sectors.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> bool {
        let sector = SECTOR_BYTES as u64;
        if !offset.is_multiple_of(sector) || !data.len().is_multiple_of(SECTOR_BYTES) {
            return false;
        }
        for (index, data) in data.chunks_exact(SECTOR_BYTES).enumerate() {
            let (number, place) = place(offset / sector + index as u64);
            let block = self.blocks.entry(number).or_insert_with(Block::empty);
            block.data[place * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(data);
            block.written |= 1 << place;
        }
        true
    }

    /// Lays what is pending over what was read from the medium at `offset`.
    pub(crate) fn read_over(&self, offset: u64, data: &mut [u8]) {
        let end = offset + data.len() as u64;
        let block_bytes = BLOCK_BYTES as u64;
        let touched = offset / block_bytes..end.div_ceil(block_bytes);
        for (number, block) in self.blocks.range(touched) {
            for piece in block.sectors(*number) {
                let start = piece.offset.max(offset);
                let stop = (piece.offset + piece.data.len() as u64).min(end);
                if start < stop {
                    let from = (start - piece.offset) as usize;
                    let length = (stop - start) as usize;
                    data[(start - offset) as usize..][..length]
                        .copy_from_slice(&piece.data[from..][..length]);
                }
            }
        }
    }

    /// Bytes that are pending.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.values().map(Block::bytes).sum()
    }

    /// The numbers of the blocks of which something is pending.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// Everything that is pending, in the order of places.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.blocks.iter().flat_map(|(number, block)| block.runs(*number))
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Cuts the power of a disk that writes `sector_bytes` whole or not at all. Of every block (or
    /// larger sector) the seed decides whether it is lost, survives, or, where it is made of
    /// several sectors, is torn between them. What is lost is forgotten; the rest goes to the
    /// medium.
    pub(crate) fn cut(&mut self, seed: u64, sector_bytes: usize) -> CacheLoss {
        let mut prng = Prng::new(seed);
        let mut toll = CacheLoss { pending: self.bytes(), ..CacheLoss::default() };
        let blocks_of_sector = sector_bytes.div_ceil(BLOCK_BYTES) as u64;
        let sectors_of_unit = (sector_bytes / SECTOR_BYTES).min(BLOCK_BYTES / SECTOR_BYTES);
        let mut last: Option<(u64, Fate)> = None;
        for (number, block) in &mut self.blocks {
            let unit = *number / blocks_of_sector;
            let fate = match last {
                Some((same, fate)) if same == unit => fate,
                _ => Fate::draw(block.units(sectors_of_unit).count(), &mut prng),
            };
            last = Some((unit, fate));
            let before = block.bytes();
            match fate {
                Fate::Survives => {}
                Fate::Lost => block.written = 0,
                Fate::Torn => {
                    block.tear(sectors_of_unit, &mut prng);
                    toll.torn_blocks += 1;
                }
            }
            toll.dropped += before - block.bytes();
        }
        self.blocks.retain(|_, block| block.written != 0);
        toll
    }
}

/// The fate of a block.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Lost,
    Survives,
    Torn,
}

impl Fate {
    fn draw(units: usize, prng: &mut Prng) -> Self {
        match prng.below(if units > 1 { 3 } else { 2 }) {
            0 => Self::Lost,
            1 => Self::Survives,
            _ => Self::Torn,
        }
    }
}

impl Block {
    fn empty() -> Self {
        Self { data: Box::new([0; BLOCK_BYTES]), written: 0 }
    }

    fn bytes(&self) -> u64 {
        u64::from(self.written.count_ones()) * SECTOR_BYTES as u64
    }

    /// The written sectors one by one.
    fn sectors(&self, number: u64) -> impl Iterator<Item = Piece<'_>> {
        let written =
            (0..BLOCK_BYTES / SECTOR_BYTES).filter(|place| self.written & 1 << place != 0);
        written.map(move |place| self.piece(number, place, 1))
    }

    /// The written sectors, joined where they follow each other.
    fn runs(&self, number: u64) -> impl Iterator<Item = Piece<'_>> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let rest = u16::from(self.written) >> place;
            if rest == 0 {
                return None;
            }
            let start = place + rest.trailing_zeros() as usize;
            let length = (u16::from(self.written) >> start).trailing_ones() as usize;
            place = start + length;
            Some(self.piece(number, start, length))
        })
    }

    fn piece(&self, number: u64, place: usize, sectors: usize) -> Piece<'_> {
        let start = place * SECTOR_BYTES;
        let offset = number * BLOCK_BYTES as u64 + start as u64;
        Piece { offset, data: &self.data[start..start + sectors * SECTOR_BYTES] }
    }

    /// The masks of the units of so many sectors of which something was written.
    fn units(&self, sectors: usize) -> impl Iterator<Item = u8> {
        let unit = u8::MAX >> (8 - sectors);
        let written = self.written;
        (0..8 / sectors)
            .map(move |index| written & unit << (index * sectors))
            .filter(|mask| *mask != 0)
    }

    /// Loses at least one of its units, at random, and keeps at least one.
    fn tear(&mut self, sectors: usize, prng: &mut Prng) {
        let units: Vec<u8> = self.units(sectors).collect();
        // The first bit patterns, all lost and all kept, are not torn.
        let kept = 1 + prng.below((1 << units.len()) - 2);
        let survivors = units.iter().enumerate().filter(|(index, _)| kept & 1 << index != 0);
        self.written = survivors.fold(0, |mask, (_, unit)| mask | unit);
    }
}

fn place(sector: u64) -> (u64, usize) {
    let sectors = (BLOCK_BYTES / SECTOR_BYTES) as u64;
    (sector / sectors, (sector % sectors) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sectors of a small disk, each filled with one byte; what was written where.
    fn writes() -> impl Strategy<Value = Vec<(u64, usize, u8)>> {
        prop::collection::vec((0..64_u64, 1..24_usize, 1..=255_u8), 0..40)
    }

    fn filled(writes: &[(u64, usize, u8)]) -> (Cache, Vec<u8>) {
        let (mut cache, mut model) = (Cache::default(), vec![0; 100 * SECTOR_BYTES]);
        for (sector, length, byte) in writes {
            let data = vec![*byte; length * SECTOR_BYTES];
            let offset = *sector * SECTOR_BYTES as u64;
            assert!(cache.write(offset, &data));
            model[offset as usize..][..data.len()].copy_from_slice(&data);
        }
        (cache, model)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(writes in writes(), from in 0..50_000_usize, length in 0..9000_usize) {
            let (cache, model) = filled(&writes);
            let range = from.min(model.len())..(from + length).min(model.len());
            let mut read = vec![0; range.len()];
            cache.read_over(range.start as u64, &mut read);
            prop_assert_eq!(&read, &model[range]);
        }

        #[test]
        fn a_cut_keeps_or_loses_whole_sectors(
            writes in writes(),
            seed: u64,
            sector in prop::sample::select(vec![512_usize, 1024, 4096, 8192]),
        ) {
            let (mut cache, model) = filled(&writes);
            let before: u64 = cache.pieces().map(|piece| piece.data.len() as u64).sum();
            let toll = cache.cut(seed, sector);
            let mut medium = vec![0; model.len()];
            let mut kept = 0;
            for piece in cache.pieces() {
                medium[piece.offset as usize..][..piece.data.len()].copy_from_slice(piece.data);
                kept += piece.data.len() as u64;
            }
            prop_assert_eq!(toll.pending, before);
            prop_assert_eq!(toll.dropped, before - kept);
            for (was, is) in model.chunks(sector).zip(medium.chunks(sector)) {
                prop_assert!(is == was || is.iter().all(|byte| *byte == 0));
            }
            if sector >= BLOCK_BYTES {
                prop_assert_eq!(toll.torn_blocks, 0);
            }
        }
    }

    #[test]
    fn every_fate_occurs_and_a_seed_decides_it() {
        let cut = |seed| {
            let mut cache = Cache::default();
            assert!(cache.write(0, &vec![1; 300 * BLOCK_BYTES]));
            let toll = cache.cut(seed, 512);
            (toll, cache.pieces().map(|piece| piece.offset).collect::<Vec<_>>())
        };
        let (toll, survivors) = cut(7);
        assert!((50..150).contains(&toll.torn_blocks), "{toll:?}");
        assert!((400_000..800_000).contains(&toll.dropped), "{toll:?}");
        assert_eq!(cut(7), (toll, survivors.clone()));
        assert_ne!(cut(8).1, survivors);
    }

    #[test]
    fn a_part_of_a_sector_is_refused() {
        let mut cache = Cache::default();
        assert!(!cache.write(1, &[0; 512]));
        assert!(!cache.write(0, &[0; 100]));
        assert_eq!(cache.bytes(), 0);
    }
}
