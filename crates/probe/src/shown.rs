//! The part of the counted CPU time that is shown.

use record::Moment;

/// A group's CPU time, user and system, as it is shown: never more in a time than the cores give.
///
/// Processes are read one after another, and the scan's moment is its middle. What was read after
/// that moment belongs to the next one, and is shown there; nothing is lost.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    counted_s: [f64; 2],
    shown_s: [f64; 2],
    before: Option<Moment>,
}

impl Shown {
    /// Adds seconds that were used, user and system.
    pub(crate) fn count(&mut self, used_s: [f64; 2]) {
        self.counted_s = [0, 1].map(|mode| self.counted_s[mode] + used_s[mode]);
    }

    /// CPU time to show at `at`, on a machine of so many cores.
    pub(crate) fn at(&mut self, at: Moment, cores: f64) -> [f64; 2] {
        let waiting = [0, 1].map(|mode| self.counted_s[mode] - self.shown_s[mode]);
        let all = waiting[0] + waiting[1];
        let room = self.before.map_or(f64::INFINITY, |then| at.since(then) as f64 / 1e9 * cores);
        let share = if all > room { room / all } else { 1.0 };
        self.shown_s = [0, 1].map(|mode| self.shown_s[mode] + waiting[mode] * share);
        self.before = Some(at);
        self.shown_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However long scans take, and whenever in them a process is read, no lane is above the
        /// machine's cores, and nothing that was used is lost.
        #[test]
        fn no_lane_is_above_the_cores_and_nothing_is_lost(
            cores in 1..8_u32,
            scans in prop::collection::vec((10_000_000..3_000_000_000_u64, 0..600_000_000_u64, 0.0..1.0), 2..40),
        ) {
            let cores = f64::from(cores);
            let mut shown = Shown::default();
            let (mut began, mut before, mut read) = (0, None, 0.0);
            for (pause, length, reached) in scans {
                began += pause;
                // A machine that is busy all the time, read somewhere within the scan.
                let seen_s = (began as f64 + length as f64 * reached) / 1e9;
                read = cores * seen_s;
                shown.counted_s = [read * 0.75, read * 0.25];
                let at = Moment(began + length / 2);
                let [user_s, system_s] = shown.at(at, cores);
                if let Some((then, shown_s)) = before {
                    let elapsed_s = at.since(then) as f64 / 1e9;
                    let rate = (user_s + system_s - shown_s) / elapsed_s;
                    prop_assert!(rate <= cores * (1.0 + 1e-9), "{rate} of {cores}");
                }
                before = Some((at, user_s + system_s));
                began += length;
            }
            // An idle while later everything is shown.
            let [user_s, system_s] = shown.at(Moment(began + 10_000_000_000), cores);
            prop_assert!((user_s + system_s - read).abs() < 1e-6 * read);
        }
    }
}
