//! Any text as a server's answers to a guard.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| guard::fuzzing::answers(text));
