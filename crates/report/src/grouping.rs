//! Groups of trials that stand side by side.
//!
//! A figure compares what the study varies. With several variants that is the variants, at each
//! point of each scenario; with one variant it is the points of a scenario; with nothing but
//! scenarios it is those. A workload is a line of its own where a scenario runs several.

use std::collections::BTreeMap;

use record::{AttemptEnding, Trial};
use spec::{Metric, NamedItem, Study};

/// Longer words than this belong into a text, not beside a line.
const LABEL_CHARS_MAX: usize = 36;

/// Trials that are compared in one figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// Scenario and point that they have in common; empty if they have none.
    pub(crate) label: String,
    /// Lines that are compared, in the study's order.
    pub(crate) lines: Vec<Line>,
}

/// One thing that is compared: the same workload of all rounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// Label that distinguishes it within its group.
    pub(crate) label: String,
    /// The scenario, for looking up published figures.
    pub(crate) scenario: String,
    pub(crate) variant: String,
    pub(crate) axes: BTreeMap<String, String>,
    /// Workload: index and name; none where the scenario runs one only.
    pub(crate) workload: Option<(usize, String)>,
    /// Indices of the trials that count, in the order of rounds.
    pub(crate) trials: Vec<usize>,
}

impl Line {
    /// The scope under which the record keeps this line's metrics: empty for a whole trial.
    pub(crate) fn scope(&self) -> &str {
        self.workload.as_ref().map_or("", |(_, name)| name)
    }

    /// The workloads that it speaks of, as a range over a trial's list.
    pub(crate) fn workloads(&self, trial: &Trial) -> std::ops::Range<usize> {
        match self.workload {
            Some((index, _)) if index < trial.workloads.len() => index..index + 1,
            Some(_) => 0..0,
            None => 0..trial.workloads.len(),
        }
    }

    /// One value a round; rounds without a value are left out.
    pub(crate) fn values(&self, trials: &[Trial], metric: &Metric) -> Vec<f64> {
        let value = |&index: &usize| {
            let scopes = trials[index].scopes(metric)?;
            scopes.get(self.scope()).copied()
        };
        self.trials.iter().filter_map(value).collect()
    }

    pub(crate) fn published(&self, study: &Study, metric: &Metric) -> Option<f64> {
        let published = study.published.iter().find(|published| {
            published.metric == metric.name
                && published.variant == self.variant
                && published.scenario == self.scenario
                && published.scope == self.scope()
                && axes_agree(&published.axes, &self.axes)
        });
        published.map(|published| published.value)
    }
}

/// True if `axis=value,axis=value` names this point.
pub(crate) fn axes_agree(written: &str, axes: &BTreeMap<String, String>) -> bool {
    let mut pairs = 0;
    for pair in written.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((axis, value)) = pair.split_once('=') else {
            return false;
        };
        if axes.get(axis.trim()).is_none_or(|known| known != value.trim()) {
            return false;
        }
        pairs += 1;
    }
    pairs == axes.len()
}

/// All groups of a record, in the study's order.
pub(crate) fn groups(study: &Study, trials: &[Trial]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // The copy of a point is a variant by name only: a study with one variant still compares points.
    let copy = study.twin.map(|twin| study.points[twin.point].name.variant.as_str());
    let varied = study.variants.iter().filter(|one| Some(one.name.as_str()) != copy).count() > 1;
    let again = |is_copy: bool, line: &str| match is_copy {
        true => format!("{line}, again"),
        false => line.to_owned(),
    };
    for index in in_study_order(study, trials) {
        let trial = &trials[index];
        if trial.ending != AttemptEnding::Done {
            continue;
        }
        let point = point_label(&trial.axes);
        let variant = label(&study.variants, &trial.variant).to_owned();
        let scenario = words(&study.scenarios, &trial.scenario).to_owned();
        let is_copy = copy == Some(trial.variant.as_str());
        let (group, line) = match (varied, point.is_empty()) {
            (true, true) => (scenario, variant),
            (true, false) => (format!("{scenario} · {point}"), variant),
            (false, true) => {
                (String::new(), again(is_copy, label(&study.scenarios, &trial.scenario)))
            }
            (false, false) => (scenario, again(is_copy, &point)),
        };
        let group = entry(
            &mut groups,
            |known| known.label == group,
            || Group { label: group.clone(), lines: Vec::new() },
        );
        for workload in workloads_apart(trial) {
            let label = match &workload {
                Some((_, name)) => format!("{line} · {name}"),
                None => line.clone(),
            };
            let line = entry(
                &mut group.lines,
                |known| known.label == label,
                || Line {
                    label: label.clone(),
                    scenario: trial.scenario.clone(),
                    variant: trial.variant.clone(),
                    axes: trial.axes.clone(),
                    workload,
                    trials: Vec::new(),
                },
            );
            line.trials.push(index);
        }
    }
    groups
}

/// Indices of all trials: by point of the study, then by round. The order of execution is random
/// and says nothing.
pub(crate) fn in_study_order(study: &Study, trials: &[Trial]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by_key(|&index| {
        let trial = &trials[index];
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        (point.unwrap_or(usize::MAX), trial.round, trial.number)
    });
    order
}

/// Label for a part of the study: its words if they are short enough for a figure.
pub(crate) fn label<'a>(parts: &'a [NamedItem], name: &'a str) -> &'a str {
    let words = words(parts, name);
    if words.chars().count() <= LABEL_CHARS_MAX { words } else { name }
}

/// Heading for a part of the study: its words, or its name.
fn words<'a>(parts: &'a [NamedItem], name: &'a str) -> &'a str {
    parts.iter().find(|part| part.name == name).map_or(name, NamedItem::label)
}

/// The values of a point's axes as a reader writes them: `clients=8 delay=1ms`.
pub(crate) fn point_label(axes: &BTreeMap<String, String>) -> String {
    let parts: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    parts.join(" ")
}

/// A number at the beginning of an axis value, and its unit: `0.2` and `ms` of `0.2ms`.
pub(crate) fn axis_number(value: &str) -> Option<(f64, &str)> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (digits, unit) = value.split_at(end.unwrap_or(value.len()));
    let number = digits.replace('_', "").parse().ok()?;
    Some((number, unit.trim()))
}

fn workloads_apart(trial: &Trial) -> Vec<Option<(usize, String)>> {
    match trial.workloads.len() {
        0 | 1 => vec![None],
        _ => {
            let names = trial.workloads.iter().map(|workload| workload.name.clone());
            names.enumerate().map(Some).collect()
        }
    }
}

/// The item that is meant, made where it does not exist yet.
pub(crate) fn entry<T>(
    items: &mut Vec<T>,
    is: impl Fn(&T) -> bool,
    new: impl FnOnce() -> T,
) -> &mut T {
    let index = items.iter().position(is).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_value_is_a_number_and_a_unit() {
        assert_eq!(axis_number("16_384"), Some((16384.0, "")));
        assert_eq!(axis_number("0.2ms"), Some((0.2, "ms")));
        assert_eq!(axis_number("local"), None);
    }

    #[test]
    fn published_axes_name_the_whole_point() {
        let axes = BTreeMap::from([("clients".to_owned(), "8".to_owned())]);
        assert!(axes_agree("clients=8", &axes));
        assert!(!axes_agree("clients=64", &axes));
        assert!(!axes_agree("", &axes));
        assert!(!axes_agree("clients=8,delay=1ms", &axes));
        assert!(axes_agree("", &BTreeMap::new()));
    }
}
