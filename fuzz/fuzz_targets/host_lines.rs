//! Any bytes as what a host writes: a greeting, pongs, lines of processes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| host::fuzzing::host(input));
