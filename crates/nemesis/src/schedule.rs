//! One schedule of faults.

use crate::space::FaultSpace;

/// A fault at a moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduledFault {
    /// The moment at which it begins, in milliseconds since the window opened.
    pub at_ms: u64,
    /// Index of the fault in its [`FaultSpace`].
    pub fault: usize,
    /// Index of the victim in its fault.
    pub victim: usize,
    /// The time until it is ended, in milliseconds; none where nothing ends it.
    pub for_ms: Option<u64>,
}

impl ScheduledFault {
    /// The moment at which it is over. One that nothing ends is over at once if its fault does not last, and never if
    /// it does.
    pub fn until_ms(&self, space: &FaultSpace) -> u64 {
        match (self.for_ms, space.faults[self.fault].length_ms) {
            (Some(length), _) => self.at_ms + length,
            (None, None) => self.at_ms,
            (None, Some(_)) => u64::MAX,
        }
    }

    /// The moment of its last action.
    pub fn last_ms(&self) -> u64 {
        self.at_ms + self.for_ms.into_iter().sum::<u64>()
    }

    pub(crate) fn cell(&self) -> (usize, usize) {
        (self.fault, self.victim)
    }
}

/// Faults and their moments, in the order of the moments.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultSchedule {
    /// The faults.
    pub steps: Vec<ScheduledFault>,
}

impl FaultSchedule {
    /// Number of actions: the beginning of each fault, and the end of each that is ended.
    pub fn actions(&self) -> usize {
        self.steps.iter().map(|step| 1 + usize::from(step.for_ms.is_some())).sum()
    }

    /// The actions in the order of their moments: the moment, the index of the step, and true for the end of that
    /// step. Of one moment, those of an earlier step come first.
    pub fn in_order(&self) -> Vec<(u64, usize, bool)> {
        let both = |(index, step): (usize, &ScheduledFault)| {
            let end = step.for_ms.map(|length| (step.at_ms + length, index, true));
            [Some((step.at_ms, index, false)), end].into_iter().flatten()
        };
        let mut all: Vec<(u64, usize, bool)> =
            self.steps.iter().enumerate().flat_map(both).collect();
        all.sort_unstable();
        all
    }

    /// True if it can be run: within the moments of its space, in order, and with one fault at a time on each victim
    /// that is named. What a victim that is found by its role goes through is known at the moment only.
    pub fn is_sound(&self, space: &FaultSpace) -> bool {
        let is_in_time =
            |step: &ScheduledFault| step.at_ms >= space.first_ms && step.last_ms() <= space.last_ms;
        let is_in_order = self.steps.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms);
        let is_free = self.steps.iter().enumerate().all(|(index, step)| {
            self.steps[..index].iter().all(|earlier| {
                let is_again = earlier.fault == step.fault && earlier.for_ms.is_none();
                !space.is_one_victim(earlier.cell(), step.cell())
                    || (earlier.until_ms(space) < step.at_ms && !is_again)
            })
        });
        is_in_order && is_free && self.steps.iter().all(is_in_time)
    }

    /// Pairs of steps, the earlier one first, of which the later one begins before the earlier one is over.
    pub fn overlaps(&self, space: &FaultSpace) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (later, step) in self.steps.iter().enumerate() {
            let lasts = |earlier: &usize| {
                let before = &self.steps[*earlier];
                before.until_ms(space) > step.at_ms
            };
            pairs.extend((0..later).filter(lasts).map(|earlier| (earlier, later)));
        }
        pairs
    }

    /// In words, as in "pause the primary now 2.5 s at 1 s; promote a standby now at 2 s".
    pub fn words(&self, space: &FaultSpace) -> String {
        let seconds = |ms: u64| format!("{} s", ms as f64 / 1e3);
        let one = |step: &ScheduledFault| {
            let fault = &space.faults[step.fault];
            let long = match (step.for_ms, fault.length_ms) {
                (Some(ms), _) => format!(" for {}", seconds(ms)),
                (None, Some(_)) => " for good".to_owned(),
                (None, None) => String::new(),
            };
            let victim = &fault.victims[step.victim].name;
            format!("{} {victim} at {}{long}", fault.name, seconds(step.at_ms))
        };
        self.steps.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}
