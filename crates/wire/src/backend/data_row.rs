//! DataRow: the values of one row.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// One row: as many values as the RowDescription before it has fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRow<'a> {
    columns: u16,
    values: &'a [u8],
}

impl<'a> DataRow<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let columns = body.u16()?;
        let values = body.rest();
        for _ in 0..columns {
            body.value()?;
        }
        Ok(Self { columns, values })
    }

    /// The values from left to right; `None` is NULL.
    pub fn columns(&self) -> RowColumns<'a> {
        RowColumns { left: self.columns, rest: self.values }
    }
}

/// The values of one row, from left to right.
#[derive(Debug, Clone)]
pub struct RowColumns<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Iterator for RowColumns<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        // The row was checked as a whole when it was parsed, so this reading does not fail.
        let mut cursor = Cursor::new(super::tag::DATA_ROW, self.rest);
        let value = cursor.value().ok()?;
        self.rest = cursor.rest();
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for RowColumns<'_> {}
