//! Keeps a costly reading rare.

use std::time::Duration;

use record::Moment;

/// A reading may take one part in so many of the time: one that costs 20 ms is done once a second,
/// one that costs a second every 50 seconds.
const SHARE: u32 = 50;

/// When a reading is next due, so that it never costs more than a fiftieth of a core.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    next: Moment,
}

impl Pace {
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        now >= self.next
    }

    /// Tells that a reading that began at `began` took `cost`.
    pub(crate) fn ran(&mut self, began: Moment, cost: Duration) {
        let pause = cost.saturating_mul(SHARE);
        self.next = began.plus_ns(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_reading_waits_fifty_times_its_cost() {
        let mut pace = Pace::default();
        assert!(pace.is_due(Moment(0)));
        pace.ran(Moment(1_000), Duration::from_millis(100));
        assert!(!pace.is_due(Moment(4_999_000_000)));
        assert!(pace.is_due(Moment(5_000_001_000)));
    }
}
