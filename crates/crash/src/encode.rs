//! The log as it is written while a disk runs.
//!
//! Every request is a tag, its moment and, of a write, offset and length; then for each piece of a
//! block a tag and its content: zeros, the number of one that is known, or a compressed new one.

use std::collections::HashMap;

use twox_hash::XxHash3_128;

use crate::log::split;

/// The beginning of the file.
pub(crate) const HEADER: &[u8] = b"pgrig disk log 1\n";

pub(crate) const WRITE: u8 = b'w';
pub(crate) const FLUSH: u8 = b'f';

pub(crate) const ZEROS: u8 = 0;
pub(crate) const KNOWN: u8 = 1;
pub(crate) const NEW: u8 = 2;

/// Makes the bytes of a log.
#[derive(Debug, Default)]
pub struct Encoder {
    /// The number of each content, by its hash.
    known: HashMap<u128, u32>,
    has_begun: bool,
}

impl Encoder {
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

    /// Adds a flush.
    pub fn flush(&mut self, at_ns: u64, out: &mut Vec<u8>) {
        self.begin(out);
        out.push(FLUSH);
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
        if data.iter().all(|byte| *byte == 0) {
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
            let packed = lz4_flex::block::compress(data);
            out.push(NEW);
            out.extend((packed.len() as u32).to_le_bytes());
            out.extend(packed);
        } else {
            out.push(KNOWN);
            out.extend(number.to_le_bytes());
        }
    }
}
