//! Any text as a line of a lab on a host, in both directions.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| lab::fuzzing::line(input));
