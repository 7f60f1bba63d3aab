//! The truth of a condition about figures of which some are only lower bounds.

use record::MetricFigure;
use spec::TrialCondition;

/// True if `condition` holds for the figures of its metrics, in their order. None if that depends
/// on how much larger than its lower bound a figure is.
pub(crate) fn truth(condition: &TrialCondition, figures: &[MetricFigure]) -> Option<bool> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let at_the_bounds = condition.is_true(&values);
    if figures.iter().all(|figure| !figure.is_at_least) {
        return Some(at_the_bounds);
    }
    let beyond =
        |figure: &MetricFigure| if figure.is_at_least { f64::INFINITY } else { figure.value };
    let values: Vec<f64> = figures.iter().map(beyond).collect();
    (condition.is_true(&values) == at_the_bounds).then_some(at_the_bounds)
}
