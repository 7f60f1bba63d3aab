//! Servers that go on from one trial to the next: healed, looked at, and made anew only where they are not whole.

use std::time::Duration;

use crate::error::Error;
use crate::site::Site;
use crate::streaming;

impl Site {
    /// Ends what the last trial has left (servers that stand still, or are down), and says what the cluster lacks to be
    /// whole again; none where nothing is lacking: every server runs in the role that the topology gives it, every
    /// standby streams, and every program of a machine runs and is ready.
    pub(crate) fn lacks(&mut self) -> Result<Option<String>, Error> {
        if !self.stations.is_empty() && !self.stations.are_whole()? {
            return Ok(Some("a machine is not ready, or a program of it has ended".to_owned()));
        }
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let is_standby = self.upstream_of(index).is_some();
            let name = self.nodes[index].name.clone();
            let Some(node) = self.nodes[index].server.node() else { continue };
            if node.is_running()? {
                // One that does not stand still takes no notice.
                node.resume()?;
            } else if let Err(error) = node.start() {
                return Ok(Some(format!("{name} does not start: {error}")));
            }
            match (node.is_standby(), is_standby) {
                (Ok(is), should_be) if is == should_be => {}
                (Ok(false), _) => return Ok(Some(format!("the standby {name} takes writes"))),
                (Ok(true), _) => return Ok(Some(format!("the primary {name} is a standby"))),
                (Err(error), _) => return Ok(Some(format!("{name} does not answer: {error}"))),
            }
        }
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let Some(upstream) = self.upstream_of(index) else { continue };
            let (Some(standby), Some(primary)) = (self.server(index), self.server(upstream)) else {
                continue;
            };
            if let Err(error) = primary.wait_for_standby(standby, None, SOON) {
                let name = &self.nodes[index].name;
                return Ok(Some(format!("{name} does not stream: {error}")));
            }
        }
        Ok(None)
    }
}

/// Longest time for a standby to stream again.
const SOON: Duration = Duration::from_secs(20);
