//! Cancel requests: each on a connection of its own, beside the lane.

use std::{
    thread,
    time::{Duration, Instant},
};

use server::Canceller;

/// Time that all of them together may take: then the load has ended without them.
const TIMEOUT_ALL: Duration = Duration::from_secs(5);

/// Sends the requests, without waiting for it. They are a courtesy; the load ends without them.
pub(crate) fn send(requests: Vec<Canceller>) {
    if requests.is_empty() {
        return;
    }
    // If no thread can be started, the load ends without them.
    let _ = thread::Builder::new().spawn(move || {
        let began = Instant::now();
        for canceller in requests {
            if began.elapsed() > TIMEOUT_ALL {
                break;
            }
            canceller.cancel();
        }
    });
}
