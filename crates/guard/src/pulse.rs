//! Pulse of a guard: its state after each look, for those who watch it.

use std::time::Duration;

use crate::books::ExposureWindow;
use crate::event::GuardEvent;
use crate::look::{Lsn, PrimaryState};
use server::SyncStandbysSetting;

/// An observer of a running guard.
pub trait GuardObserver {
    /// Something has happened.
    fn tell(&mut self, event: &GuardEvent);

    /// The guard has looked at the server, or has tried to. It comes at least every 25 s, however long
    /// the server takes to answer.
    fn pulse(&mut self, pulse: &GuardPulse<'_>);
}

/// State of a guard after a look.
#[derive(Clone, Copy, Debug)]
pub struct GuardPulse<'a> {
    /// True if the server has answered.
    pub is_connected: bool,
    /// The primary; none without a connection and on a standby.
    pub primary: Option<PrimaryPulse<'a>>,
    /// Every exposure window in the record.
    pub windows: &'a [ExposureWindow],
}

/// A primary after a look.
#[derive(Clone, Copy, Debug)]
pub struct PrimaryPulse<'a> {
    /// The setting that the operator asks for.
    pub asked: &'a SyncStandbysSetting,
    /// The state of the server.
    pub look: &'a PrimaryState,
    /// Position up to which commits were confirmed as asked.
    pub confirmed: Option<Lsn>,
    /// Commits that wait for a standby.
    pub waiting: usize,
    /// Time for which the oldest of them has waited.
    pub oldest: Option<Duration>,
}

impl<'a> GuardPulse<'a> {
    /// The window that is open.
    pub fn open_window(&self) -> Option<&'a ExposureWindow> {
        self.windows.last().filter(|window| window.closed.is_none())
    }
}
