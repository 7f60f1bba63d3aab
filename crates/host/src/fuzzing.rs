//! The bytes of a host, for fuzz targets.

use std::io::BufReader;

use crate::clock::{Clock, Ping};
use crate::line::greeting;
use crate::message::{self, HostMessage, Role, read_line};
use crate::queue::{Lines, Queue};

/// Reads what a host writes: a greeting, then lines of its own and of a process.
pub fn host(bytes: &[u8]) {
    let mut input = BufReader::new(bytes);
    if !matches!(greeting(&mut input).hello, Some(Ok(_))) {
        return;
    }
    let (mut clock, queue, mut received) = (Clock::default(), Queue::new(), 1_u64 << 40);
    while let Ok(Some(line)) = read_line(&mut input, |_| Role::Probe.line_bytes_max()) {
        // The rig ends the connection at a line that is none of the protocol.
        let Some((process, rest)) = message::split(&line) else { return };
        received += 1_000_000 + line.len() as u64 * 1_000_000;
        match serde_json::from_str(rest) {
            _ if process > 0 => drop(queue.put(rest.to_owned(), || ())),
            Ok(HostMessage::Pong(sent, there)) => {
                let sent = received.saturating_sub(sent % 1_000_000_000);
                clock.add(Ping { sent, there, received });
                let course = clock.course().expect("a ping gives a course");
                assert!(course.drift_ppb.is_finite(), "{course:?}");
                let _ = course.offset_at(received);
                let _ = clock.bound_ns(&course, received - 2_000_000_000, received);
                let _ = clock.round_trip_ns();
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
    queue.end(None);
    assert!(Lines(queue).all(|line| line.is_ok()));
}
