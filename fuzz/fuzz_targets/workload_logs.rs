//! Any bytes as a server's log: jsonlog, csvlog or stderr. It is refused, or becomes a folder whose scripts can be read.

#![no_main]

mod written;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(folder) = workload::fuzzing::log(bytes) {
        written::expect_readable(&folder);
    }
});
