//! Rows that scripts draw from: read once, shared by all sessions, and never copied.

use crate::csv::{CsvError, CsvReader, Field};

/// The rows of a file or of a query's result, in order: one text, and where each cell ends in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowTable {
    columns: Box<[Box<str>]>,
    text: Box<[u8]>,
    /// Row by row; the highest bit marks a NULL.
    ends: Box<[u32]>,
}

/// A text of CSV that is no table of rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum RowTableError {
    #[error(transparent)]
    Csv(#[from] CsvError),
    #[error("more than {ROWS_MAX} rows")]
    TooManyRows,
    #[error("more than {} MiB", ROW_BYTES_MAX >> 20)]
    TooManyBytes,
}

/// Most rows that a script draws from.
pub const ROWS_MAX: usize = 1_000_000;
/// Most bytes that they take, in memory and as CSV.
pub const ROW_BYTES_MAX: usize = 256 << 20;

const NULL: u32 = 1 << 31;

impl RowTable {
    /// Reads CSV whose first line names the columns, as [`crate::CsvError`] and COPY understand it.
    ///
    /// # Errors
    /// CSV that is malformed, or too much of it. No rows are no error here.
    pub fn from_csv(text: &str) -> Result<RowTable, RowTableError> {
        if text.len() > ROW_BYTES_MAX {
            return Err(RowTableError::TooManyBytes);
        }
        let mut reader = CsvReader::new(text);
        let (mut names, mut name_ends) = (Vec::new(), Vec::new());
        if !reader.record(&mut names, |_, end| name_ends.push(end))? {
            return Err(CsvError::NoHeader.into());
        }
        let mut from = 0;
        let mut name = |end: usize| {
            let name = &names[std::mem::replace(&mut from, end)..end];
            String::from_utf8_lossy(name).trim().into()
        };
        let columns: Box<[Box<str>]> = name_ends.into_iter().map(&mut name).collect();
        let (mut cells, mut ends) = (Vec::new(), Vec::new());
        loop {
            let (line, before) = (reader.line(), ends.len());
            let cell = |field, end: usize| {
                let null = if field == Field::Null { NULL } else { 0 };
                // The text is below 2^31 bytes.
                ends.push(end as u32 | null);
            };
            if !reader.record(&mut cells, cell)? {
                break;
            }
            let (found, expected) = (ends.len() - before, columns.len());
            if found != expected {
                return Err(CsvError::Columns { line, found, expected }.into());
            }
            if ends.len() / columns.len() > ROWS_MAX {
                return Err(RowTableError::TooManyRows);
            }
            if cells.len() + ends.len() * size_of::<u32>() > ROW_BYTES_MAX {
                return Err(RowTableError::TooManyBytes);
            }
        }
        Ok(RowTable { columns, text: cells.into(), ends: ends.into() })
    }

    /// The names of its columns.
    pub fn columns(&self) -> &[Box<str>] {
        &self.columns
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len() / self.columns.len()
    }

    /// True if it has no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A cell's text; none for NULL.
    pub fn cell(&self, row: usize, column: usize) -> Option<&[u8]> {
        self.cell_at(self.place(row, column))
    }

    /// The number of a cell, counted row by row.
    pub(crate) fn place(&self, row: usize, column: usize) -> u32 {
        // There are fewer than 2^26.
        (row * self.columns.len() + column) as u32
    }

    pub(crate) fn cell_at(&self, place: u32) -> Option<&[u8]> {
        let place = place as usize;
        let end = *self.ends.get(place)?;
        // The first cell begins with the text.
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before] & !NULL);
        (end & NULL == 0).then(|| &self.text[begin as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_row_and_column() {
        let table = RowTable::from_csv("id,name\n1,\"\"\n2,\n,\"it's\"\n").unwrap();
        assert_eq!((table.len(), &*table.columns()[1]), (3, "name"));
        let cells = [[Some(&b"1"[..]), Some(b"")], [Some(b"2"), None], [None, Some(b"it's")]];
        for (row, expected) in cells.into_iter().enumerate() {
            assert_eq!([table.cell(row, 0), table.cell(row, 1)], expected);
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let check = |text: &str, expected: &str| {
            assert_eq!(RowTable::from_csv(text).unwrap_err().to_string(), expected);
        };
        check("", "there is no first line, which names the columns");
        check("a,b\n1,2\n3\n", "line 3: 1 columns, but the first line names 2");
        check("a\n\"x\ny\"\n1,2\n", "line 4: 2 columns, but the first line names 1");
        check(&format!("a\n{}", "1\n".repeat(ROWS_MAX + 1)), "more than 1000000 rows");
        assert!(RowTable::from_csv("a\n").unwrap().is_empty());
    }
}
