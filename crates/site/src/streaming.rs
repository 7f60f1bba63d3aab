//! The server that each standby follows, and the proof that it does.

use std::time::Duration;

use lab::StopMode;
use server::{SyncMethod, SyncStandbysSetting};
use spec::{RejoinBy, Topology};

use crate::error::Error;
use crate::node::SiteNode;
use crate::site::Site;

/// The indices of servers in an order in which each comes after the one whose data it gets.
pub(crate) fn order(topology: &Topology, nodes: &[SiteNode]) -> Vec<usize> {
    let depth = |name: &str| {
        let mut depth = 0;
        let mut at = topology.node(name);
        while let Some(next) = at.and_then(|node| topology.node(node.upstream()?)) {
            depth += 1;
            at = Some(next);
        }
        depth
    };
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|index| depth(&nodes[*index].name));
    order
}

impl Site {
    /// The index of the server that another one follows.
    pub fn upstream_of(&self, index: usize) -> Option<usize> {
        let of = self.plan.topology.node(&self.nodes[index].name)?.follows()?;
        self.nodes.iter().position(|node| node.name == of)
    }

    /// Has a standby stream over the point's link to its primary, which runs, or directly where
    /// there is none. One that runs is stopped for it where links come or go.
    pub(crate) fn choose_way(&mut self, index: usize) -> Result<(), Error> {
        // A primary streams from nobody.
        let Some(upstream) = self.upstream_of(index) else { return Ok(()) };
        let link = self.link_between(&self.nodes[index].name, &self.nodes[upstream].name);
        let both = self.nodes.get_disjoint_mut([index, upstream]);
        let [standby, primary] = both.expect(FOLLOWS_ANOTHER);
        let (Some(standby), Some(primary)) = (standby.server.node(), primary.server.node()) else {
            // A server of the user's streams from where the user has set it to.
            return Ok(());
        };
        if standby.is_running()? {
            standby.stop(StopMode::Fast)?;
        }
        standby.follow(primary, link)?;
        Ok(())
    }

    /// Makes a server a standby of another one, whatever it was before; returns the proof in words.
    pub fn rejoin(&mut self, name: &str, of: &str, by: RejoinBy) -> Result<String, Error> {
        let link = self.link_between(name, of);
        let index = |name: &str| {
            let found = self.nodes.iter().position(|node| node.name == name);
            found.ok_or_else(|| Error::NoServer(name.to_owned()))
        };
        let (standby, primary) = (index(name)?, index(of)?);
        let Ok([standby, primary]) = self.nodes.get_disjoint_mut([standby, primary]) else {
            return Err(Error::NoServer(of.to_owned()));
        };
        let (Some(standby), Some(primary)) = (standby.server.node(), primary.server.node()) else {
            return Err(Error::NoServer(name.to_owned()));
        };
        if standby.is_running()? {
            standby.stop(StopMode::Fast)?;
        }
        let said = match by {
            RejoinBy::Rewind => standby.rewind(primary, link)?,
            RejoinBy::Backup => {
                standby.init_from_backup(primary, link)?;
                "made anew from a base backup".to_owned()
            }
        };
        standby.start()?;
        primary.wait_for_standby(standby, None, STREAMS_WITHIN)?;
        let said: Vec<&str> = said.lines().map(str::trim).collect();
        Ok(format!("it streams from {of}: {}", said.join("; ")))
    }

    /// Waits until every standby streams in the role that the point's settings give it, and has
    /// replayed all that there is: then a trial begins from equal servers.
    pub fn prove_streaming(&self) -> Result<(), Error> {
        for index in order(&self.plan.topology, &self.nodes) {
            let Some(upstream) = self.upstream_of(index) else { continue };
            let (Some(standby), Some(primary)) = (self.server(index), self.server(upstream)) else {
                continue;
            };
            if primary.is_standby()? {
                primary.wait_for_standby(standby, None, STREAMS_WITHIN)?;
                continue;
            }
            // A primary whose study does not set the parameter waits for no standby.
            let names = primary.settings().value("synchronous_standby_names").unwrap_or_default();
            let role = role(names, &self.nodes[index].name);
            primary.wait_for_standby(standby, role, STREAMS_WITHIN)?;
            primary.wait_for_catchup(standby, CATCHES_UP_WITHIN)?;
        }
        Ok(())
    }
}

/// The sync_state that a standby gets once all stream; none where it depends on who comes first.
fn role(names: &str, standby: &str) -> Option<&'static str> {
    let asked = match names.parse::<SyncStandbysSetting>().ok()? {
        SyncStandbysSetting::Sync(asked) => asked,
        SyncStandbysSetting::Off => return Some("async"),
    };
    if asked.names.iter().any(|name| name == "*") {
        return None;
    }
    let at = asked.priority(standby);
    Some(match (at, asked.method) {
        (None, _) => "async",
        (Some(_), SyncMethod::Any) => "quorum",
        (Some(at), SyncMethod::First) if at < asked.count => "sync",
        (Some(_), SyncMethod::First) => "potential",
    })
}

/// A study in which a node follows itself is refused.
pub(crate) const FOLLOWS_ANOTHER: &str = "a standby follows another server";

/// A standby that was stopped cleanly streams within milliseconds, unless the machine is very busy.
pub(crate) const STREAMS_WITHIN: Duration = Duration::from_secs(60);
/// Longest time for a standby to replay what was written before the clients come.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_say_which_standby_commits_wait_for() {
        let check = |names, standby, expected| {
            assert_eq!(role(names, standby), expected, "{standby} in {names}");
        };
        check("", "standby1", Some("async"));
        check("FIRST 1 (\"standby1\", \"standby2\")", "standby1", Some("sync"));
        check("FIRST 1 (\"standby1\", \"standby2\")", "standby2", Some("potential"));
        check("FIRST 2 (\"standby1\", \"standby2\")", "standby2", Some("sync"));
        check("ANY 1 (\"standby1\", \"standby2\")", "standby2", Some("quorum"));
        check("FIRST 1 (\"standby1\")", "standby2", Some("async"));
        check("*", "standby1", None);
    }
}
