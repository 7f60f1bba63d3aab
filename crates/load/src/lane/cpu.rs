//! CPU time that a lane's thread uses, and the time that it waits for a CPU.

use os::usage::this_thread_run_delay_ns;
use rustix::time::{ClockId, clock_gettime};

use crate::grid::{Grid, NEVER};

/// CPU time of this thread when the window opened, and when it closed.
#[derive(Default)]
pub(super) struct Cpu {
    at_open: Option<Account>,
    at_close: Option<Account>,
}

#[derive(Clone, Copy)]
struct Account {
    at: u64,
    cpu_ns: u64,
    run_delay_ns: Option<u64>,
}

/// CPU time of a lane's thread inside the window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    /// Share of the window that it was on the CPU.
    pub(crate) busy_share: f64,
    /// Time that it could run and had no CPU, in time of a clock: that of a control group which has used its share is in
    /// it, and that in `cpu.stat` is not taken, since it is summed over CPUs. None if the kernel does not tell.
    pub(crate) run_delay_ns: Option<u64>,
    /// Share of the window in which it was on the CPU, could run and had none, or was held up with its control
    /// group; none if the kernel does not tell.
    pub(crate) wanted_share: Option<f64>,
}

impl Account {
    fn at(now: u64) -> Account {
        Account { at: now, cpu_ns: thread_cpu_ns(), run_delay_ns: this_thread_run_delay_ns() }
    }
}

impl Cpu {
    pub(super) fn look(&mut self, now: u64, grid: &Grid) {
        if self.at_open.is_none() && now >= grid.open {
            self.at_open = Some(Account::at(now));
        }
        if self.at_close.is_none() && now >= grid.close {
            self.at_close = Some(Account::at(now));
        }
    }

    /// The moment at which [`Cpu::look`] has something to do: nothing else may wake a thread that is
    /// idle at an edge of the window.
    pub(super) fn next_look(&self, grid: &Grid) -> u64 {
        match (self.at_open, self.at_close) {
            (None, _) => grid.open,
            (Some(_), None) => grid.close,
            (Some(_), Some(_)) => NEVER,
        }
    }

    pub(super) fn leave(&mut self, now: u64) {
        self.at_close.get_or_insert_with(|| Account::at(now));
    }

    pub(super) fn used(&self) -> Spent {
        let (Some(open), Some(close)) = (self.at_open, self.at_close) else {
            return Spent::default();
        };
        let cpu_ns = close.cpu_ns.saturating_sub(open.cpu_ns);
        let since = |before: Option<u64>, after: Option<u64>| {
            before.zip(after).map(|(before, after)| after.saturating_sub(before))
        };
        let run_delay_ns = since(open.run_delay_ns, close.run_delay_ns);
        let share = |ns: u64| ns as f64 / close.at.saturating_sub(open.at).max(1) as f64;
        Spent {
            cpu_ns,
            busy_share: share(cpu_ns),
            run_delay_ns,
            wanted_share: run_delay_ns.map(|ns| share(cpu_ns.saturating_add(ns)).min(1.0)),
        }
    }
}

/// CPU that this thread has spent, user and system.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
