//! Records of a guard on the disk: its windows of exposure, and the state for the next guard.

use std::time::{Duration, Instant};

use server::Setting;

use super::{Guard, GuardedPrimary};
use crate::books::{Entry, Step};
use crate::error::Error;
use crate::event::Event;
use crate::look::{Look, Lsn};
use crate::state::GuardState;

impl Guard<'_> {
    pub(super) fn close(
        &mut self,
        charge: &mut GuardedPrimary,
        look: &Look,
        confirmed: Option<Lsn>,
    ) -> Result<(), Error> {
        let window = self.window_number();
        let why = match confirmed {
            Some(lsn) => format!("standbys have confirmed as asked up to {lsn}"),
            None => "another session has switched sync mode off".to_owned(),
        };
        let asked = charge.asked.setting.clone();
        self.record(charge, Step::Closed, &asked, confirmed, Some(look.wal), why.clone())?;
        charge.last = format!("closed exposure window {window}: {why}");
        let confirmed_lsn = confirmed.map(|lsn| lsn.to_string());
        self.tell(Event::Closed { window, why, confirmed_lsn });
        self.save(true)
    }

    pub(super) fn record(
        &mut self,
        charge: &mut GuardedPrimary,
        event: Step,
        in_force: &Setting,
        confirmed: Option<Lsn>,
        wal: Option<Lsn>,
        why: String,
    ) -> Result<(), Error> {
        let Some(keeps) = &mut self.keeps else { return Ok(()) };
        keeps.books.append(Entry {
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
        })?;
        if event != Step::Closed {
            charge.watch.set_exposed();
        }
        Ok(())
    }

    pub(super) fn window_number(&self) -> u64 {
        let Some(keeps) = &self.keeps else { return 0 };
        keeps.books.open_window().map_or(keeps.books.number(), |window| window.opened.window)
    }

    /// Leaves the state for the next guard, at once or if it is some time ago.
    pub(super) fn save(&mut self, now: bool) -> Result<(), Error> {
        let (Some(keeps), Some(charge)) = (&mut self.keeps, &self.charge) else { return Ok(()) };
        if !now && keeps.saved_at.is_some_and(|at| at.elapsed() < SAVE_EVERY) {
            return Ok(());
        }
        keeps.saved_at = Some(Instant::now());
        let in_force = charge.seen.as_ref().map(|look| look.setting.to_string());
        let state = GuardState {
            system_identifier: charge.system_identifier.clone(),
            pid: std::process::id(),
            at: wall_clock(),
            asked: charge.asked.text.clone(),
            in_force: in_force.unwrap_or_else(|| charge.asked.text.clone()),
            timeline: Some(charge.timeline),
            confirmed_lsn: charge.watch.confirmed().map(|lsn| lsn.to_string()),
            flaps: charge.watch.flaps(),
            last: charge.last.clone(),
        };
        // An older state makes the next exposure begin earlier, and that is the safe side.
        if let Err(error) = state.save(&keeps.directory) {
            self.trouble(Event::NoRecord { why: error.to_string() });
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.save(true)?;
        let Some(charge) = &self.charge else { return Ok(()) };
        let asked = charge.asked.text.clone();
        let in_force = match &charge.seen {
            Some(look) if look.setting != charge.asked.setting => look.setting.to_string(),
            _ => asked.clone(),
        };
        let window = self.keeps.as_ref().and_then(|keeps| keeps.books.open_window());
        let window = window.map(|window| window.opened.window);
        self.tell(Event::Ended { in_force, asked, window });
        Ok(())
    }
}

pub(super) fn wall_clock() -> String {
    jiff::Timestamp::now().to_string()
}

/// Time between two savings of the state for the next guard.
const SAVE_EVERY: Duration = Duration::from_secs(10);
