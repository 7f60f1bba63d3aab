//! Small figures as inline SVG: they print, need no script, and are the same every time.
//!
//! Positions along x are percentages, so a figure takes the width that its place has while text
//! and symbols keep their size. Colours come from the page's style sheet by class.

mod claim;
mod cycle;
mod dots;
mod scale;
mod sparkline;

pub(crate) use claim::{ClaimPlot, claim_plot};
pub(crate) use cycle::cycle_plot;
pub(crate) use dots::{DotRow, axis, dot_row};
pub(crate) use scale::Scale;
pub(crate) use sparkline::sparkline;

use std::fmt::Write as _;

/// A hollow diamond at a percentage: what was published.
fn diamond(svg: &mut String, x_pct: f64, y: f64) {
    let _ = write!(
        svg,
        concat!(
            r#"<svg x="{x_pct:.2}%" y="{y}" overflow="visible">"#,
            r#"<path class="published" d="M0-5.5 5.5 0 0 5.5-5.5 0Z"/></svg>"#
        ),
        x_pct = x_pct,
        y = y,
    );
}

fn line(svg: &mut String, class: &str, x1_pct: f64, y1: f64, x2_pct: f64, y2: f64) {
    let _ = write!(
        svg,
        r#"<line class="{class}" x1="{x1_pct:.2}%" y1="{y1}" x2="{x2_pct:.2}%" y2="{y2}"/>"#
    );
}

fn dot(svg: &mut String, class: &str, x_pct: f64, y: f64, radius: f64) {
    let _ = write!(svg, r#"<circle class="{class}" cx="{x_pct:.2}%" cy="{y}" r="{radius}"/>"#);
}

/// Text; the caller passes numbers only, which need no escaping.
fn text(svg: &mut String, x_pct: f64, y: f64, anchor: &str, words: &str) {
    let _ = write!(svg, r#"<text x="{x_pct:.2}%" y="{y}" text-anchor="{anchor}">{words}</text>"#);
}
