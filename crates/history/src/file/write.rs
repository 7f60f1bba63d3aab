//! Writes the lines of a file.

use std::io::Write;

use super::VERSION;
use super::lists::Lists;
use crate::{HistoryWorkload, TransactionOutcome};

/// Appends the lines of one file to a buffer in memory.
#[derive(Clone, Debug, Default)]
pub struct HistoryWriter {
    lists: Lists,
}

/// Memory is all that is written to here.
macro_rules! line {
    ($out:expr, $($words:tt)*) => {{
        let _ = writeln!($out, $($words)*);
    }};
}

impl HistoryWriter {
    /// The first lines: the version, the number of files of the load, the workloads in the order of their
    /// numbers, and that moments are those of the clock of the run.
    pub fn header<'g>(
        groups: impl IntoIterator<Item = &'g HistoryWorkload>,
        files: usize,
    ) -> Vec<u8> {
        let mut out = format!("history {VERSION}\nn {files}\n").into_bytes();
        for (number, group) in groups.into_iter().enumerate() {
            let plain = |text: &str| text.replace(char::is_control, " ");
            let HistoryWorkload { server, isolation, workload } = group;
            let [server, isolation, workload] = [server, isolation, workload].map(|x| plain(x));
            line!(out, "g {number}\t{server}\t{isolation}\t{workload}");
        }
        line!(out, "e 0");
        out
    }

    /// The moments that follow may differ by so many nanoseconds from the clock of the run.
    pub fn moments_within(&mut self, out: &mut Vec<u8>, bound_ns: u64) {
        line!(out, "e {bound_ns}");
    }

    /// Nothing more will be written.
    pub fn finishes(&mut self, out: &mut Vec<u8>) {
        line!(out, "z");
    }

    /// A client is connected.
    pub fn connected(&mut self, out: &mut Vec<u8>, client: u32, group: u32, backend: i32, at: u64) {
        line!(out, "c {client} {group} {backend} {at}");
    }

    /// A client is about to begin a transaction.
    pub fn begins(&mut self, out: &mut Vec<u8>, client: u32, number: u64, at: u64) {
        line!(out, "b {client} {number} {at}");
    }

    /// A client is about to append to a list.
    pub fn appends(&mut self, out: &mut Vec<u8>, client: u32, key: i64, value: i64) {
        line!(out, "a {client} {key} {value}");
    }

    /// A client is about to write a register.
    pub fn writes(&mut self, out: &mut Vec<u8>, client: u32, key: i64, value: i64) {
        line!(out, "w {client} {key} {value}");
    }

    /// The last writes of a client's transaction have changed no row, or were taken back to a savepoint.
    pub fn withdraws(&mut self, out: &mut Vec<u8>, client: u32, writes: u32) {
        line!(out, "d {client} {writes}");
    }

    /// A client has read a list.
    pub fn has_read_list(&mut self, out: &mut Vec<u8>, client: u32, key: i64, list: &[i64]) {
        if self.lists.is_full() {
            self.lists.clear();
            out.extend_from_slice(b"x\n");
        }
        let common = self.lists.replace(key, list);
        let _ = write!(out, "l {client} {key} {common}");
        numbers(out, &list[common..]);
    }

    /// A client has read a register.
    pub fn has_read(&mut self, out: &mut Vec<u8>, client: u32, key: i64, value: Option<i64>) {
        match value {
            Some(value) => line!(out, "r {client} {key} {value}"),
            None => line!(out, "r {client} {key}"),
        }
    }

    /// A client has read all balances, the sum of which transfers do not change.
    pub fn has_read_accounts(&mut self, out: &mut Vec<u8>, client: u32, total: i64, all: &[i64]) {
        let _ = write!(out, "s {client} {total}");
        numbers(out, all);
    }

    /// A client knows how its transaction ended.
    pub fn ends(&mut self, out: &mut Vec<u8>, client: u32, outcome: TransactionOutcome, at: u64) {
        let letter = match outcome {
            TransactionOutcome::Committed => 'o',
            TransactionOutcome::Failed => 'f',
            TransactionOutcome::Unknown => 'u',
        };
        line!(out, "{letter} {client} {at}");
    }
}

fn numbers(out: &mut Vec<u8>, numbers: &[i64]) {
    for number in numbers {
        let _ = write!(out, " {number}");
    }
    out.push(b'\n');
}
