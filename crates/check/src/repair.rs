//! After the load: what the timeline has broken is mended as far as the checks need it.

use std::time::Duration;

use lab::{Node, wait_until};
use site::Site;
use spec::{LooksAt, TrialPoint};

use crate::error::Error;
use crate::outcome::TrialFacts;

/// Heals links, lets go on what is paused, starts the servers that checks look at, and waits until
/// those that are standbys have replayed what they can get: then checks see what is durable, not
/// what is on its way.
///
/// # Errors
/// A server that does not come up again or does not replay; that is a result, too.
pub(crate) fn repair(site: &mut Site, before: &TrialFacts<'_>) -> Result<(), Error> {
    for link in &mut site.links {
        link.heal()?;
    }
    site.stations.heal()?;
    if !site.stations.is_empty() {
        site.wait_for_primary(PRIMARY_WITHIN)?;
    }
    for name in before.paused {
        if let Some(part) = site.part(name) {
            part.resume()?;
        }
    }
    let data_node = site.data_node().name.clone();
    for name in checked(before.point, &data_node, site.is_sharded()) {
        let Some(index) = site.nodes.iter().position(|node| node.name == name) else { continue };
        let Some(node) = site.nodes[index].server.node() else { continue };
        if !node.is_running()? {
            node.start()?;
        }
        if node.is_standby()? {
            replay(site, index)?;
        }
    }
    Ok(())
}

/// The servers that a point's checks look at, each once. Rows of a cluster are on all of them.
fn checked<'p>(point: &'p TrialPoint, data_node: &'p str, is_sharded: bool) -> Vec<&'p str> {
    let all = || point.topology.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>();
    let names = point.checks.iter().flat_map(|check| match check.looks_at() {
        LooksAt::Nothing => Vec::new(),
        LooksAt::Rows(_) if is_sharded => all(),
        LooksAt::Cluster if is_sharded => all(),
        LooksAt::Cluster => Vec::new(),
        LooksAt::Two(nodes) => nodes.iter().map(String::as_str).collect(),
        LooksAt::Rows(None) | LooksAt::Server(None) => vec![data_node],
        // The primary of that moment runs.
        LooksAt::Rows(Some(whom)) | LooksAt::Server(Some(whom)) => {
            whom.name().into_iter().collect()
        }
    });
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Waits until a standby has replayed everything: of its primary's where that runs, else of what
/// it has received.
fn replay(site: &Site, index: usize) -> Result<(), Error> {
    // Only a server that the lab runs is waited for.
    let Some(standby) = site.server(index) else { return Ok(()) };
    let primary = site.upstream_of(index).and_then(|upstream| site.server(upstream));
    if let Some(primary) = primary
        && primary.is_running()?
        && !primary.is_standby()?
    {
        return Ok(primary.wait_for_catchup(standby, REPLAYS_WITHIN)?);
    }
    replay_received(standby)
}

fn replay_received(standby: &Node) -> Result<(), Error> {
    let replayed = wait_until(REPLAYS_WITHIN, || {
        let all = standby.value(HAS_REPLAYED_ALL)?;
        Ok::<_, lab::Error>((all.as_deref() == Some("t")).then_some(()))
    })?;
    replayed.ok_or_else(|| {
        let (node, seconds) = (standby.name().to_owned(), REPLAYS_WITHIN.as_secs());
        Error::NotReplayed { node, seconds }
    })
}

/// A standby asks for WAL only when it has replayed what is in its own `pg_wal`: before that it has received
/// nothing. One that has nobody to ask waits before it looks again.
const HAS_REPLAYED_ALL: &str = "\
    SELECT coalesce(pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn(), EXISTS ( \
        SELECT FROM pg_stat_activity WHERE backend_type = 'startup' \
        AND wait_event IN ('RecoveryRetrieveRetryInterval', 'RecoveryWalStream')))";

/// A manager may wait for the ttl of a leader that is gone before it chooses another one.
const PRIMARY_WITHIN: Duration = Duration::from_secs(120);
/// Replay keeps up with a load; what is left after it is seconds of WAL.
const REPLAYS_WITHIN: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use lab::NodeConfig;
    use testing::servers;

    use super::*;

    #[test]
    fn a_standby_without_its_primary_replays_what_it_has() {
        let lab = servers::lab();
        let config = NodeConfig::new(servers::settings(&[]));
        let mut primary = servers::start(&lab, "primary", config);
        let delay = [("recovery_min_apply_delay", "5s")];
        let mut standby = lab.node("standby", NodeConfig::new(servers::settings(&delay))).unwrap();
        standby.init_from_backup(&primary, None).unwrap();
        standby.start().unwrap();
        primary.wait_for_standby(&standby, None, REPLAYS_WITHIN).unwrap();
        primary.connect().unwrap().batch_execute("CREATE TABLE t AS SELECT 1 AS i").unwrap();
        let end = primary.value("SELECT pg_current_wal_flush_lsn()").unwrap().unwrap();
        let has_received = format!("SELECT pg_last_wal_receive_lsn() >= '{end}'");
        testing::until("the standby has the WAL", || {
            standby.value(&has_received).unwrap().as_deref() == Some("t")
        });
        primary.kill9().unwrap();
        standby.kill9().unwrap();
        standby.start().unwrap();
        replay_received(&standby).unwrap();
        assert_eq!(standby.value("SELECT i FROM t").unwrap().as_deref(), Some("1"));
    }
}
