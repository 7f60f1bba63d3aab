//! Bind, with its parameters written in place.

use super::message::Builder;
use super::{EncodeError, tag};

/// A Bind under construction: text parameters, text results. Dropped unfinished, it leaves
/// nothing in the buffer.
pub struct BindMessage<'a> {
    message: Builder<'a>,
    /// Position of the number of parameters.
    count_at: usize,
    count: u32,
}

impl<'a> BindMessage<'a> {
    /// Begins a message at the end of `out`.
    #[inline]
    pub fn begin(
        out: &'a mut Vec<u8>,
        portal: &[u8],
        statement: &[u8],
    ) -> Result<Self, EncodeError> {
        let mut message = Builder::begin(out, "Bind", tag::BIND);
        message.text("portal name", portal)?;
        message.text("statement name", statement)?;
        // No format codes: every parameter is text. Then the number of parameters.
        message.bytes(&[0; 4]);
        let count_at = message.out().len() - 2;
        Ok(Self { message, count_at, count: 0 })
    }

    /// The next parameter.
    #[inline]
    pub fn parameter(&mut self, value: &[u8]) {
        self.parameter_with(|text| text.extend_from_slice(value));
    }

    /// The next parameter is NULL.
    #[inline]
    pub fn null(&mut self) {
        self.count += 1;
        self.message.bytes(&(-1i32).to_be_bytes());
    }

    /// The next parameter is what `write` appends; what stands in the buffer already must stay.
    #[inline]
    pub fn parameter_with<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.count += 1;
        self.message.bytes(&[0; 4]);
        let out = self.message.out();
        let begin = out.len();
        let written = write(out);
        // A value above 4 GiB wraps here, but then the whole message is refused in `finish`.
        let length = (out.len() - begin) as u32;
        out[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
        written
    }

    /// Completes the message.
    ///
    /// # Errors
    /// More than 65535 parameters, or too long.
    #[inline]
    pub fn finish(mut self) -> Result<(), EncodeError> {
        let count = u16::try_from(self.count).map_err(|_| EncodeError::TooManyParameters)?;
        let count_at = self.count_at;
        self.message.out()[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
        // One result format for all columns, text: what libpq says too.
        self.message.bytes(&[0, 1, 0, 0]);
        self.message.finish()
    }
}
