//! The verdict of a comparison as a whole.

use super::{Comparison, Stop, Verdict};

impl Comparison {
    /// The verdict that a gate goes by: worse if a deciding figure is worse by more than the threshold or
    /// more transactions of B fail, equal if none can be told apart, better if one is better.
    #[must_use]
    pub fn gate(&self) -> Verdict {
        let verdicts: Vec<Verdict> =
            self.deciding().into_iter().map(|metric| self.verdict(metric)).collect();
        let mut figures = self.shown.figures.iter().filter(|figure| figure.deciding);
        if matches!(self.shown.stop, Stop::Interrupted | Stop::Died) {
            return Verdict::CannotTell;
        }
        if figures.any(|figure| figure.is_worse_beyond(self.threshold))
            || self.shown.conditions.fails_more()
        {
            return Verdict::Worse;
        }
        // One that is worse may lie within the threshold.
        let is_open = |one: &Verdict| matches!(one, Verdict::CannotTell | Verdict::Worse);
        match verdicts.iter().any(is_open) {
            true => Verdict::CannotTell,
            false if verdicts.contains(&Verdict::Better) => Verdict::Better,
            false => Verdict::Equal,
        }
    }
}
