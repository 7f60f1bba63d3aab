//! Any text as a guard's state and as its exposure windows.

#![no_main]

use guard::{GuardState, windows};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(state) = serde_json::from_str::<GuardState>(text) {
        serde_json::to_string(&state).expect("a state has a JSON form");
    }
    if let Ok(windows) = windows(text) {
        for window in windows {
            window.confirmations();
            window.alone_since();
        }
    }
});
