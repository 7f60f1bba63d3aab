//! One claim: the interval measured, the bounds expected, and what was published.

use std::fmt::Write as _;

use super::{Scale, diamond, dot, line, text};
use crate::number;

/// Data of the plot of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClaimPlot {
    /// Low, point, high of the measurement.
    pub(crate) measured: (f64, f64, f64),
    /// Bounds within which the claim holds; an open side is infinite.
    pub(crate) expected: (f64, f64),
    pub(crate) published: Option<f64>,
}

const HEIGHT: f64 = 39.0;
const MIDDLE: f64 = 13.0;

/// Draws a claim. `label` says the same in words and must already be escaped for an attribute.
pub(crate) fn claim_plot(plot: &ClaimPlot, label: &str) -> String {
    let (low, point, high) = plot.measured;
    let (from, to) = plot.expected;
    let scale = Scale::with_room([low, point, high, from, to].into_iter().chain(plot.published));
    let mut svg = format!(
        r#"<svg class="plot claim" width="100%" height="{HEIGHT}" role="img" aria-label="{label}">"#
    );
    let left = if from.is_finite() { scale.pct(from) } else { 0.0 };
    let right = if to.is_finite() { scale.pct(to) } else { 100.0 };
    let width = right - left;
    let _ = write!(
        svg,
        r#"<rect class="expected" x="{left:.2}%" y="3" width="{width:.2}%" height="20"/>"#
    );
    line(&mut svg, "baseline", 0.0, 23.0, 100.0, 23.0);
    for bound in [from, to].into_iter().filter(|bound| bound.is_finite()) {
        let x = scale.pct(bound);
        line(&mut svg, "bound", x, 3.0, x, 23.0);
        text(&mut svg, x, HEIGHT - 1.0, anchor(x), &number::as_written(bound));
    }
    line(&mut svg, "interval", scale.pct(low), MIDDLE, scale.pct(high), MIDDLE);
    dot(&mut svg, "point", scale.pct(point), MIDDLE, 4.5);
    if let Some(published) = plot.published {
        diamond(&mut svg, scale.pct(published), MIDDLE);
    }
    svg.push_str("</svg>");
    svg
}

/// Text near an edge grows inwards.
fn anchor(x_pct: f64) -> &'static str {
    match x_pct {
        x if x < 8.0 => "start",
        x if x > 92.0 => "end",
        _ => "middle",
    }
}
