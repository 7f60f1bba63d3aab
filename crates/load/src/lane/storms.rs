//! Storms of connections: all clients of a workload drop theirs at one moment and connect anew.

use rustix::net::{Shutdown, shutdown};

use super::{Lane, Link};
use crate::{LoadPlan, grid::NEVER};

/// The storms of a plan, the first one last: milliseconds since the window opened, and the workload.
pub(super) fn of(plan: &LoadPlan) -> Vec<(u64, usize)> {
    let workloads = plan.workloads.iter().enumerate();
    let storms = workloads
        .flat_map(|(index, workload)| workload.storms_ms.iter().map(move |at_ms| (*at_ms, index)));
    let mut storms: Vec<(u64, usize)> = storms.collect();
    storms.sort_unstable_by(|one, other| other.cmp(one));
    storms
}

impl Lane<'_> {
    /// The moment of the next storm.
    pub(super) fn next_storm(&self) -> u64 {
        match (self.storms.last(), self.grid.open) {
            (None, _) | (_, NEVER) => NEVER,
            (Some((at_ms, _)), open) => open.saturating_add(at_ms * 1_000_000),
        }
    }

    /// Begins the storms whose moment has come. A connection is shut down and not closed: what reads it notices its end
    /// as it notices any other.
    pub(super) fn begin_storms(&mut self, now: u64) {
        while now >= self.next_storm() {
            // A moment that has come is that of a storm.
            let Some((_, workload)) = self.storms.pop() else { return };
            self.connecting.take_all_at_once();
            for index in 0..self.slots.len() {
                let slot = &mut self.slots[index];
                if slot.session.workload != workload || slot.finished {
                    continue;
                }
                if let Link::Live(socket) = &slot.link {
                    // One that the server has closed already is noticed all the same.
                    slot.is_dropped = shutdown(socket.fd(), Shutdown::Both).is_ok();
                }
            }
        }
    }
}
