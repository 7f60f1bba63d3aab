//! Lines of a stream that somebody else writes.

use std::io::{BufRead, BufReader, Read};

/// Bytes of a line. No request is longer: scripts and SQL of a call are a few kilobytes.
pub const LINE_MAX: usize = 1 << 20;

/// What was read next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line of more than [`LINE_MAX`] bytes; nothing of it was kept.
    TooLong,
    /// Nothing more will come.
    End,
}

/// Reads lines, and keeps at most one.
pub(crate) struct LineReader<R>(BufReader<R>);

impl<R: Read> LineReader<R> {
    pub(crate) fn new(input: R) -> LineReader<R> {
        LineReader(BufReader::new(input))
    }

    /// The next line. An error of the stream is its end: there is nobody to tell.
    pub(crate) fn next(&mut self) -> ReadLine {
        let (mut line, mut is_too_long) = (Vec::new(), false);
        loop {
            let Ok(bytes) = self.0.fill_buf() else { return ReadLine::End };
            if bytes.is_empty() {
                // The last line may lack its end.
                return match () {
                    () if is_too_long => ReadLine::TooLong,
                    () if line.is_empty() => ReadLine::End,
                    () => ReadLine::Whole(line),
                };
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            is_too_long |= line.len() + part.len() > LINE_MAX;
            match is_too_long {
                true => line = Vec::new(),
                false => line.extend_from_slice(part),
            }
            let used = part.len() + usize::from(end.is_some());
            self.0.consume(used);
            if end.is_some() {
                return if is_too_long { ReadLine::TooLong } else { ReadLine::Whole(line) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_kept_only_if_it_is_short_enough() {
        let check = |input: &[u8], expected: &[ReadLine]| {
            let mut reader = LineReader::new(input);
            let read: Vec<ReadLine> = (0..expected.len()).map(|_| reader.next()).collect();
            assert_eq!(read, expected);
        };
        let whole = |text: &[u8]| ReadLine::Whole(text.to_vec());
        check(b"a\n\nb", &[whole(b"a"), whole(b""), whole(b"b"), ReadLine::End]);
        check(b"", &[ReadLine::End, ReadLine::End]);
        let most = vec![b'x'; LINE_MAX];
        let more = [&most[..], b"y\nnext\n"].concat();
        check(&more, &[ReadLine::TooLong, whole(b"next"), ReadLine::End]);
        check(&[&most[..], b"\n"].concat(), &[whole(&most), ReadLine::End]);
        check(&more[..=LINE_MAX], &[ReadLine::TooLong, ReadLine::End]);
    }
}
