//! What happens during a trial besides load: steps before it, actions in it, checks after it.

use crate::data::script_file;
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

/// Something done at a moment of the timeline. Each proves its effect or voids the trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs SQL on a node.
    Sql(Step),
    /// Runs CHECKPOINT on a node.
    Checkpoint {
        /// The node.
        node: String,
    },
    /// Shuts a server down.
    Stop {
        /// The node.
        node: String,
        /// pg_ctl's shutdown mode.
        mode: StopMode,
    },
    /// Kills all processes of a node with SIGKILL.
    Kill {
        /// The node.
        node: String,
    },
    /// Stops all processes of a node with SIGSTOP: its connections stay open, nothing answers.
    Pause {
        /// The node.
        node: String,
    },
    /// Lets a paused node go on.
    Continue {
        /// The node.
        node: String,
    },
    /// Starts a node that was stopped or killed.
    Start {
        /// The node.
        node: String,
    },
}

/// pg_ctl's shutdown modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Disconnects clients, writes a checkpoint.
    Fast,
    /// Quits without a checkpoint; the next start recovers.
    Immediate,
}

/// A check after a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// The server counts as many transactions as the clients: `count_difference` is 0.
    Counts,
}

impl Action {
    /// The node that it touches.
    #[must_use]
    pub fn node(&self) -> &str {
        match self {
            Action::Sql(step) => &step.node,
            Action::Checkpoint { node }
            | Action::Stop { node, .. }
            | Action::Kill { node }
            | Action::Pause { node }
            | Action::Continue { node }
            | Action::Start { node } => node,
        }
    }

    /// The verb, as study.toml writes it.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Action::Sql(_) => "sql",
            Action::Checkpoint { .. } => "checkpoint",
            Action::Stop { .. } => "stop",
            Action::Kill { .. } => "kill",
            Action::Pause { .. } => "pause",
            Action::Continue { .. } => "continue",
            Action::Start { .. } => "start",
        }
    }
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
            let node = node(&fields, "on", topology).unwrap_or_else(|| first_node.to_owned());
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
    window_ms: u64,
    folder: &Folder,
) -> Vec<Timed> {
    let values = fields.list("timeline").iter();
    let timed =
        values.filter_map(|value| timed(value, topology, window_ms, folder, fields.problems));
    timed.collect()
}

/// `checks`: names from a closed set.
pub(crate) fn checks(fields: &Fields<'_>) -> Vec<Check> {
    let values = fields.list("checks").iter();
    values.filter_map(|value| fields::choice("checks", value, CHECKS, fields.problems)).collect()
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
    let action = action(&fields, topology, folder);
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
            problems.hinted(&value.span, message, "lengthen the window or move the action");
            None
        }
        Ok(moment) => Some(moment),
    }
}

fn action(fields: &Fields<'_>, topology: &Topology, folder: &Folder) -> Option<Action> {
    let problems = fields.problems;
    let verbs: Vec<&str> = VERBS.into_iter().filter(|verb| fields.entry(verb).is_some()).collect();
    let verb = match verbs[..] {
        [verb] => verb,
        [] => {
            let hint = format!("one of {}", VERBS.join(", "));
            problems.hinted(fields.span(), "an action without a verb", hint);
            return None;
        }
        _ => {
            let message = format!("one action at a time, not {}", verbs.join(" and "));
            problems.add(fields.span(), message);
            return None;
        }
    };
    let first = topology.nodes.first().map(|node| node.name.clone());
    Some(match verb {
        "sql" => {
            let node = node(fields, "on", topology).or(first)?;
            let sql = sql_text(fields.required("sql")?, folder, problems)?;
            Action::Sql(Step { node, sql })
        }
        "checkpoint" => Action::Checkpoint { node: node(fields, "checkpoint", topology)? },
        "stop" => Action::Stop {
            node: node(fields, "stop", topology)?,
            mode: fields.choice("mode", STOP_MODES).unwrap_or(StopMode::Fast),
        },
        "kill" => Action::Kill { node: node(fields, "kill", topology)? },
        "pause" => Action::Pause { node: node(fields, "pause", topology)? },
        "continue" => Action::Continue { node: node(fields, "continue", topology)? },
        _ => Action::Start { node: node(fields, "start", topology)? },
    })
}

/// The name of a node that the topology has.
fn node(fields: &Fields<'_>, key: &'static str, topology: &Topology) -> Option<String> {
    let name = fields.text(key)?;
    if topology.node(name).is_some() {
        return Some(name.to_owned());
    }
    let span = fields.value(key).map_or(fields.span().clone(), |value| value.span.clone());
    let known = topology.nodes.iter().map(|node| node.name.as_str());
    fields.problems.unknown(&span, "node", name, known);
    None
}

/// SQL itself, or the text of a `.sql` file of the folder.
fn sql_text(value: &Value, folder: &Folder, problems: &Problems) -> Option<String> {
    let text = fields::text("sql", value, problems)?;
    if text.ends_with(".sql") && !text.contains(char::is_whitespace) {
        return script_file(value, folder, problems).map(|script| script.text);
    }
    Some(text.to_owned())
}

const VERBS: [&str; 7] = ["sql", "checkpoint", "stop", "kill", "pause", "continue", "start"];
const STOP_MODES: &[(&str, StopMode)] =
    &[("fast", StopMode::Fast), ("immediate", StopMode::Immediate)];
const CHECKS: &[(&str, Check)] = &[("counts", Check::Counts)];
