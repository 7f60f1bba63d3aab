//! Any text as what a sampler on a host hands over.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| probe::fuzzing::sampler(input));
