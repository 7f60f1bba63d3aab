//! Any text as a line of a history: whatever is read is read again as it was written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use record::PastResult;

fuzz_target!(|text: &str| {
    if let Ok(result) = PastResult::read(text) {
        assert_eq!(PastResult::read(&result.line()), Ok(result));
    }
});
