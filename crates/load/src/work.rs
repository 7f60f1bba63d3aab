//! The work that the statements of a load did, as the server's answers tell: the rows that they changed and
//! returned. Two servers that are given the same statements are compared by it before their speeds are.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wire::backend::{DataRow, RowDescription};

/// What a load notes of the work that its statements do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkRecord {
    /// Nothing.
    #[default]
    Nothing,
    /// How often each statement had which tag.
    Tags,
    /// That, and each answer by itself, in order, with a digest of its rows. It is for a workload of one client.
    Answers,
}

/// The work of one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadWork {
    /// One entry a statement that was answered.
    pub statements: Vec<StatementWork>,
    /// Each answer in order, where they were asked for.
    pub answers: Vec<StatementAnswer>,
}

/// The place of a statement in the scripts of its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementPlace {
    /// Index of the script.
    pub script: usize,
    /// Index of the command within it; of the command that ends the pipeline, in a pipeline.
    pub command: usize,
    /// Index of the statement within the command: a command of the simple protocol may hold several.
    pub statement: usize,
}

/// The tags of one statement's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementWork {
    /// The statement.
    pub place: StatementPlace,
    /// How often it had which tag, as `UPDATE 1`, the first one first.
    pub tags: Vec<(String, u64)>,
    /// Answers with still other tags, and the rows of these.
    pub others: (u64, u64),
}

impl StatementWork {
    /// Answers.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.tags.iter().map(|(_, count)| count).sum::<u64>() + self.others.0
    }

    /// Rows that the tags count.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let counted = self.tags.iter().map(|(tag, count)| rows_of_tag(tag.as_bytes()) * count);
        counted.sum::<u64>() + self.others.1
    }

    /// The only tag that it had; none where it had several.
    #[must_use]
    pub fn only_tag(&self) -> Option<&str> {
        match &self.tags[..] {
            [(tag, _)] if self.others.0 == 0 => Some(tag),
            _ => None,
        }
    }

    /// Adds what the same statement did elsewhere.
    fn add(&mut self, other: &StatementWork) {
        for (tag, count) in &other.tags {
            self.count(tag, *count);
        }
        self.others = (self.others.0 + other.others.0, self.others.1 + other.others.1);
    }

    fn count(&mut self, tag: &str, count: u64) {
        let has_room = self.tags.len() < TAGS_MAX;
        match self.tags.iter_mut().find(|(known, _)| known == tag) {
            Some((_, known)) => *known += count,
            None if has_room => self.tags.push((tag.to_owned(), count)),
            None => {
                let rows = rows_of_tag(tag.as_bytes()) * count;
                self.others = (self.others.0 + count, self.others.1 + rows);
            }
        }
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementAnswer {
    /// The statement.
    pub place: StatementPlace,
    /// The tag.
    pub tag: String,
    /// A digest of its rows, whatever their order; 0 without rows.
    pub digest: u64,
}

impl WorkloadWork {
    /// The same of a workload that had only one script of another one, with that script's index there.
    #[must_use]
    pub fn in_script(mut self, script: usize) -> WorkloadWork {
        let places = self.statements.iter_mut().map(|one| &mut one.place);
        places
            .chain(self.answers.iter_mut().map(|one| &mut one.place))
            .for_each(|place| place.script = script);
        self
    }

    /// Adds what other lanes did for the same workload.
    pub fn add(&mut self, other: WorkloadWork) {
        for work in other.statements {
            match self.statements.iter_mut().find(|known| known.place == work.place) {
                Some(known) => known.add(&work),
                None => self.statements.push(work),
            }
        }
        self.answers.extend(other.answers);
    }
}

/// Tags of a statement that are told apart. A script of which a statement has more does not always do the same.
const TAGS_MAX: usize = 16;

/// The work of one workload in one lane, under way.
#[derive(Default)]
pub(crate) struct WorkLog {
    has_answers: bool,
    work: WorkloadWork,
    /// Index of each statement's entry.
    entries: HashMap<StatementPlace, usize>,
    /// The entry that comes next where statements are executed in the order of the time before.
    expected: usize,
    /// The answer that is arriving.
    rows: RowDigest,
}

/// A digest of the rows of an answer.
#[derive(Default)]
struct RowDigest {
    sum: u64,
    /// The columns that hold binary floating-point numbers.
    floats: Vec<bool>,
}

impl WorkLog {
    /// A log, where one is asked for.
    pub(crate) fn of(record: WorkRecord) -> Option<WorkLog> {
        let has_answers = record == WorkRecord::Answers;
        (record != WorkRecord::Nothing).then(|| WorkLog { has_answers, ..WorkLog::default() })
    }

    /// True if rows are looked at.
    pub(crate) fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// An answer with rows begins.
    pub(crate) fn begin_rows(&mut self, rows: &RowDescription<'_>) {
        let floats = rows.fields().map(|field| matches!(field.type_oid, FLOAT4 | FLOAT8)).collect();
        self.rows = RowDigest { sum: 0, floats };
    }

    /// A row of it.
    pub(crate) fn add_row(&mut self, row: &DataRow<'_>) {
        let mut hash = Fnv::new();
        for (value, is_float) in
            row.columns().zip(self.rows.floats.iter().copied().chain(std::iter::repeat(false)))
        {
            match value {
                None => hash.add(&[0]),
                Some(value) => {
                    hash.add(&[1]);
                    match rounded(value).filter(|_| is_float) {
                        Some(rounded) => hash.add(rounded.as_bytes()),
                        None => hash.add(value),
                    }
                }
            }
        }
        self.rows.sum = self.rows.sum.wrapping_add(hash.0 | 1);
    }

    /// A row that is too large to be kept: its length counts.
    pub(crate) fn skip_row(&mut self, bytes: usize) {
        let mut hash = Fnv::new();
        hash.add(&bytes.to_be_bytes());
        self.rows.sum = self.rows.sum.wrapping_add(hash.0 | 1);
    }

    /// An answer is complete.
    pub(crate) fn complete(&mut self, place: StatementPlace, tag: &[u8]) {
        let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
        let statements = &mut self.work.statements;
        let entry = match statements.get(self.expected).filter(|known| known.place == place) {
            Some(_) => self.expected,
            None => *self.entries.entry(place).or_insert_with(|| {
                statements.push(StatementWork { place, tags: Vec::new(), others: (0, 0) });
                statements.len() - 1
            }),
        };
        self.expected = if entry + 1 < statements.len() { entry + 1 } else { 0 };
        let work = &mut statements[entry];
        match work.tags.first_mut().filter(|(known, _)| known.as_bytes() == tag) {
            Some((_, count)) => *count += 1,
            None => work.count(&String::from_utf8_lossy(tag), 1),
        }
        if self.has_answers {
            let digest = std::mem::take(&mut self.rows).sum;
            let tag = String::from_utf8_lossy(tag).into_owned();
            self.work.answers.push(StatementAnswer { place, tag, digest });
        }
    }

    /// The whole log.
    pub(crate) fn into_work(self) -> WorkloadWork {
        self.work
    }
}

/// Types `real` and `double precision`.
const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;

/// A floating-point number to six digits: parallel workers add in an order of their own.
fn rounded(value: &[u8]) -> Option<String> {
    let number: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    Some(format!("{number:.5e}"))
}

/// The hash of Fowler, Noll and Vo (FNV-1a, 64 bits).
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The number of rows in the tag of a command: `SELECT 3`, `INSERT 0 1`. None is 0.
pub(crate) fn rows_of_tag(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
    let word = tag.rsplit(|byte| *byte == b' ').next().expect("even an empty tag is one piece");
    // A tag without a number, such as that of CREATE TABLE, counts no rows.
    std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(command: usize) -> StatementPlace {
        StatementPlace { script: 0, command, statement: 0 }
    }

    #[test]
    fn tags_are_counted_by_statement_and_over_lanes() {
        let mut logs = [WorkRecord::Tags, WorkRecord::Tags].map(|one| WorkLog::of(one).unwrap());
        for tag in ["UPDATE 1\0", "UPDATE 1\0", "UPDATE 0\0"] {
            logs[0].complete(place(1), tag.as_bytes());
        }
        logs[1].complete(place(1), b"UPDATE 0\0");
        logs[1].complete(place(2), b"INSERT 0 1\0");
        let [mut all, other] = logs.map(WorkLog::into_work);
        all.add(other);
        let [update, insert] = &all.statements[..] else { panic!("{all:?}") };
        assert_eq!(update.tags, [("UPDATE 1".to_owned(), 2), ("UPDATE 0".to_owned(), 2)]);
        assert_eq!((update.executions(), update.rows(), update.only_tag()), (4, 2, None));
        assert_eq!((insert.rows(), insert.only_tag()), (1, Some("INSERT 0 1")));
        assert!(all.answers.is_empty());
    }

    #[test]
    fn many_tags_keep_their_rows() {
        let mut log = WorkLog::of(WorkRecord::Tags).unwrap();
        for rows in 1..=100_u64 {
            log.complete(place(0), format!("SELECT {rows}\0").as_bytes());
        }
        let work = &log.into_work().statements[0];
        assert_eq!((work.tags.len(), work.executions(), work.rows()), (TAGS_MAX, 100, 5_050));
    }

    #[test]
    fn a_number_is_rounded_and_a_text_is_none() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(rounded(text.as_bytes()).as_deref(), expected, "{text}");
        };
        check("0.30000000000000004", Some("3.00000e-1"));
        check("0.3", Some("3.00000e-1"));
        check("x", None);
    }
}
