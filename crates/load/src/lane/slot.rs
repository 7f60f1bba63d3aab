//! One session and its connection.

use wire::backend::BackendKey;

use super::draws::Draws;
use server::dial::{BufferedSocket, DialAttempt};

use crate::{LoadPlan, session::Session};

/// A session's place in its lane.
pub(crate) struct Slot {
    pub(crate) session: Session,
    pub(crate) link: Link,
    /// Key for a cancel request, and its destination.
    pub(crate) key: Option<BackendKey>,
    pub(crate) step: u32,
    /// Distinguishes this wait from earlier ones: a timer of another generation is stale.
    pub(super) generation: u32,
    pub(crate) finished: bool,
    /// True if it is among the idle sessions of an open loop.
    pub(super) queued: bool,
    /// The rig itself has shut its connection down, so that it connects anew.
    pub(super) is_dropped: bool,
    /// Attempts to connect again since the connection was lost.
    pub(crate) attempts: u32,
    /// Random numbers of a block, if workloads have turns.
    pub(super) draws: Option<Box<Draws>>,
}

impl Slot {
    pub(super) fn new(session: Session, plan: &LoadPlan) -> Self {
        Slot {
            draws: plan.blocks.as_ref().map(|_| Box::new(Draws::new(&session.prng))),
            session,
            link: Link::None,
            key: None,
            step: 0,
            generation: 0,
            finished: false,
            queued: false,
            is_dropped: false,
            attempts: 0,
        }
    }
}

pub(crate) enum Link {
    None,
    Dialing(Box<DialAttempt>, Option<BufferedSocket>),
    Live(BufferedSocket),
    /// Terminate was sent at this moment; the server closes.
    Closing(BufferedSocket, u64),
}
