//! Steps before a trial, and actions in it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::action::{Action, ActionTarget, TopologyState, lacks_any};
use crate::data::{DataReset, script_file};
use crate::duration;
use crate::fields::{self, Fields};
use crate::folder::StudyFolder;
use crate::problem::Problems;
use crate::topology::Topology;
use crate::value::{Is, Value};
use crate::whom::SqlTarget;

mod awaited;

pub use awaited::{AwaitedCondition, AwaitedState};

/// SQL that runs on a node before the clients come, outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlStep {
    /// The node it runs on.
    pub on: SqlTarget,
    /// The command, or the script.
    pub sql: String,
}

/// An action and its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// Earliest moment, in milliseconds since the window opened.
    pub earliest_ms: u64,
    /// Latest moment; equal to the earliest unless it is drawn at random.
    pub latest_ms: u64,
    /// The state that it waits for after the action written before it; none where its moment is given. Its earliest
    /// moment is then that of the action before, its latest one when the time for the state is over.
    pub when: Option<AwaitedState>,
    /// The action. Where the node is chosen at that moment, its name stands for nothing before.
    pub action: Action,
    /// The way to find the node at that moment; none where its name says it.
    pub chosen: Option<ActionTarget>,
    /// The same of the node that it follows from then on.
    pub chosen_of: Option<ActionTarget>,
    /// The name by which later actions mean the same node.
    pub called: Option<String>,
    /// True if it is left out, and the trial counts, where its node is not there at that moment or cannot have it done.
    pub may_skip: bool,
}

/// `before`: commands, file names ending in `.sql`, or `{ on = NODE, sql = … }`.
pub(crate) fn steps(
    fields: &Fields<'_>,
    topology: &Topology,
    first_node: &str,
    folder: &StudyFolder,
) -> Vec<SqlStep> {
    let problems = fields.problems;
    // Which machine takes writes is for the manager to say.
    let first = match topology.node(first_node).is_some_and(|node| node.machine().is_some()) {
        true => SqlTarget::PrimaryNow,
        false => SqlTarget::Node(first_node.to_owned()),
    };
    let values = fields.list("before").iter();
    let steps = values.filter_map(|value| match &value.is {
        Is::Text(_) => {
            let sql = sql_text(value, folder, problems)?;
            topology.check_text(&sql, &value.span, problems);
            Some(SqlStep { on: first.clone(), sql })
        }
        _ => {
            let fields = Fields::of("a step", value, problems)?;
            let on = SqlTarget::parse(&fields, "on", topology).unwrap_or_else(|| first.clone());
            let sql = fields.required("sql");
            let sql = sql.and_then(|sql| sql_text(sql, folder, problems));
            fields.finish();
            let sql = sql?;
            topology.check_text(&sql, &value.span, problems);
            Some(SqlStep { on, sql })
        }
    });
    steps.collect()
}

/// The stretches of a window that actions are counted from.
pub(crate) struct StretchMoments<'t> {
    pub(crate) window_ms: u64,
    /// Beginning and length of each phase, and the actions that stand in it.
    pub(crate) of_phases: Vec<(u64, u64, &'t [Value])>,
}

/// `timeline`: `{ at = "20s", kill = "standby1" }`, of the scenario from the window's opening on and of each
/// phase from its own beginning on.
pub(crate) fn timeline(
    fields: &Fields<'_>,
    topology: &Topology,
    reset: DataReset,
    moments: &StretchMoments<'_>,
    folder: &StudyFolder,
) -> Vec<TimelineEntry> {
    let problems = fields.problems;
    let of_scenario = (Stretch::Window, 0, moments.window_ms, fields.list("timeline"));
    let of_phases = moments
        .of_phases
        .iter()
        .map(|(from, length, list)| (Stretch::Phase, *from, *length, *list));
    let lists: Vec<_> = std::iter::once(of_scenario).chain(of_phases).collect();
    let known: Vec<String> = lists.iter().flat_map(|list| list.3).filter_map(called).collect();
    let known = known.as_slice();
    let mut timed: Vec<(&Range<usize>, TimelineEntry)> = Vec::new();
    for (stretch, from_ms, length_ms, values) in lists {
        let context = Context { topology, folder, stretch, from_ms, length_ms, known, problems };
        // An action that waits begins after the one before it in its own list.
        let mut before = (from_ms, from_ms);
        for value in values {
            let Some(entry) = timed_entry(value, before, &context) else { continue };
            before = (entry.earliest_ms, entry.latest_ms);
            timed.push((&value.span, entry));
        }
    }
    check_waits(&timed, problems);
    let mut in_order: Vec<&(&Range<usize>, TimelineEntry)> = timed.iter().collect();
    in_order.sort_by_key(|(_, timed)| (timed.earliest_ms, timed.latest_ms));
    let mut course = TopologyState::default();
    // The node behind each name, where it is known beforehand.
    let mut named: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for (span, timed) in in_order {
        let mut action = timed.action.clone();
        let mut is_known = true;
        for (chosen, put) in [
            (&timed.chosen, Action::on as fn(&Action, &str) -> Action),
            (&timed.chosen_of, Action::of),
        ] {
            let Some(chosen) = chosen else { continue };
            match chosen {
                ActionTarget::Earlier(name) => match named.get(name.as_str()) {
                    Some(Some(node)) => action = put(&action, node),
                    Some(None) => is_known = false,
                    None => {
                        problems.add(span, format!("no earlier action is done as \"{name}\""));
                        is_known = false;
                    }
                },
                ActionTarget::PrimaryNow | ActionTarget::StandbyNow => is_known = false,
            }
        }
        if let Some(name) = timed.called.as_deref() {
            named.insert(name, is_known.then(|| action.target().to_owned()));
        }
        // What has become of a node that is found at its moment is known then.
        if !is_known {
            if let Some(why) = lacks_any(&timed.action, topology) {
                problems.add(span, format!("{}: {why}", timed.action.verb()));
            }
            continue;
        }
        if let Err(why) = course.follow(&action, topology) {
            problems.add(span, format!("{}: {why}", action.verb()));
        }
        if let (Action::Promote { node }, DataReset::Keep) = (&action, reset) {
            let message = format!("promote: the next trial would find no standby {node}");
            problems.hinted(span, message, "data.reset = \"clone\" begins each trial anew");
        }
    }
    timed.into_iter().map(|(_, timed)| timed).collect()
}

/// The common context of the actions of a timeline.
struct Context<'c> {
    topology: &'c Topology,
    folder: &'c StudyFolder,
    stretch: Stretch,
    /// Beginning of the stretch, in milliseconds since the window opened.
    from_ms: u64,
    length_ms: u64,
    /// The names that actions give to what they are done to.
    known: &'c [String],
    problems: &'c Problems,
}

/// The stretch that the moments of a list of actions are counted in.
#[derive(Clone, Copy)]
enum Stretch {
    Window,
    Phase,
}

/// The name that an action gives to what it is done to.
fn called(value: &Value) -> Option<String> {
    match &value.is {
        Is::Table(table) => table.find("as")?.value.scalar_text(),
        _ => None,
    }
}

/// An action with a moment of its own must leave room for those that wait for a state before it.
fn check_waits(timed: &[(&Range<usize>, TimelineEntry)], problems: &Problems) {
    for (index, (_, waits)) in timed.iter().enumerate().filter(|(_, (_, one))| one.when.is_some()) {
        let is_met = |(other, (_, entry)): &(usize, &(&Range<usize>, TimelineEntry))| {
            let is_later = entry.latest_ms > waits.earliest_ms || *other > index;
            entry.when.is_none() && is_later && entry.earliest_ms < waits.latest_ms
        };
        if let Some((_, (span, entry))) = timed.iter().enumerate().find(is_met) {
            let message = format!(
                "{} may wait until {} s after the window's opening, and {} is due at {} s",
                waits.action.verb(),
                waits.latest_ms as f64 / 1e3,
                entry.action.verb(),
                entry.earliest_ms as f64 / 1e3
            );
            problems.hinted(span, message, "move it, or make `within` of the waiting ones shorter");
        }
    }
}

fn timed_entry(value: &Value, before: (u64, u64), context: &Context<'_>) -> Option<TimelineEntry> {
    let Context { topology, folder, from_ms, length_ms, known, problems, .. } = *context;
    let end_ms = from_ms + length_ms;
    let fields = Fields::of("an action", value, problems)?;
    let when = fields.value("when");
    let (at, when) = match when {
        None => (fields.required("at").and_then(|at| moment(at, context)), None),
        Some(value) => {
            if let Some(entry) = fields.entry("at") {
                let hint = "write at = \"5s\" or when = { … }";
                problems.hinted(&entry.key_span, "an action with at and when", hint);
            }
            let when = AwaitedState::parse(value, topology, folder, problems);
            let at = when.as_ref().map(|when| (before.0, before.1 + when.within_ms));
            if let Some((_, latest)) = at.filter(|(_, latest)| *latest >= end_ms) {
                let message = format!(
                    "when: it may wait until {} s after the window's opening, which closes after {} s",
                    latest as f64 / 1e3,
                    end_ms as f64 / 1e3
                );
                problems.hinted(&value.span, message, "lengthen the window, or shorten within");
            }
            (at, when)
        }
    };
    let action = Action::parse(&fields, topology, folder, known);
    let called = fields.text("as").map(str::to_owned);
    if let Some(name) = called.as_deref().filter(|name| topology.node(name).is_some()) {
        problems.add(&value.span, format!("as: a node is called \"{name}\""));
    }
    let may_skip = fields.boolean("may_skip").unwrap_or(false);
    fields.finish();
    let (earliest_ms, latest_ms) = at?;
    let (action, [chosen, chosen_of]) = action?;
    let texts = match &action {
        Action::Sql { sql, .. } => std::slice::from_ref(sql),
        Action::Run { command, .. } => command.as_slice(),
        _ => &[],
    };
    texts.iter().for_each(|text| topology.check_text(text, &value.span, problems));
    Some(TimelineEntry {
        earliest_ms,
        latest_ms,
        when,
        action,
        chosen,
        chosen_of,
        called,
        may_skip,
    })
}

/// The earliest and the latest moment, in milliseconds since the window opened.
fn moment(value: &Value, context: &Context<'_>) -> Option<(u64, u64)> {
    let Context { stretch, from_ms, length_ms, problems, .. } = *context;
    let text = fields::text("at", value, problems)?;
    let inner = text.trim().strip_prefix("random(").and_then(|rest| rest.strip_suffix(')'));
    let (low, high) = match inner {
        Some(inner) => inner.split_once(',').unwrap_or((inner, "")),
        None => (text, text),
    };
    let moment = duration::parse_ms(low).and_then(|low| Ok((low, duration::parse_ms(high)?)));
    match moment {
        Err(why) => {
            let hint = "write at = \"20s\" or at = \"random(5s,20s)\", counted from the window's \
                        opening";
            problems.hinted(&value.span, format!("at: {why}"), hint);
            None
        }
        Ok((low, high)) if low > high => {
            problems.add(&value.span, "at: the earliest moment is later than the latest");
            None
        }
        Ok((_, high)) if high >= length_ms => {
            let length_s = length_ms as f64 / 1e3;
            let (message, what) = match stretch {
                Stretch::Window => (format!("at: the window closes after {length_s} s"), "window"),
                Stretch::Phase => (format!("at: the phase ends after {length_s} s"), "phase"),
            };
            let hint = format!(
                "lengthen the {what} or move the action; every profile may have its own: \
                 {{ smoke = \"300ms\", quick = \"5s\" }}"
            );
            problems.hinted(&value.span, message, hint);
            None
        }
        Ok((low, high)) => Some((from_ms + low, from_ms + high)),
    }
}

/// SQL itself, or the text of a `.sql` file of the folder.
pub(crate) fn sql_text(value: &Value, folder: &StudyFolder, problems: &Problems) -> Option<String> {
    let text = fields::text("sql", value, problems)?;
    if text.ends_with(".sql") && !text.contains(char::is_whitespace) {
        return script_file(value, folder, problems).map(|script| script.text);
    }
    Some(text.to_owned())
}
