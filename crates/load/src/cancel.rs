//! Cancel requests: each on a connection of its own, beside the lane.

use std::{
    io::Write,
    net::Shutdown,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::backend::BackendKey;

use crate::endpoint::{Endpoint, Opening};

/// How long one request may take to be sent. Requests are a courtesy; the load ends without them.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How long all of them together may take: then the load has ended without them.
const TIMEOUT_ALL: Duration = Duration::from_secs(5);

/// Sends the requests, without waiting for it.
pub(crate) fn send(requests: Vec<(Endpoint, BackendKey)>) {
    if requests.is_empty() {
        return;
    }
    thread::spawn(move || {
        let began = Instant::now();
        for (endpoint, key) in requests {
            if began.elapsed() > TIMEOUT_ALL {
                break;
            }
            // A request that cannot be sent leaves the query to the abandon moment.
            let _ = send_one(&endpoint, &key);
        }
    });
}

fn send_one(endpoint: &Endpoint, key: &BackendKey) -> std::io::Result<()> {
    let began = Instant::now();
    let fd = loop {
        match endpoint.open()? {
            Opening::Open(fd) => break fd,
            Opening::BacklogFull if began.elapsed() > TIMEOUT => {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            Opening::BacklogFull => thread::sleep(Duration::from_millis(2)),
        }
    };
    let timeout = Timespec::try_from(TIMEOUT).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::OUT)], timeout.as_ref())?;
    rustix::io::ioctl_fionbio(&fd, false)?;
    let mut request = Vec::new();
    wire::frontend::cancel_request(&mut request, key.pid, key.key.as_bytes());
    // Any stream socket can be written and shut down through this type.
    let mut stream = UnixStream::from(fd);
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(&request)?;
    // The server closes when it has acted on the request.
    let _ = std::io::Read::read(&mut stream, &mut [0; 1]);
    stream.shutdown(Shutdown::Both)
}
