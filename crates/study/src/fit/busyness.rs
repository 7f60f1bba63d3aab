//! How much longer work takes on a machine that others use.

use std::time::Duration;

use lab::MachineContention;

/// The time for which the machine is looked at before a plan is made.
pub(crate) const LOOK: Duration = Duration::from_millis(300);

/// How many times as long the work of building and checking takes beside what others do as on the idle machine, at
/// least 1. Others of whom the kernel does not tell count as none: the estimate is that of an idle machine then.
///
/// A further thread gets its part of the CPUs, and less where the hypervisor takes CPU time away. Work that often waits
/// for other processes and for the disk goes before threads that never wait, so that it is slowed down less.
pub(crate) fn slowdown(contention: MachineContention, cores: usize) -> f64 {
    // A kernel that does not say is one of an idle machine, as above.
    let threads = contention.runnable.unwrap_or(0.0) + 1.0;
    let share = (cores as f64 / threads).min(1.0) * (1.0 - contention.steal_share.min(STEAL_MAX));
    share.recip().powf(WAITS)
}

/// As measured on two CPUs that 25 to 30 processes wanted: the smoke of `replication` took 8.4 times as long beside its
/// loads as on the idle machine, and that of `pgbench` 5.8 times.
const WAITS: f64 = 0.74;

/// A machine whose CPUs are taken away nearly always is slower than any estimate tells.
const STEAL_MAX: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_longer_beside_others_and_less_so_than_in_proportion() {
        let check = |runnable: Option<f64>, steal_share: f64, least: f64, most: f64| {
            let seen = slowdown(MachineContention { runnable, steal_share }, 2);
            assert!((least..=most).contains(&seen), "{runnable:?}, {steal_share}: {seen}");
        };
        check(None, 0.0, 1.0, 1.0);
        check(Some(0.0), 0.0, 1.0, 1.0);
        // The other CPU is there for it.
        check(Some(1.0), 0.0, 1.0, 1.0);
        check(Some(7.0), 0.0, 2.5, 3.0);
        // Measured: 5.8 and 8.4 times, each within 30 %.
        check(Some(25.0), 0.0, 5.8 / 1.3, 5.8 * 1.3);
        check(Some(29.0), 0.0, 8.4 / 1.3, 8.4 * 1.3);
        check(Some(0.0), 0.5, 1.6, 1.8);
        check(Some(0.0), 1.0, 5.0, 15.0);
    }
}
