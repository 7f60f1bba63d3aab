//! RowDescription: the columns of the rows that follow.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// The columns of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDescription<'a> {
    count: u16,
    fields: &'a [u8],
}

impl<'a> RowDescription<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let count = body.u16()?;
        let fields = body.rest();
        for _ in 0..count {
            ResultField::parse(body)?;
        }
        Ok(Self { count, fields })
    }

    /// The columns from left to right.
    pub fn fields(&self) -> ResultFields<'a> {
        ResultFields { left: self.count, rest: self.fields }
    }

    /// The columns' names from left to right.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.fields().map(|field| field.name)
    }
}

/// One column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultField<'a> {
    /// The name, in the client encoding.
    pub name: &'a [u8],
    /// The table it comes from, or 0.
    pub table_oid: u32,
    /// The number of the column in that table, or 0.
    pub column: i16,
    /// The type.
    pub type_oid: u32,
    /// The type's size in bytes; negative where it varies.
    pub type_size: i16,
    /// The type modifier, such as the n of varchar(n), or −1.
    pub type_modifier: i32,
    /// 0 for text, 1 for binary.
    pub format: i16,
}

impl<'a> ResultField<'a> {
    fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        Ok(Self {
            name: body.text()?,
            table_oid: body.u32()?,
            column: body.i16()?,
            type_oid: body.u32()?,
            type_size: body.i16()?,
            type_modifier: body.i32()?,
            format: body.i16()?,
        })
    }
}

/// The columns of a result, from left to right.
#[derive(Debug, Clone)]
pub struct ResultFields<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Iterator for ResultFields<'a> {
    type Item = ResultField<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        // The description was checked as a whole when it was parsed, so this does not fail.
        let mut cursor = Cursor::new(super::tag::ROW_DESCRIPTION, self.rest);
        let field = ResultField::parse(&mut cursor).ok()?;
        self.rest = cursor.rest();
        Some(field)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for ResultFields<'_> {}
