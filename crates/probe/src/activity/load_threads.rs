//! The threads of the load, where they are this process's.

use std::time::{Duration, Instant};

use os::account::{self, ThreadAccount, ThreadTimes};

/// The kernel's accounts of the load's threads.
#[derive(Debug, Default)]
pub(crate) struct LoadThreads {
    accounts: Vec<(u32, ThreadAccount, Option<ThreadTimes>)>,
    listed: Option<Instant>,
    waited_ns: u64,
}

/// Time between two listings of the threads: they begin after the sampler.
const LIST_EACH: Duration = Duration::from_millis(250);
/// The same once some are known: a listing takes as long as a look.
const LIST_AGAIN_EACH: Duration = Duration::from_secs(2);

impl LoadThreads {
    /// Time that one of them has been ready to run without a CPU so far, on average.
    pub(crate) fn waited_ns(&mut self, now: Instant) -> u64 {
        self.list(now);
        let (mut waited, mut count) = (0, 0_u64);
        self.accounts.retain_mut(|(_, account, last)| {
            let Some(spent) = account.read() else { return false };
            if let Some(before) = last.replace(spent) {
                waited += spent.run_delay_ns.saturating_sub(before.run_delay_ns);
                count += 1;
            }
            true
        });
        self.waited_ns += waited / count.max(1);
        self.waited_ns
    }

    fn list(&mut self, now: Instant) {
        let each = if self.accounts.is_empty() { LIST_EACH } else { LIST_AGAIN_EACH };
        if self.listed.is_some_and(|then| now - then < each) {
            return;
        }
        self.listed = Some(now);
        for thread in account::own_threads(tail::LOAD_THREAD) {
            let is_known = self.accounts.iter().any(|(known, ..)| *known == thread);
            if let (false, Ok(account)) = (is_known, ThreadAccount::open(thread)) {
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
        threads.waited_ns(began);
        assert_eq!(threads.accounts.len(), 1);
        // It waits for a message, and for no CPU.
        assert!(threads.waited_ns(began + Duration::from_secs(10)) < 1_000_000_000);
        drop(ends);
        lane.join().unwrap().unwrap_err();
        threads.waited_ns(began + Duration::from_secs(20));
        assert_eq!(threads.accounts.len(), 0);
    }
}
