//! A meta-command's words.

use std::ops::Range;

use crate::expr::token::{continuation, is_blank, run, skip_blanks};

/// Splits the rest of a line at white space. A backslash before the newline continues the line.
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    text: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a [u8], at: usize) -> Words<'a> {
        Words { text, at }
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    /// The next word; `None` behind the newline.
    fn next(&mut self) -> Option<Range<usize>> {
        let start = skip_blanks(self.text, self.at);
        let rest = &self.text[start..];
        let length = run(rest, |byte| byte != b'\n' && !is_blank(byte));
        if length == 0 {
            self.at = (start + 1).min(self.text.len());
            return None;
        }
        // `word\` at the end of a line is `word` and a continuation.
        let last = length - 1;
        let continued = continuation(&rest[last..]);
        if last > 0 && continued > 0 {
            self.at = start + last + continued;
            return Some(start..start + last);
        }
        self.at = start + length;
        Some(start..start + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_white_space_up_to_the_newline() {
        let check = |text: &str, expected: &[&str], rest: &str| {
            let mut words = Words::new(text.as_bytes(), 0);
            let found: Vec<&str> = words.by_ref().map(|range| &text[range]).collect();
            assert_eq!(found, expected, "{text:?}");
            assert_eq!(&text[words.at..], rest);
        };
        check("set  x\t1\nnext", &["set", "x", "1"], "next");
        check("sleep 1\\\n ms", &["sleep", "1", "ms"], "");
        check("sleep \\\r\n1\n", &["sleep", "1"], "");
        check("a\\b \\\\\nc", &["a\\b", "\\", "c"], "");
        check("", &[], "");
    }
}
