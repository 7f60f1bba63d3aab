//! csvlog: records with 23 fields or more, by their places in the manual of PostgreSQL 13 and later.

use super::{LogEntry, moment};

/// True if a record that begins with these lines goes on: a quote is open.
pub(crate) fn csv_record_is_open(text: &str) -> bool {
    text.bytes().filter(|b| *b == b'"').count() % 2 == 1
}

/// The entry of a record; nothing if it is none.
pub(crate) fn csv_entry(record: &str) -> Option<LogEntry> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(record.as_bytes());
    let mut fields = csv::StringRecord::new();
    let is_read = reader.read_record(&mut fields).ok()?;
    if !is_read || fields.len() < 23 {
        return None;
    }
    let field = |at: usize| fields.get(at).unwrap_or("").to_owned();
    Some(LogEntry {
        at: Some(moment(&field(0))?),
        role: field(1),
        database: field(2),
        session: field(5),
        transaction: field(9),
        severity: field(11),
        message: field(13),
        detail: field(14),
        application: field(22),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_by_their_places() {
        let record = "2026-03-01 09:00:00.123 UTC,\"app\",\"shop\",77,\"[local]\",65e1.4d,3,\"SELECT\",2026-03-01 08:00:00 UTC,3/17,0,LOG,00000,\
                      \"duration: 0.5 ms  statement: select \"\"a\"\"\nfrom t\",\"parameters: $1 = 'x'\",,,,,,,,\"psql\",\"client backend\",,0";
        let entry = csv_entry(record).expect("an entry");
        assert_eq!(entry.message, "duration: 0.5 ms  statement: select \"a\"\nfrom t");
        assert_eq!(
            (entry.detail.as_str(), entry.transaction.as_str()),
            ("parameters: $1 = 'x'", "3/17")
        );
        assert_eq!((entry.application.as_str(), entry.session.as_str()), ("psql", "65e1.4d"));
        assert!(!csv_record_is_open(record));
        assert!(csv_record_is_open("2026,\"a"));
        assert_eq!(csv_entry("a,b,c"), None);
    }
}
