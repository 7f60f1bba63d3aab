//! The processes of a server on this machine: its backends by the number that the server has for
//! them, and the kernel's account of each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use os::account::{self, Account, CpuTicks, Spent};
use os::usage::Stat;
use tail::OffCpu;

use super::view::Own;

/// The processes of one server.
#[derive(Debug)]
pub(crate) struct Processes {
    postmaster: u32,
    backends: HashMap<i32, Backend>,
    /// Children are listed again at most this often.
    listed: Option<Instant>,
    ticks: Option<(Instant, CpuTicks)>,
    steal: u8,
}

#[derive(Debug)]
struct Backend {
    account: Account,
    /// The last look that read it: its number, its moment, and the account then.
    last: Option<(u64, Instant, Spent)>,
    changed: Instant,
}

/// Time between two listings of the children.
const LIST_EACH: Duration = Duration::from_millis(50);

/// A process is older than its session by the time that it took to begin.
const AGE_WITHIN_S: f64 = 5.0;

/// Time over which steal is averaged: the kernel counts it in ticks.
const STEAL_OVER: Duration = Duration::from_secs(1);

/// A backend whose last reading is older was not looked at in between: what it has spent since says
/// little of now.
const READ_WITHIN: Duration = Duration::from_millis(100);

impl Processes {
    /// Those of the server whose postmaster this is.
    pub(crate) fn of(postmaster: u32) -> Processes {
        let (backends, ticks) = (HashMap::new(), None);
        Processes { postmaster, backends, listed: None, ticks, steal: 0 }
    }

    /// Those of the server of a session, if it runs on this machine: a backend has the session's number
    /// and age, and names its user and database.
    ///
    /// # Errors
    /// The reason why they are not known, in half a sentence.
    pub(crate) fn find(own: &Own) -> Result<Processes, String> {
        let all = os::usage::all()
            .map_err(|error| format!("the processes of this machine cannot be listed: {error}"))?;
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let is_it = |stat: &&Stat| {
            // A tick is a hundredth of a second.
            let age_s = boot.tv_sec as f64 - stat.started as f64 / 100.0;
            (age_s - own.age_s).abs() < AGE_WITHIN_S
                && account::own_number(stat.pid).and_then(|own| i32::try_from(own).ok())
                    == Some(own.backend)
                && account::title(stat.pid).is_some_and(|title| {
                    title.starts_with("postgres:")
                        && title.contains(&format!("{} {} ", own.user, own.database))
                })
        };
        let mut found = all.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(Processes::of(one.parent)),
            (None, _) => Err("the server does not run on this machine".to_owned()),
            (Some(_), Some(_)) => Err("several servers of this machine look alike".to_owned()),
        }
    }

    pub(crate) fn postmaster(&self) -> u32 {
        self.postmaster
    }

    /// The kernel's account of a backend since the look before. A process that is woken has its wait
    /// event until it gets a CPU, so run delay hides behind any event.
    pub(crate) fn off_cpu(
        &mut self,
        backend: i32,
        has_event: bool,
        look: u64,
        now: Instant,
    ) -> OffCpu {
        if !self.backends.contains_key(&backend) {
            self.list(now);
        }
        let Some(known) = self.backends.get_mut(&backend) else { return OffCpu::default() };
        let Some(spent) = known.account.read() else {
            self.backends.remove(&backend);
            return OffCpu::default();
        };
        let before = known.last.replace((look, now, spent));
        let Some((number, then, before)) = before else { return OffCpu::default() };
        if spent != before {
            known.changed = now;
        }
        let span = Span {
            all: (now - then).as_nanos() as f64,
            cpu: spent.cpu_ns.saturating_sub(before.cpu_ns) as f64,
            delay: spent.run_delay_ns.saturating_sub(before.run_delay_ns) as f64,
            still: now - known.changed,
        };
        match number + 1 == look && now - then <= READ_WITHIN {
            true => span.off_cpu(has_event),
            // It was not looked at in between.
            false => OffCpu::default(),
        }
    }

    /// CPU time that the hypervisor took lately, in 255ths.
    pub(crate) fn steal(&mut self, now: Instant) -> u8 {
        match self.ticks {
            Some((then, before)) if now - then >= STEAL_OVER => {
                if let Some(ticks) = CpuTicks::read() {
                    self.steal = (ticks.steal_since(before) * 255.0).round() as u8;
                    self.ticks = Some((now, ticks));
                }
            }
            Some(_) => {}
            None => self.ticks = CpuTicks::read().map(|ticks| (now, ticks)),
        }
        self.steal
    }

    fn list(&mut self, now: Instant) {
        if self.listed.is_some_and(|then| now - then < LIST_EACH) {
            return;
        }
        self.listed = Some(now);
        for child in account::children(self.postmaster) {
            let Some(own) = account::own_number(child).and_then(|own| i32::try_from(own).ok())
            else {
                continue;
            };
            if let (false, Ok(account)) = (self.backends.contains_key(&own), Account::open(child)) {
                self.backends.insert(own, Backend { account, last: None, changed: now });
            }
        }
    }
}

/// The account of a process between two looks, in nanoseconds.
struct Span {
    all: f64,
    cpu: f64,
    delay: f64,
    /// Time since its account changed.
    still: Duration,
}

/// A running process is brought to account at each tick of its CPU, 10 ms at most: one whose account
/// does not change for longer does not run.
const TICK_MAX: Duration = Duration::from_millis(12);

/// A smaller share is an error of the reading.
const NOISE: f64 = 0.05;

impl Span {
    fn off_cpu(&self, has_event: bool) -> OffCpu {
        let of_255 = |part: f64| {
            let share = part / self.all.max(1.0);
            if share < NOISE { 0 } else { (share * 255.0).clamp(0.0, 255.0) as u8 }
        };
        let run_delay = of_255(self.delay);
        if has_event {
            return OffCpu { run_delay, blocked: 0, is_known: true };
        }
        match self.cpu + self.delay > 0.0 {
            true => {
                let blocked = of_255((self.all - self.cpu - self.delay).max(0.0));
                // A tick brings to account what was spent before this span began.
                OffCpu { run_delay, blocked: blocked.min(255 - run_delay), is_known: true }
            }
            false if self.still > TICK_MAX => OffCpu { run_delay: 0, blocked: 255, is_known: true },
            false => OffCpu::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_time_between_two_looks() {
        let check =
            |[all, cpu, delay]: [f64; 3], still_ms: u64, has_event: bool, expected: [u8; 2]| {
                let span = Span { all, cpu, delay, still: Duration::from_millis(still_ms) };
                let OffCpu { run_delay, blocked, .. } = span.off_cpu(has_event);
                assert_eq!([run_delay, blocked], expected, "{all} {cpu} {delay} {still_ms}");
            };
        check([1e6, 0.0, 1e6], 0, false, [255, 0]);
        check([1e6, 5e5, 5e5], 0, false, [127, 0]);
        check([1e6, 5e5, 0.0], 0, false, [0, 127]);
        // What was spent since the last tick is brought to account at once.
        check([1e6, 4e6, 0.0], 0, false, [0, 0]);
        // It runs, until the next tick; or it does not run.
        check([1e6, 0.0, 0.0], 5, false, [0, 0]);
        check([1e6, 0.0, 0.0], 50, false, [0, 255]);
        // Woken from its wait, and without a CPU since then.
        check([1e6, 0.0, 9e5], 0, true, [229, 0]);
        check([1e6, 0.0, 0.0], 50, true, [0, 0]);
    }
}
