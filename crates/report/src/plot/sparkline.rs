//! One trial at a glance: its throughput second by second.

use std::fmt::Write as _;

const WIDTH: f64 = 100.0;
const HEIGHT: f64 = 26.0;

/// Draws throughput from zero to `highest`, which all sparklines of a row share, with warm-up
/// shaded: `window` is the counted part as shares of the width.
pub(crate) fn sparkline(
    values: &[Option<f64>],
    highest: f64,
    window: Option<(f64, f64)>,
) -> String {
    let mut svg = format!(
        concat!(
            r#"<svg class="plot spark" viewBox="0 0 {} {}" preserveAspectRatio="none" "#,
            r#"aria-hidden="true">"#
        ),
        WIDTH, HEIGHT
    );
    if let Some((open, _)) = window {
        let width = (open * WIDTH).clamp(0.0, WIDTH);
        let _ = write!(
            svg,
            r#"<rect class="warmup" x="0" y="0" width="{width:.1}" height="{HEIGHT}"/>"#
        );
    }
    let mut path = String::new();
    let mut pen_down = false;
    for (cell, value) in values.iter().enumerate() {
        let Some(value) = value else {
            pen_down = false;
            continue;
        };
        let x = (cell as f64 + 0.5) / values.len() as f64 * WIDTH;
        let y = HEIGHT - 1.5 - value / highest.max(f64::MIN_POSITIVE) * (HEIGHT - 3.0);
        let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { 'L' } else { 'M' });
        pen_down = true;
    }
    let _ = write!(svg, r#"<path d="{path}"/></svg>"#);
    svg
}
