//! Drawing a schedule.

use stats::{Prng, mix};

use crate::schedule::{FaultSchedule, ScheduledFault};
use crate::space::FaultSpace;

/// Moments and lengths are multiples of this, so that a person can read them.
pub(crate) const GRAIN_MS: u64 = 100;

impl FaultSpace {
    /// The schedule of that number, from 1. It depends on the space, the seed and the number only.
    ///
    /// The first fault of schedule n is the n-th of all cells, which the seed has put in order, so that every cell is
    /// tried before one is tried again. The second one goes through the cells as well, one place further each time
    /// the first one has gone through all. Everything else is drawn.
    pub fn draw(&self, seed: u64, number: u64) -> FaultSchedule {
        let mut cells = self.cells();
        Prng::new(seed).shuffle(&mut cells);
        let count = cells.len() as u64;
        if count == 0 {
            return FaultSchedule::default();
        }
        let mut random = Prng::new(mix(seed ^ mix(number)));
        let place = number.saturating_sub(1);
        let (low, high) = self.steps;
        let wanted = low + random.below(high.saturating_sub(low) + 1);
        let mut steps: Vec<ScheduledFault> = Vec::new();
        for index in 0..wanted {
            let cell = match index {
                0 => place % count,
                1 => (place + place / count + 1) % count,
                _ => random.below(cells.len()) as u64,
            };
            let (fault, victim) = cells[cell as usize];
            let gap = draw(&mut random, self.gap_ms);
            let is_over = random.unit() < self.overlap;
            let at_ms = match steps.last() {
                None => self.first_ms + gap,
                // Inside the one before, if it lasts.
                Some(ScheduledFault { at_ms, for_ms: Some(length), .. }) if is_over => {
                    at_ms + draw(&mut random, (0, length - GRAIN_MS))
                }
                Some(before) => before.last_ms() + gap,
            };
            let length = self.faults[fault].length_ms;
            let for_ms = length.map(|range| draw(&mut random, range));
            steps.push(ScheduledFault { at_ms, fault, victim, for_ms });
            let drawn = self.fitted(steps.clone());
            match drawn.is_sound(self) {
                true => steps = drawn.steps,
                false => drop(steps.pop()),
            }
        }
        FaultSchedule { steps }
    }

    /// The same, brought nearer and shortened in one proportion where it does not end in time.
    fn fitted(&self, mut steps: Vec<ScheduledFault>) -> FaultSchedule {
        let first = self.first_ms;
        let end = steps.iter().map(ScheduledFault::last_ms).fold(first, u64::max);
        if end > self.last_ms && end > first {
            let share = self.last_ms.saturating_sub(first) as f64 / (end - first) as f64;
            let shorter = |ms: u64| rounded((ms as f64 * share) as u64);
            for step in &mut steps {
                step.at_ms = first + shorter(step.at_ms - first);
                step.for_ms = step.for_ms.map(|ms| shorter(ms).max(GRAIN_MS));
            }
        }
        FaultSchedule { steps }
    }
}

fn draw(random: &mut Prng, (low, high): (u64, u64)) -> u64 {
    low + rounded(random.below((high.saturating_sub(low) + 1) as usize) as u64)
}

/// Rounded down to the grain.
pub(crate) fn rounded(ms: u64) -> u64 {
    ms / GRAIN_MS * GRAIN_MS
}
