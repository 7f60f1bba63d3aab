//! Limits of what can be known in the time, said before it is measured.

use record::comparison::ComparedMetric;

use crate::pair::contest::PairContest;
use crate::pair::pilot::BlockShape;

/// Says which deciding figures are out of reach, and which time would do. Unless figures are kept, one that is out of
/// reach gives its place to the next one below that is not.
pub(crate) fn settle(
    contest: &mut PairContest<'_>,
    shape: BlockShape,
    keeps_figures: bool,
) -> Vec<String> {
    let max_s = contest.max_time.as_secs_f64();
    let mut notes = Vec::new();
    let mut deciding = Vec::new();
    for metric in contest.rule.deciding.clone() {
        let needs_s = contest.needs_s(metric, shape);
        if needs_s <= max_s {
            deciding.push(metric);
            continue;
        }
        let needs = terms::duration(needs_s);
        // The median takes as few transactions as there can be.
        let below = [ComparedMetric::P95, ComparedMetric::P50].into_iter().find(|one| {
            let is_within = *one == ComparedMetric::P50 || contest.needs_s(*one, shape) <= max_s;
            one.quantile() < metric.quantile() && is_within
        });
        match below.filter(|_| !keeps_figures) {
            Some(below) => {
                notes.push(format!(
                    "The {} takes about {needs} here, more than --max-time: the {} decides in its place.",
                    metric.words(),
                    below.words()
                ));
                if !deciding.contains(&below) {
                    deciding.push(below);
                }
            }
            None => {
                notes.push(format!(
                    "The {} takes about {needs} here, more than --max-time: it will hardly have an \
                     interval.",
                    metric.words()
                ));
                deciding.push(metric);
            }
        }
    }
    contest.rule.deciding = deciding;
    notes
}
