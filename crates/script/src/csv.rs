//! CSV as `COPY … (FORMAT csv, HEADER)` writes it: quotes are doubled inside quotes, an empty field without
//! quotes is NULL, lines end at a newline, a carriage return or both.

/// Mistake in a text of CSV. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum CsvError {
    #[error("line {line}: a quote is opened and not closed")]
    OpenQuote { line: usize },
    #[error("line {line}: {found} columns, but the first line names {expected}")]
    Columns { line: usize, found: usize, expected: usize },
    #[error("line {line}: a zero byte, which no text in PostgreSQL may contain")]
    Zero { line: usize },
    #[error("there is no first line, which names the columns")]
    NoHeader,
}

/// Reads records one by one.
pub(crate) struct CsvReader<'t> {
    text: &'t [u8],
    at: usize,
    /// The line on which the next record begins.
    line: usize,
}

/// One field: appended to the caller's text, unless it is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Null,
    Text,
}

impl<'t> CsvReader<'t> {
    pub(crate) fn new(text: &'t str) -> CsvReader<'t> {
        // Spreadsheets begin their files with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        CsvReader { text: text.as_bytes(), at: 0, line: 1 }
    }

    /// The line on which the next record begins.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Reads the next record: each field is appended to `out`, then told to `field` with the length of `out`.
    /// False at the end of the text.
    pub(crate) fn record(
        &mut self,
        out: &mut Vec<u8>,
        mut field: impl FnMut(Field, usize),
    ) -> Result<bool, CsvError> {
        if self.at >= self.text.len() {
            return Ok(false);
        }
        let began = self.line;
        loop {
            let is_text = self.field(out, began)?;
            field(if is_text { Field::Text } else { Field::Null }, out.len());
            match self.text.get(self.at) {
                Some(b',') => self.at += 1,
                end => {
                    let both = end == Some(&b'\r') && self.text.get(self.at + 1) == Some(&b'\n');
                    self.at += if both { 2 } else { 1 };
                    self.line += 1;
                    return Ok(true);
                }
            }
        }
    }

    /// Appends a field up to its comma, its line's end or the end of the text; false if it is NULL.
    fn field(&mut self, out: &mut Vec<u8>, began: usize) -> Result<bool, CsvError> {
        let (before, mut has_quotes) = (out.len(), false);
        loop {
            let rest = &self.text[self.at..];
            let length = rest.iter().position(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
            let length = length.unwrap_or(rest.len());
            out.extend_from_slice(&rest[..length]);
            self.at += length;
            if rest.get(length) != Some(&b'"') {
                break;
            }
            self.at += 1;
            has_quotes = true;
            self.quoted(out, began)?;
        }
        if out[before..].contains(&0) {
            return Err(CsvError::Zero { line: began });
        }
        Ok(has_quotes || out.len() > before)
    }

    /// Appends what stands between quotes.
    fn quoted(&mut self, out: &mut Vec<u8>, began: usize) -> Result<(), CsvError> {
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.iter().position(|byte| *byte == b'"') else {
                return Err(CsvError::OpenQuote { line: began });
            };
            self.line += rest[..end].iter().filter(|byte| **byte == b'\n').count();
            out.extend_from_slice(&rest[..end]);
            self.at += end + 1;
            if self.text.get(self.at) != Some(&b'"') {
                return Ok(());
            }
            out.push(b'"');
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Records = Vec<Vec<Option<String>>>;

    fn read(text: &str) -> Result<Records, CsvError> {
        let mut reader = CsvReader::new(text);
        let mut records = Records::new();
        loop {
            let (mut out, mut ends) = (Vec::new(), Vec::new());
            if !reader.record(&mut out, |field, end| ends.push((field, end)))? {
                return Ok(records);
            }
            let mut from = 0;
            let mut cell = |(field, end): (Field, usize)| {
                let text = String::from_utf8(out[std::mem::replace(&mut from, end)..end].to_vec());
                (field == Field::Text).then(|| text.expect("UTF-8"))
            };
            records.push(ends.into_iter().map(&mut cell).collect());
        }
    }

    #[test]
    fn fields_are_those_of_copy() {
        let check = |text: &str, expected: &[&[Option<&str>]]| {
            let own = |record: &&[Option<&str>]| {
                record.iter().map(|cell| cell.map(str::to_owned)).collect::<Vec<_>>()
            };
            assert_eq!(read(text), Ok(expected.iter().map(own).collect()), "{text:?}");
        };
        check("", &[]);
        check("a,b\n1,2", &[&[Some("a"), Some("b")], &[Some("1"), Some("2")]]);
        check("a\r\n1\r\n", &[&[Some("a")], &[Some("1")]]);
        check("\u{feff}a\n", &[&[Some("a")]]);
        check(",\"\"\n", &[&[None, Some("")]]);
        check("a\n\nb", &[&[Some("a")], &[None], &[Some("b")]]);
        check("\"x\"\"y\ré\n, \",'\\\n", &[&[Some("x\"y\ré\n, "), Some("'\\")]]);
        check("a\"b,\"c", &[&[Some("ab,c")]]);
    }

    #[test]
    fn mistakes_name_their_line() {
        let check = |text: &str, expected: CsvError| assert_eq!(read(text), Err(expected));
        check("a\n\"x\n\n\"\n\"open\nz", CsvError::OpenQuote { line: 5 });
        check("a\nx\0y", CsvError::Zero { line: 2 });
    }

    proptest! {
        #[test]
        fn what_copy_writes_is_read_again(
            records in prop::collection::vec(
                prop::collection::vec(prop::option::of("[a\",\n\r'\\\\é ]{0,6}"), 1..4), 1..6),
        ) {
            let field = |cell: &Option<String>| match cell {
                None => String::new(),
                Some(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            };
            let line = |record: &Vec<Option<String>>| {
                record.iter().map(field).collect::<Vec<_>>().join(",") + "\n"
            };
            let text: String = records.iter().map(line).collect();
            prop_assert_eq!(read(&text), Ok(records));
        }
    }
}
