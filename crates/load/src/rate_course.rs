//! Rates that change in the course of a load: the clock of a schedule goes faster or slower than time itself.

use serde::{Deserialize, Serialize};

use crate::grid::{Grid, NEVER};

/// The rate of open-loop workloads over a window, as multiples of their own: each holds from its moment until
/// the next one's. Before the window it is the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateCourse {
    /// The steps, in the order of time; the first one begins with the window.
    pub steps: Vec<RateStep>,
}

/// A rate from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// The beginning, in milliseconds since the window opened.
    pub from_ms: u64,
    /// Multiple of the workloads' rates, above 0.
    pub times: f64,
}

impl RateCourse {
    /// A moment on the clock of the schedules, which is `times` as fast as time.
    pub(crate) fn on_schedule(&self, grid: &Grid, now: u64) -> u64 {
        let mut clock = grid.began as f64;
        for stretch in self.stretches(grid) {
            let until = now.clamp(stretch.from, stretch.until);
            clock += (until - stretch.from) as f64 * stretch.times;
        }
        clock as u64
    }

    /// The moment at which the clock of the schedules shows `due`.
    pub(crate) fn moment(&self, grid: &Grid, due: u64) -> u64 {
        let mut left = due.saturating_sub(grid.began) as f64;
        for stretch in self.stretches(grid) {
            let length = (stretch.until - stretch.from) as f64 * stretch.times;
            if left < length {
                return stretch.from.saturating_add((left / stretch.times) as u64);
            }
            left -= length;
        }
        NEVER
    }

    /// The stretches of equal rate, without gaps, from the beginning of the load on.
    fn stretches(&self, grid: &Grid) -> impl Iterator<Item = Stretch> {
        let begin = move |step: &RateStep| match grid.open {
            // An automatic warm-up has not decided yet.
            NEVER => NEVER,
            open => open.saturating_add(step.from_ms * 1_000_000),
        };
        let (began, steps) = (grid.began, &self.steps);
        steps.iter().enumerate().map(move |(index, step)| Stretch {
            from: if index == 0 { began } else { begin(step).max(began) },
            until: steps.get(index + 1).map_or(NEVER, begin).max(began),
            times: step.times,
        })
    }
}

/// A part of a load with one rate.
struct Stretch {
    from: u64,
    until: u64,
    times: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn course() -> RateCourse {
        let steps = [(0, 1.0), (10_000, 2.0), (30_000, 0.5)];
        RateCourse { steps: steps.map(|(from_ms, times)| RateStep { from_ms, times }).into() }
    }

    #[test]
    fn the_clock_of_a_schedule_is_as_fast_as_the_rate() {
        let grid = Grid { began: 5 * S, open: 8 * S, ..Grid::UNDECIDED };
        let check = |at_s: u64, expected_s: u64| {
            assert_eq!(course().on_schedule(&grid, at_s * S), expected_s * S, "at {at_s} s");
            assert_eq!(course().moment(&grid, expected_s * S), at_s * S, "at {at_s} s");
        };
        check(5, 5);
        check(8, 8);
        check(18, 18);
        check(19, 20);
        check(38, 58);
        check(48, 63);
    }

    #[test]
    fn until_the_window_is_decided_the_first_rate_holds() {
        let course = RateCourse { steps: vec![RateStep { from_ms: 0, times: 4.0 }] };
        let grid = Grid { began: 5 * S, ..Grid::UNDECIDED };
        assert_eq!(course.on_schedule(&grid, 7 * S), 13 * S);
        assert_eq!(course.moment(&grid, 13 * S), 7 * S);
        let steps = self::course();
        assert_eq!(steps.on_schedule(&grid, 500 * S), 500 * S);
    }
}
