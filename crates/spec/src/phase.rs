//! Phases of a scenario: parts of its window, one after another, each with figures of its own.

use crate::duration;
use crate::fields::{self, Fields};
use crate::patience;
use crate::problem::Problems;
use crate::value::{Is, Table, Value, is_name};

/// A part of a scenario's window.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioPhase {
    /// The name, unique in its scenario.
    pub name: String,
    /// The beginning, in milliseconds since the window opened.
    pub from_ms: u64,
    /// The length in milliseconds.
    pub length_ms: u64,
    /// The rate of the open-loop workloads in it, as a multiple of their own.
    pub rate_times: f64,
}

impl ScenarioPhase {
    /// The word by which a claim asks for a phase, as for the value of an axis: `'phase=pressure'`.
    pub const AXIS: &'static str = "phase";

    /// The scope under which a record has a figure of one phase: `@pressure` of the trial as a whole,
    /// `queue@pressure` of a workload or a node.
    #[must_use]
    pub fn scope(scope: &str, phase: &str) -> String {
        format!("{scope}@{phase}")
    }

    /// Scope and phase of a record's scope; no phase where the figure is of the whole window.
    #[must_use]
    pub fn of_scope<'s>(phases: &[ScenarioPhase], scope: &'s str) -> (&'s str, Option<&'s str>) {
        match scope.rsplit_once('@') {
            Some((scope, name)) if phases.iter().any(|phase| phase.name == name) => {
                (scope, Some(name))
            }
            _ => (scope, None),
        }
    }

    /// The end, in milliseconds since the window opened.
    pub fn until_ms(&self) -> u64 {
        self.from_ms + self.length_ms
    }
}

/// Phases as a scenario has them, and the actions that stand in them.
#[derive(Default)]
pub(crate) struct PhaseEntries<'t> {
    pub(crate) phases: Vec<ScenarioPhase>,
    /// The list of actions of a phase, and the beginning of the phase in milliseconds.
    pub(crate) actions: Vec<(u64, u64, &'t [Value])>,
}

/// `phases = [{ name = "clean", for = "10min" }, { name = "pressure", for = "20min", rate = "1.5x", timeline = […] }]`
pub(crate) fn phases<'t>(fields: &Fields<'t>, has_rate: bool) -> PhaseEntries<'t> {
    let problems = fields.problems;
    let mut found = PhaseEntries::default();
    let mut from_ms = 0;
    for value in fields.list("phases") {
        let Some(own) = Fields::of("a phase", value, problems) else { continue };
        let name = own.required("name").and_then(|value| fields::text("name", value, problems));
        let length = own.required("for");
        let length_ms = length.and_then(|value| fields::duration_ms("for", value, problems));
        let rate_times =
            own.value("rate").map_or(Some(1.0), |value| times(value, has_rate, problems));
        let actions = own.list("timeline");
        own.finish();
        let (Some(name), Some(length_ms), Some(rate_times)) = (name, length_ms, rate_times) else {
            continue;
        };
        if !is_name(name) {
            problems.add(&value.span, format!("\"{name}\" cannot be the name of a phase"));
        }
        if found.phases.iter().any(|phase| phase.name == name) {
            problems.add(&value.span, format!("two phases are called \"{name}\""));
        }
        if length_ms == 0 {
            problems.hinted(&value.span, "a phase must be longer than 0 s", duration::HINT);
        }
        found.actions.push((from_ms, length_ms, actions));
        found.phases.push(ScenarioPhase { name: name.to_owned(), from_ms, length_ms, rate_times });
        from_ms += length_ms;
    }
    found
}

/// `rate = "1.5x"`: a multiple of the rates of the workloads.
fn times(value: &Value, has_rate: bool, problems: &Problems) -> Option<f64> {
    let hint = "write rate = \"1.5x\", a multiple of the workload's rate";
    let number = patience::multiple(value, hint, problems)?;
    if !has_rate {
        let message =
            "rate: no workload of the scenario has a rate, so that nothing can be a multiple of it";
        problems.hinted(&value.span, message, "give a workload rate = transactions a second");
        return None;
    }
    Some(number)
}

/// Refuses what a scenario with phases cannot have beside them.
pub(crate) fn check(scenario: &Table, axes: &[(String, String)], problems: &Problems) {
    // A scenario without phases has nothing to refuse.
    let Some(entry) = scenario.find("phases") else { return };
    if matches!(&entry.value.is, Is::List(list) if list.is_empty()) {
        problems.add(&entry.value.span, "phases lists no phase");
    }
    if let Some(window) = scenario.find("window") {
        let hint = "leave out the window, or the phases";
        problems.hinted(&window.key_span, "the window is as long as the phases together", hint);
    }
    if axes.iter().any(|(axis, _)| axis == ScenarioPhase::AXIS) {
        let message = "an axis of a scenario with phases cannot be called \"phase\"";
        problems.add(&entry.key_span, message);
    }
}
