//! The lines that a client gets. A thread writes them, so that a client that does not read stops nobody else.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Where messages go; clones lead to the same client.
#[derive(Clone, Debug)]
pub(crate) struct MessageWriter(SyncSender<String>);

/// Messages that wait to be written.
const QUEUE: usize = 64;

/// Time that a client has to read what waits for it.
const READ_TIME: Duration = Duration::from_secs(5);

/// Pause between two looks for room in the queue.
const GLANCE: Duration = Duration::from_millis(5);

impl MessageWriter {
    /// A writer, and the thread that writes until every clone of it is gone or the client is.
    pub(crate) fn open(mut output: impl Write + Send + 'static) -> (MessageWriter, JoinHandle<()>) {
        let (sender, receiver): (_, Receiver<String>) = sync_channel(QUEUE);
        let writer = thread::spawn(move || {
            for line in receiver {
                let written = output.write_all(line.as_bytes()).and_then(|()| output.flush());
                if written.is_err() {
                    // The client is gone: the end of this thread tells the senders.
                    return;
                }
            }
        });
        (MessageWriter(sender), writer)
    }

    /// Sends a message that must arrive. False if the client is gone, or does not read.
    pub(crate) fn send(&self, message: &Value) -> bool {
        let mut line = line(message);
        let began = Instant::now();
        loop {
            match self.0.try_send(line) {
                Ok(()) => return true,
                Err(TrySendError::Full(back)) if began.elapsed() < READ_TIME => line = back,
                Err(_) => return false,
            }
            thread::sleep(GLANCE);
        }
    }

    /// Sends a message that may be left out where the client does not read.
    pub(crate) fn offer(&self, message: &Value) {
        // The next one says more.
        let _ = self.0.try_send(line(message));
    }
}

/// A message on one line: JSON has no line break but in a text, where it is escaped.
fn line(message: &Value) -> String {
    format!("{message}\n")
}
