//! Reading a message body from the front, without ever running past its end.

use crate::ProtocolError;

/// The rest of a message body, and the message type for errors.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    tag: u8,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tag: u8, body: &'a [u8]) -> Self {
        Self { rest: body, tag }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn malformed(&self, reason: &'static str) -> ProtocolError {
        ProtocolError::Malformed { tag: self.tag, reason }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.malformed("it ends too early"));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.malformed("it ends too early"));
        };
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ProtocolError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, ProtocolError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ProtocolError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, ProtocolError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.array().map(u32::from_be_bytes)
    }

    /// The bytes before the next NUL, which is consumed too.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], ProtocolError> {
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(self.malformed("a string in it has no end"));
        };
        let taken = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(taken)
    }

    /// A column value: a length, then so many bytes; −1 is NULL.
    pub(crate) fn value(&mut self) -> Result<Option<&'a [u8]>, ProtocolError> {
        match self.i32()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.bytes(length).map(Some),
                Err(_) => Err(self.malformed("a value in it has a negative length")),
            },
        }
    }

    pub(crate) fn end(&self) -> Result<(), ProtocolError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed("it has bytes left over")) }
    }
}
