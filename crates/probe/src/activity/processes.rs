//! The processes of a server on this machine: its backends by the number that the server has for
//! them, and the kernel's account of each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use os::account::{self, CpuTicks, ThreadAccount};
use os::usage::ProcessStat;
use tail::ProcessTimes;

use super::view::Own;

/// The processes of one server.
#[derive(Debug)]
pub(crate) struct Processes {
    postmaster: u32,
    backends: HashMap<i32, ThreadAccount>,
    /// Children are listed again at most this often.
    listed: Option<Instant>,
    ticks: Option<(Instant, CpuTicks)>,
    steal: u8,
}

/// Time between two listings of the children.
const LIST_EACH: Duration = Duration::from_millis(50);

/// A process is older than its session by the time that it took to begin.
const AGE_WITHIN_S: f64 = 5.0;

/// Time over which steal is averaged: the kernel counts it in ticks.
const STEAL_OVER: Duration = Duration::from_secs(1);

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
        let is_it = |stat: &&ProcessStat| {
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

    /// The kernel's account of a backend; none if it is not known.
    pub(crate) fn spent(&mut self, backend: i32, now: Instant) -> Option<ProcessTimes> {
        if !self.backends.contains_key(&backend) {
            self.list(now);
        }
        let Some(spent) = self.backends.get(&backend)?.read() else {
            self.backends.remove(&backend);
            return None;
        };
        Some(ProcessTimes { cpu_ns: spent.cpu_ns, run_delay_ns: spent.run_delay_ns })
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
            if let (false, Ok(account)) =
                (self.backends.contains_key(&own), ThreadAccount::open(child))
            {
                self.backends.insert(own, account);
            }
        }
    }
}
