//! Position of a value along an axis, and the choice of ticks.

/// One value this many times the other makes an axis logarithmic.
const LOG_FROM: f64 = 5.0;

/// An axis from 0 % to 100 % of a figure's width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// An axis that holds all values: from zero unless they lie close together far from it, and
    /// logarithmic where one is many times the other, because a comparison is about ratios. With
    /// nothing to hold it runs from 0 to 1.
    pub(crate) fn around(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        if low > 0.0 && high / low > LOG_FROM {
            let room = (high / low).powf(0.05);
            return Scale { low: low / room, high: high * room, log: true };
        }
        // Dots are read by position, so an axis may begin elsewhere when zero would squash them.
        let squashed = low > 0.0 && (high - low) < 0.3 * high;
        let low = if squashed || low < 0.0 { low } else { 0.0 };
        let margin = if high > low { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.05 };
        let low = if low == 0.0 { 0.0 } else { low - margin };
        Scale { low, high: high + margin, log: false }
    }

    /// An axis for one claim, with room on either side.
    pub(crate) fn with_room(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        if low > 0.0 && high / low > LOG_FROM {
            let room = (high / low).powf(0.18);
            return Scale { low: low / room, high: high * room, log: true };
        }
        let room = if high > low { (high - low) * 0.25 } else { high.abs().max(0.1) * 0.1 };
        Scale { low: low - room, high: high + room, log: false }
    }

    /// The position of a value in per cent, kept within the figure.
    pub(crate) fn pct(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        (share * 100.0).clamp(0.0, 100.0)
    }

    /// True if distances are ratios, not differences.
    pub(crate) fn is_log(&self) -> bool {
        self.log
    }

    /// Some round values within the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log {
            return self.decades();
        }
        let span = self.high - self.low;
        let magnitude = 10f64.powf((span / 5.0).log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * magnitude)
            .find(|step| span / step <= 5.5)
            .unwrap_or(span);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// 1, 2 and 5 of each decade, or powers of ten alone where that is enough.
    fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let leads: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = (first..=last).flat_map(|power| leads.iter().map(move |l| l * 10f64.powi(power)));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

fn bounds(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(None, |bounds, value| match bounds {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_at_zero_unless_that_squashes_the_values() {
        assert_eq!(Scale::around([50.0, 100.0]).pct(0.0), 0.0);
        assert!(Scale::around([98.0, 100.0]).pct(98.0) < 40.0);
        assert_eq!(Scale::around([]).ticks().first(), Some(&0.0));
    }

    #[test]
    fn ticks_are_round_and_few() {
        let wide = Scale::around([30.0, 6_000.0]).ticks();
        assert_eq!(wide, [50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0]);
        for high in [0.003, 1.0, 7.3, 74_120.0, 1e9] {
            let ticks = Scale::around([0.0, high]).ticks();
            assert!((3..=6).contains(&ticks.len()), "{high}: {ticks:?}");
        }
    }

    #[test]
    fn a_wide_comparison_is_logarithmic() {
        let scale = Scale::with_room([1.0, 100.0]);
        assert!((scale.pct(10.0) - 50.0).abs() < 1e-9);
        assert!(scale.pct(f64::MAX) <= 100.0);
    }
}
