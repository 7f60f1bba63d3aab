//! The log of a disk: requests are handed to a thread that packs them and writes them to a file.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crash::Encoder;
use rustix::time::{ClockId, clock_gettime};

/// Keeps the requests of a disk. When it is dropped, the log is whole.
#[derive(Debug)]
pub(crate) struct Recorder {
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
    /// Bytes of the log, those that had no room included.
    pub(crate) bytes: Arc<AtomicU64>,
}

enum Request {
    Write { at_ns: u64, offset: u64, data: Vec<u8> },
    Flush { at_ns: u64 },
}

impl Recorder {
    /// Writes to `file`, `max_bytes` at most; what is more is only counted.
    pub(crate) fn new(file: File, max_bytes: u64) -> Recorder {
        let (requests, taken) = sync_channel::<Request>(QUEUE);
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let (mut encoder, mut out) = (Encoder::default(), Vec::new());
            let mut file = io::BufWriter::with_capacity(1 << 20, file);
            encoder.begin(&mut out);
            loop {
                let total = counted.fetch_add(out.len() as u64, Ordering::Relaxed);
                // A disk without room is one whose log did not fit.
                if total + out.len() as u64 <= max_bytes && file.write_all(&out).is_err() {
                    counted.fetch_add(max_bytes, Ordering::Relaxed);
                }
                out.clear();
                match taken.recv() {
                    Ok(Request::Write { at_ns, offset, data }) => {
                        encoder.write(at_ns, offset, &data, &mut out);
                    }
                    Ok(Request::Flush { at_ns }) => encoder.flush(at_ns, &mut out),
                    Err(_) => break,
                }
            }
            if file.flush().is_err() {
                counted.fetch_add(max_bytes, Ordering::Relaxed);
            }
        });
        Recorder { requests: Some(requests), thread: Some(thread), bytes }
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8]) {
        self.send(Request::Write { at_ns: now_ns(), offset, data: data.to_vec() });
    }

    pub(crate) fn flush(&self) {
        self.send(Request::Flush { at_ns: now_ns() });
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn send(&self, request: Request) {
        // The thread only ends with this.
        let _ = self.requests.as_ref().map(|requests| requests.send(request));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The machine's monotonic clock, in nanoseconds: that of the moments of a log.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Requests that may wait; then the disk waits for its log.
const QUEUE: usize = 1024;
