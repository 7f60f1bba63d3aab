//! Inputs for fuzz targets: what servers, poolers and samplers on hosts have written.

use record::Moment;

use crate::log::{Chronicle, csv, json};
use crate::pooler::{Row, pools, stats};

/// Reads a server's log, as jsonlog and as csvlog, into marks.
pub fn log(text: &str) {
    let mut chronicle = Chronicle::of("node", "probe");
    let mut rest = text.as_bytes();
    while let Some(end) = csv::record_end(rest) {
        let record = String::from_utf8_lossy(&rest[..end]);
        if let Some(entry) = csv::parse(&record) {
            chronicle.take(Moment(1), &entry);
        }
        rest = &rest[end..];
    }
    for (line, second) in text.lines().zip(0..) {
        if let Some(entry) = json::parse(line) {
            chronicle.take(Moment(second * 1_000_000_000), &entry);
        }
    }
    let _ = chronicle.take_takeovers();
    let _ = chronicle.finish(Moment(u64::MAX));
}

/// Reads rows of a pooler's console: `column=value` words in lines.
pub fn console(text: &str) {
    let row = |line: &str| -> Row {
        let words = line.split(' ').filter_map(|word| word.split_once('='));
        words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let rows: Vec<Row> = text.lines().map(row).collect();
    let rows: Vec<Row> = rows.into_iter().filter(|row| row.contains_key("database")).collect();
    let _ = pools(&rows);
    let _ = stats(&rows);
}

/// Reads lines of a sampler.
pub fn sampler(text: &str) {
    crate::remote::read_answers(text);
}
