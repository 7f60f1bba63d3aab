//! The threads of the load, where they are this process's.

use std::time::{Duration, Instant};

use os::account::{self, Account, Spent};

/// The kernel's accounts of the load's threads.
#[derive(Debug, Default)]
pub(crate) struct LoadThreads {
    accounts: Vec<(u32, Account, Option<Spent>)>,
    listed: Option<Instant>,
    read: Option<Instant>,
}

/// Time between two listings of the threads: they begin after the sampler.
const LIST_EACH: Duration = Duration::from_millis(250);

impl LoadThreads {
    /// Share of the time since the last call in which they were ready to run and had no CPU, in 255ths.
    pub(crate) fn delay(&mut self, now: Instant) -> u8 {
        self.list(now);
        let since = self.read.replace(now).map_or(0, |then| (now - then).as_nanos());
        let (mut waited, mut count) = (0, 0_u32);
        self.accounts.retain_mut(|(_, account, last)| {
            let Some(spent) = account.read() else { return false };
            if let Some(before) = last.replace(spent) {
                waited += spent.run_delay_ns.saturating_sub(before.run_delay_ns);
                count += 1;
            }
            true
        });
        let all = since as f64 * f64::from(count);
        if all > 0.0 { (waited as f64 / all * 255.0).min(255.0) as u8 } else { 0 }
    }

    fn list(&mut self, now: Instant) {
        if self.listed.is_some_and(|then| now - then < LIST_EACH) {
            return;
        }
        self.listed = Some(now);
        for thread in account::own_threads(tail::LOAD_THREAD) {
            let is_known = self.accounts.iter().any(|(known, ..)| *known == thread);
            if let (false, Ok(account)) = (is_known, Account::open(thread)) {
                self.accounts.push((thread, account, None));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_load_are_found_by_their_name() {
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let lane = std::thread::Builder::new().name(format!("{} 0", tail::LOAD_THREAD));
        let (tells, told) = std::sync::mpsc::channel();
        let lane = lane.spawn(move || {
            // A thread gives itself its name when it begins.
            tells.send(()).unwrap();
            end.recv()
        });
        let lane = lane.unwrap();
        told.recv().unwrap();
        let mut threads = LoadThreads::default();
        let began = Instant::now();
        threads.delay(began);
        assert_eq!(threads.accounts.len(), 1);
        // It waits for a message, and for no CPU.
        assert!(threads.delay(began + Duration::from_secs(10)) < 128);
        drop(ends);
        lane.join().unwrap().unwrap_err();
        threads.delay(began + Duration::from_secs(20));
        assert_eq!(threads.accounts.len(), 0);
    }
}
