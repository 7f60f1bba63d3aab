//! `pgrig diff`: what has changed between two records.

use std::path::Path;

use verdict::{Change, Side, number};

use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::records;
use crate::terminal::{self, BAD, FAINT, GOOD, UNSURE, styled};

/// Prints one line for each figure that both records have.
pub(crate) fn diff(first: &Path, second: &Path) -> Result<Exit, Complaint> {
    let (before, after) = (records::open(first)?, records::open(second)?);
    let side = |opened: &'_ records::Opened| -> (spec::Study, Vec<record::Trial>) {
        (opened.study.clone(), opened.reader.trials().to_vec())
    };
    let ((study_before, trials_before), (study_after, trials_after)) =
        (side(&before), side(&after));
    let differences = verdict::diff(
        Side { study: &study_before, trials: &trials_before },
        Side { study: &study_after, trials: &trials_after },
    );
    if differences.is_empty() {
        let what = format!("{} and {} have no trial in common", first.display(), second.display());
        return Err(Complaint::new(what).hinted(Some("compare records of the same study")));
    }
    let points = differences.iter().map(|one| one.point.chars().count());
    let point_width = points.max().unwrap_or(0);
    let metric_width = differences.iter().map(|one| one.metric.name.len()).max().unwrap_or(0);
    terminal::result(styled(
        FAINT,
        format_args!(
            "  {:point_width$}  {:metric_width$}  {:>9}  {:>9}  ratio",
            "point", "metric", "before", "after"
        ),
    ));
    for one in &differences {
        let ratio = one.ratio.as_ref().map_or_else(
            || "–".to_owned(),
            |ratio| {
                let (point, low, high) = (ratio.point, ratio.low, ratio.high);
                format!("{} [{}, {}]", number(point), number(low), number(high))
            },
        );
        let style = match one.change {
            Change::Better => GOOD,
            Change::Worse => BAD,
            Change::Same => FAINT,
            Change::CannotTell => UNSURE,
        };
        terminal::result(format_args!(
            "  {:point_width$}  {:metric_width$}  {:>9}  {:>9}  {ratio}  {}",
            one.point,
            one.metric.name,
            number(one.before),
            number(one.after),
            styled(style, one.change.words())
        ));
    }
    Ok(Exit::Done)
}
