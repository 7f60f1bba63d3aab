//! Any text as an HDR histogram log: what is read can be written, and reads the same again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stats::hdr_log;

fuzz_target!(|text: &str| {
    let Ok(log) = hdr_log::read(text) else { return };
    for interval in &log.intervals {
        let count = interval.latency.count();
        let line = interval.to_line();
        let again = hdr_log::read(&line).expect("a line that was written");
        // A count of one bucket beyond 32 bits stays there.
        assert!(again.intervals[0].latency.count() <= count);
        interval.latency.quantile_ns(0.99);
        interval.latency.moments();
    }
});
