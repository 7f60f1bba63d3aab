//! Records of a guard on the disk: its windows of exposure, and the state for the next guard.

use std::time::{Duration, Instant};

use server::SyncStandbysSetting;

use super::{Guard, GuardedPrimary, Persisted};
use crate::books::{BooksEntry, WindowEvent};
use crate::event::GuardEvent;
use crate::look::{Lsn, PrimaryState};
use crate::state::GuardState;

impl Guard<'_> {
    /// Closes the window. One whose end cannot be recorded stays open, and is closed later.
    pub(super) fn close(
        &mut self,
        charge: &mut GuardedPrimary,
        look: &PrimaryState,
        confirmed: Option<Lsn>,
    ) {
        let window = self.window_number();
        let why = match confirmed {
            Some(lsn) => format!("standbys have confirmed as asked up to {lsn}"),
            None => "another session has switched sync mode off".to_owned(),
        };
        let asked = charge.asked.setting.clone();
        if !self.record(charge, WindowEvent::Closed, &asked, confirmed, Some(look.wal), why.clone())
        {
            charge.watch.set_exposed();
            return;
        }
        charge.undone = 0;
        charge.last = format!("closed exposure window {window}: {why}");
        let confirmed_lsn = confirmed.map(|lsn| lsn.to_string());
        self.tell(GuardEvent::Closed { window, why, confirmed_lsn });
    }

    /// Brings the record into line with the server: ends a window of another timeline, and opens one
    /// while the setting is lowered without. A failure is tried again at the next look.
    pub(super) fn settle(&mut self, charge: &mut GuardedPrimary, in_force: &SyncStandbysSetting) {
        self.abandon_of_other_timeline(charge);
        let is_open = self.keeps.as_ref().is_some_and(|keeps| keeps.books.open_window().is_some());
        if !is_open && *in_force != charge.asked.setting {
            let why = "found lowered, without a record of it".to_owned();
            self.record(charge, WindowEvent::Opened, in_force, None, None, why);
        }
    }

    /// Ends a window of a timeline that is no more: this server was promoted since.
    fn abandon_of_other_timeline(&mut self, charge: &GuardedPrimary) {
        // A dry run keeps no books.
        let Some(keeps) = &self.keeps else { return };
        let open = keeps.books.open_window().map(|window| window.opened.clone());
        let Some(opened) = open.filter(|opened| opened.timeline != charge.timeline) else {
            // No window is open, or it is this timeline's own.
            return;
        };
        let why = format!(
            "the server is on timeline {} now, the window was on {}: what was acknowledged in it \
             and is not here is lost",
            charge.timeline, opened.timeline
        );
        let window = opened.window;
        let is_recorded = self.append(BooksEntry {
            event: WindowEvent::Closed,
            at: wall_clock(),
            in_force: charge.asked.text.clone(),
            confirmations: charge.asked.setting.confirmations(),
            confirmed_lsn: None,
            wal_lsn: None,
            why: why.clone(),
            ..opened
        });
        if is_recorded {
            self.tell(GuardEvent::Closed { window, why, confirmed_lsn: None });
        }
    }

    /// Appends an entry; false if it cannot be written, which is reported.
    pub(super) fn record(
        &mut self,
        charge: &mut GuardedPrimary,
        event: WindowEvent,
        in_force: &SyncStandbysSetting,
        confirmed: Option<Lsn>,
        wal: Option<Lsn>,
        why: String,
    ) -> bool {
        let Some(keeps) = &self.keeps else { return true };
        let is_recorded = self.append(BooksEntry {
            window: keeps.books.number(),
            event,
            at: wall_clock(),
            asked: charge.asked.text.clone(),
            in_force: in_force.to_string(),
            confirmations: in_force.confirmations(),
            confirmed_lsn: confirmed.map(|lsn| lsn.to_string()),
            wal_lsn: wal.map(|lsn| lsn.to_string()),
            timeline: charge.timeline,
            why,
        });
        if is_recorded && event != WindowEvent::Closed {
            charge.watch.set_exposed();
        }
        is_recorded
    }

    fn append(&mut self, entry: BooksEntry) -> bool {
        let Some(keeps) = &mut self.keeps else { return true };
        match keeps.books.append(entry) {
            Ok(()) => {
                // The state that the next look leaves tells of it.
                keeps.saved_at = None;
                self.trouble.take_if(|trouble| matches!(trouble, GuardEvent::NoRecord { .. }));
                true
            }
            Err(error) => {
                self.trouble(GuardEvent::NoRecord { why: error.to_string() });
                false
            }
        }
    }

    pub(super) fn window_number(&self) -> u64 {
        let Some(keeps) = &self.keeps else { return 0 };
        keeps.books.open_window().map_or(keeps.books.number(), |window| window.opened.window)
    }

    /// Leaves the state for the next guard, at once or if it is some time ago.
    pub(super) fn save(&mut self, now: bool) {
        let is_due = |keeps: &Persisted| keeps.saved_at.is_none_or(|at| at.elapsed() >= SAVE_EVERY);
        if !now && !self.keeps.as_ref().is_some_and(is_due) {
            return;
        }
        // Without a primary in its charge, the guard has no state to leave.
        let Some(charge) = self.charge.take() else { return };
        let in_force = charge.seen.as_ref().map(|look| look.setting.to_string());
        let in_force = in_force.unwrap_or_else(|| charge.asked.text.clone());
        self.save_of(&charge, in_force);
        self.charge = Some(charge);
    }

    /// Leaves the state of a primary, of which this is in force.
    pub(super) fn save_of(&mut self, charge: &GuardedPrimary, in_force: String) {
        // A dry run keeps no state.
        let Some(keeps) = &mut self.keeps else { return };
        keeps.saved_at = Some(Instant::now());
        let state = GuardState {
            system_identifier: charge.facts.system_identifier.clone(),
            pid: std::process::id(),
            at: wall_clock(),
            asked: charge.asked.text.clone(),
            in_force,
            timeline: Some(charge.timeline),
            confirmed_lsn: charge.watch.confirmed().map(|lsn| lsn.to_string()),
            flaps: charge.watch.flaps(),
            last: charge.last.clone(),
        };
        // An older state makes the next exposure begin earlier, and that is the safe side.
        let saved = state.save(&keeps.directory);
        let was_unsaved = std::mem::replace(&mut keeps.is_unsaved, saved.is_err());
        if let (Err(error), false) = (saved, was_unsaved) {
            self.tell(GuardEvent::NoRecord { why: error.to_string() });
        }
    }

    pub(super) fn end(&mut self) {
        self.save(true);
        // Without a primary in its charge, nothing is lowered that would have to be told of.
        let Some(charge) = &self.charge else { return };
        let asked = charge.asked.text.clone();
        let in_force = match &charge.seen {
            Some(look) if look.setting != charge.asked.setting => look.setting.to_string(),
            _ => asked.clone(),
        };
        let window = self.keeps.as_ref().and_then(|keeps| keeps.books.open_window());
        let window = window.map(|window| window.opened.window);
        self.tell(GuardEvent::Ended { in_force, asked, window });
    }
}

pub(super) fn wall_clock() -> String {
    jiff::Timestamp::now().to_string()
}

/// Time between two savings of the state for the next guard.
const SAVE_EVERY: Duration = Duration::from_secs(10);
