//! The kernel's accounts of backends, as the state of each backend at each look.
//!
//! The kernel accounts a wait for a CPU when it ends, and time on a CPU at a tick or when the process
//! leaves the CPU. What two readings differ by ended between them, and may have begun long before the
//! first. A wait of 20 ms that looks saw twenty times is in the account after the last of these looks, and
//! the transaction that it delayed is over a moment later: each look gets its share from the
//! readings after it.

use std::collections::HashMap;

use crate::{ActivityLook, ActivitySamples, activity::BackendLook};

/// The kernel's account of a process: times that it has spent so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// On a CPU.
    pub cpu_ns: u64,
    /// Ready to run, without a CPU.
    pub run_delay_ns: u64,
}

/// Probable state of a backend at a look, beside its wait event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OffCpu {
    /// Probability that it was ready to run and had no CPU.
    pub(crate) run_delay: f32,
    /// Probability that it was neither on a CPU nor ready, and had no wait event.
    pub(crate) blocked: f32,
}

impl OffCpu {
    /// The state if it was on a CPU or ready.
    pub(crate) fn without_blocked(self) -> OffCpu {
        let rest = 1.0 - self.blocked;
        let run_delay = if rest > 0.0 { (self.run_delay / rest).min(1.0) } else { 0.0 };
        OffCpu { run_delay, blocked: 0.0 }
    }
}

/// Samples with the state of each backend at each look.
pub(crate) struct SettledSamples<'a> {
    pub(crate) activity: &'a ActivitySamples,
    /// For each entry of the samples; none where the account is not known.
    off_cpu: Vec<Option<OffCpu>>,
    /// For each look, the probability that a thread of the load waited for a CPU.
    load_delay: Vec<f32>,
}

/// A backend at a look.
#[derive(Clone, Copy)]
pub(crate) struct SettledBackend<'a> {
    pub(crate) backend: i32,
    pub(crate) event: &'a str,
    pub(crate) off_cpu: Option<OffCpu>,
}

/// Readings further apart say little of one moment between them.
const READ_WITHIN_NS: u64 = 150_000_000;

/// Between two looks further apart than this, a backend without a wait event at both may have had one.
const SAME_WITHIN_NS: u64 = 5_000_000;

impl<'a> SettledSamples<'a> {
    pub(crate) fn new(activity: &'a ActivitySamples) -> SettledSamples<'a> {
        let looks = activity.looks();
        let mut off_cpu = vec![None; activity.entries()];
        let mut load_delay = vec![0.0; looks.len()];
        let mut later: HashMap<i32, Later<'_>> = HashMap::new();
        let mut load: Option<Later<'_>> = None;
        for (index, look) in looks.iter().enumerate().rev() {
            for place in activity.places(look) {
                let seen = activity.at_place(place);
                match (seen.spent, later.get_mut(&seen.backend)) {
                    (Some(spent), Some(after)) => {
                        let now = Later::new(look.at, spent, seen.event);
                        let (unread, state) = after.step_back(now);
                        for (place, state) in unread {
                            off_cpu[place] = Some(state);
                        }
                        off_cpu[place] = state.map(|state| state.off_cpu);
                    }
                    (Some(spent), None) => {
                        let now = Later::new(look.at, spent, seen.event);
                        later.insert(seen.backend, now);
                    }
                    (None, Some(after)) => after.unread.push((place, look.at, seen.event)),
                    (None, None) => {}
                }
            }
            let spent = ProcessTimes { cpu_ns: 0, run_delay_ns: look.load_waited_ns };
            let now = Later::new(look.at, spent, "Client:ClientRead");
            match &mut load {
                Some(after) => {
                    let (_, state) = after.step_back(now);
                    // Between readings that are too far apart, no delay of the load is claimed.
                    load_delay[index] = state.map_or(0.0, |state| state.waits);
                }
                None => load = Some(now),
            }
            if look.follows_pause {
                later.clear();
                load = None;
            }
        }
        SettledSamples { activity, off_cpu, load_delay }
    }

    pub(crate) fn load_delay(&self, index: usize) -> f64 {
        f64::from(self.load_delay[index])
    }

    /// All backends of a look.
    pub(crate) fn backends(&self, look: &ActivityLook) -> impl Iterator<Item = SettledBackend<'_>> {
        self.activity.places(look).map(|place| self.seen(place))
    }

    /// A backend at a look; none if it was not there.
    pub(crate) fn backend(&self, look: &ActivityLook, backend: i32) -> Option<SettledBackend<'_>> {
        Some(self.seen(self.activity.place(look, backend)?))
    }

    fn seen(&self, place: usize) -> SettledBackend<'_> {
        let BackendLook { backend, event, .. } = self.activity.at_place(place);
        SettledBackend { backend, event, off_cpu: self.off_cpu[place] }
    }
}

/// A reading, and what is known of the time before it.
struct Later<'a> {
    at: u64,
    spent: ProcessTimes,
    event: &'a str,
    waits: Accounted,
    runs: Accounted,
    /// Looks before it at which the account was not read: place, moment, event.
    unread: Vec<(usize, u64, &'a str)>,
}

/// Time that was accounted between two readings.
#[derive(Clone, Copy, Default)]
struct Accounted {
    length: f64,
    /// The moment of the first reading, and the time until the second.
    from: u64,
    gap: f64,
}

/// Probabilities at a moment.
struct State {
    waits: f32,
    off_cpu: OffCpu,
}

impl<'a> Later<'a> {
    fn new(at: u64, spent: ProcessTimes, event: &'a str) -> Later<'a> {
        let (waits, runs) = (Accounted::default(), Accounted::default());
        Later { at, spent, event, waits, runs, unread: Vec::new() }
    }

    /// Goes back to the reading before, and tells the states at the looks between them by their places,
    /// and the state then.
    fn step_back(&mut self, now: Later<'a>) -> (Vec<(usize, OffCpu)>, Option<State>) {
        let after = std::mem::replace(self, now);
        let gap_ns = after.at.saturating_sub(self.at);
        if gap_ns > READ_WITHIN_NS {
            return (Vec::new(), None);
        }
        let ran = after.spent.cpu_ns.saturating_sub(self.spent.cpu_ns);
        let waited = after.spent.run_delay_ns.saturating_sub(self.spent.run_delay_ns);
        let has_account = ran > 0 || waited > 0;
        if !has_account {
            // A process that waits for a CPU keeps its event: with another one, it did not yet.
            if self.event == after.event {
                (self.runs, self.waits) = (after.runs, after.waits);
            }
        } else {
            // What was accounted later began later.
            let accounted = |length: u64| Accounted {
                length: length as f64,
                from: self.at,
                gap: (gap_ns as f64).max(1.0),
            };
            (self.runs, self.waits) = (accounted(ran), accounted(waited));
        }
        // Without an account of this time the state has not changed, but for the end of a rare block.
        let is_same = has_account && self.event == after.event && gap_ns <= SAME_WITHIN_NS;
        let state = |at: u64, event: &str| self.state(at, event, is_same);
        let unread =
            after.unread.iter().map(|(place, at, event)| (*place, state(*at, event).off_cpu));
        (unread.collect(), Some(state(self.at, self.event)))
    }

    /// The state at a moment, by what was accounted after it. `is_same` says that a backend without an
    /// event had none until the next reading.
    fn state(&self, at: u64, event: &str, is_same: bool) -> State {
        let (mut runs, mut waits) = (self.runs.covers(at), self.waits.covers(at));
        // A process that got a CPU after this moment has not run for longer since then.
        if runs >= 1.0 {
            waits = 0.0;
        } else if waits >= 1.0 {
            runs = 0.0;
        }
        let sum = runs + waits;
        let off_cpu = match event.is_empty() {
            // The time with an event is not the one that was seen.
            true if sum > 1.0 || (sum > 0.0 && !is_same) => {
                OffCpu { run_delay: (waits / sum) as f32, blocked: 0.0 }
            }
            true => OffCpu { run_delay: waits as f32, blocked: (1.0 - sum) as f32 },
            false => {
                let not_run = 1.0 - runs;
                let run_delay = if not_run > 0.0 { (waits / not_run).min(1.0) } else { 0.0 };
                OffCpu { run_delay: run_delay as f32, blocked: 0.0 }
            }
        };
        State { waits: waits as f32, off_cpu }
    }
}

impl Accounted {
    /// Probability that it was under way at a moment, if it ended at any moment between the readings.
    fn covers(self, at: u64) -> f64 {
        let before = self.from.saturating_sub(at) as f64;
        if self.gap > 0.0 { ((self.length - before) / self.gap).clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackgroundActivity, SamplingMethod};

    const US: u64 = 1_000;

    /// Readings of one backend: the moment, the time on a CPU and the waits so far, in microseconds.
    fn states(readings: &[(u64, u64, u64, &str)]) -> Vec<Option<[f32; 2]>> {
        let mut activity = ActivitySamples::from(SamplingMethod::SharedMemory);
        for &(at, cpu, run_delay, event) in readings {
            let spent = Some(ProcessTimes { cpu_ns: cpu * US, run_delay_ns: run_delay * US });
            let backend = BackendLook { backend: 1, event, spent };
            activity.add(at * US, BackgroundActivity::default(), [backend]);
        }
        let settled = SettledSamples::new(&activity);
        let rounded = |share: f32| (share * 100.0).round() / 100.0;
        let states = settled.off_cpu.iter();
        states.map(|one| one.map(|one| [rounded(one.run_delay), rounded(one.blocked)])).collect()
    }

    #[test]
    fn a_wait_is_that_of_the_looks_before_it_was_accounted() {
        let read = "Client:ClientRead";
        // Woken at 1,500; it has a CPU from 4,500 on, for 200, and then waits for its client again.
        let woken = [
            (0, 9, 7, read),
            (1_000, 9, 7, read),
            (2_000, 9, 7, read),
            (3_000, 9, 7, read),
            (4_000, 9, 7, read),
            (5_000, 209, 3_007, read),
        ];
        let expected = [0.0, 0.0, 1.0, 1.0, 1.0].map(|wait| Some([wait, 0.0]));
        assert_eq!(states(&woken), [&expected[..], &[None]].concat());
        // Preempted at 1,000, when its 3,000 on a CPU are accounted; it waits until 3,000.
        let preempted = [
            (0, 0, 0, ""),
            (1_100, 3_000, 0, ""),
            (2_100, 3_000, 0, ""),
            (3_100, 3_000, 2_000, ""),
        ];
        let expected = [Some([0.0, 0.0]), Some([1.0, 0.0]), Some([1.0, 0.0]), None];
        assert_eq!(states(&preempted), expected);
        // It runs until a tick says so.
        let runs = [(0, 0, 0, ""), (1_000, 0, 0, ""), (2_000, 0, 0, ""), (2_500, 4_000, 0, "")];
        assert_eq!(states(&runs)[..3], [Some([0.0, 0.0]); 3]);
    }

    #[test]
    fn a_look_that_did_not_read_the_account_has_its_share_of_the_time_between_two_that_did() {
        let read = "Client:ClientRead";
        let mut activity = ActivitySamples::from(SamplingMethod::SharedMemory);
        for (at, run_delay) in [(0, Some(0)), (1_000, None), (2_000, None), (4_000, Some(3_000))] {
            let spent = run_delay.map(|us| ProcessTimes { cpu_ns: 0, run_delay_ns: us * US });
            let backend = BackendLook { backend: 1, event: read, spent };
            activity.add(at * US, BackgroundActivity::default(), [backend]);
        }
        let delays: Vec<Option<f32>> = SettledSamples::new(&activity)
            .off_cpu
            .iter()
            .map(|state| state.map(|state| state.run_delay))
            .collect();
        assert_eq!(delays, [Some(0.75), Some(0.75), Some(0.75), None]);
    }

    #[test]
    fn a_backend_without_an_event_and_without_an_account_is_blocked() {
        let check = |readings: &[(u64, u64, u64, &str)], expected: [f32; 2]| {
            assert_eq!(states(readings)[0], Some(expected), "{readings:?}");
        };
        check(&[(0, 0, 0, ""), (1_000, 0, 0, "")], [0.0, 1.0]);
        check(&[(0, 0, 0, ""), (1_000, 500, 0, "")], [0.0, 0.5]);
        check(&[(0, 0, 0, ""), (1_000, 500, 250, "")], [0.25, 0.25]);
        // In between it waited for something else.
        check(&[(0, 0, 0, ""), (1_000, 200, 100, "IO:WALSync")], [0.33, 0.0]);
        check(&[(0, 0, 0, ""), (20_000, 200, 100, "")], [0.33, 0.0]);
        check(&[(0, 0, 0, "IO:WALSync"), (1_000, 200, 100, "")], [0.13, 0.0]);
        assert_eq!(states(&[(0, 0, 0, ""), (200_000, 0, 0, "")])[0], None);
    }
}
