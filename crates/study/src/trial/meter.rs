//! What was seen of the servers during a window: the timeline's actions and what they did, and the servers'
//! CPU.

use std::collections::BTreeMap;
use std::time::Duration;

use record::{FaultyParty, MarkKind, Moment, TimedAction, TimelineMark};
use site::{MovedBuckets, PowerError, Site, TakenCut};
use spec::Action;

use crate::trial::act::{ActError, ActionProof};
use measure::{ExplainedEnds, NodeDeath};

/// The observations of the meter.
#[derive(Debug, Default)]
pub(crate) struct WindowReadings {
    /// CPU of each node's processes at the ends of the window.
    pub(crate) cpu: BTreeMap<String, CpuSpan>,
    /// The actions that were done.
    pub(crate) marks: Vec<TimelineMark>,
    /// All actions, in the order in which they were due.
    pub(crate) actions: Vec<TimedAction>,
    /// The buckets that a rebalancing of the timeline has moved.
    pub(crate) moved: Option<MovedBuckets>,
    /// Actions without the effect that they should have had.
    pub(crate) failures: Vec<ActFailure>,
    /// The servers that have lost their power, and what that cost.
    pub(crate) cuts: Vec<TakenCut>,
    /// Power cuts that had nothing to lose: their servers are started again, and no figure tells of them.
    pub(crate) idle_cuts: Vec<TakenCut>,
    /// Servers of which a process was killed, and their recoveries.
    pub(crate) crashes: Vec<Crash>,
    /// The nodes that actions have ended, or whose disks they had fail.
    pub(crate) ends: ExplainedEnds,
    /// Nodes that stand still since an action has paused them.
    pub(crate) paused: Vec<String>,
}

impl WindowReadings {
    /// The observations of a meter that has panicked: what it did, and whether it did all, is not known.
    pub(crate) fn of_panic() -> Self {
        let text = "the thread of the timeline and of the servers' CPU panicked; its message is on standard error";
        let failure = ActFailure { fault: Some(FaultyParty::Rig), text: text.to_owned() };
        Self { failures: vec![failure], ..Self::default() }
    }

    /// The moment at which the first action began.
    pub(crate) fn first_action(&self) -> Option<Moment> {
        self.marks.iter().map(|mark| mark.at).min()
    }

    /// True of a node that stands still.
    pub(crate) fn is_paused(&self, node: &str) -> bool {
        self.paused.iter().any(|paused| paused == node)
    }

    /// True of a node that was stopped, killed or cut off from power and did not come back, or that
    /// stands still.
    pub(crate) fn is_down(&self, node: &str) -> bool {
        let last = self.ends.deaths.iter().rfind(|death| death.node == node);
        last.is_some_and(|death| death.restarted.is_none()) || self.is_paused(node)
    }

    /// Takes down a node that stands still from now on, or no more.
    fn note_pause(&mut self, action: &Action) {
        match action {
            Action::Pause { node } => self.paused.push(node.clone()),
            Action::Continue { node }
            | Action::Start { node }
            | Action::Rejoin { node, .. }
            | Action::Stop { node, .. }
            | Action::Kill { node }
            | Action::PowerCut { node, .. }
            | Action::FailDisk { node, .. } => self.paused.retain(|paused| paused != node),
            // What goes on around it does not wake it.
            _ => {}
        }
    }

    /// The moments at which servers were killed or lost their power.
    pub(crate) fn faults(&self) -> impl Iterator<Item = Moment> {
        self.ends.deaths.iter().filter(|death| death.is_sudden).map(|death| death.from)
    }
}

/// An action without the effect that it should have had.
#[derive(Debug)]
pub(crate) struct ActFailure {
    /// The party that may be at fault; none where the trial is merely not what the study asks for.
    pub(crate) fault: Option<FaultyParty>,
    pub(crate) text: String,
}

/// A server's recovery from the death of one of its processes.
#[derive(Debug)]
pub(crate) struct Crash {
    pub(crate) node: String,
    /// From the death until it accepted connections.
    pub(crate) recovery: Duration,
    /// The moment at which it accepted connections.
    pub(crate) until: Moment,
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

/// An action that is over.
pub(crate) struct FinishedAction<'a> {
    pub(crate) action: &'a Action,
    /// True if its node had been ended by an earlier action.
    pub(crate) was_down: bool,
    pub(crate) began: Moment,
    pub(crate) ended: Moment,
    pub(crate) done: Result<ActionProof, ActError>,
}

impl WindowReadings {
    /// Takes down an action that is over, and what became of its node.
    pub(crate) fn note(&mut self, site: &mut Site, acted: FinishedAction<'_>) {
        let FinishedAction { action, was_down, began, ended, done } = acted;
        let metered = self;
        let name = action.target().to_owned();
        let done = done.map(|proof| {
            let words = proof.words();
            match proof {
                ActionProof::Seen(_) => {}
                ActionProof::Moved(moved) => metered.moved = Some(moved),
                ActionProof::Cut(taken) => metered.cuts.push(taken),
                ActionProof::BackedUp(backup) => site.restorable.backups.push(*backup),
                ActionProof::Noted(point) => site.restorable.points.push(*point),
                ActionProof::Recovered(recovery) => {
                    metered.crashes.push(Crash { node: name.clone(), recovery, until: ended });
                }
            }
            words
        });
        let words = match &done {
            Ok(proof) => format!("{} {name}: {proof}", action.verb()),
            Err(why) => format!("{} {name}: {why}", action.verb()),
        };
        // A power cut counts as done even if it lost nothing: its server is down, and is started again.
        if let Err(ActError::Power(PowerError::NothingToLose(taken))) = &done {
            metered.idle_cuts.push(TakenCut::clone(taken));
        }
        let is_done = matches!(&done, Ok(_) | Err(ActError::Power(PowerError::NothingToLose(_))));
        if is_done {
            metered.note_pause(action);
        }
        if let (true, Action::FailRequests { .. }) = (is_done, action) {
            metered.ends.failing.push((name.clone(), began));
        }
        // What a machine does with a disk that fails is for its manager to say.
        let goes_on = matches!(action, Action::FailDisk { .. }) && site.station(&name).is_some();
        match action {
            Action::Stop { .. }
            | Action::Kill { .. }
            | Action::PowerCut { .. }
            | Action::FailDisk { .. }
                if is_done && !goes_on =>
            {
                let node = name.clone();
                let is_sudden = !matches!(action, Action::Stop { .. });
                let (from, until) = (began, ended);
                let is_power_cut =
                    matches!(action, Action::PowerCut { .. } | Action::FailDisk { .. });
                let (restarted, back) = (None, None);
                metered.ends.deaths.push(NodeDeath {
                    node,
                    is_sudden,
                    from,
                    until,
                    restarted,
                    back,
                    is_power_cut,
                });
            }
            // All its processes but the first have ended, and begun anew.
            Action::KillBackend { .. } if done.is_ok() => {
                // A process that waits for the kernel waits for long.
                let recovery =
                    metered.crashes.last().map_or(Duration::ZERO, |crash| crash.recovery);
                let took_ns = u64::try_from(recovery.as_nanos()).unwrap_or(u64::MAX);
                let killed = Moment(ended.0.saturating_sub(took_ns));
                let (node, from, until) = (name.clone(), killed, killed);
                let restarted = Some(killed);
                metered.ends.deaths.push(NodeDeath {
                    node,
                    is_sudden: true,
                    from,
                    until,
                    restarted,
                    back: Some(ended),
                    is_power_cut: false,
                });
            }
            // A server that ran until it was stopped for that was down as well.
            Action::Start { .. } | Action::Rejoin { .. } if is_done => {
                if matches!(action, Action::Rejoin { .. })
                    && !metered.ends.deaths.iter().any(is_open(&name))
                {
                    let (node, from, until) = (name.clone(), began, began);
                    let (restarted, back, is_power_cut) = (None, None, false);
                    metered.ends.deaths.push(NodeDeath {
                        node,
                        is_sudden: false,
                        from,
                        until,
                        restarted,
                        back,
                        is_power_cut,
                    });
                }
                let mine = metered.ends.deaths.iter_mut().filter(|death| is_open(&name)(death));
                mine.for_each(|death| (death.restarted, death.back) = (Some(began), Some(ended)));
            }
            _ => {}
        }
        let length_ns = ended.since(began);
        let (kind, text) = (MarkKind::Action, words.clone());
        metered.marks.push(TimelineMark { at: began, length_ns, kind, node: name, text });
        if let Err(why) = done {
            let fault = why.fault(action, was_down);
            metered.failures.push(ActFailure { fault, text: words });
        }
    }
}

/// True of the death of a node that was not started since.
fn is_open(name: &str) -> impl Fn(&NodeDeath) -> bool + '_ {
    move |death| death.node == name && death.restarted.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_server_stands_still_until_it_is_continued_or_ended() {
        let node = || "primary".to_owned();
        let check = |action: Action, expected: bool| {
            let mut metered = WindowReadings::default();
            metered.note_pause(&Action::Pause { node: node() });
            metered.note_pause(&action);
            assert_eq!(metered.is_down("primary"), expected, "{action:?}");
        };
        check(Action::Unthrottle { node: node() }, true);
        check(Action::Checkpoint { node: node() }, true);
        check(Action::Continue { node: "standby".to_owned() }, true);
        check(Action::Continue { node: node() }, false);
        check(Action::Start { node: node() }, false);
        check(Action::Kill { node: node() }, false);
    }
}
