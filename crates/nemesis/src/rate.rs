//! How often a schedule breaks a promise.

/// Trials, and those of them that broke the promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViolationRate {
    /// Trials that broke it.
    pub broken: u64,
    /// Trials that could tell.
    pub of: u64,
}

impl ViolationRate {
    /// Lowest and highest rate that the trials do not rule out at 95 % (Clopper and Pearson, see
    /// [`stats::failure_rate::rates`]).
    pub fn interval(self) -> (f64, f64) {
        stats::failure_rate::rates(self.broken, self.of)
    }

    /// In words, as in "4 of 5 (28 % to 99 %)".
    pub fn words(self) -> String {
        let (low, high) = self.interval();
        let ViolationRate { broken, of } = self;
        format!("{broken} of {of} ({:.0} % to {:.0} %)", low * 100.0, high * 100.0)
    }

    /// The share of the trials that broke it; 0 where there was none.
    pub fn share(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.broken as f64 / self.of as f64 }
    }

    pub(crate) fn note(&mut self, is_broken: bool) {
        self.of += 1;
        self.broken += u64::from(is_broken);
    }
}
