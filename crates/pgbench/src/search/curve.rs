//! The loads that a search has tried: latency over load, and where it turns up.

use std::fmt::Write;

use stats::LatencyHistogram;

use super::goal::Goal;
use super::steps::End;

/// Every window of a search, in the order in which they ran.
#[derive(Clone, Debug)]
pub struct Curve {
    /// `rate`, `clients` or [`POOL_SIZE`].
    pub axis: &'static str,
    /// The condition that the server had to keep.
    pub goal: String,
    /// The quantile that the goal is about, 0 to 1; else 0.99.
    pub quantile: f64,
    /// The quantile's limit, where the goal has one.
    pub limit_ns: Option<f64>,
    /// The windows.
    pub windows: Vec<Tried>,
    /// The load of the window whose results are shown.
    pub shown: f64,
    /// The end of the search; none if it was interrupted.
    pub end: Option<End>,
    /// The share of windows that failed at loads that can be kept, 0 to 1.
    pub lapse_rate: Option<f64>,
}

/// The axis of a sweep over the sizes of a pool.
pub const POOL_SIZE: &str = "pool_size";

/// One window of a search.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Transactions a second that were asked for, or clients.
    pub load: f64,
    /// Length of the window, in seconds.
    pub seconds: f64,
    /// True if it was one of the longer windows that confirm.
    pub confirms: bool,
    /// Transactions a second that succeeded.
    pub achieved: f64,
    /// From the intended start.
    pub latency: LatencyHistogram,
    /// Failed and skipped transactions, 0 to 1.
    pub failures: f64,
    /// Due but not begun at the end.
    pub backlog: u64,
    /// True if the server kept up with the rate, and the goal held.
    pub holds: bool,
}

impl Curve {
    /// A curve without a window.
    pub(crate) fn begin(axis: &'static str, goal: &Goal) -> Curve {
        let (quantile, limit_ns) = goal.quantile().unzip();
        Curve {
            axis,
            goal: goal.text().to_owned(),
            // A goal without a percentile is drawn with the 99th.
            quantile: quantile.unwrap_or(0.99),
            limit_ns,
            windows: Vec::new(),
            shown: 0.0,
            end: None,
            lapse_rate: None,
        }
    }

    /// The answer: a window that confirms has held at this load or above it.
    pub fn held(&self) -> Option<f64> {
        match self.end {
            Some(End::Found { held, .. }) => Some(held),
            Some(End::Swept { best }) => best,
            _ => None,
        }
    }

    /// The boundary lies between these loads with a probability of 90 %.
    pub fn interval(&self) -> Option<(f64, f64)> {
        match self.end {
            Some(End::Found { low, high, .. }) => Some((low, high)),
            _ => None,
        }
    }

    /// Two windows of one length at nearly the same load whose quantiles are far apart: the slower one's
    /// index, and both in milliseconds.
    pub fn disagreement(&self) -> Option<(usize, f64, f64)> {
        let (last, before) = self.windows.split_last()?;
        let last_ms = self.quantile_ms(last)?;
        before.iter().enumerate().find_map(|(index, window)| {
            let is_near = (window.load / last.load).ln().abs() <= NEAR;
            let ms =
                self.quantile_ms(window).filter(|_| is_near && window.confirms == last.confirms)?;
            match ms < last_ms {
                true if last_ms >= ms * FAR => Some((before.len(), ms, last_ms)),
                false if ms >= last_ms * FAR => Some((index, last_ms, ms)),
                _ => None,
            }
        })
    }

    /// The goal's quantile of a window, in milliseconds.
    pub fn quantile_ms(&self, window: &Tried) -> Option<f64> {
        window.latency.quantile_ns(self.quantile).map(|ns| ns as f64 / 1e6)
    }

    /// Latency over load, as it would be without noise: the rising curve that is nearest to the
    /// logarithms of the quantiles. Loads are ascending, latencies in milliseconds.
    pub fn fitted(&self) -> Vec<(f64, f64)> {
        let point = |window: &Tried| Some((window.load, self.quantile_ms(window)?));
        let mut points: Vec<_> = self.windows.iter().filter_map(point).collect();
        // Windows of one load fall, so that they become one pool.
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let logarithms: Vec<f64> = points.iter().map(|(_, ms)| ms.ln()).collect();
        let fitted = stats::isotonic(&logarithms).into_iter().map(f64::exp);
        points.iter().map(|(load, _)| *load).zip(fitted).collect()
    }

    /// The load behind which latency rises faster than before: the point of the fitted curve that
    /// lies farthest below the line from the first point to the last. None where there are fewer
    /// than five points, or the curve does not bend upwards. None above the interval of the answer,
    /// too: there the goal is not kept any more, and a bend says nothing of the load that can be kept. None over the
    /// sizes of a pool, where latency need not rise.
    pub fn knee(&self) -> Option<f64> {
        if self.axis == POOL_SIZE {
            return None;
        }
        let highest = self.interval().map_or(f64::INFINITY, |(_, high)| high);
        knee(&self.fitted()).filter(|knee| *knee <= highest)
    }

    /// One line for each window.
    pub fn csv(&self) -> String {
        let mut text = format!(
            "{},window_s,confirms,achieved_per_s,mean_ms,p50_ms,p90_ms,p95_ms,p99_ms,p99_9_ms,max_ms,\
             failures,backlog,holds\n",
            self.axis
        );
        for window in &self.windows {
            let ms = |ns: Option<f64>| ns.map_or(String::new(), |ns| format!("{:.6}", ns / 1e6));
            let quantile = |q: f64| ms(window.latency.quantile_ns(q).map(|ns| ns as f64));
            // Clients and connections are whole.
            let digits = if self.axis == "rate" { 3 } else { 0 };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:.digits$},{:.3},{},{:.3},{},{},{},{},{},{},{},{:.6},{},{}",
                window.load,
                window.seconds,
                window.confirms,
                window.achieved,
                ms(window.latency.mean_ns()),
                quantile(0.5),
                quantile(0.9),
                quantile(0.95),
                quantile(0.99),
                quantile(0.999),
                quantile(1.0),
                window.failures,
                window.backlog,
                window.holds
            );
        }
        text
    }
}

/// Loads whose logarithms differ by no more are nearly the same.
const NEAR: f64 = 0.05;
/// Quantiles of the same load that differ by this ratio are due to something else.
const FAR: f64 = 5.0;

fn knee(points: &[(f64, f64)]) -> Option<f64> {
    let (&(x0, y0), &(x1, y1)) = (points.first()?, points.last()?);
    if points.len() < 5 || y1 <= y0 {
        return None;
    }
    let below = |(x, y): (f64, f64)| (x - x0) / (x1 - x0) - (y - y0) / (y1 - y0);
    let farthest = points.iter().max_by(|a, b| below(**a).total_cmp(&below(**b)))?;
    // A straight line has no knee, whatever the noise.
    (below(*farthest) > 0.1).then_some(farthest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_is_where_a_curve_turns_up() {
        let of = |y: fn(f64) -> f64| -> Vec<(f64, f64)> {
            (1..=20).map(|n| (f64::from(n) * 50.0, y(f64::from(n) * 50.0))).collect()
        };
        assert_eq!(knee(&of(|x| if x <= 700.0 { 1.0 } else { 1.0 + (x - 700.0) })), Some(700.0));
        assert_eq!(knee(&of(|x| x)), None, "a straight line");
        assert_eq!(knee(&of(|x| x.sqrt())), None, "it bends the other way");
        assert_eq!(knee(&[(1.0, 1.0), (2.0, 9.0)]), None, "too few points");
    }

    fn curve(windows: &[(f64, u64)]) -> Curve {
        let window = |&(load, ms): &(f64, u64)| {
            let mut latency = LatencyHistogram::new();
            latency.record_ns(ms * 1_000_000);
            Tried {
                load,
                seconds: 1.0,
                confirms: false,
                achieved: load,
                latency,
                failures: 0.0,
                backlog: 0,
                holds: ms < 10,
            }
        };
        Curve {
            axis: "rate",
            goal: "p99 < 10ms".to_owned(),
            quantile: 0.99,
            limit_ns: Some(1e7),
            windows: windows.iter().map(window).collect(),
            shown: 200.0,
            end: None,
            lapse_rate: None,
        }
    }

    #[test]
    fn a_knee_above_the_answer_is_none() {
        let windows = [(100.0, 2), (200.0, 3), (300.0, 4), (400.0, 5), (500.0, 90), (600.0, 200)];
        let mut curve = curve(&windows);
        assert_eq!(curve.knee(), Some(400.0));
        for (high, knee) in [(450.0, Some(400.0)), (350.0, None)] {
            curve.end = Some(End::Found { held: 300.0, low: 250.0, high });
            assert_eq!((curve.knee(), curve.interval()), (knee, Some((250.0, high))), "{high}");
        }
    }

    #[test]
    fn windows_of_one_load_may_disagree() {
        let check = |windows: &[(f64, u64)], expected| {
            assert_eq!(
                curve(windows).disagreement().map(|(index, ..)| index),
                expected,
                "{windows:?}"
            );
        };
        check(&[(100.0, 1), (101.0, 70)], Some(1));
        check(&[(100.0, 70), (200.0, 3), (101.0, 1)], Some(0));
        check(&[(100.0, 1), (200.0, 70)], None);
        check(&[(100.0, 2), (101.0, 4)], None);
        check(&[], None);
    }

    #[test]
    fn a_fitted_curve_rises_and_has_a_line_for_each_window() {
        let curve = curve(&[(200.0, 8), (100.0, 3), (300.0, 2), (400.0, 9)]);
        let fitted = curve.fitted();
        // 4 is the geometric mean of 8 and 2.
        let expected = [(100.0, 3.0), (200.0, 4.0), (300.0, 4.0), (400.0, 9.0)];
        for ((load, ms), (expected_load, expected_ms)) in fitted.iter().zip(expected) {
            assert_eq!(*load, expected_load);
            assert!((ms - expected_ms).abs() < 0.02 * expected_ms, "{fitted:?}");
        }
        let csv = curve.csv();
        assert_eq!(csv.lines().count(), 5);
        assert!(csv.lines().all(|line| line.split(',').count() == 14), "{csv}");
    }
}
