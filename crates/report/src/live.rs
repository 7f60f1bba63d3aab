//! Pages that are looked at while something runs: the shell around a report that grows, and the
//! load that is under way.

use crate::compared;
use crate::json::Json;
use crate::page::rendered;
use crate::page::{LivePage, UnderWayPage};

/// One look at a load that is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveLook {
    /// Since it began, in seconds.
    pub seconds: f64,
    /// Transactions a second since the last look.
    pub tps: f64,
    /// The 99th percentile of their latency, in milliseconds.
    pub p99_ms: Option<f64>,
}

/// Looks that a chart draws at most: more than a screen has room for.
const LOOKS_MAX: usize = 600;

/// The page that a browser opens. It shows `page` and `now` below its own address, and asks `state`
/// which versions of them there are.
#[must_use]
pub fn live_shell(title: &str) -> String {
    rendered(&LivePage { title: title.to_owned() })
}

/// A load that is under way.
#[must_use]
pub fn under_way(title: &str, looks: &[LiveLook]) -> String {
    let shown = &looks[looks.len().saturating_sub(LOOKS_MAX)..];
    let curves = match shown.len() {
        0 => Vec::new(),
        _ => vec![
            curve("Transactions a second", "1/s", shown, |look| Some(look.tps)),
            curve("Latency p99", "ms", shown, |look| look.p99_ms),
        ],
    };
    page(title, curves)
}

/// Pairs that are under way: how the interval narrows.
#[must_use]
pub fn pairs_under_way(title: &str, looks: &[record::comparison::InterimLook]) -> String {
    page(title, compared::curves(looks, "ratio"))
}

fn page(title: &str, curves: Vec<Json>) -> String {
    let page = UnderWayPage {
        title: title.to_owned(),
        curves: (0..curves.len()).collect(),
        data: Json::Object(vec![
            ("trials", Json::List(Vec::new())),
            ("percentiles", Json::List(Vec::new())),
            ("curves", Json::List(curves)),
        ])
        .to_string(),
    };
    rendered(&page)
}

fn curve(
    title: &str,
    unit: &str,
    looks: &[LiveLook],
    of: impl Fn(&LiveLook) -> Option<f64>,
) -> Json {
    let values = || Json::series(looks.iter().map(&of));
    let none = || Json::series(looks.iter().map(|_| None));
    let line = Json::Object(vec![
        ("label", Json::text("each second")),
        ("colour", Json::Exact(0)),
        ("dashed", Json::Flag(false)),
        ("values", values()),
        ("low", values()),
        ("high", values()),
        ("rounds", Json::List(looks.iter().map(|_| Json::List(Vec::new())).collect())),
        ("published", none()),
    ]);
    Json::Object(vec![
        ("title", Json::text(title)),
        ("unit", Json::text(unit)),
        ("axis", Json::text("seconds")),
        ("time", Json::Flag(true)),
        ("log", Json::Flag(false)),
        ("x", Json::series(looks.iter().map(|look| Some(look.seconds)))),
        ("lines", Json::List(vec![line])),
    ])
}
