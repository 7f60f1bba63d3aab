//! Any bytes as one export of pg_stat_statements, or, cut at an empty line, as two: each is refused, or becomes a folder whose
//! scripts can be read.

#![no_main]

mod written;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let blank = bytes.windows(2).position(|two| two == b"\n\n");
    let halves = blank.map(|at| (&bytes[..at + 1], &bytes[at + 2..]));
    let (first, last) = halves.unwrap_or((b"query,calls,total_exec_time\n", bytes));
    if let Some(folder) = workload::fuzzing::statements(first, last) {
        written::expect_readable(&folder);
    }
});
