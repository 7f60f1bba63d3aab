//! What a lane's thread spends on the CPU.

use rustix::time::{ClockId, clock_gettime};

use crate::grid::Grid;

/// What this thread had spent when the window opened, and when it closed.
#[derive(Default)]
pub(super) struct Cpu {
    at_open: Option<(u64, u64)>,
    at_close: Option<(u64, u64)>,
}

impl Cpu {
    pub(super) fn look(&mut self, now: u64, grid: &Grid) {
        if self.at_open.is_none() && now >= grid.open {
            self.at_open = Some((now, thread_cpu_ns()));
        }
        if self.at_close.is_none() && now >= grid.close {
            self.at_close = Some((now, thread_cpu_ns()));
        }
    }

    pub(super) fn leave(&mut self, now: u64) {
        self.at_close.get_or_insert_with(|| (now, thread_cpu_ns()));
    }

    pub(super) fn used(&self) -> (u64, f64) {
        let (Some((open, cpu_open)), Some((close, cpu_close))) = (self.at_open, self.at_close)
        else {
            return (0, 0.0);
        };
        let used = cpu_close.saturating_sub(cpu_open);
        (used, used as f64 / close.saturating_sub(open).max(1) as f64)
    }
}

/// CPU that this thread has spent, user and system.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
