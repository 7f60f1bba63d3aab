//! The limits on what a session outside a load may take: time, bytes, and patience with signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::backend::tag;

use crate::control::{LoadControl, StopUrgency};

/// The limits of one session. Every wait ends at the first limit that is reached.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The time for one address, where the connection string has no `connect_timeout`.
    pub connect: Duration,
    /// The time for an answer, from the last byte sent to ReadyForQuery; none for statements that
    /// may take hours.
    pub answer: Option<Duration>,
    /// The bytes of one answer.
    pub answer_bytes: u64,
    /// The user's signals, unless the session has to do its work after them.
    pub control: Option<LoadControl>,
}

impl Limits {
    /// The limits of a session that asks what a server answers at once.
    pub fn of_questions() -> Self {
        Limits {
            connect: Duration::from_secs(10),
            answer: Some(Duration::from_secs(10)),
            answer_bytes: 16 << 20,
            control: None,
        }
    }

    /// The limits of a session that administers a server: statements may take any time, and rows of
    /// whole tables are read.
    pub fn of_administration() -> Self {
        Limits { answer: None, answer_bytes: 1 << 30, ..Self::of_questions() }
    }

    /// The same, ended by the user's signals.
    #[must_use]
    pub fn heard_by(self, control: &LoadControl) -> Self {
        Limits { control: Some(control.clone()), ..self }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.urgency() != StopUrgency::None)
    }
}

/// The limit that a session has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum LimitReached {
    #[error("interrupted")]
    Interrupted,
    #[error("the server gave no answer within {} s", .0.as_secs())]
    Silence(Duration),
    #[error("the server's answer is larger than {} MiB", .0 >> 20)]
    Size(u64),
}

impl LimitReached {
    /// The limit below an error of the client library.
    pub fn below(error: &(dyn std::error::Error + 'static)) -> Option<LimitReached> {
        let mut next = Some(error);
        while let Some(error) = next {
            let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            if let Some(reached) = inner.and_then(|inner| inner.downcast_ref::<LimitReached>()) {
                return Some(*reached);
            }
            next = error.source();
        }
        None
    }
}

impl From<LimitReached> for std::io::Error {
    fn from(reached: LimitReached) -> Self {
        let kind = match reached {
            LimitReached::Interrupted => std::io::ErrorKind::Interrupted,
            LimitReached::Silence(_) => std::io::ErrorKind::TimedOut,
            LimitReached::Size(_) => std::io::ErrorKind::FileTooLarge,
        };
        std::io::Error::new(kind, reached)
    }
}

/// The limits of a session and what its stream has seen, for both ends of the session.
#[derive(Debug)]
pub(crate) struct SessionLimits {
    limits: Mutex<Limits>,
    /// True from an error of the server to the end of its answer.
    has_failed: AtomicBool,
}

impl SessionLimits {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(SessionLimits { limits: Mutex::new(limits), has_failed: AtomicBool::new(false) })
    }

    pub(crate) fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_failed(&self, has_failed: bool) {
        self.has_failed.store(has_failed, Ordering::Relaxed);
    }
}

/// The answer that a session waits for: since when, and how much of it has arrived.
#[derive(Debug, Default)]
pub(crate) struct AwaitedAnswer {
    since: Option<Instant>,
    has_failed: bool,
    bytes: u64,
    /// The bytes of the next frame's header that have arrived.
    header: Vec<u8>,
    /// The bytes of the frame under way that have not arrived.
    body_left: usize,
}

impl AwaitedAnswer {
    /// A request goes out at `now`.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Bytes of the server's messages. ReadyForQuery ends an answer.
    pub(crate) fn received(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.body_left > 0 {
                let n = self.body_left.min(bytes.len());
                self.body_left -= n;
                bytes = &bytes[n..];
                continue;
            }
            let n = (wire::frame::HEADER_BYTES - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if let [tag, l0, l1, l2, l3] = self.header[..] {
                let length = u32::from_be_bytes([l0, l1, l2, l3]);
                self.body_left = (length as usize).saturating_sub(4);
                self.header.clear();
                match tag {
                    tag::READY_FOR_QUERY => {
                        *self =
                            AwaitedAnswer { body_left: self.body_left, ..AwaitedAnswer::default() };
                        self.bytes = bytes.len() as u64;
                    }
                    tag::ERROR_RESPONSE => self.has_failed = true,
                    _ => {}
                }
            }
        }
    }

    /// True if an error belongs to the answer.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// True while an answer is awaited.
    pub(crate) fn is_awaited(&self) -> bool {
        self.since.is_some()
    }

    /// The limit that is reached at `now`.
    pub(crate) fn reached(&self, limits: &Limits, now: Instant) -> Option<LimitReached> {
        if self.bytes > limits.answer_bytes {
            return Some(LimitReached::Size(limits.answer_bytes));
        }
        let since = self.since?;
        if limits.is_interrupted() {
            return Some(LimitReached::Interrupted);
        }
        let limit = limits.answer.filter(|limit| now.saturating_duration_since(since) > *limit)?;
        Some(LimitReached::Silence(limit))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(tag: u8, body: usize) -> Vec<u8> {
        let mut bytes = vec![tag];
        bytes.extend_from_slice(&(body as u32 + 4).to_be_bytes());
        bytes.resize(bytes.len() + body, b'Z');
        bytes
    }

    proptest! {
        /// However the bytes are cut, an answer ends with ReadyForQuery and nothing else.
        #[test]
        fn an_answer_ends_with_ready_for_query(
            bodies in prop::collection::vec(0..40_usize, 0..10),
            piece in 1..50_usize,
        ) {
            let mut answer: Vec<u8> = bodies.iter().flat_map(|body| frame(b'D', *body)).collect();
            let mut awaited = AwaitedAnswer::default();
            awaited.sent(Instant::now());
            answer.chunks(piece).for_each(|piece| awaited.received(piece));
            prop_assert!(awaited.is_awaited());
            answer = frame(b'Z', 1);
            answer.chunks(piece).for_each(|piece| awaited.received(piece));
            prop_assert!(!awaited.is_awaited());
        }
    }

    #[test]
    fn limits_are_reached() {
        let control = LoadControl::new();
        let limits = Limits { answer_bytes: 100, ..Limits::of_questions() }.heard_by(&control);
        let now = Instant::now();
        let check = |awaited: &AwaitedAnswer, later_s, expected| {
            assert_eq!(awaited.reached(&limits, now + Duration::from_secs(later_s)), expected);
        };
        let mut awaited = AwaitedAnswer::default();
        check(&awaited, 1000, None);
        awaited.sent(now);
        check(&awaited, 9, None);
        check(&awaited, 11, Some(LimitReached::Silence(Duration::from_secs(10))));
        awaited.received(&frame(b'D', 200));
        check(&awaited, 1, Some(LimitReached::Size(100)));
        awaited.received(&frame(b'Z', 1));
        check(&awaited, 1000, None);
        awaited.sent(now);
        control.interrupt();
        check(&awaited, 1, Some(LimitReached::Interrupted));
    }
}
