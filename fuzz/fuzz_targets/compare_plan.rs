//! Any text as what EXPLAIN (FORMAT JSON) says.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| measure::fuzz_plan(input));
