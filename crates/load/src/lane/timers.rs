//! Moments that sessions wait for.

use std::cmp::Reverse;

use super::{Lane, Link};

impl Lane<'_> {
    pub(super) fn fire_timers(&mut self, now: u64) {
        while let Some(Reverse((at, index, generation))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let slot = &self.slots[index];
            if slot.generation != generation || slot.finished {
                continue;
            }
            match slot.link {
                Link::None => self.redial(index, now),
                Link::Live(_) => self.step(index, now, |session, cx| session.wake(cx, now)),
                Link::Dialing(..) | Link::Closing(..) => {}
            }
        }
    }

    pub(crate) fn set_timer(&mut self, index: usize, at: u64) {
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        self.timers.push(Reverse((at, index, slot.generation)));
    }
}
