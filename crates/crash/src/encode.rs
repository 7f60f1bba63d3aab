//! The log as it is written while a disk runs.
//!
//! Every request is a tag, its moment and, of a write, offset and length; then for each piece of a
//! block a tag and its content: zeros, the number of one that is known, or a compressed new one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use lz4_flex::block::{compress_into, get_maximum_output_size};
use twox_hash::XxHash3_128;

use crate::log::{BLOCK_BYTES, split};

/// The beginning of the file.
pub(crate) const HEADER: &[u8] = b"pgrig disk log 2\n";

/// The same of logs that have one entry for a flush.
pub(crate) const HEADER_1: &[u8] = b"pgrig disk log 1\n";

pub(crate) const WRITE: u8 = b'w';
pub(crate) const FLUSH: u8 = b'f';
pub(crate) const FLUSH_BEGINS: u8 = b'b';
pub(crate) const FLUSH_ENDS: u8 = b'e';

pub(crate) const ZEROS: u8 = 0;
pub(crate) const KNOWN: u8 = 1;
pub(crate) const NEW: u8 = 2;

/// Makes the bytes of a log.
#[derive(Debug, Default)]
pub struct DiskLogEncoder {
    /// The number of each content, by its hash.
    known: HashMap<u128, u32, BuildHasherDefault<Hashed>>,
    has_begun: bool,
}

/// Keys are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl DiskLogEncoder {
    /// Adds a write of whole sectors.
    pub fn write(&mut self, at_ns: u64, offset: u64, data: &[u8], out: &mut Vec<u8>) {
        self.begin(out);
        out.push(WRITE);
        out.extend(at_ns.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.extend((data.len() as u32).to_le_bytes());
        for (.., range) in split(offset, data.len()) {
            self.piece(&data[range], out);
        }
    }

    /// Adds the beginning of a flush.
    pub fn flush_begins(&mut self, at_ns: u64, out: &mut Vec<u8>) {
        self.moment(FLUSH_BEGINS, at_ns, out);
    }

    /// Adds the end of a flush.
    pub fn flush_ends(&mut self, at_ns: u64, out: &mut Vec<u8>) {
        self.moment(FLUSH_ENDS, at_ns, out);
    }

    fn moment(&mut self, tag: u8, at_ns: u64, out: &mut Vec<u8>) {
        self.begin(out);
        out.push(tag);
        out.extend(at_ns.to_le_bytes());
    }

    /// Begins the log, unless it has begun: one without a request is a log, too.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.has_begun {
            out.extend(HEADER);
            self.has_begun = true;
        }
    }

    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        if data == &NOTHING[..data.len()] {
            out.push(ZEROS);
            return;
        }
        // Number 0 is that of zeros.
        let number = self.known.len() as u32 + 1;
        let mut is_new = false;
        let number = *self.known.entry(XxHash3_128::oneshot(data)).or_insert_with(|| {
            is_new = true;
            number
        });
        if is_new {
            out.push(NEW);
            let start = out.len() + LENGTH_BYTES;
            out.resize(start + get_maximum_output_size(data.len()), 0);
            // There is room for whatever it makes of them.
            let packed = compress_into(data, &mut out[start..]).unwrap_or_default();
            out[start - LENGTH_BYTES..start].copy_from_slice(&(packed as u32).to_le_bytes());
            out.truncate(start + packed);
        } else {
            out.push(KNOWN);
            out.extend(number.to_le_bytes());
        }
    }
}

const NOTHING: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

/// Bytes of the length before a compressed content.
const LENGTH_BYTES: usize = 4;
