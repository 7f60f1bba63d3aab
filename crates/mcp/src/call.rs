//! A call of a tool, and its course.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::message::notification;
use crate::writer::MessageWriter;

/// What a client has asked a tool for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The name of the tool, which is one that was offered.
    pub name: String,
    /// The arguments, which no schema has been held against yet.
    pub arguments: Map<String, Value>,
}

/// Whether a call is still wanted.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    is_ended: AtomicBool,
    is_cancelled: AtomicBool,
}

impl CallState {
    /// The client is gone, or will send nothing more.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// The client wants no answer.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.end();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// The course of a call: whether it is still wanted, and where to tell how far it is.
#[derive(Debug)]
pub struct CallCourse {
    state: Arc<CallState>,
    began: Instant,
    /// The client's name for the progress of this call, and what writes it; none if the client does not ask.
    progress: Option<(Value, MessageWriter)>,
    told: Mutex<Option<Instant>>,
}

/// The least time between two messages about a call's progress.
const TOLD_EACH: Duration = Duration::from_millis(100);

impl CallCourse {
    pub(crate) fn new(
        state: Arc<CallState>,
        progress: Option<(Value, MessageWriter)>,
    ) -> CallCourse {
        CallCourse { state, began: Instant::now(), progress, told: Mutex::default() }
    }

    /// True once the call has to end: the client has cancelled it, or sends nothing more.
    pub fn is_ended(&self) -> bool {
        self.state.is_ended.load(Ordering::Relaxed)
    }

    /// Tells how far it is. The number that goes with it is the seconds since the call began.
    pub fn tell(&self, message: &str) {
        // A client that has not asked is not told.
        let Some((token, messages)) = &self.progress else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_ended() || told.is_some_and(|told| told.elapsed() < TOLD_EACH) {
            return;
        }
        *told = Some(Instant::now());
        let progress = self.began.elapsed().as_secs_f64();
        let params = json!({ "progressToken": token, "progress": progress, "message": message });
        messages.offer(&notification("notifications/progress", &params));
    }
}
