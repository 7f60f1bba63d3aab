//! Steps before a trial, and actions in it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::action::{Action, ActionTarget, TopologyState, lacks_any};
use crate::data::{Reset, script_file};
use crate::duration;
use crate::fields::{self, Fields};
use crate::folder::Folder;
use crate::problem::Problems;
use crate::topology::Topology;
use crate::value::{Is, Value};
use crate::whom::SqlTarget;

/// SQL that runs on a node before the clients come, outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
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
    /// The action. Where the node is chosen at that moment, its name stands for nothing before.
    pub action: Action,
    /// The way to find the node at that moment; none where its name says it.
    pub chosen: Option<ActionTarget>,
    /// The same of the node that it follows from then on.
    pub chosen_of: Option<ActionTarget>,
    /// The name by which later actions mean the same node.
    pub called: Option<String>,
}

/// `before`: commands, file names ending in `.sql`, or `{ on = NODE, sql = … }`.
pub(crate) fn steps(
    fields: &Fields<'_>,
    topology: &Topology,
    first_node: &str,
    folder: &Folder,
) -> Vec<Step> {
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
            Some(Step { on: first.clone(), sql })
        }
        _ => {
            let fields = Fields::of("a step", value, problems)?;
            let on = SqlTarget::parse(&fields, "on", topology).unwrap_or_else(|| first.clone());
            let sql = fields.required("sql");
            let sql = sql.and_then(|sql| sql_text(sql, folder, problems));
            fields.finish();
            let sql = sql?;
            topology.check_text(&sql, &value.span, problems);
            Some(Step { on, sql })
        }
    });
    steps.collect()
}

/// `timeline`: `{ at = "20s", kill = "standby1" }`.
pub(crate) fn timeline(
    fields: &Fields<'_>,
    topology: &Topology,
    reset: Reset,
    window_ms: u64,
    folder: &Folder,
) -> Vec<TimelineEntry> {
    let problems = fields.problems;
    let values = fields.list("timeline");
    let known: Vec<String> = values.iter().filter_map(called).collect();
    let context = Context { topology, folder, window_ms, known: &known, problems };
    let timed: Vec<(&Range<usize>, TimelineEntry)> =
        values.iter().filter_map(|value| Some((&value.span, timed(value, &context)?))).collect();
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
        if let (Action::Promote { node }, Reset::Keep) = (&action, reset) {
            let message = format!("promote: the next trial would find no standby {node}");
            problems.hinted(span, message, "data.reset = \"clone\" begins each trial anew");
        }
    }
    timed.into_iter().map(|(_, timed)| timed).collect()
}

/// The common context of the actions of a timeline.
struct Context<'c> {
    topology: &'c Topology,
    folder: &'c Folder,
    window_ms: u64,
    /// The names that actions give to what they are done to.
    known: &'c [String],
    problems: &'c Problems,
}

/// The name that an action gives to what it is done to.
fn called(value: &Value) -> Option<String> {
    match &value.is {
        Is::Table(table) => table.find("as")?.value.scalar_text(),
        _ => None,
    }
}

fn timed(value: &Value, context: &Context<'_>) -> Option<TimelineEntry> {
    let Context { topology, folder, window_ms, known, problems } = *context;
    let fields = Fields::of("an action", value, problems)?;
    let at = fields.required("at").and_then(|at| moment(at, window_ms, problems));
    let action = Action::parse(&fields, topology, folder, known);
    let called = fields.text("as").map(str::to_owned);
    if let Some(name) = called.as_deref().filter(|name| topology.node(name).is_some()) {
        problems.add(&value.span, format!("as: a node is called \"{name}\""));
    }
    fields.finish();
    let (earliest_ms, latest_ms) = at?;
    let (action, [chosen, chosen_of]) = action?;
    let texts = match &action {
        Action::Sql { sql, .. } => std::slice::from_ref(sql),
        Action::Run { command, .. } => command.as_slice(),
        _ => &[],
    };
    texts.iter().for_each(|text| topology.check_text(text, &value.span, problems));
    Some(TimelineEntry { earliest_ms, latest_ms, action, chosen, chosen_of, called })
}

fn moment(value: &Value, window_ms: u64, problems: &Problems) -> Option<(u64, u64)> {
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
        Ok((_, high)) if high >= window_ms => {
            let window_s = window_ms as f64 / 1e3;
            let message = format!("at: the window closes after {window_s} s");
            let hint = "lengthen the window or move the action; every profile may have its own: \
                        { smoke = \"300ms\", quick = \"5s\" }";
            problems.hinted(&value.span, message, hint);
            None
        }
        Ok(moment) => Some(moment),
    }
}

/// SQL itself, or the text of a `.sql` file of the folder.
pub(crate) fn sql_text(value: &Value, folder: &Folder, problems: &Problems) -> Option<String> {
    let text = fields::text("sql", value, problems)?;
    if text.ends_with(".sql") && !text.contains(char::is_whitespace) {
        return script_file(value, folder, problems).map(|script| script.text);
    }
    Some(text.to_owned())
}
