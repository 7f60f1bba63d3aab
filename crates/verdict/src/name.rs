//! Names of trials.

use std::collections::BTreeMap;

use record::Trial;

pub(crate) fn trial_name(trial: &Trial) -> String {
    point_name(&trial.variant, &trial.scenario, &trial.axes)
}

/// The same of what a trial is one of.
pub(crate) fn point_name(variant: &str, scenario: &str, axes: &BTreeMap<String, String>) -> String {
    let axes: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    format!("{variant}/{scenario} {}", axes.join(",")).trim_end().to_owned()
}
