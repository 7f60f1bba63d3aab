//! What happens inside a window besides load, on the load's clock: the timeline's actions, and the
//! servers' CPU at the window's two ends.
//!
//! The meter is one thread. It hears from the load when the window opens and does what is due; when
//! the load ends before that, it stops where it is.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use lab::wait_until;
use probe::Running;
use record::{Mark, MarkKind, Moment};
use spec::{Action, Point};

use crate::clock;
use crate::error::server_words;
use crate::site::SiteNode;

/// What the meter has to do.
pub(crate) struct Agenda<'a> {
    pub(crate) point: &'a Point,
    /// When each action of the timeline happens, in milliseconds since the window opened.
    pub(crate) at_ms: &'a [u64],
    pub(crate) origin: Instant,
    /// Where a server that was started again is told.
    pub(crate) probes: Option<&'a Running>,
}

/// What the meter has seen.
#[derive(Debug, Default)]
pub(crate) struct Metered {
    /// CPU of each node's processes at the ends of the window.
    pub(crate) cpu: BTreeMap<String, CpuSpan>,
    /// What was done.
    pub(crate) marks: Vec<Mark>,
    /// Actions without the effect that they should have had: the trial is void.
    pub(crate) failures: Vec<String>,
}

/// CPU time of a group of processes over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuSpan {
    pub(crate) cpu_ns: u64,
    pub(crate) length_ns: u64,
}

impl CpuSpan {
    /// Cores that were busy, on average.
    pub(crate) fn cores(&self) -> f64 {
        if self.length_ns == 0 { 0.0 } else { self.cpu_ns as f64 / self.length_ns as f64 }
    }
}

/// Waits for the window and does what is due in it.
pub(crate) fn follow(
    agenda: &Agenda<'_>,
    nodes: &mut [SiteNode],
    opens: &Receiver<Moment>,
) -> Metered {
    let mut metered = Metered::default();
    let Ok(open) = opens.recv() else { return metered };
    let at = |ms: u64| clock::instant(agenda.origin, open.plus_ns(ms * 1_000_000));
    if wait(opens, at(0)) == Waited::Ended {
        return metered;
    }
    let before = cpu(nodes, agenda.origin);
    let mut due: Vec<(u64, &Action)> = agenda
        .at_ms
        .iter()
        .copied()
        .zip(agenda.point.timeline.iter().map(|timed| &timed.action))
        .collect();
    due.sort_by_key(|(at_ms, _)| *at_ms);
    let mut waited = Waited::Long;
    for (at_ms, action) in due {
        waited = wait(opens, at(at_ms));
        if waited == Waited::Ended {
            break;
        }
        perform(agenda, nodes, action, &mut metered);
    }
    if waited == Waited::Long {
        wait(opens, at(agenda.point.window_ms));
    }
    for (name, (then, was)) in before {
        // A server that was started again in between has begun another account.
        if let Some((now, is)) = cpu(nodes, agenda.origin).get(&name)
            && *is >= was
            && agenda.point.timeline.is_empty()
        {
            metered.cpu.insert(name, CpuSpan { cpu_ns: is - was, length_ns: now.since(then) });
        }
    }
    metered
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// Until the time had come.
    Long,
    /// Until the load was over.
    Ended,
}

fn wait(opens: &Receiver<Moment>, until: Instant) -> Waited {
    match opens.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Err(RecvTimeoutError::Disconnected) => Waited::Ended,
        Ok(_) | Err(RecvTimeoutError::Timeout) => Waited::Long,
    }
}

fn cpu(nodes: &[SiteNode], origin: Instant) -> BTreeMap<String, (Moment, u64)> {
    let readings = nodes.iter().filter_map(|node| {
        let cpu_ns = probe::cpu_time_ns(node.pid()?).ok()?;
        Some((node.name.clone(), (clock::now(origin), cpu_ns)))
    });
    readings.collect()
}

fn perform(agenda: &Agenda<'_>, nodes: &mut [SiteNode], action: &Action, metered: &mut Metered) {
    let Some(node) = nodes.iter_mut().find(|node| node.name == action.target()) else { return };
    let began = clock::now(agenda.origin);
    let done = act(node, action);
    if let (Action::Start { .. }, Some(pid), Some(probes)) = (action, node.pid(), agenda.probes) {
        probes.watch_process(&node.name, pid);
    }
    let words = match &done {
        Ok(proof) => format!("{} {}: {proof}", action.verb(), node.name),
        Err(why) => format!("{} {}: {why}", action.verb(), node.name),
    };
    let length_ns = clock::now(agenda.origin).since(began);
    let kind = MarkKind::Action;
    metered.marks.push(Mark {
        at: began,
        length_ns,
        kind,
        node: node.name.clone(),
        text: words.clone(),
    });
    if done.is_err() {
        metered.failures.push(words);
    }
}

/// Does it, and gives the proof that it had its effect.
fn act(node: &mut SiteNode, action: &Action) -> Result<String, String> {
    let text = |error: lab::Error| error.to_string();
    let not_ours = || "the server is not ours".to_owned();
    match action {
        Action::Sql(step) => sql(node, &step.sql),
        Action::Checkpoint { .. } => sql(node, "CHECKPOINT"),
        Action::Stop { mode, .. } => {
            let mode = match mode {
                spec::StopMode::Fast => lab::StopMode::Fast,
                spec::StopMode::Immediate => lab::StopMode::Immediate,
            };
            let exit = node.server.node().ok_or_else(not_ours)?.stop(mode).map_err(text)?;
            Ok(format!("the server {exit}"))
        }
        Action::Kill { .. } => {
            let killed = node.server.node().ok_or_else(not_ours)?.kill9().map_err(text)?;
            some_processes(killed, "killed")
        }
        Action::Pause { .. } => {
            let paused = node.server.node().ok_or_else(not_ours)?.pause().map_err(text)?;
            some_processes(paused, "paused")
        }
        Action::Continue { .. } => {
            let resumed = node.server.node().ok_or_else(not_ours)?.resume().map_err(text)?;
            some_processes(resumed, "resumed").and_then(|proof| answers(node).map(|()| proof))
        }
        Action::Start { .. } => {
            node.server.node().ok_or_else(not_ours)?.start().map_err(text)?;
            answers(node).map(|()| "it answers".to_owned())
        }
        // The preflight has left out what has such an action.
        Action::Promote { .. }
        | Action::PowerCut { .. }
        | Action::Cut { .. }
        | Action::Delay { .. }
        | Action::Reset { .. }
        | Action::Heal { .. } => Err(format!("this rig cannot {} yet", action.verb())),
    }
}

fn sql(node: &SiteNode, sql: &str) -> Result<String, String> {
    let mut client = node.connect().map_err(|error| error.to_string())?;
    client.batch_execute(sql).map_err(|error| server_words(&error))?;
    Ok("done".to_owned())
}

fn some_processes(count: usize, verb: &str) -> Result<String, String> {
    match count {
        0 => Err(format!("no process was {verb}")),
        count => Ok(format!("{count} processes {verb}")),
    }
}

fn answers(node: &SiteNode) -> Result<(), String> {
    let answered = wait_until(ANSWER_TIMEOUT, || {
        Ok::<_, String>(node.server.value("SELECT 1").ok().flatten())
    })?;
    answered
        .map(drop)
        .ok_or_else(|| format!("it does not answer within {} s", ANSWER_TIMEOUT.as_secs()))
}

/// A server that goes on answers in milliseconds, unless the machine is very busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
