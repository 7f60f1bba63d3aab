//! Any text as a server's log, jsonlog and csvlog.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| probe::fuzzing::log(input));
