//! The actions of a timeline: each done, and its effect proved.

use std::time::Duration;

use lab::wait_until;
use spec::Action;

use crate::error::server_words;
use crate::links::SiteLink;
use crate::part::Part;
use crate::power::{self, Taken};
use crate::sharded::Moved;
use crate::site::Site;
use crate::site_node::SiteNode;

/// What proves that an action had its effect.
pub(crate) enum Proof {
    /// What was seen.
    Seen(String),
    /// What a rebalancing has moved.
    Moved(Moved),
    /// What a power cut took.
    Cut(Taken),
}

impl Proof {
    /// In a mark's words.
    pub(crate) fn words(&self) -> String {
        match self {
            Proof::Seen(words) => words.clone(),
            Proof::Moved(moved) => moved.words(),
            Proof::Cut(taken) => taken.words(),
        }
    }
}

/// Performs an action. `cut_seed` decides what a power cut takes.
///
/// # Errors
/// What was in the way, or that the effect cannot be seen; the trial is void then.
pub(crate) fn act(site: &mut Site, action: &Action, cut_seed: u64) -> Result<Proof, String> {
    let text = |error: lab::Error| error.to_string();
    let name = action.target();
    let seen = match action {
        Action::Rebalance { node, to } => return site.rebalance(node, to).map(Proof::Moved),
        Action::PowerCut { node } => return power::cut(site, node, cut_seed).map(Proof::Cut),
        Action::Sql(step) => sql(site, name, &step.sql),
        Action::Checkpoint { .. } => sql(site, name, "CHECKPOINT"),
        Action::Stop { mode, .. } => {
            let mode = match mode {
                spec::StopMode::Fast => lab::StopMode::Fast,
                spec::StopMode::Immediate => lab::StopMode::Immediate,
            };
            let exit = part(site, name)?.stop(mode).map_err(text)?;
            Ok(format!("it {exit}"))
        }
        Action::Kill { .. } => some_processes(part(site, name)?.kill9().map_err(text)?, "killed"),
        Action::Pause { .. } => some_processes(part(site, name)?.pause().map_err(text)?, "paused"),
        Action::Continue { .. } => {
            let proof = some_processes(part(site, name)?.resume().map_err(text)?, "resumed")?;
            site.node(name).map_or(Ok(()), answers).map(|()| proof)
        }
        Action::Start { .. } => {
            part(site, name)?.start().map_err(text)?;
            site.node(name).map_or(Ok(()), answers).map(|()| "it runs".to_owned())
        }
        Action::Promote { .. } => {
            let Part::Node(node) = part(site, name)? else {
                return Err(format!("{name} is no server that pgrig started"));
            };
            node.promote().map_err(text)?;
            Ok("it takes writes".to_owned())
        }
        Action::Cut { direction, .. } => link(site, name)?.cut(*direction).map_err(text),
        Action::Delay { to_us, .. } => {
            link(site, name)?.link.delay(Duration::from_micros(*to_us)).map_err(text)
        }
        Action::Reset { .. } => link(site, name)?.link.reset().map_err(text),
        Action::Heal { .. } => link(site, name)?.heal().map_err(text),
    };
    seen.map(Proof::Seen)
}

fn part<'s>(site: &'s mut Site, name: &str) -> Result<Part<'s>, String> {
    site.part(name).ok_or_else(|| NOT_OURS.to_owned())
}

fn link<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut SiteLink, String> {
    site.link(name).ok_or_else(|| format!("the topology has no link {name}"))
}

fn sql(site: &Site, name: &str, sql: &str) -> Result<String, String> {
    let node = site.node(name).ok_or_else(|| NOT_OURS.to_owned())?;
    let mut client = node.connect().map_err(|error| error.to_string())?;
    client.batch_execute(sql).map_err(|error| server_words(&error))?;
    Ok("done".to_owned())
}

fn some_processes(count: usize, verb: &str) -> Result<String, String> {
    match count {
        0 => Err(format!("no process was {verb}")),
        1 => Ok(format!("1 process {verb}")),
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

const NOT_OURS: &str = "the server is not ours";

/// A server that goes on answers in milliseconds, unless the machine is very busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
