//! Query, with its text written in place.

use super::message::Builder;
use super::{EncodeError, tag};

/// A simple query under construction. Dropped unfinished, it leaves nothing in the buffer.
pub struct QueryMessage<'a> {
    message: Builder<'a>,
    text_at: usize,
}

impl<'a> QueryMessage<'a> {
    /// Begins a message at the end of `out`.
    #[inline]
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        let mut message = Builder::begin(out, "Query", tag::QUERY);
        let text_at = message.out().len();
        Self { message, text_at }
    }

    /// The buffer, to append SQL to. What stands in it already must stay.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        self.message.out()
    }

    /// Completes the message.
    #[inline]
    pub fn finish(mut self) -> Result<(), EncodeError> {
        self.message.end_text("query", self.text_at)?;
        self.message.finish()
    }
}
