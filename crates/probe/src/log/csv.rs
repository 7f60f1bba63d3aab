//! One record of PostgreSQL's csvlog (all versions): values by position, quoted, over several
//! lines where a value has some.

use super::entry::{Entry, WallClock};

/// Positions of the columns, from 0; later versions append to them.
const LOG_TIME: usize = 0;
const SEVERITY: usize = 11;
const SQLSTATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const APPLICATION: usize = 22;
const BACKEND_TYPE: usize = 23;

/// The entry that `record`, without its line end, holds.
pub(crate) fn parse(record: &str) -> Option<Entry> {
    let mut columns = columns(record)?;
    if columns.len() <= APPLICATION {
        return None;
    }
    // Old versions have no column for the backend type.
    let mut take = |column: usize| columns.get_mut(column).map(std::mem::take).unwrap_or_default();
    Some(Entry {
        at: WallClock::parse(&take(LOG_TIME))?,
        severity: take(SEVERITY),
        sqlstate: take(SQLSTATE),
        message: take(MESSAGE),
        detail: take(DETAIL),
        application: take(APPLICATION),
        backend_type: take(BACKEND_TYPE),
    })
}

/// Position at which the first record in `bytes` ends, its line end included; none if it is not
/// complete.
pub(crate) fn record_end(bytes: &[u8]) -> Option<usize> {
    let mut quoted = false;
    let end = bytes.iter().position(|byte| {
        // A doubled quote leaves the value and enters it again at once.
        quoted ^= *byte == b'"';
        *byte == b'\n' && !quoted
    });
    Some(end? + 1)
}

fn columns(record: &str) -> Option<Vec<String>> {
    let mut columns = Vec::with_capacity(26);
    let mut rest = record.trim_end_matches(['\r', '\n']);
    loop {
        let (value, after) = match rest.strip_prefix('"') {
            Some(inside) => quoted(inside)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        columns.push(value);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return after.is_empty().then_some(columns),
        }
    }
}

/// A quoted value whose first quote is behind us, and what follows it.
fn quoted(mut rest: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        value.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "2026-11-21 23:11:33.123 UTC,\"postgres\",\"postgres\",4242,\"[local]\",\
        6561c0f5.1092,1,\"SELECT\",2026-11-21 23:11:33 UTC,3/2,0,ERROR,42703,\
        \"column \"\"x\"\" does not exist\",,,,,,\"select x,\n  1\",8,,\"psql\",\
        \"client backend\",,0\n";

    #[test]
    fn a_real_record_of_two_lines() {
        let entry = parse(REAL.trim_end()).unwrap();
        assert_eq!(
            entry,
            Entry {
                at: WallClock(1_795_302_693_123_000),
                severity: "ERROR".into(),
                sqlstate: "42703".into(),
                message: "column \"x\" does not exist".into(),
                detail: String::new(),
                application: "psql".into(),
                backend_type: "client backend".into(),
            }
        );
        assert_eq!(record_end(REAL.as_bytes()), Some(REAL.len()));
        assert_eq!(record_end(&REAL.as_bytes()[..REAL.len() - 1]), None);
    }

    #[test]
    fn a_record_cut_before_its_application_gives_nothing() {
        let enough = REAL.find("\"psql\"").unwrap();
        for end in 0..enough {
            assert_eq!(parse(&REAL[..end]), None, "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn values_come_through(values in proptest::collection::vec(".{0,10}|[\",\n]{1,5}", 1..30)) {
            let quoted: Vec<_> =
                values.iter().map(|v| format!("\"{}\"", v.replace('"', "\"\""))).collect();
            let record = quoted.join(",");
            prop_assert_eq!(columns(&record), Some(values));
            let line = format!("{record}\n");
            prop_assert_eq!(record_end(line.as_bytes()), Some(line.len()));
        }

        #[test]
        fn no_record_makes_it_panic(text in ".{0,80}", at in 0..REAL.len(), junk in ".{0,3}") {
            let _ = parse(&text);
            let _ = parse(&format!("{}{junk}{}", &REAL[..at], &REAL[at..]));
        }
    }
}
