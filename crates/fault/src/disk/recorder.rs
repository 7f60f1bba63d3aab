//! The log of a disk: requests are handed in batches to a thread that packs them and writes them to a
//! file. One at a time they would wake that thread thousands of times a second.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crash::DiskLogEncoder;
use rustix::time::{ClockId, clock_gettime};

/// Keeps the requests of a disk. When it is dropped, the log is whole.
#[derive(Debug)]
pub(crate) struct RequestRecorder {
    batch: Batch,
    batches: Option<SyncSender<Batch>>,
    /// Batches whose room can be used again.
    emptied: Receiver<Batch>,
    thread: Option<JoinHandle<()>>,
    /// The moment of the end of a flush, and the number of writes that come next and were on their way before it.
    ending: Option<(u64, u64)>,
    /// Bytes of the log, those that had no room included.
    pub(crate) bytes: Arc<AtomicU64>,
}

/// Requests that go to the thread together.
#[derive(Debug, Default)]
struct Batch {
    requests: Vec<Request>,
    /// The data of the writes, one after the other.
    data: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Write { at_ns: u64, offset: u64, length: usize },
    FlushBegins { at_ns: u64 },
    FlushEnds { at_ns: u64 },
}

impl RequestRecorder {
    /// Writes to `file`, `max_bytes` at most; what is more is only counted.
    pub(crate) fn new(file: File, max_bytes: u64) -> RequestRecorder {
        let (batches, taken) = sync_channel::<Batch>(QUEUE);
        let (empty, emptied) = channel();
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        let thread = thread::spawn(move || pack(file, max_bytes, &taken, &empty, &counted));
        let (batch, thread) = (Batch::default(), Some(thread));
        RequestRecorder { batch, batches: Some(batches), emptied, thread, ending: None, bytes }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let length = data.len();
        let at_ns = self.ending.map_or_else(now_ns, |(at_ns, _)| at_ns);
        self.batch.requests.push(Request::Write { at_ns, offset, length });
        self.batch.data.extend_from_slice(data);
        self.send_if(self.batch.data.len() >= BATCH_BYTES);
        if let Some((_, writes)) = &mut self.ending {
            *writes -= 1;
            self.end_flush_if(|writes| writes == 0);
        }
    }

    pub(crate) fn flush_begins(&mut self) {
        self.end_flush_if(|_| true);
        self.batch.requests.push(Request::FlushBegins { at_ns: now_ns() });
    }

    /// So many of the writes that come next were on their way to the disk before the flush ended: nothing that
    /// waited for it has made them.
    pub(crate) fn flush_ends(&mut self, writes: u64) {
        self.ending = Some((now_ns(), writes));
        self.end_flush_if(|writes| writes == 0);
    }

    fn end_flush_if(&mut self, is_over: impl FnOnce(u64) -> bool) {
        if let Some((at_ns, writes)) = self.ending
            && is_over(writes)
        {
            self.ending = None;
            self.batch.requests.push(Request::FlushEnds { at_ns });
            self.send_if(self.batch.requests.len() >= BATCH_REQUESTS);
        }
    }

    /// Bytes of what has been packed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn send_if(&mut self, is_full: bool) {
        if is_full {
            // Where no batch was emptied yet, a new one is made.
            let next = self.emptied.try_recv().unwrap_or_default();
            let batch = std::mem::replace(&mut self.batch, next);
            // The thread only ends with this.
            let _ = self.batches.as_ref().map(|batches| batches.send(batch));
        }
    }
}

impl Drop for RequestRecorder {
    fn drop(&mut self) {
        self.end_flush_if(|_| true);
        self.send_if(true);
        drop(self.batches.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn pack(
    file: File,
    max_bytes: u64,
    batches: &Receiver<Batch>,
    empty: &Sender<Batch>,
    bytes: &AtomicU64,
) {
    let (mut encoder, mut out) = (DiskLogEncoder::default(), Vec::new());
    let mut file = io::BufWriter::with_capacity(1 << 20, file);
    let mut keep = |out: &mut Vec<u8>| {
        let total = bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        // A disk without room is one whose log did not fit.
        if total + out.len() as u64 <= max_bytes && file.write_all(out).is_err() {
            bytes.fetch_add(max_bytes, Ordering::Relaxed);
        }
        out.clear();
    };
    encoder.begin(&mut out);
    keep(&mut out);
    for mut batch in batches {
        let mut data = batch.data.as_slice();
        for request in &batch.requests {
            match *request {
                Request::Write { at_ns, offset, length } => {
                    let (own, rest) = data.split_at(length);
                    encoder.write(at_ns, offset, own, &mut out);
                    data = rest;
                }
                Request::FlushBegins { at_ns } => encoder.flush_begins(at_ns, &mut out),
                Request::FlushEnds { at_ns } => encoder.flush_ends(at_ns, &mut out),
            }
            keep(&mut out);
        }
        batch.requests.clear();
        batch.data.clear();
        // The recorder may be gone.
        let _ = empty.send(batch);
    }
    if file.flush().is_err() {
        bytes.fetch_add(max_bytes, Ordering::Relaxed);
    }
}

/// The machine's monotonic clock, in nanoseconds: that of the moments of a log.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A batch is full with so many bytes of data or so many requests.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_REQUESTS: usize = 1024;

/// Batches that may wait; then the disk waits for its log.
const QUEUE: usize = 64;

#[cfg(test)]
mod tests {
    use crash::{DiskLog, FlushEffect, RequestOperation};

    use super::*;

    #[test]
    fn a_write_that_was_on_its_way_stands_before_the_end_of_the_flush() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut recorder = RequestRecorder::new(File::create_new(&path).unwrap(), 1 << 20);
        recorder.write(0, &[1; 512]);
        recorder.flush_begins();
        recorder.flush_ends(2);
        [2, 3, 4].into_iter().for_each(|byte| recorder.write(4096 * u64::from(byte), &[byte; 512]));
        recorder.flush_begins();
        // Two are on their way, and only one comes before the next flush.
        recorder.flush_ends(2);
        recorder.write(0, &[5; 512]);
        recorder.flush_begins();
        recorder.flush_ends(1);
        drop(recorder);
        let log = DiskLog::read(&mut File::open(&path).unwrap(), &mut io::sink()).unwrap();
        let letters = log.entries.iter().map(|entry| match entry.what {
            RequestOperation::Write(_) => 'w',
            RequestOperation::FlushBegins => 'b',
            RequestOperation::FlushEnds => 'e',
            RequestOperation::Flush => 'f',
        });
        assert_eq!(letters.collect::<String>(), "wbwwewbwebe");
        assert!(log.entries.is_sorted_by_key(|entry| entry.at_ns));
        // What the flush covers can be lost while what was on its way is kept.
        assert_eq!(FlushEffect::Honest.pending(&log, 4), [0, 2, 3]);
        assert_eq!(FlushEffect::Honest.pending(&log, 5), [2, 3]);
        // What a flush is answered with is known from its end on, and such a write may be of a later moment.
        let at = |number: usize| Some(log.entries[number].at_ns);
        assert_eq!(log.moments(1), (at(1), at(1)));
        assert_eq!(log.moments(4), (at(4), at(5)));
        assert_eq!(log.moments(11), (None, None));
    }
}
