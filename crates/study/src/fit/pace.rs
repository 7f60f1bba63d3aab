//! How long something takes here, as a multiple of what was estimated: guessed first, then learnt from what is over.

/// The pace of work, or of loads, on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LearntPace {
    /// The multiple that is expected before anything was seen.
    expected: f64,
    /// What was estimated for the last of what is over, in seconds, and the time that it took.
    estimated_s: f64,
    took_s: f64,
}

/// The expectation counts as much as so many seconds that were seen.
const EXPECTATION_S: f64 = 3.0;

/// So many estimated seconds count: what a machine did long ago says less of what it does next.
const MEMORY_S: f64 = 60.0;

impl LearntPace {
    pub(crate) fn new(expected: f64) -> LearntPace {
        LearntPace { expected, estimated_s: 0.0, took_s: 0.0 }
    }

    /// Notes something that was estimated to take so long, and how long it took.
    pub(crate) fn learn(&mut self, estimated_s: f64, took_s: f64) {
        self.estimated_s += estimated_s;
        self.took_s += took_s.max(0.0);
        if self.estimated_s > MEMORY_S {
            let kept = MEMORY_S / self.estimated_s;
            (self.estimated_s, self.took_s) = (MEMORY_S, self.took_s * kept);
        }
    }

    /// How many times as long as estimated the next of it takes.
    pub(crate) fn factor(self) -> f64 {
        let estimated_s = EXPECTATION_S + self.estimated_s;
        (EXPECTATION_S * self.expected + self.took_s) / estimated_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_learnt_and_forgotten_again() {
        let check = |expected, seen: &[(f64, f64)], factor: f64| {
            let mut pace = LearntPace::new(expected);
            seen.iter().for_each(|(estimated_s, took_s)| pace.learn(*estimated_s, *took_s));
            let found = pace.factor();
            assert!(
                (found / factor - 1.0).abs() < 0.1,
                "{expected} {seen:?}: {found}, not {factor}"
            );
        };
        check(2.5, &[], 2.5);
        // A guess that was right stays, and one that was wrong is gone after half a minute of work.
        check(2.0, &[(5.0, 10.0)], 2.0);
        check(1.0, &[(10.0, 30.0), (20.0, 60.0)], 2.8);
        // The machine has become idle since.
        check(1.0, &[(60.0, 240.0), (60.0, 60.0), (60.0, 60.0), (60.0, 60.0)], 1.3);
        check(1.0, &[(0.0, 0.0)], 1.0);
    }
}
