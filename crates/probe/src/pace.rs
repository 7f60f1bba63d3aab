//! Keeps a costly reading rare.

use record::Moment;

use os::usage::this_thread_cpu_ns;

/// A reading may take one part in so many of a core: one that costs 20 ms of CPU time is done
/// once a second, one that costs a second every 50 seconds.
const SHARE: u64 = 50;

/// Time at which a reading is next due.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    next: Moment,
}

impl Pace {
    /// Does `read` if it is due at `now`. Its cost is CPU time: on a busy machine it may have had
    /// to wait for that, which costs nobody anything.
    pub(crate) fn when_due<T>(&mut self, now: Moment, read: impl FnOnce() -> T) -> Option<T> {
        if now < self.next {
            return None;
        }
        let before = this_thread_cpu_ns();
        let result = read();
        self.spent(now, this_thread_cpu_ns().saturating_sub(before));
        Some(result)
    }

    fn spent(&mut self, began: Moment, cpu_ns: u64) {
        self.next = began.plus_ns(cpu_ns.saturating_mul(SHARE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_reading_waits_fifty_times_its_cost() {
        let mut pace = Pace::default();
        assert!(pace.when_due(Moment(0), || ()).is_some());
        pace.spent(Moment(1_000), 100_000_000);
        assert!(pace.when_due(Moment(4_999_000_000), || ()).is_none());
        assert!(pace.when_due(Moment(5_000_001_000), || ()).is_some());
    }
}
