//! `pgrig diff`: what has changed between two records.

use std::path::Path;

use serde_json::{Value, json};
use stats::ConfidenceInterval;
use terms::figure;
use verdict::{DifferenceMeaning, MetricDifference, RecordDiff, RunCondition};

use crate::arguments::DiffArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::records::{self, Opened};
use console::terminal::{self, FAINT, STRONG, UNSURE, styled};

/// Prints what the two runs differ in, one line for each figure that both have, and a summary.
pub(crate) fn diff(arguments: &DiffArguments) -> Result<ProgramExit, Complaint> {
    let paths = [&arguments.before, &arguments.after];
    let (before, after) = (records::open(paths[0])?, records::open(paths[1])?);
    let diff = verdict::diff(before.side(), after.side());
    if diff.differences.is_empty() {
        let [first, second] = paths.map(|path| path.display());
        let what = format!("{first} and {second} have no trial and no pairs in common");
        return Err(Complaint::new(what)
            .hinted(Some("compare records of the same study, or of two comparisons")));
    }
    if arguments.json {
        let sides =
            [(&before, paths[0]), (&after, paths[1])].map(|(one, path)| json_side(one, path));
        terminal::json(&json(&diff, &sides));
        return Ok(ProgramExit::Done);
    }
    print_side("before", &before, paths[0]);
    print_side("after", &after, paths[1]);
    print_conditions(&diff.conditions);
    terminal::result("");
    print_table(&diff.differences);
    terminal::result("");
    terminal::result(styled(STRONG, diff.summary()));
    let corrected = diff.differences.iter().filter(|one| one.alone != one.change).count();
    if corrected > 0 {
        terminal::result(styled(
            FAINT,
            format_args!(
                "  * {corrected} would differ if it were the only one looked at; among {} that is \
                 to be expected by chance (Holm's correction)",
                diff.differences.len()
            ),
        ));
    }
    Ok(ProgramExit::Done)
}

fn print_side(word: &str, opened: &Opened, path: &Path) {
    let header = opened.reader.header();
    terminal::result(format_args!(
        "  {word:6}  {}  {}, profile {}, {}",
        path.display(),
        header.study,
        header.profile,
        header.started_at
    ));
}

fn print_conditions(conditions: &[RunCondition]) {
    if conditions.is_empty() {
        terminal::result("  the same study, profile, settings, sizes, versions and machine");
        return;
    }
    terminal::result("");
    terminal::result(styled(UNSURE, "The runs differ in more than time:"));
    let width = conditions.iter().map(|one| one.what.chars().count()).max();
    let width = width.expect("runs under the same conditions were told above");
    for RunCondition { what, before, after, points } in conditions {
        let place = match points.as_slice() {
            [] => String::new(),
            [one] => format!("  ({one})"),
            [one, rest @ ..] => format!("  ({one} and {} more)", rest.len()),
        };
        terminal::result(format_args!("  {what:width$}  {before} → {after}{place}"));
    }
}

const HAS_DIFFERENCES: &str = "runs that have nothing in common were refused";

fn print_table(differences: &[MetricDifference]) {
    let points = differences.iter().map(|one| one.point.chars().count());
    let point_width = points.max().expect(HAS_DIFFERENCES);
    let metrics = differences.iter().map(|one| one.metric.name.len());
    let metric_width = metrics.max().expect(HAS_DIFFERENCES);
    terminal::result(styled(
        FAINT,
        format_args!(
            "  {:point_width$}  {:metric_width$}  {:>9}  {:>9}  ratio",
            "point", "metric", "before", "after"
        ),
    ));
    for one in differences {
        let ratio = one.ratio.as_ref().map_or_else(|| "–".to_owned(), ratio);
        let style = match one.change {
            DifferenceMeaning::More | DifferenceMeaning::Less => STRONG,
            DifferenceMeaning::Same => FAINT,
            DifferenceMeaning::CannotTell => UNSURE,
        };
        let mark = if one.alone == one.change { "" } else { " *" };
        let figure = |value: f64, is_at_least: bool| {
            format!("{}{}", if is_at_least { "> " } else { "" }, figure(value))
        };
        let [before_at_least, after_at_least] = one.is_at_least;
        terminal::result(format_args!(
            "  {:point_width$}  {:metric_width$}  {:>9}  {:>9}  {ratio}  {}{mark}",
            one.point,
            one.metric.name,
            figure(one.before, before_at_least),
            figure(one.after, after_at_least),
            styled(style, one.change.words())
        ));
    }
}

fn ratio(ratio: &ConfidenceInterval) -> String {
    let (point, low, high) = (ratio.point, ratio.low, ratio.high);
    match ratio.n {
        1 => format!("{}  one round, no interval", figure(point)),
        _ => {
            let (value, range) = terms::figure_with_interval(point, low, high);
            format!("{value} {range}")
        }
    }
}

fn json(diff: &RecordDiff, [before, after]: &[Value; 2]) -> Value {
    let conditions = diff.conditions.iter().map(|one| {
        json!({ "what": one.what, "before": one.before, "after": one.after, "points": one.points })
    });
    let differences = diff.differences.iter().map(|one| {
        json!({
            "point": one.point,
            "metric": one.metric.name,
            "unit": one.metric.unit,
            "before": one.before,
            "is_before_at_least": one.is_at_least[0],
            "after": one.after,
            "is_after_at_least": one.is_at_least[1],
            "ratio": one.ratio.map(|ratio| ratio.point),
            "low": one.ratio.map(|ratio| ratio.low),
            "high": one.ratio.map(|ratio| ratio.high),
            "method": one.ratio.map(|ratio| ratio.method.name()),
            "n": one.ratio.map(|ratio| ratio.n),
            "alone": one.alone.words(),
            "change": one.change.words(),
        })
    });
    json!({
        "before": before,
        "after": after,
        "conditions": conditions.collect::<Vec<_>>(),
        "differences": differences.collect::<Vec<_>>(),
        "summary": diff.summary(),
    })
}

fn json_side(opened: &Opened, path: &Path) -> Value {
    let header = opened.reader.header();
    json!({
        "record": path.display().to_string(),
        "study": header.study,
        "profile": header.profile,
        "started_at": header.started_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_has_no_interval() {
        let check = |values: &[f64], expected: &str| {
            let range = ConfidenceInterval::range(values[0], values).expect("finite");
            assert_eq!(ratio(&range), expected);
        };
        check(&[2.87], "2.87  one round, no interval");
        check(&[2.87, 2.5, 3.0], "2.87 [2.50, 3.00]");
    }
}
