//! The figures that a page carries for its charts over time.

use record::{AttemptEnding, MarkKind, Trial};

use crate::glance::not_counted;
use crate::grouping::point_label;
use crate::json::Json;
use crate::timeline::{Panel, Series, Style, TimedMark, Timeline};

/// One trial for the page, under the names that the study gives its scenario and variant. `first`
/// is the one that is shown first.
pub(crate) fn trial(
    trial: &Trial,
    (scenario, variant): (&str, &str),
    timeline: &Timeline,
    first: bool,
) -> Json {
    let mut scenario = scenario.to_owned();
    if !trial.axes.is_empty() {
        scenario.push_str(" · ");
        scenario.push_str(&point_label(&trial.axes));
    }
    let round = match not_counted(&trial.ending) {
        None => trial.round.to_string(),
        Some((word, _)) => format!("{} ({word})", trial.round),
    };
    let window = timeline.window_s.map_or(Json::Null, |(open, close)| {
        Json::List(vec![Json::Number(open), Json::Number(close)])
    });
    Json::Object(vec![
        ("scenario", Json::text(scenario)),
        ("variant", Json::text(variant)),
        ("round", Json::text(round)),
        ("first", Json::Flag(first && trial.ending == AttemptEnding::Done)),
        ("from", Json::Number(timeline.from_s)),
        ("step", Json::Number(timeline.step_s)),
        ("n", Json::Exact(timeline.cells as u64)),
        ("window", window),
        ("panels", Json::list(&timeline.panels, panel)),
        ("marks", Json::list(&timeline.marks, mark)),
        ("more", Json::Exact(timeline.marks_left_out as u64)),
    ])
}

fn panel(panel: &Panel) -> Json {
    let style = match panel.style {
        Style::Lines => "linear",
        Style::LogLines => "log",
        Style::Stack => "stack",
        Style::Bars => "bars",
    };
    Json::Object(vec![
        ("title", Json::text(&panel.title)),
        ("unit", Json::text(&panel.unit)),
        ("style", Json::text(style)),
        ("step", Json::Number(panel.step_s)),
        ("series", Json::list(&panel.series, series)),
    ])
}

fn series(series: &Series) -> Json {
    Json::Object(vec![
        ("label", Json::text(&series.label)),
        ("colour", Json::Exact(series.colour as u64)),
        ("dashed", Json::Flag(series.dashed)),
        ("values", Json::series(series.values.iter().copied())),
    ])
}

fn mark(mark: &TimedMark) -> Json {
    let kind = match mark.kind {
        MarkKind::Phase => "phase",
        MarkKind::Action => "action",
        MarkKind::Checkpoint => "checkpoint",
        MarkKind::Autovacuum => "autovacuum",
        MarkKind::Exposure => "exposure",
        MarkKind::Replication => "replication",
        MarkKind::Horizon => "horizon",
        MarkKind::ServerError => "server_error",
    };
    Json::Object(vec![
        ("at", Json::Number(mark.at_s)),
        ("length", Json::Number(mark.length_s)),
        ("kind", Json::text(kind)),
        ("node", Json::text(&mark.node)),
        ("text", Json::text(&mark.text)),
    ])
}
