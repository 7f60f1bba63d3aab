//! One direction of one connection: what has been read and is still on its way.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Largest number of bytes under way in one direction of a connection. A sender that has so many
/// under way waits, as one does whose TCP window is used up.
pub const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Treatment of the traffic in a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficShape {
    /// Time that each byte is under way, in each direction.
    pub delay: Duration,
    /// Bytes a second in each direction, of all connections together; none for no limit.
    pub bytes_per_s: Option<u64>,
}

/// Time until which the line of one direction is busy with the bytes of all its connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    free_at: Option<Instant>,
}

impl Line {
    /// Time at which `bytes` that are there `now` arrive: first they take their time to go onto the
    /// line, behind the bytes of others, then the delay.
    fn arrival(&mut self, now: Instant, bytes: usize, shape: TrafficShape) -> Instant {
        let Some(bytes_per_s) = shape.bytes_per_s else { return now + shape.delay };
        let begins = self.free_at.map_or(now, |free_at| free_at.max(now));
        let ends = begins + Duration::from_secs_f64(bytes as f64 / bytes_per_s as f64);
        self.free_at = Some(ends);
        ends + shape.delay
    }
}

/// Bytes under way, in order.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pieces: VecDeque<Piece>,
    held_bytes: usize,
    state: StreamEnd,
}

/// State of the end of the stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StreamEnd {
    #[default]
    Open,
    /// It was read, and arrives at this moment.
    Ended(Instant),
    /// It was passed on.
    Over,
}

#[derive(Debug)]
struct Piece {
    arrives: Instant,
    bytes: Vec<u8>,
    /// Number of them that were written already.
    written: usize,
}

impl Flow {
    /// True if more should be read.
    pub(super) fn wants_more(&self) -> bool {
        self.state == StreamEnd::Open && self.held_bytes < HELD_BYTES_MAX
    }

    /// Takes what was read `now`; nothing is the end of the stream.
    pub(super) fn take(
        &mut self,
        now: Instant,
        bytes: &[u8],
        shape: TrafficShape,
        line: &mut Line,
    ) {
        if bytes.is_empty() {
            self.state = StreamEnd::Ended(now + shape.delay);
            return;
        }
        // What was sent later never arrives earlier, even if the delay has become shorter.
        let earliest = self.pieces.back().map_or(now, |last| last.arrives);
        let arrives = line.arrival(now, bytes.len(), shape).max(earliest);
        self.held_bytes += bytes.len();
        self.pieces.push_back(Piece { arrives, bytes: bytes.to_vec(), written: 0 });
    }

    /// Bytes that have arrived and are to be written next.
    pub(super) fn due(&self, now: Instant) -> Option<&[u8]> {
        let piece = self.pieces.front().filter(|piece| piece.arrives <= now)?;
        Some(&piece.bytes[piece.written..])
    }

    /// Delay of the bytes that are due.
    pub(super) fn lateness(&self, now: Instant) -> Duration {
        let first = self.pieces.front();
        first.map_or(Duration::ZERO, |piece| now.saturating_duration_since(piece.arrives))
    }

    /// Notes that so much of what was due has been written.
    pub(super) fn written(&mut self, bytes: usize) {
        let piece = self.pieces.front_mut().expect("only bytes of a piece are written");
        piece.written += bytes;
        self.held_bytes -= bytes;
        if piece.written == piece.bytes.len() {
            self.pieces.pop_front();
        }
    }

    /// True if the end of the stream is to be passed on; true only once.
    pub(super) fn ends(&mut self, now: Instant) -> bool {
        match self.state {
            StreamEnd::Ended(arrives) if self.pieces.is_empty() && arrives <= now => {
                self.state = StreamEnd::Over;
                true
            }
            _ => false,
        }
    }

    /// True if everything was passed on, the end included.
    pub(super) fn is_over(&self) -> bool {
        self.state == StreamEnd::Over
    }

    /// Time of the next arrival.
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        match (self.pieces.front(), self.state) {
            (Some(piece), _) => Some(piece.arrives),
            (None, StreamEnd::Ended(arrives)) => Some(arrives),
            (None, StreamEnd::Open | StreamEnd::Over) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_taken_arrives_after_the_delay_and_in_order() {
        let (start, mut line, mut flow) = (Instant::now(), Line::default(), Flow::default());
        let slow = TrafficShape { delay: 5 * MS, bytes_per_s: None };
        flow.take(start, b"ab", slow, &mut line);
        // A shorter delay does not let it overtake.
        flow.take(start + MS, b"c", TrafficShape::default(), &mut line);
        flow.take(start + MS, b"", TrafficShape::default(), &mut line);
        assert_eq!(flow.next_arrival(), Some(start + 5 * MS));
        assert_eq!(flow.due(start + 4 * MS), None);
        assert_eq!(flow.due(start + 5 * MS), Some(&b"ab"[..]));
        flow.written(1);
        assert_eq!(flow.due(start + 5 * MS), Some(&b"b"[..]));
        flow.written(1);
        assert!(!flow.ends(start + 5 * MS), "something is before the end");
        assert_eq!(flow.due(start + 5 * MS), Some(&b"c"[..]));
        flow.written(1);
        assert!(flow.ends(start + 5 * MS) && !flow.ends(start + 5 * MS) && flow.is_over());
        assert_eq!(flow.next_arrival(), None);
    }

    #[test]
    fn bandwidth_is_shared_by_what_is_on_one_line() {
        let (start, mut line) = (Instant::now(), Line::default());
        let (mut one, mut other) = (Flow::default(), Flow::default());
        let shape = TrafficShape { delay: 2 * MS, bytes_per_s: Some(1_000_000) };
        one.take(start, &[0; 3000], shape, &mut line);
        other.take(start, &[0; 1000], shape, &mut line);
        assert_eq!(one.next_arrival(), Some(start + 5 * MS));
        assert_eq!(other.next_arrival(), Some(start + 6 * MS));
        // An idle line saves nothing up.
        other.written(1000);
        other.take(start + 50 * MS, &[0; 1000], shape, &mut line);
        assert_eq!(other.next_arrival(), Some(start + 53 * MS));
    }

    #[test]
    fn a_full_flow_wants_no_more() {
        let (start, mut line, mut flow) = (Instant::now(), Line::default(), Flow::default());
        flow.take(start, &vec![0; HELD_BYTES_MAX], TrafficShape::default(), &mut line);
        assert!(!flow.wants_more());
        flow.written(1);
        assert!(flow.wants_more());
        flow.take(start, b"", TrafficShape::default(), &mut line);
        assert!(!flow.wants_more());
    }
}
