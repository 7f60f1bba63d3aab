//! The page of a bisection: every step on one axis.

use crate::curve;
use crate::json::Json;
use crate::page::{HistoryPage, rendered};
use crate::view::Table;

/// A commit that was compared with the good one.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectedStep {
    /// The place among the commits.
    pub commit: usize,
    /// The purpose of the step.
    pub kind: String,
    /// The verdict.
    pub verdict: String,
    /// Commit ÷ good: value, lower and upper bound.
    pub ratio: Option<[f64; 3]>,
    /// The duration, in seconds.
    pub seconds: f64,
    /// The directory of its record.
    pub record: String,
}

/// A bisection as one HTML file that needs nothing beside it. `threshold` is the ratio between the good
/// and the bad commit.
pub fn bisected(
    answer: &str,
    figure: &str,
    commits: &[String],
    steps: &[BisectedStep],
    threshold: Option<f64>,
) -> String {
    let title = format!("{figure}, commit ÷ the good one");
    let at = |commit: usize, pick: fn(&[f64; 3]) -> f64| {
        let own = steps.iter().filter(|step| step.commit == commit);
        own.filter_map(|step| step.ratio.as_ref()).next_back().map(pick)
    };
    let column = |pick: fn(&[f64; 3]) -> f64| {
        Json::series((0..commits.len()).map(|commit| at(commit, pick)))
    };
    let measured = curve::line(
        "measured",
        0,
        commits.len(),
        [column(|ratio| ratio[0]), column(|ratio| ratio[1]), column(|ratio| ratio[2])],
    );
    let flat = || Json::series(commits.iter().map(|_| threshold));
    let between = curve::line("between good and bad", 1, commits.len(), [flat(), flat(), flat()]);
    let curve = Json::Object(vec![
        ("title", Json::text(&title)),
        ("unit", Json::text("")),
        ("axis", Json::text("commits, the good one first")),
        ("log", Json::Flag(false)),
        ("x", Json::series((0..commits.len()).map(|at| Some(at as f64)))),
        (
            "names",
            Json::list(commits, |commit| Json::text(commit.chars().take(10).collect::<String>())),
        ),
        ("lines", Json::List(vec![measured, between])),
    ]);
    let columns =
        ["Commit", "Step", "Verdict", "#Commit ÷ good", "#Interval", "#Seconds", "Record"];
    let mut table = Table::new("Steps", "in the order in which they were made", &columns);
    for step in steps {
        let (value, interval) = match step.ratio {
            Some([value, low, high]) => crate::number::with_interval(value, low, high),
            None => ("–".to_owned(), "–".to_owned()),
        };
        // A state that was edited may name a commit that is not there; its step is shown without it.
        let commit = commits.get(step.commit).cloned().unwrap_or_default();
        let texts = [commit, step.kind.clone(), step.verdict.clone()];
        let took = format!("{:.0}", step.seconds);
        table.row(texts.into_iter().chain([value, interval, took, step.record.clone()]));
    }
    rendered(&HistoryPage {
        kind: "bisect",
        title: answer.to_owned(),
        note: "Each commit was compared with the good one, in turn and with restarts. A commit whose \
               interval is on one side of the line between is as good as the good one or as bad as the \
               bad one."
            .to_owned(),
        curves: vec![0],
        tables: vec![table],
        data: Json::Object(vec![
            ("trials", Json::List(Vec::new())),
            ("percentiles", Json::List(Vec::new())),
            ("curves", Json::List(vec![curve])),
        ])
        .to_string(),
    })
}
