//! Round trips: one end sends back what it gets, the other measures how long that takes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::link::address::{LinkAddress, Listener, Stream};

/// Round-trip times of messages of one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Number of messages.
    pub count: u32,
    /// The median.
    pub median: Duration,
    /// The 95th percentile.
    pub p95: Duration,
}

impl RoundTrips {
    /// Connects to the echo at `to` and asks it `count` times, one after the other.
    ///
    /// # Errors
    /// `TimedOut` or `WouldBlock` when an answer takes longer than `timeout`.
    pub fn measure(to: &LinkAddress, count: u32, timeout: Duration) -> io::Result<Self> {
        let mut stream = file(to.connect(timeout)?, Some(timeout))?;
        let mut taken = Vec::new();
        // The first one may find caches cold and windows closed.
        for index in 0..=count.max(1) {
            let began = Instant::now();
            stream.write_all(b"x")?;
            stream.read_exact(&mut [0])?;
            if index > 0 {
                taken.push(began.elapsed());
            }
        }
        taken.sort_unstable();
        let at = |share: usize| taken[(taken.len() * share / 100).min(taken.len() - 1)];
        Ok(Self { count: count.max(1), median: at(50), p95: at(95) })
    }
}

/// As a line of numbers: count, and nanoseconds.
impl fmt::Display for RoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.count, self.median.as_nanos(), self.p95.as_nanos())
    }
}

impl FromStr for RoundTrips {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let numbers: Result<Vec<u64>, _> = line.trim().split(' ').map(str::parse).collect();
        match numbers.map_err(|_| ())?[..] {
            [count, median_ns, p95_ns] => Ok(Self {
                count: count.try_into().map_err(|_| ())?,
                median: Duration::from_nanos(median_ns),
                p95: Duration::from_nanos(p95_ns),
            }),
            _ => Err(()),
        }
    }
}

/// Sends back what comes, until it is killed.
pub(super) fn serve(listener: &Listener) -> io::Result<()> {
    loop {
        let stream = listener.accept()?;
        thread::spawn(move || {
            // A client that has left is no error.
            let _ = echo(stream);
        });
    }
}

fn echo(stream: Stream) -> io::Result<()> {
    let mut stream = file(stream, None)?;
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            length => stream.write_all(&bytes[..length])?,
        }
    }
}

/// A socket to read from and write to, whatever it is.
fn file(stream: Stream, timeout: Option<Duration>) -> io::Result<File> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    if timeout.is_some() {
        set_socket_timeout(&stream, Timeout::Recv, timeout)?;
    }
    Ok(File::from(stream.into_fd()))
}
