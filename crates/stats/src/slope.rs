//! Slope of a series over time, with an interval that allows for neighbours that are alike.

use crate::{sample, serial, student};

/// Change of a quantity with time: the least-squares line through its readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSlope {
    /// Change in an hour, in the unit of the readings.
    pub an_hour: f64,
    /// Half the width of its interval.
    pub margin: f64,
    /// Mean of the readings.
    pub mean: f64,
}

impl TimeSlope {
    /// The slope of equally spaced readings, `interval_s` apart.
    ///
    /// Readings are put into [`BATCHES_MIN`] to [`BATCHES_MAX`] batches, whose means are nearly independent where a
    /// batch is longer than what one reading has to do with the next. What dependence is left among the means widens the
    /// interval (Schmeiser, "Batch size effects in the analysis of simulation output", 1982). `None` below
    /// [`READINGS_MIN`] readings, or where one is not finite.
    #[must_use]
    pub fn of(readings: &[f64], interval_s: f64, confidence: f64) -> Option<TimeSlope> {
        if readings.len() < READINGS_MIN || readings.iter().any(|reading| !reading.is_finite()) {
            return None;
        }
        let batches = (readings.len() / BATCH_LENGTH).clamp(BATCHES_MIN, BATCHES_MAX);
        let length = readings.len() / batches;
        // What does not fill a batch is left out at the beginning.
        let whole = &readings[readings.len() - length * batches..];
        let means: Vec<f64> = whole.chunks(length).filter_map(sample::mean).collect();
        let count = means.len() as f64;
        let mean = sample::mean(&means)?;
        let middle = (count - 1.0) / 2.0;
        let at = |index: usize| index as f64 - middle;
        let squares: f64 = (0..means.len()).map(|index| at(index).powi(2)).sum();
        let products: f64 = means.iter().enumerate().map(|(i, one)| at(i) * (one - mean)).sum();
        let slope = products / squares;
        let rest = |(index, one): (usize, &f64)| one - mean - slope * at(index);
        let rests: Vec<f64> = means.iter().enumerate().map(rest).collect();
        let freedom = count - 2.0;
        let variance = rests.iter().map(|rest| rest * rest).sum::<f64>() / freedom;
        let dependence = serial::dependence(&rests);
        let quantile = student::t_quantile(0.5 + confidence / 2.0, freedom);
        let margin = quantile * (variance / squares).sqrt() * serial::widening(dependence);
        let batches_an_hour = 3600.0 / (length as f64 * interval_s);
        Some(TimeSlope { an_hour: slope * batches_an_hour, margin: margin * batches_an_hour, mean })
    }

    /// Lower and upper end of the interval.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        (self.an_hour - self.margin, self.an_hour + self.margin)
    }

    /// The same slope in per cent of the mean; none where the mean is 0.
    #[must_use]
    pub fn in_percent(&self) -> Option<TimeSlope> {
        let percent = |value: f64| 100.0 * value / self.mean.abs();
        (self.mean != 0.0).then(|| TimeSlope {
            an_hour: percent(self.an_hour),
            margin: percent(self.margin),
            mean: percent(self.mean),
        })
    }

    /// True if the interval excludes that nothing changes.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.an_hour.abs() > self.margin
    }
}

/// Fewer readings say nothing about a slope.
const READINGS_MIN: usize = 16;
/// Readings of a batch, where there are enough.
const BATCH_LENGTH: usize = 10;
const BATCHES_MIN: usize = 8;
const BATCHES_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    /// Seconds with a standard deviation of 3 %, each like the one before, on a line.
    fn seconds(seed: u64, count: usize, dependence: f64, an_hour: f64) -> Vec<f64> {
        let mut random = Prng::new(seed);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let mut state = normal();
        let step = (1.0 - dependence * dependence).sqrt();
        let readings = (0..count).map(|second| {
            state = dependence * state + step * normal();
            1000.0 * (1.0 + 0.03 * state) + an_hour * second as f64 / 3600.0
        });
        readings.collect()
    }

    #[test]
    fn a_line_is_its_own_slope() {
        let line: Vec<f64> = (0..600).map(|second| 100.0 + 2.0 * f64::from(second)).collect();
        let slope = TimeSlope::of(&line, 1.0, 0.95).unwrap();
        assert!((slope.an_hour - 7200.0).abs() < 1e-6 && slope.margin < 1e-6, "{slope:?}");
        assert!(slope.is_seen());
        assert_eq!(TimeSlope::of(&line[..15], 1.0, 0.95), None);
        assert_eq!(TimeSlope::of(&[f64::NAN; 20], 1.0, 0.95), None);
    }

    #[test]
    fn the_interval_contains_the_slope_whether_readings_depend_on_each_other_or_not() {
        for (count, dependence, least) in
            [(600, 0.0, 930), (600, 0.5, 930), (600, 0.9, 920), (120, 0.5, 900)]
        {
            let covers = |seed: &u64| {
                let readings = seconds(*seed, count, dependence, 500.0);
                let (low, high) = TimeSlope::of(&readings, 1.0, 0.95).unwrap().bounds();
                (low..=high).contains(&500.0)
            };
            let covered = (0..1000).filter(covers).count();
            assert!(covered >= least, "{count} seconds, {dependence}: {covered} of 1000");
        }
    }

    #[test]
    fn a_fall_of_a_fifth_in_an_hour_is_seen_in_ten_minutes() {
        let seen = |seed: &u64| {
            let readings = seconds(*seed, 600, 0.5, -200.0);
            TimeSlope::of(&readings, 1.0, 0.95).unwrap().is_seen()
        };
        let seen = (0..200).filter(seen).count();
        assert!(seen >= 190, "{seen} of 200");
    }
}
