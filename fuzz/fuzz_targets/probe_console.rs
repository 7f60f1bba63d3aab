//! Any text as rows of PgBouncer's console.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| probe::fuzzing::console(input));
