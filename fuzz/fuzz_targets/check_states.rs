//! Any text as a list of kept states, and any bytes as the log of a disk that they are states of.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (list, log) = input;
    check::fuzzing::states(list, log);
});
