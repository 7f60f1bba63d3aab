//! Finding messages in what a server sent: a type byte, a length, a body.
//!
//! This is the hot path: an engine that only counts looks at the type byte of each frame and at
//! the bodies of few, so nothing here looks into a body.

use crate::ProtocolError;

/// Bytes before the body: the type and the length word.
pub const HEADER_BYTES: usize = 5;

/// One whole message, borrowed from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageFrame<'a> {
    /// The message type, such as `b'Z'`.
    pub tag: u8,
    /// Everything after the length word.
    pub body: &'a [u8],
}

impl MessageFrame<'_> {
    /// Number of bytes of the input that this frame took, its header included.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }
}

/// The frame at the start of `input`, or `None` when it has not arrived whole.
///
/// A length that this kind of message cannot have is refused as soon as the header is there, so a
/// caller that grows its buffer until a frame fits never grows it for garbage.
#[inline]
pub fn next(input: &[u8]) -> Result<Option<MessageFrame<'_>>, ProtocolError> {
    let Some((&[tag, l0, l1, l2, l3], rest)) = input.split_first_chunk::<HEADER_BYTES>() else {
        return match input.first() {
            Some(&tag) if BODY_BYTES_LIMIT[tag as usize].is_none() => Err(unknown(tag)),
            _ => Ok(None),
        };
    };
    let body_bytes = body_bytes(tag, u32::from_be_bytes([l0, l1, l2, l3]))?;
    Ok(rest.get(..body_bytes).map(|body| MessageFrame { tag, body }))
}

/// The type and the whole length in bytes of the frame at the start of `input`, as soon as its header
/// is there. [`next`] has found the length possible.
pub fn header(input: &[u8]) -> Option<(u8, usize)> {
    let (&[tag, l0, l1, l2, l3], _) = input.split_first_chunk::<HEADER_BYTES>()?;
    let length = u32::from_be_bytes([l0, l1, l2, l3]);
    Some((tag, HEADER_BYTES + (length as usize).saturating_sub(4)))
}

#[inline]
fn body_bytes(tag: u8, length: u32) -> Result<usize, ProtocolError> {
    let Some((least, most)) = BODY_BYTES_LIMIT[tag as usize] else {
        return Err(unknown(tag));
    };
    let body_bytes = length.wrapping_sub(4);
    if body_bytes < least || body_bytes > most {
        return Err(ProtocolError::Length { tag, length });
    }
    Ok(body_bytes as usize)
}

#[cold]
fn unknown(tag: u8) -> ProtocolError {
    ProtocolError::UnknownTag { tag }
}

/// The largest body of messages that carry data: the server cannot build one above 1 GiB
/// (`MaxAllocSize` in PostgreSQL's memutils.h).
const LARGE: u32 = 0x3fff_ffff;

/// The largest body of all others; libpq takes the same bound as the mark of lost synchrony.
const SMALL: u32 = 30_000;

/// The least and the most bytes that a body may have, by message type; `None` where the type does
/// not exist.
const BODY_BYTES_LIMIT: [Option<(u32, u32)>; 256] = {
    let mut limit = [None; 256];
    let large = [b'D', b'd', b'E', b'N', b'A', b'T', b't', b'V'];
    let small = [b'C', b'S', b'R', b'v', b'G', b'H', b'W'];
    let empty = [b'1', b'2', b'3', b'n', b's', b'I', b'c'];
    let mut at = 0;
    while at < large.len() {
        limit[large[at] as usize] = Some((0, LARGE));
        at += 1;
    }
    at = 0;
    while at < small.len() {
        limit[small[at] as usize] = Some((0, SMALL));
        at += 1;
    }
    at = 0;
    while at < empty.len() {
        limit[empty[at] as usize] = Some((0, 0));
        at += 1;
    }
    limit[b'Z' as usize] = Some((1, 1));
    // A process id, then a cancel key of 4 to 256 bytes.
    limit[b'K' as usize] = Some((8, 260));
    limit
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_frames_only() {
        let input = b"Z\0\0\0\x05IC\0\0\0\x0dSELECT 1\0";
        let first = next(input).unwrap().unwrap();
        assert_eq!(first, MessageFrame { tag: b'Z', body: b"I" });
        let second = &input[first.total_bytes()..];
        assert_eq!(next(second).unwrap().unwrap().body, b"SELECT 1\0");
        for cut in 0..second.len() {
            assert_eq!(next(&second[..cut]), Ok(None), "{cut} bytes");
        }
    }

    #[test]
    fn absurd_lengths_are_refused_before_they_arrive() {
        let check = |input: &[u8], expected: &str| {
            let message = next(input).unwrap_err().to_string();
            let message = message.strip_prefix("the server sent a ").unwrap();
            assert_eq!(message.trim_end_matches(", which cannot be"), expected);
        };
        check(b"D\0\0\0\x03", "DataRow message (\"D\") that claims 3 bytes");
        check(
            b"HTTP/1.1 400 Bad Request",
            "CopyOutResponse message (\"H\") that claims 1414811695 bytes",
        );
        check(
            b"SSH-2.0-OpenSSH_9.2",
            "ParameterStatus message (\"S\") that claims 1397239090 bytes",
        );
        check(b"Z\0\0\0\x06", "ReadyForQuery message (\"Z\") that claims 6 bytes");
        check(b"K\0\0\x01\x09", "BackendKeyData message (\"K\") that claims 265 bytes");
        check(b"\x15", "message of unknown type 0x15");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_frame_inside_the_input(input: Vec<u8>) {
            if let Ok(Some(frame)) = next(&input) {
                prop_assert!(frame.total_bytes() <= input.len());
                prop_assert_eq!(frame.body, &input[HEADER_BYTES..frame.total_bytes()]);
            }
        }
    }
}
