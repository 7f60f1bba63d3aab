//! Reading a log.

use std::io::{self, Read, Write};

use twox_hash::XxHash3_64;

use crate::encode::{FLUSH, FLUSH_BEGINS, FLUSH_ENDS, HEADER, HEADER_1, KNOWN, NEW, WRITE, ZEROS};
use crate::log::{
    BLOCK_BYTES, BlockPiece, DiskLog, LoggedRequest, RequestOperation, SECTOR_BYTES, SECTORS,
    WrittenContent, split,
};

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum LogDamage {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is no log of a disk, or one of another version of pgrig")]
    NoLog,
    #[error("request {request} of the log cannot be: {why}")]
    Entry {
        /// The number, from 0.
        request: usize,
        why: &'static str,
    },
}

impl DiskLog {
    /// Reads a log to its end; the content of each piece goes to `contents`, once. A last request that
    /// is cut off, as the death of the disk's process leaves it, is dropped.
    pub fn read(source: &mut dyn Read, contents: &mut dyn Write) -> Result<DiskLog, LogDamage> {
        DiskLog::read_within(source, contents, usize::MAX)
    }

    /// Reads a log that somebody else may have written: requests, pieces of writes and different contents
    /// are `items_max` at most. Each takes up to a hundred bytes of memory, and a content up to
    /// [`BLOCK_BYTES`] of `contents`.
    pub fn read_within(
        source: &mut dyn Read,
        contents: &mut dyn Write,
        items_max: usize,
    ) -> Result<DiskLog, LogDamage> {
        let mut header = vec![0; HEADER.len()];
        match source.read_exact(&mut header) {
            Ok(()) if header == HEADER || header == HEADER_1 => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
            _ => return Err(LogDamage::NoLog),
        }
        let log = DiskLog { disks: 1, ..DiskLog::default() };
        let mut reader = Reader { source, contents, log, items_left: items_max };
        reader.keep(&[0; BLOCK_BYTES as usize])?;
        loop {
            match reader.entry() {
                Ok(Some(entry)) => reader.log.entries.push(entry),
                Ok(None) => break,
                Err(LogDamage::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        reader.contents.flush()?;
        Ok(reader.log)
    }

    /// Reads the log of another disk of the same machine as well, as [`DiskLog::read_within`] does; its
    /// contents follow those that are in `contents` already.
    pub fn read_another(
        &mut self,
        source: &mut dyn Read,
        contents: &mut dyn Write,
        items_max: usize,
    ) -> Result<(), LogDamage> {
        self.merge(DiskLog::read_within(source, contents, items_max)?);
        Ok(())
    }
}

struct Reader<'r> {
    source: &'r mut dyn Read,
    contents: &'r mut dyn Write,
    log: DiskLog,
    items_left: usize,
}

impl Reader<'_> {
    fn entry(&mut self) -> Result<Option<LoggedRequest>, LogDamage> {
        let mut tag = [0];
        if self.source.read(&mut tag)? == 0 {
            return Ok(None);
        }
        self.count()?;
        let at_ns = u64::from_le_bytes(self.bytes()?);
        let what = match tag[0] {
            FLUSH => RequestOperation::Flush,
            FLUSH_BEGINS => RequestOperation::FlushBegins,
            FLUSH_ENDS => RequestOperation::FlushEnds,
            WRITE => {
                let offset = u64::from_le_bytes(self.bytes()?);
                let length = u32::from_le_bytes(self.bytes()?) as usize;
                let is_whole = |number: u64| number.is_multiple_of(SECTOR_BYTES);
                if !is_whole(offset) || !is_whole(length as u64) || length > LENGTH_MAX {
                    return Err(self.wrong("a write that is not made of sectors"));
                }
                if offset.checked_add(length as u64).is_none() {
                    return Err(self.wrong("a write beyond every disk"));
                }
                let mut pieces = Vec::with_capacity(length / BLOCK_BYTES as usize + 1);
                for (block, first, range) in split(offset, length) {
                    self.count()?;
                    let content = self.content(range.len())?;
                    let sectors = (range.len() as u64 / SECTOR_BYTES) as u8;
                    pieces.push(BlockPiece { block, first, sectors, content });
                }
                RequestOperation::Write(pieces)
            }
            _ => return Err(self.wrong("neither a write nor a flush")),
        };
        Ok(Some(LoggedRequest { at_ns, disk: 0, what }))
    }

    fn content(&mut self, length: usize) -> Result<u32, LogDamage> {
        match u8::from_le_bytes(self.bytes()?) {
            ZEROS => Ok(0),
            KNOWN => {
                let number = u32::from_le_bytes(self.bytes()?);
                match self.log.contents.get(number as usize) {
                    Some(_) => Ok(number),
                    None => Err(self.wrong("a content that was not there before")),
                }
            }
            NEW => {
                let packed = u32::from_le_bytes(self.bytes()?) as usize;
                if packed > 2 * BLOCK_BYTES as usize {
                    return Err(self.wrong("a content larger than a block"));
                }
                let mut bytes = vec![0; packed];
                self.source.read_exact(&mut bytes)?;
                let data = lz4_flex::block::decompress(&bytes, length);
                let data = data.map_err(|_| self.wrong("a content that cannot be unpacked"))?;
                if data.len() != length {
                    return Err(self.wrong("a content of another length"));
                }
                self.keep(&data)
            }
            _ => Err(self.wrong("a content of an unknown kind")),
        }
    }

    fn keep(&mut self, data: &[u8]) -> Result<u32, LogDamage> {
        let (mut head, mut sums) = ([0; 16], [0; SECTORS]);
        head.copy_from_slice(&data[..16]);
        for (sum, sector) in sums.iter_mut().zip(data.chunks(SECTOR_BYTES as usize)) {
            *sum = XxHash3_64::oneshot(sector);
        }
        self.count()?;
        self.contents.write_all(data)?;
        let number = self.log.contents.len() as u32;
        self.log.contents.push(WrittenContent { position: self.log.contents_bytes, head, sums });
        self.log.contents_bytes += data.len() as u64;
        Ok(number)
    }

    fn count(&mut self) -> Result<(), LogDamage> {
        self.items_left = self
            .items_left
            .checked_sub(1)
            .ok_or_else(|| self.wrong("more than is read of a log"))?;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], LogDamage> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn wrong(&self, why: &'static str) -> LogDamage {
        LogDamage::Entry { request: self.log.entries.len(), why }
    }
}

/// More than the kernel puts into one request.
const LENGTH_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::DiskLogEncoder;

    proptest! {
        #[test]
        fn what_was_written_is_read(
            writes in prop::collection::vec((0..64_u64, 1..24_usize, 0..=3_u8, any::<bool>()), 0..40),
            cut in 0..30_usize,
        ) {
            let (mut encoder, mut out, mut ends) = (DiskLogEncoder::default(), Vec::new(), Vec::new());
            encoder.begin(&mut out);
            for (number, (sector, sectors, byte, flushes)) in writes.iter().enumerate() {
                let mut data = vec![*byte; sectors * 512];
                if *byte == 3 {
                    data[0] = number as u8;
                }
                encoder.write(number as u64, sector * 512, &data, &mut out);
                ends.push(out.len());
                if *flushes {
                    encoder.flush_begins(number as u64, &mut out);
                    ends.push(out.len());
                    encoder.flush_ends(number as u64, &mut out);
                    ends.push(out.len());
                }
            }
            let mut contents = Vec::new();
            let log = DiskLog::read(&mut out.as_slice(), &mut contents).unwrap();
            prop_assert_eq!(log.entries.len(), ends.len());
            prop_assert_eq!(log.writes(), writes.len());
            let written = log.entries.iter().filter(|entry| !entry.is_flush());
            for (number, (entry, (sector, sectors, byte, _))) in written.zip(&writes).enumerate() {
                prop_assert_eq!(entry.at_ns, number as u64);
                prop_assert_eq!(entry.sectors(), *sectors as u32);
                let mut next = *sector;
                for piece in entry.pieces() {
                    prop_assert_eq!(piece.block * 8 + u64::from(piece.first), next);
                    let position = log.contents[piece.content as usize].position as usize;
                    let length = usize::from(piece.sectors) * 512;
                    let data = &contents[position..position + length];
                    let is_first = next == *sector && *byte == 3;
                    prop_assert!(data[usize::from(is_first)..].iter().all(|one| one == byte));
                    next += u64::from(piece.sectors);
                }
            }
            // The death of the disk's process takes a part of the last request.
            let end = out.len().saturating_sub(cut).max(HEADER.len());
            let torn = DiskLog::read(&mut &out[..end], &mut io::sink()).unwrap();
            prop_assert_eq!(torn.entries.len(), ends.iter().filter(|at| **at <= end).count());
        }

        #[test]
        fn damage_is_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut file = HEADER.to_vec();
            file.extend(&bytes);
            let _ = DiskLog::read(&mut file.as_slice(), &mut io::sink());
            prop_assert!(DiskLog::read(&mut bytes.as_slice(), &mut io::sink()).is_err());
        }
    }

    #[test]
    fn a_log_of_the_first_version_is_read() {
        let (mut encoder, mut out) = (DiskLogEncoder::default(), Vec::new());
        encoder.write(1, 512, &[7; 512], &mut out);
        out[..HEADER.len()].copy_from_slice(HEADER_1);
        out.push(FLUSH);
        out.extend(2_u64.to_le_bytes());
        let log = DiskLog::read(&mut out.as_slice(), &mut io::sink()).unwrap();
        assert_eq!((log.writes(), log.flushes(), log.entries.len()), (1, 1, 2));
        assert_eq!(log.entries[1].what, RequestOperation::Flush);
    }

    #[test]
    fn the_same_content_is_kept_once() {
        let (mut encoder, mut out) = (DiskLogEncoder::default(), Vec::new());
        let data: Vec<u8> = (0..4096_u32).map(|at| stats::mix(u64::from(at)) as u8).collect();
        for block in 0..100 {
            encoder.write(block, block * 4096, &data, &mut out);
            encoder.write(block, block * 4096, &[0; 4096], &mut out);
        }
        assert!(out.len() < 3 * 4096 + 200 * 30, "{}", out.len());
        let log = DiskLog::read(&mut out.as_slice(), &mut io::sink()).unwrap();
        assert_eq!(log.contents.len(), 2);
    }

    #[test]
    fn a_log_of_somebody_else_is_read_as_far_as_it_can_be_one() {
        let check = |log: &[u8], items_max, expected: Result<usize, &str>| {
            let read = DiskLog::read_within(&mut &log[..], &mut Vec::new(), items_max);
            let read = read.map(|log| log.entries.len()).map_err(|error| error.to_string());
            match expected {
                Ok(entries) => assert_eq!(read, Ok(entries)),
                Err(why) => {
                    assert!(read.as_ref().is_err_and(|error| error.contains(why)), "{read:?}")
                }
            }
        };
        let (mut encoder, mut log) = (DiskLogEncoder::default(), Vec::new());
        encoder.begin(&mut log);
        let header = log.len();
        encoder.write(1, 512, &[7; 4096], &mut log);
        encoder.flush_begins(2, &mut log);
        // A request, two pieces with a content each, and a flush, behind the content of zeros.
        check(&log, 7, Ok(2));
        check(&log, 6, Err("more than is read of a log"));
        check(&log[..log.len() - 1], 7, Ok(1));
        check(b"another file", 7, Err("no log of a disk"));
        let mut beyond = log[..header].to_vec();
        beyond.push(WRITE);
        beyond.extend(1_u64.to_le_bytes());
        beyond.extend((u64::MAX - 511).to_le_bytes());
        beyond.extend(4096_u32.to_le_bytes());
        beyond.extend([ZEROS; 9]);
        check(&beyond, 100, Err("a write beyond every disk"));
    }
}
