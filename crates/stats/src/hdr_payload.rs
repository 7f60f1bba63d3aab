//! HDR's V2 encoding in base64, and back from untrusted text.
//!
//! The `hdrhistogram` crate decodes well-formed input; on hostile input it may allocate what the
//! header promises or negate the smallest integer. So the payload is unpacked and walked here
//! first, within bounds, and handed on when it is sound.
//! Format: `AbstractHistogram.java` of HdrHistogram, `encodeIntoByteBuffer`.

use std::borrow::Cow;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer};
use hdrhistogram::{Counter, Histogram};
use thiserror::Error;

/// Why a text is no histogram.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DecodeError {
    #[error("decode an HDR histogram: not base64 ({0})")]
    Base64(String),
    #[error("decode an HDR histogram: it begins with {0:#010x}, not with a V2 cookie")]
    Cookie(u32),
    #[error("decode an HDR histogram: it is cut short")]
    Truncated,
    #[error("decode an HDR histogram: it unpacks to more than {MAX_UNPACKED} bytes")]
    TooLarge,
    #[error("decode an HDR histogram: it does not unpack ({0})")]
    Unpack(String),
    #[error("decode an HDR histogram: its counts are damaged ({0})")]
    Counts(String),
}

const V2_COOKIE: u32 = 0x1c84_9313;
const V2_DEFLATE_COOKIE: u32 = 0x1c84_9314;
/// Cookie, length, offset, digits (4 bytes each), lowest, highest, ratio (8 bytes each).
const HEADER_BYTES: usize = 40;
/// Ours need at most 34 · 1024 counts of 9 bytes; five digits up to hours need twelve times that.
const MAX_UNPACKED: usize = 4 << 20;

pub(crate) fn encode<T: Counter, S: Serializer>(
    histogram: &Histogram<T>,
    mut serializer: S,
) -> String {
    let mut bytes = Vec::new();
    let written = serializer.serialize(histogram, &mut bytes);
    debug_assert!(written.is_ok(), "counts below 2^63 into memory cannot fail");
    STANDARD.encode(bytes)
}

/// The encoding that a text holds.
pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, DecodeError> {
    STANDARD.decode(text.trim()).map_err(|error| DecodeError::Base64(error.to_string()))
}

/// The histogram in these bytes, and how many bytes it is unpacked.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Histogram<u64>, usize), DecodeError> {
    let plain = match word_at(bytes, 0)? {
        V2_COOKIE => Cow::Borrowed(bytes),
        V2_DEFLATE_COOKIE => Cow::Owned(unpack(bytes)?),
        cookie => return Err(DecodeError::Cookie(cookie)),
    };
    check_counts(&plain)?;
    let decoded = Deserializer::new().deserialize(&mut &*plain);
    Ok((decoded.map_err(|error| DecodeError::Counts(error.to_string()))?, plain.len()))
}

/// The V2 form inside the compressed one.
fn unpack(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let length = word_at(bytes, 4)? as usize;
    let packed = bytes[8..].get(..length).ok_or(DecodeError::Truncated)?;
    let mut plain = Vec::new();
    ZlibDecoder::new(packed)
        .take(MAX_UNPACKED as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| DecodeError::Unpack(error.to_string()))?;
    if plain.len() > MAX_UNPACKED {
        return Err(DecodeError::TooLarge);
    }
    match word_at(&plain, 0)? {
        V2_COOKIE => Ok(plain),
        cookie => Err(DecodeError::Cookie(cookie)),
    }
}

/// Walks the counts: zig-zag LEB128 numbers of at most nine bytes, where a negative one skips as
/// many zero counts.
fn check_counts(plain: &[u8]) -> Result<(), DecodeError> {
    let length = word_at(plain, 4)? as usize;
    let mut rest = plain
        .get(HEADER_BYTES..)
        .and_then(|counts| counts.get(..length))
        .ok_or(DecodeError::Truncated)?;
    while !rest.is_empty() {
        let (number, used) = number_at(rest).ok_or(DecodeError::Truncated)?;
        // All bits set is the zig-zag form of i64::MIN, which has no negative.
        if number == u64::MAX {
            return Err(DecodeError::Counts("a run of zeros is too long".to_string()));
        }
        rest = &rest[used..];
    }
    Ok(())
}

/// A little-endian base-128 number and how many bytes it took; the ninth byte counts in full.
fn number_at(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, &byte) in bytes.iter().take(9).enumerate() {
        let shift = 7 * index;
        if index == 8 {
            return Some((number | u64::from(byte) << shift, 9));
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

fn word_at(bytes: &[u8], offset: usize) -> Result<u32, DecodeError> {
    let word = bytes.get(offset..offset + 4).ok_or(DecodeError::Truncated)?;
    Ok(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}
