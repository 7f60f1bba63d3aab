//! Choice of the session that starts its next transaction, and of the time: turns in a closed loop,
//! the schedule's slots in an open one.

use super::{Lane, Link, traffic::EVENTS_MAX};
use crate::LoadPlan;
use crate::grid::{Grid, NEVER};
use crate::session::{SessionState, Wait};

/// A moment on the clock of a workload's schedule, which stands still outside the workload's blocks, and is
/// faster or slower than time where the plan's rates are.
pub(super) fn schedule_clock(plan: &LoadPlan, workload: usize, grid: &Grid, now: u64) -> u64 {
    match (&plan.blocks, &plan.rates) {
        (Some(blocks), _) => blocks.active_until(workload, grid, now),
        (None, Some(rates)) => rates.on_schedule(grid, now),
        (None, None) => now,
    }
}

impl Lane<'_> {
    /// A session has nothing to do: another transaction, or its end.
    pub(super) fn next(&mut self, index: usize, now: u64) {
        if self.is_spent(index, now) {
            self.finish(index);
            return;
        }
        let session = &self.slots[index].session;
        if self.programs[session.workload].connect_each && session.transactions > 0 {
            self.hang_up(index);
        }
        // One transaction, then the others have their turn, unless the server has it anyway.
        self.have_turn(index);
    }

    /// True if a session may begin no further transaction.
    pub(super) fn is_spent(&self, index: usize, now: u64) -> bool {
        let session = &self.slots[index].session;
        let limit = self.programs[session.workload].transactions;
        now >= self.grid.close || limit.is_some_and(|limit| session.transactions >= limit)
    }

    /// Puts a session that could start a transaction behind those that wait for the same.
    pub(crate) fn have_turn(&mut self, index: usize) {
        self.turn.push_back(index);
    }

    pub(super) fn take_turns(&mut self) {
        // Not all of thousands at once: the first ones' answers must not wait for the last ones.
        for _ in 0..self.turn.len().min(EVENTS_MAX) {
            let Some(index) = self.turn.pop_front() else { break };
            let now = self.now();
            self.roll(now);
            self.start(index, now);
        }
    }

    /// Starts the next transaction of an idle session, if it is due.
    fn start(&mut self, index: usize, now: u64) {
        if !self.is_ready(index) {
            return;
        }
        if self.is_spent(index, now) {
            self.finish(index);
            return;
        }
        let workload = self.slots[index].session.workload;
        if self.is_held_back(workload, now) {
            self.queue(index);
        } else if self.schedules[workload].is_some() {
            self.queue(index);
            self.start_due(now);
        } else if matches!(self.slots[index].link, Link::None) {
            self.redial(index, now);
        } else {
            self.begin_turn(index, now);
            self.step(index, now, |session, cx| {
                session.choose(cx);
                session.begin(cx, now, now)
            });
        }
    }

    /// The first transaction of a session in a block begins its random numbers anew.
    fn begin_turn(&mut self, index: usize, now: u64) {
        let turn = self.plan.blocks.as_ref().and_then(|blocks| blocks.turn(&self.grid, now));
        let slot = &mut self.slots[index];
        if let (Some(turn), Some(draws)) = (turn, &mut slot.draws) {
            draws.begin(turn.draws, &mut slot.session);
        }
    }

    /// Puts an idle session behind those of its workload that wait for a slot or a block.
    fn queue(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !std::mem::replace(&mut slot.queued, true) {
            self.idle[slot.session.workload].push_back(index);
        }
    }

    /// True if the block under way belongs to another workload.
    fn is_held_back(&self, workload: usize, now: u64) -> bool {
        let blocks = self.plan.blocks.as_ref();
        blocks.is_some_and(|blocks| !blocks.is_on(workload, &self.grid, now))
    }

    /// Gives the sessions whose block has begun their turn.
    pub(super) fn start_block(&mut self, now: u64) {
        if self.plan.blocks.is_none() {
            return;
        }
        for workload in 0..self.idle.len() {
            // Those of a schedule wait for its slots.
            let has_schedule = self.schedules[workload].is_some();
            if has_schedule || self.idle[workload].is_empty() || self.is_held_back(workload, now) {
                continue;
            }
            for index in std::mem::take(&mut self.idle[workload]) {
                self.slots[index].queued = false;
                self.have_turn(index);
            }
        }
    }

    /// True if a session can begin a transaction: it is idle, and it has a connection or makes one
    /// for each transaction.
    fn is_ready(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let reachable = match slot.link {
            Link::Live(_) => true,
            Link::None => slot.attempts == 0 && self.programs[slot.session.workload].connect_each,
            Link::Dialing(..) | Link::Closing(..) => false,
        };
        reachable && !slot.finished && slot.session.state == SessionState::Idle
    }

    /// Starts the clocks of the schedules.
    pub(super) fn begin_schedules(&mut self, began: u64) {
        for workload in 0..self.schedules.len() {
            let now = self.on_schedule(workload, began);
            if let Some(schedule) = &mut self.schedules[workload] {
                schedule.begin(now);
            }
        }
    }

    /// A moment on the clock of a workload's schedule.
    pub(super) fn on_schedule(&self, workload: usize, now: u64) -> u64 {
        schedule_clock(self.plan, workload, &self.grid, now)
    }

    /// Time at which the next slot of a workload is due: as long before now, or after it, as it is
    /// on the clock of its schedule. None in closed loop.
    fn due(&self, workload: usize, now: u64) -> Option<u64> {
        let due = self.schedules[workload].as_ref()?.due_ns();
        Some(self.moment(workload, due, now))
    }

    /// The moment at which the clock of a workload's schedule shows `due`.
    fn moment(&self, workload: usize, due: u64, now: u64) -> u64 {
        match (&self.plan.blocks, &self.plan.rates) {
            (None, None) => return due,
            (None, Some(rates)) => return rates.moment(&self.grid, due),
            (Some(_), _) => {}
        }
        let on_schedule = self.on_schedule(workload, now);
        // A lane without clients has slots beyond all moments.
        match due > on_schedule {
            true => now.saturating_add(due - on_schedule),
            false => now.saturating_sub(on_schedule - due),
        }
    }

    /// Time at which a session that waits for a slot or a block has its turn next.
    pub(super) fn next_slot(&self) -> u64 {
        let waiting = self.idle.iter().enumerate().filter(|(_, idle)| !idle.is_empty());
        let next = waiting.filter_map(|(workload, _)| {
            if self.plan.blocks.is_none() {
                return self.due(workload, self.now());
            }
            let (blocks, now) = (self.plan.blocks.as_ref()?, self.now());
            let begins = blocks.next(workload, &self.grid, now);
            match self.due(workload, now) {
                Some(due) if !self.is_held_back(workload, now) => Some(begins.min(due)),
                _ => Some(begins),
            }
        });
        next.min().unwrap_or(NEVER)
    }

    /// Open loop: gives every slot that is due to a session that is idle.
    pub(super) fn start_due(&mut self, now: u64) {
        for workload in 0..self.schedules.len() {
            if self.is_held_back(workload, now) {
                continue;
            }
            while let (Some(due), Some(&index)) =
                (self.due(workload, now), self.idle[workload].front())
            {
                if due > now && due < self.grid.close {
                    break;
                }
                self.idle[workload].pop_front();
                self.slots[index].queued = false;
                if !self.is_ready(index) {
                    // Its connection was lost while it stood in line.
                    continue;
                }
                // As in pgbench, a client whose next slot lies beyond the end is done.
                if due >= self.grid.close {
                    self.finish(index);
                    continue;
                }
                if let Some(schedule) = &mut self.schedules[workload] {
                    schedule.take();
                }
                self.start_scheduled(index, now, due);
            }
        }
    }

    fn start_scheduled(&mut self, index: usize, now: u64, mut scheduled: u64) {
        let workload = self.slots[index].session.workload;
        let program = &self.programs[workload];
        let mut skipped = Vec::new();
        if let Some(limit) = program.stale_ns() {
            let left = program
                .transactions
                .map_or(u64::MAX, |limit| limit - self.slots[index].session.transactions);
            while now.saturating_sub(scheduled) > limit && (skipped.len() as u64) < left {
                let Some(schedule) = &mut self.schedules[workload] else { break };
                let due = schedule.take();
                skipped.push(scheduled);
                scheduled = self.moment(workload, due, now);
            }
        }
        let enough = program.transactions.is_some_and(|limit| {
            self.slots[index].session.transactions + skipped.len() as u64 >= limit
        });
        let ahead = scheduled > now;
        let ends = enough || (ahead && scheduled >= self.grid.close);
        let apart = matches!(self.slots[index].link, Link::None);
        self.begin_turn(index, now);
        self.step(index, now, |session, cx| {
            session.choose(cx);
            for scheduled in skipped {
                session.skip(cx, now, scheduled);
            }
            match () {
                () if ends => Wait::Server,
                // The slot that came out of skipping lies ahead: wait for it.
                () if ahead => session.wait_for_slot(scheduled),
                // As in pgbench, connecting is part of what the user of this slot waits for.
                () if apart => {
                    session.wait_for_slot(scheduled);
                    Wait::Server
                }
                () => session.begin(cx, now, scheduled),
            }
        });
        if ends {
            self.finish(index);
        } else if apart && !ahead {
            self.redial(index, now);
        }
    }
}
