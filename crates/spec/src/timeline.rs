//! What happens during a trial besides load: steps before it, actions in it.

use std::ops::Range;

use crate::action::{self, Action, TopologyState};
use crate::data::{Reset, script_file};
use crate::duration;
use crate::fields::{self, Fields};
use crate::folder::Folder;
use crate::problem::Problems;
use crate::topology::Topology;
use crate::value::{Is, Value};

/// SQL that runs on a node before the clients come, outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node it runs on.
    pub node: String,
    /// The command, or the script.
    pub sql: String,
}

/// An action and its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Earliest moment, in milliseconds since the window opened.
    pub earliest_ms: u64,
    /// Latest moment; equal to the earliest unless it is drawn at random.
    pub latest_ms: u64,
    /// What is done.
    pub action: Action,
}

/// `before`: commands, file names ending in `.sql`, or `{ on = NODE, sql = … }`.
pub(crate) fn steps(
    fields: &Fields<'_>,
    topology: &Topology,
    first_node: &str,
    folder: &Folder,
) -> Vec<Step> {
    let problems = fields.problems;
    let values = fields.list("before").iter();
    let steps = values.filter_map(|value| match &value.is {
        Is::Text(_) => {
            let sql = sql_text(value, folder, problems)?;
            Some(Step { node: first_node.to_owned(), sql })
        }
        _ => {
            let fields = Fields::of("a step", value, problems)?;
            let node = action::server(&fields, "on", topology);
            let node = node.map_or(first_node, |node| &node.name).to_owned();
            let sql = fields.required("sql");
            let sql = sql.and_then(|sql| sql_text(sql, folder, problems));
            fields.finish();
            Some(Step { node, sql: sql? })
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
) -> Vec<Timed> {
    let problems = fields.problems;
    let values = fields.list("timeline").iter();
    let timed: Vec<(&Range<usize>, Timed)> = values
        .filter_map(|value| {
            Some((&value.span, timed(value, topology, window_ms, folder, problems)?))
        })
        .collect();
    let mut in_order: Vec<&(&Range<usize>, Timed)> = timed.iter().collect();
    in_order.sort_by_key(|(_, timed)| (timed.earliest_ms, timed.latest_ms));
    let mut course = TopologyState::default();
    for (span, timed) in in_order {
        if let Err(why) = course.follow(&timed.action, topology) {
            problems.add(span, format!("{}: {why}", timed.action.verb()));
        }
        if let (Action::Promote { node }, Reset::Keep) = (&timed.action, reset) {
            let message = format!("promote: the next trial would find no standby {node}");
            problems.hinted(span, message, "data.reset = \"clone\" begins each trial anew");
        }
    }
    timed.into_iter().map(|(_, timed)| timed).collect()
}

fn timed(
    value: &Value,
    topology: &Topology,
    window_ms: u64,
    folder: &Folder,
    problems: &Problems,
) -> Option<Timed> {
    let fields = Fields::of("an action", value, problems)?;
    let at = fields.required("at").and_then(|at| moment(at, window_ms, problems));
    let action = Action::parse(&fields, topology, folder);
    fields.finish();
    let (earliest_ms, latest_ms) = at?;
    Some(Timed { earliest_ms, latest_ms, action: action? })
}

/// `20s`, or `random(5s,20s)`.
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
