//! A message under construction: the type byte is written, the length follows at the end.

use super::EncodeError;

/// The longest body that a server takes (`PQ_LARGE_MESSAGE_LIMIT`: 1 GiB − 2).
const LONGEST_BODY: usize = 0x3fff_fffe;

/// A message that is being appended to a buffer. Unless it is finished, dropping it takes back
/// what was appended, so that an early return leaves no half message behind.
pub(super) struct Builder<'a> {
    out: &'a mut Vec<u8>,
    /// Position of the length word.
    length_at: usize,
    /// Position at which the message begins, and the buffer ends if this is dropped unfinished.
    begin: usize,
    name: &'static str,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Open,
    Finished,
}

impl<'a> Builder<'a> {
    #[inline]
    pub(super) fn begin(out: &'a mut Vec<u8>, name: &'static str, tag: u8) -> Self {
        let begin = out.len();
        out.extend_from_slice(&[tag, 0, 0, 0, 0]);
        Self { out, length_at: begin + 1, begin, name, state: State::Open }
    }

    /// A message of the time before a session exists: it has no type byte.
    pub(super) fn begin_untagged(out: &'a mut Vec<u8>, name: &'static str) -> Self {
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        Self { out, length_at: begin, begin, name, state: State::Open }
    }

    #[inline]
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A string and its closing NUL; `what` names it in the error.
    #[inline]
    pub(super) fn text(&mut self, what: &'static str, text: &[u8]) -> Result<(), EncodeError> {
        if text.contains(&0) {
            return Err(EncodeError::Nul(what));
        }
        self.out.extend_from_slice(text);
        self.out.push(0);
        Ok(())
    }

    /// Closes a string that was written in place from `begin` on.
    #[inline]
    pub(super) fn end_text(&mut self, what: &'static str, begin: usize) -> Result<(), EncodeError> {
        if self.out[begin..].contains(&0) {
            return Err(EncodeError::Nul(what));
        }
        self.out.push(0);
        Ok(())
    }

    #[inline]
    pub(super) fn finish(mut self) -> Result<(), EncodeError> {
        let length = self.out.len() - self.length_at;
        if length - 4 > LONGEST_BODY {
            return Err(EncodeError::TooLong(self.name));
        }
        let word = (length as u32).to_be_bytes();
        self.out[self.length_at..self.length_at + 4].copy_from_slice(&word);
        self.state = State::Finished;
        Ok(())
    }
}

impl Drop for Builder<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.state == State::Open {
            self.out.truncate(self.begin);
        }
    }
}
