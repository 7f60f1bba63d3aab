//! One line of a comparison: the rounds as dots, the interval over them, the published figure.

use super::{Scale, diamond, dot, line, text};
use crate::estimate::Estimate;
use crate::number;

/// Data of one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DotRow<'a> {
    /// The estimate over all rounds.
    pub(crate) estimate: &'a Estimate,
    pub(crate) rounds: &'a [f64],
    pub(crate) published: Option<f64>,
    /// Index into the page's palette.
    pub(crate) colour: usize,
}

const HEIGHT: f64 = 32.0;
const MIDDLE: f64 = 16.0;

/// Draws a row on an axis that all rows of the figure share.
pub(crate) fn dot_row(row: &DotRow<'_>, scale: &Scale) -> String {
    let mut svg = format!(
        r#"<svg class="plot dots c{}" width="100%" height="{HEIGHT}" aria-hidden="true">"#,
        row.colour
    );
    for tick in scale.ticks() {
        let x = scale.pct(tick);
        line(&mut svg, "grid", x, 0.0, x, HEIGHT);
    }
    match row.estimate.n {
        // One round estimates nothing.
        1 => dot(&mut svg, "round", scale.pct(row.estimate.point), MIDDLE, 4.0),
        _ => spread(&mut svg, row, scale),
    }
    if let Some(published) = row.published {
        diamond(&mut svg, scale.pct(published), MIDDLE);
    }
    svg.push_str("</svg>");
    svg
}

/// The estimate, how sure it is, and the rounds.
fn spread(svg: &mut String, row: &DotRow<'_>, scale: &Scale) {
    let Estimate { low, high, point, .. } = *row.estimate;
    let class = if row.estimate.is_interval { "interval" } else { "range" };
    line(svg, class, scale.pct(low), MIDDLE, scale.pct(high), MIDDLE);
    for (round, &value) in row.rounds.iter().enumerate() {
        // Rounds alternate around the line, so that equal ones do not hide each other.
        let offset = [-4.0, 4.0, -6.5, 6.5][round % 4];
        dot(svg, "round", scale.pct(value), MIDDLE + offset, 2.6);
    }
    let x = scale.pct(point);
    line(svg, "point", x, 6.0, x, HEIGHT - 6.0);
}

/// The axis under the rows.
pub(crate) fn axis(scale: &Scale) -> String {
    let mut svg =
        r#"<svg class="plot axis" width="100%" height="20" aria-hidden="true">"#.to_owned();
    let ticks = scale.ticks();
    for &tick in &ticks {
        let x = scale.pct(tick);
        line(&mut svg, "grid", x, 0.0, x, 4.0);
        // There is room for half a label on either side of the figure.
        text(&mut svg, x, 16.0, "middle", &tick_label(tick));
    }
    svg.push_str("</svg>");
    svg
}

/// Ticks are round, so they are written in full: `0.75`, not `0.750`.
fn tick_label(tick: f64) -> String {
    let rounded = (tick * 1e9).round() / 1e9;
    number::as_written(rounded)
}
