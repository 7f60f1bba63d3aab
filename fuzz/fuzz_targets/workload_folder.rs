//! Any text as `workload.toml`: no script of it lies outside the folder.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = workload::fuzzing::scripts(text);
});
