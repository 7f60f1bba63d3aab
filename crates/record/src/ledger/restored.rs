//! The rows of a server that was restored to a moment, held to the ledger.
//!
//! A transaction commits between its intent and its acknowledgement, and the moment lies between two
//! bounds. So a transaction that was acknowledged by the first bound must be there, one that was sent
//! after the second must not be there, and of the others nobody but the server knows.

use std::collections::BTreeSet;

use super::check::{LedgerRow, LedgerRows, check_unless};
use super::entry::ReadRow;
use super::{Ledger, LedgerOutcome, LedgerTransaction};
use crate::Moment;

/// A moment on the run's clock that is known between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedMoment {
    /// It was not before that.
    pub earliest: Moment,
    /// It was not after that.
    pub latest: Moment,
}

impl BoundedMoment {
    /// Nanoseconds between the bounds.
    pub fn width_ns(&self) -> u64 {
        self.latest.since(self.earliest)
    }
}

/// The fate of the transactions of a ledger on a server that was restored to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredFindings {
    /// Transactions that were acknowledged before the moment.
    pub required: u64,
    /// How many of them are missing.
    pub lost: u64,
    /// Transactions that are there although they were sent after the moment.
    pub late: u64,
    /// Rows that nobody wrote, that stand there twice, that were changed, or whose transaction failed; clients
    /// whose two tables end with different transactions.
    pub invented: u64,
    /// Transactions that were sent before the moment, and not acknowledged by then.
    pub undecided: u64,
    /// How many of them are there.
    pub undecided_present: u64,
    /// Acknowledged transactions that are missing although one that was sent after their acknowledgement is
    /// there. This needs no clock but that of the clients.
    pub out_of_order: u64,
    /// Clients whose entries are not all there.
    pub unjudged: u64,
    /// The first of the undecided ones, in the order of their intents.
    pub named: Vec<UndecidedTransaction>,
    /// The first anomalies, in words.
    pub examples: Vec<String>,
}

/// A transaction that may be there, and may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndecidedTransaction {
    /// The client and its number.
    pub of: ReadRow,
    /// Time at which it was about to be sent.
    pub intended: Moment,
    /// True if its rows are there.
    pub is_present: bool,
}

impl RestoredFindings {
    /// Undecided transactions and anomalies of a kind that are named.
    pub const NAMED: usize = 20;

    /// True if nothing is missing that must be there, and nothing is there that must not be.
    pub fn is_as_of_moment(&self) -> bool {
        self.lost + self.late + self.invented + self.out_of_order == 0
    }

    /// Adds the findings about other clients.
    pub fn merge(&mut self, other: RestoredFindings) {
        self.required += other.required;
        self.lost += other.lost;
        self.late += other.late;
        self.invented += other.invented;
        self.undecided += other.undecided;
        self.undecided_present += other.undecided_present;
        self.out_of_order += other.out_of_order;
        self.unjudged += other.unjudged;
        self.named.extend(other.named);
        self.named.truncate(RestoredFindings::NAMED);
        self.examples.extend(other.examples);
        self.examples.truncate(RestoredFindings::NAMED);
    }
}

/// Holds the rows of a server that was restored to `moment` to the whole ledger of the load. None if `is_over`
/// before the end.
pub fn check_restored(
    ledger: &Ledger,
    rows: &LedgerRows,
    moment: BoundedMoment,
    is_over: &dyn Fn() -> bool,
) -> Option<RestoredFindings> {
    let BoundedMoment { earliest, latest } = moment;
    let known = ledger.as_of_between(earliest, latest);
    let mut late: BTreeSet<ReadRow> = BTreeSet::new();
    let rows = LedgerRows {
        insert: rows.insert.as_ref().map(|rows| {
            let is_early = |row: &&LedgerRow| match sent_after(ledger, row, latest) {
                Some(seen) => {
                    late.insert(seen);
                    false
                }
                None => true,
            };
            rows.iter().filter(is_early).copied().collect()
        }),
        update: rows.update.as_ref().map(|rows| {
            let earlier = rows.iter().map(|row| match sent_after(ledger, row, latest) {
                Some(seen) => {
                    late.insert(seen);
                    last_row(&known, seen.client).unwrap_or(LedgerRow { seq: Some(0), ..*row })
                }
                None => *row,
            });
            earlier.collect()
        }),
    };
    let as_of = check_unless(&known, &rows, &[], is_over)?;
    let mut found = RestoredFindings {
        required: as_of.acknowledged,
        lost: as_of.lost,
        late: late.len() as u64,
        invented: as_of.invented + as_of.failed_present + as_of.doubled + as_of.broken + as_of.torn,
        unjudged: as_of.unjudged,
        examples: as_of.examples.iter().map(ToString::to_string).collect(),
        ..RestoredFindings::default()
    };
    let shown = late.iter().take(RestoredFindings::NAMED);
    found.examples.extend(shown.map(|ReadRow { client, seq }| {
        format!("late: client {client} seq {seq} was sent after the moment, and is there")
    }));
    let there = Present::of(&rows);
    let mut last_sent = Moment(0);
    for (seen, transaction) in all(&known) {
        if there.has_row(seen) {
            last_sent = last_sent.max(transaction.intended);
        }
    }
    // What has become of it is known of the whole ledger.
    let before = all(ledger).filter(|(_, one)| one.intended <= latest);
    for (seen, transaction) in before {
        let is_present = there.has_row(seen) || there.is_last(seen);
        match transaction.outcome {
            LedgerOutcome::WroteNothing => {}
            LedgerOutcome::Failed => {
                found.invented += u64::from(is_present && transaction.ended > earliest);
            }
            _ if is_required(transaction, earliest) => {}
            _ => {
                found.undecided += 1;
                found.undecided_present += u64::from(is_present);
                let intended = transaction.intended;
                found.named.push(UndecidedTransaction { of: seen, intended, is_present });
            }
        }
        if transaction.outcome.is_acknowledged()
            && transaction.wrote.insert > 0
            && transaction.ended < last_sent
            && there.lacks_row(seen)
        {
            found.out_of_order += 1;
        }
    }
    found.named.sort_by_key(|one| one.intended);
    found.named.truncate(RestoredFindings::NAMED);
    Some(found)
}

/// True of a transaction that must be there.
fn is_required(transaction: &LedgerTransaction, earliest: Moment) -> bool {
    transaction.outcome.is_acknowledged() && transaction.ended <= earliest
}

/// The transactions that rows name.
struct Present {
    insert: Option<BTreeSet<ReadRow>>,
    update: BTreeSet<ReadRow>,
}

impl Present {
    fn of(rows: &LedgerRows) -> Present {
        let seen =
            |rows: &[LedgerRow]| rows.iter().filter_map(seen_in).collect::<BTreeSet<ReadRow>>();
        Present {
            insert: rows.insert.as_deref().map(seen),
            // A table that the load does not write holds the last transaction of no client.
            update: rows.update.as_deref().map_or_else(BTreeSet::new, seen),
        }
    }

    fn has_row(&self, seen: ReadRow) -> bool {
        self.insert.as_ref().is_some_and(|rows| rows.contains(&seen))
    }

    fn lacks_row(&self, seen: ReadRow) -> bool {
        self.insert.as_ref().is_some_and(|rows| !rows.contains(&seen))
    }

    fn is_last(&self, seen: ReadRow) -> bool {
        self.update.contains(&seen)
    }
}

fn all(ledger: &Ledger) -> impl Iterator<Item = (ReadRow, &LedgerTransaction)> {
    ledger.clients().flat_map(|(client, history)| {
        (1..).zip(history).map(move |(seq, one)| (ReadRow { client, seq }, one))
    })
}

fn seen_in(row: &LedgerRow) -> Option<ReadRow> {
    let client = u32::try_from(row.client?).ok()?;
    Some(ReadRow { client, seq: u64::try_from(row.seq?).ok()? })
}

/// The transaction of a row, if the ledger has it and it was sent after the moment.
fn sent_after(ledger: &Ledger, row: &LedgerRow, latest: Moment) -> Option<ReadRow> {
    let seen = seen_in(row)?;
    let index = usize::try_from(seen.seq.checked_sub(1)?).ok()?;
    let transaction = ledger.client(seen.client)?.get(index)?;
    (transaction.intended > latest).then_some(seen)
}

/// The row of a client in the update table after its last transaction that wrote there and may have been
/// committed.
fn last_row(ledger: &Ledger, client: u32) -> Option<LedgerRow> {
    let mut history = (1..).zip(ledger.client(client)?).collect::<Vec<(i64, _)>>();
    history.retain(|(_, one)| one.wrote.update && one.outcome != LedgerOutcome::Failed);
    let (seq, transaction) = history.last()?;
    Some(LedgerRow { client: Some(client.into()), seq: Some(*seq), chain: Some(transaction.chain) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEGIN: &str = "ledger 4 seed 1\n";

    fn ledger(lines: &str) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.add("0.ledger", format!("{BEGIN}{lines}").as_bytes()).unwrap();
        ledger
    }

    /// The rows of these transactions, in the insert table.
    fn inserted(ledger: &Ledger, there: &[(u32, u64)]) -> LedgerRows {
        let row = |(client, seq): &(u32, u64)| LedgerRow {
            client: Some((*client).into()),
            seq: Some(*seq as i64),
            chain: Some(ledger.client(*client).unwrap()[*seq as usize - 1].chain),
        };
        LedgerRows { insert: Some(there.iter().map(row).collect()), update: None }
    }

    fn at(earliest: u64, latest: u64) -> BoundedMoment {
        BoundedMoment { earliest: Moment(earliest), latest: Moment(latest) }
    }

    fn found(ledger: &Ledger, rows: &LedgerRows, moment: BoundedMoment) -> RestoredFindings {
        check_restored(ledger, rows, moment, &|| false).unwrap()
    }

    /// Acknowledged at 20; under way from 30 to 50; sent at 60.
    const THREE: &str = "i 0 1 10\na 0 1 20\ni 0 2 30\na 0 2 50\ni 0 3 60\na 0 3 70\ne 0 3 80\n";

    #[test]
    fn what_was_acknowledged_before_must_be_there_and_what_was_sent_after_must_not() {
        let check = |there: &[u64], expected: (u64, u64, u64)| {
            let ledger = ledger(THREE);
            let there: Vec<_> = there.iter().map(|seq| (0, *seq)).collect();
            let found = found(&ledger, &inserted(&ledger, &there), at(40, 45));
            let got = (found.lost, found.late, found.undecided_present);
            assert_eq!((got, found.required, found.undecided), (expected, 1, 1), "{there:?}");
        };
        check(&[1], (0, 0, 0));
        check(&[1, 2], (0, 0, 1));
        check(&[], (1, 0, 0));
        check(&[1, 2, 3], (0, 1, 1));
        check(&[1, 3], (0, 1, 0));
    }

    #[test]
    fn bounds_decide_what_is_undecided() {
        let check = |moment: BoundedMoment, expected: (u64, u64)| {
            let ledger = ledger(THREE);
            let found = found(&ledger, &inserted(&ledger, &[(0, 1), (0, 2), (0, 3)]), moment);
            assert_eq!((found.required, found.undecided), expected, "{moment:?}");
        };
        check(at(0, 5), (0, 0));
        check(at(20, 20), (1, 0));
        check(at(19, 20), (0, 1));
        check(at(50, 59), (2, 0));
        check(at(50, 60), (2, 1));
        check(at(90, 90), (3, 0));
    }

    #[test]
    fn a_missing_one_before_a_later_one_is_out_of_order_by_any_clock() {
        let lines = "i 0 1 10\na 0 1 20\ne 0 1 99\ni 1 1 30\na 1 1 50\ne 1 1 99\n";
        let ledger = ledger(lines);
        // The bounds are too wide to require anything.
        let found = found(&ledger, &inserted(&ledger, &[(1, 1)]), at(0, 90));
        assert_eq!((found.lost, found.out_of_order), (0, 1));
    }

    #[test]
    fn failed_ones_and_rows_that_nobody_wrote_are_invented() {
        let ledger = ledger("i 0 1 10\nf 0 1 50 40001\ne 0 1 99\n");
        let rows = inserted(&ledger, &[(0, 1)]);
        for moment in [at(40, 45), at(60, 60)] {
            assert_eq!(found(&ledger, &rows, moment).invented, 1, "{moment:?}");
        }
        let nobody = LedgerRow { client: Some(7), seq: Some(1), chain: Some(0) };
        let rows = LedgerRows { insert: Some(vec![nobody]), update: None };
        assert_eq!(found(&ledger, &rows, at(60, 60)).invented, 1);
    }

    #[test]
    fn a_late_row_of_the_update_table_is_late_and_loses_nothing_by_itself() {
        let ledger = ledger(THREE);
        let row = |seq: usize| LedgerRow {
            client: Some(0),
            seq: Some(seq as i64),
            chain: Some(ledger.client(0).unwrap()[seq - 1].chain),
        };
        let check = |seq: usize, expected: (u64, u64)| {
            let rows = LedgerRows { insert: None, update: Some(vec![row(seq)]) };
            let found = found(&ledger, &rows, at(55, 58));
            assert_eq!((found.lost, found.late), expected, "{seq}");
        };
        check(3, (0, 1));
        check(2, (0, 0));
        check(1, (1, 0));
    }

    /// For each client, its transactions: pause before, time until the commit, time until the answer, and
    /// what became of it.
    fn load() -> impl Strategy<Value = Vec<Vec<(u64, u64, u64, u8)>>> {
        let one = (1..50u64, 1..20u64, 1..20u64, 0..10u8);
        proptest::collection::vec(proptest::collection::vec(one, 0..12), 1..5)
    }

    /// The ledger of a load, and when which of its transactions committed.
    fn run(load: &[Vec<(u64, u64, u64, u8)>]) -> (Ledger, Vec<(u64, ReadRow)>) {
        let (mut lines, mut commits) = (String::new(), Vec::new());
        for (client, transactions) in (0..).zip(load) {
            let mut now = 0;
            for (seq, (pause, commit, answer, fate)) in (1..).zip(transactions) {
                now += pause;
                lines += &format!("i {client} {seq} {now}\n");
                let committed = now + commit;
                now = committed + answer;
                lines += &match fate {
                    0 => format!("f {client} {seq} {now} 40001\n"),
                    1 => format!("u {client} {seq} {now}\nl {client} {seq} {now}\n"),
                    _ => format!("a {client} {seq} {now}\n"),
                };
                // Half of those of unknown outcome have happened.
                if *fate > 1 || *fate == 1 && pause % 2 == 0 {
                    commits.push((committed, ReadRow { client, seq }));
                }
            }
            let (last, now) = (transactions.len(), now + 1);
            lines += &format!("e {client} {last} {now}\n");
        }
        commits.sort_unstable();
        (ledger(&lines), commits)
    }

    proptest! {
        #[test]
        fn a_true_restore_is_never_blamed(load in load(), moment in 0..700u64, by in 0..30u64, to in 0..30u64) {
            let (ledger, commits) = run(&load);
            let there = commits.iter().filter(|(committed, _)| *committed <= moment);
            let there: Vec<_> = there.map(|(_, seen)| (seen.client, seen.seq)).collect();
            let bounds = at(moment.saturating_sub(by), moment + to);
            let found = found(&ledger, &inserted(&ledger, &there), bounds);
            prop_assert!(found.is_as_of_moment(), "{found:?}");
            let present = found.required + found.undecided_present;
            prop_assert_eq!(present, there.len() as u64);
        }

        #[test]
        fn one_that_is_missing_or_late_is_found(load in load(), moment in 0..700u64, pick in any::<proptest::sample::Index>()) {
            let (ledger, commits) = run(&load);
            let mut there: Vec<_> = commits
                .iter()
                .filter(|(committed, _)| *committed <= moment)
                .map(|(_, seen)| (seen.client, seen.seq))
                .collect();
            let bounds = at(moment, moment);
            let required = |(client, seq): &(u32, u64)| {
                is_required(&ledger.client(*client).unwrap()[*seq as usize - 1], Moment(moment))
            };
            let must: Vec<_> = there.iter().copied().filter(|one| required(one)).collect();
            if !must.is_empty() {
                let gone = *pick.get(&must);
                let left: Vec<_> = there.iter().copied().filter(|one| *one != gone).collect();
                prop_assert_eq!(found(&ledger, &inserted(&ledger, &left), bounds).lost, 1);
            }
            let sent_after = |(client, seq): &(u32, u64)| {
                ledger.client(*client).unwrap()[*seq as usize - 1].intended > Moment(moment)
            };
            let all = commits.iter().map(|(_, seen)| (seen.client, seen.seq));
            let after: Vec<_> = all.filter(sent_after).collect();
            if !after.is_empty() {
                there.push(*pick.get(&after));
                prop_assert_eq!(found(&ledger, &inserted(&ledger, &there), bounds).late, 1);
            }
        }
    }
}
