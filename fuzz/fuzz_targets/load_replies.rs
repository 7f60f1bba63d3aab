//! Any bytes as a server's answers to a client of a load, in pieces: it goes on, waits or aborts, and keeps no
//! more than its share.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| load::fuzzing::replies(input));
