//! Ends of sessions: by the close, by an abort, by a lost connection, or because no session waits
//! any longer.

use stats::LatencyHistogram;
use tail::SlowTransaction;

use super::{Lane, Link};
use crate::{
    LoadLimit, OnLoss,
    grid::NEVER,
    report::{ConnectFailure, Report},
    session::{SessionState, Wait},
    tally::Ending,
};

/// SQLSTATE class 08: the connection broke without a word of the server.
const CONNECTION_FAILURE: &str = "08006";

impl Lane<'_> {
    /// At the close, once: takes down what has not ended, and ends the sessions that wait for a slot
    /// or for a connection, which have nothing left to wait for.
    pub(super) fn close(&mut self, now: u64) {
        if now < self.grid.close || std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.note_open();
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let away = matches!(slot.link, Link::None | Link::Dialing(..));
            let waits = matches!(
                slot.session.state,
                SessionState::Due | SessionState::Preparing | SessionState::Retrying(_)
            );
            if away || slot.queued || waits {
                self.finish(index);
            }
        }
        if self.leaves_alone(now) {
            // The window ends before the first client disconnects.
            for index in 0..self.slots.len() {
                if self.slots[index].finished {
                    self.leave(index);
                }
            }
        }
    }

    /// True if a client that is done disconnects by itself. Others may wait for what its session
    /// has: a lock, a server connection of a pool. Where the rig cancels what takes too long, the
    /// clients disconnect together instead, as a phase of its own.
    fn leaves_alone(&self, now: u64) -> bool {
        let is_counted = matches!(self.plan.limit, LoadLimit::Transactions(_));
        self.plan.drain_ms.is_none() && (is_counted || now >= self.grid.close)
    }

    /// Takes down the ages of the transactions that are open at the close.
    fn note_open(&mut self) {
        let close = self.grid.close;
        self.tally.closed();
        for slot in self.slots.iter().filter(|slot| !slot.finished) {
            let session = &slot.session;
            if let Some(since) = session.unserved_since {
                let since_ns = close.saturating_sub(since.get());
                self.tally.totals[session.workload].unserved.record_ns(since_ns);
            }
            let is_tried_again = matches!(session.state, SessionState::Retrying(_));
            if session.is_in_transaction() || is_tried_again {
                let (backend, scheduled, began) =
                    (session.backend, session.scheduled, session.began);
                let open = SlowTransaction { backend, scheduled, began, ended: close };
                self.tally.still_open(session.workload, open);
            } else if session.state == SessionState::Due && session.scheduled < close {
                let mut age = LatencyHistogram::new();
                age.record_ns(close - session.scheduled);
                self.tally.none_started(session.workload, close, &age);
            }
        }
        for workload in 0..self.schedules.len() {
            let on_schedule = self.on_schedule(workload, close);
            let (rates, grid) = (self.plan.rates.as_ref(), self.grid);
            let Some(schedule) = &mut self.schedules[workload] else { continue };
            let ages = schedule.take_all(on_schedule, |due| match rates {
                Some(rates) => close.saturating_sub(rates.moment(&grid, due)),
                None => on_schedule - due,
            });
            self.tally.none_started(workload, close, &ages);
        }
    }

    /// The connection of a session is gone.
    pub(crate) fn lost(&mut self, index: usize, why: Option<&str>) {
        let now = self.now();
        self.slots[index].link = Link::None;
        self.slots[index].key = None;
        // What was meant for this connection is not for the next one.
        self.unsent.retain(|(other, _)| *other != index);
        if self.slots[index].finished {
            return;
        }
        if self.grid.began == NEVER {
            self.lost_early(index, why);
            return;
        }
        self.roll(now);
        if now >= self.grid.cancel {
            self.give_up(index);
            return;
        }
        let is_dropped = std::mem::take(&mut self.slots[index].is_dropped);
        let on_loss = self.plan.workloads[self.slots[index].session.workload].on_loss;
        let told = self.slots[index].session.server_error_state();
        self.step(index, now, |session, cx| {
            session.fails_with(told.as_deref().unwrap_or(CONNECTION_FAILURE));
            session.is_unserved(cx, now);
            if told.is_none() && !is_dropped {
                session.count_error(cx, now, CONNECTION_FAILURE);
            }
            if session.outcome_is_unknown(cx) {
                cx.tally.totals[session.workload].unknown += 1;
            }
            session.note_unfinished(cx, now);
            session.account_for_loss(cx, now);
            let text = session.lost(cx.program, why);
            match on_loss {
                OnLoss::Abort => session.abort(cx, text),
                OnLoss::Reconnect => {
                    if session.is_in_transaction() && !session.is_tried_after_loss(cx, now) {
                        session.end(cx, now, Ending::Other);
                    }
                    session.connected();
                    Wait::Server
                }
            }
        });
        if on_loss == OnLoss::Abort || self.slots[index].finished {
            return;
        }
        if self.is_spent(index, now) {
            self.finish(index);
        } else if is_dropped {
            // At once, but not before this turn of the lane is over: whoever noticed the loss may still look at the link.
            self.slots[index].attempts += 1;
            self.set_timer(index, now);
        } else {
            self.back_off(index, now);
        }
    }

    /// A connection is gone before the load has begun.
    fn lost_early(&mut self, index: usize, why: Option<&str>) {
        let slot = &mut self.slots[index];
        let step = &self.routes[slot.session.workload].steps[slot.step as usize];
        let error = slot.session.take_server_error();
        let said = error.as_ref().map(ToString::to_string);
        let why = said.as_deref().or(why).unwrap_or("server closed the connection unexpectedly");
        self.fail(ConnectFailure {
            sqlstate: error.map(|error| error.sql_state.as_str().to_owned()),
            ..ConnectFailure::new(format!("{}: {why}", step.endpoint.connection_failed()))
        });
    }

    /// A session has aborted.
    pub(super) fn gone(&mut self, index: usize) {
        if self.grid.began == NEVER {
            // It has just said why.
            let message = self.narration.pop().map(|message| message.text).unwrap_or_default();
            self.fail(ConnectFailure::new(message));
        }
        if !self.slots[index].finished {
            (self.report)(Report::Aborted);
            self.finish(index);
        }
    }

    /// A client has done all it will do.
    pub(crate) fn finish(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.finished {
            return;
        }
        slot.finished = true;
        self.finished += 1;
        if let Link::Dialing(..) = slot.link {
            self.undial(index);
        }
        if self.slots[index].session.state == SessionState::Aborted {
            self.slots[index].link = Link::None;
        } else if self.leaves_alone(self.now()) {
            self.leave(index);
        }
    }

    /// The rig ends a client, in the middle of a transaction or not.
    pub(crate) fn give_up(&mut self, index: usize) {
        let now = self.now();
        let is_lost = matches!(self.slots[index].link, Link::None);
        self.step(index, now, |session, cx| {
            session.give_up(cx, now);
            if is_lost {
                session.account_for_loss(cx, now);
            }
            Wait::Server
        });
        self.finish(index);
    }

    /// No session waits any longer.
    pub(super) fn abandon(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].finished {
                continue;
            }
            if let Link::Live(_) = self.slots[index].link {
                self.slots[index].link = Link::None;
            }
            self.give_up(index);
        }
    }
}
