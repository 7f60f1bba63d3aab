//! Any bytes as the log of a disk's writes and flushes, or as one that begins as it should.

#![no_main]

use std::io::Read;

use crash::{DiskLog, DiskLogEncoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut begin = Vec::new();
    DiskLogEncoder::default().begin(&mut begin);
    for mut log in [&[][..], &begin].map(|begin| begin.chain(input)) {
        let mut contents = Vec::new();
        let Ok(log) = DiskLog::read_within(&mut log, &mut contents, 10_000) else { continue };
        for content in &log.contents {
            assert!(content.position <= contents.len() as u64);
        }
        let pieces = || log.entries.iter().flat_map(crash::LoggedRequest::pieces);
        assert!(pieces().all(|piece| (piece.content as usize) < log.contents.len()));
        assert!(pieces().all(|piece| usize::from(piece.first + piece.sectors) <= 8));
    }
});
