//! Any text as the reports of two generators: the conductor comes to an outcome or to an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| load::fuzzing::reports(input));
