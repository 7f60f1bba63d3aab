//! The links of a topology, for one trial.

use std::path::Path;
use std::time::Duration;

use lab::{Endpoint, Lab, LinkBy, LinkConfig, Network, TrafficShape};
use spec::{Direction, LinkKind, NodeLink, Topology};

use crate::error::Error;

/// A link and its name in the study.
#[derive(Debug)]
pub struct SiteLink {
    /// The link.
    pub link: lab::Link,
    name: String,
    /// The end that connects, and the server that it connects to.
    ends: [String; 2],
    /// True if the server stands first in the study's `between`.
    is_server_first: bool,
    /// Delay that the study gives it.
    delay: Duration,
}

impl SiteLink {
    /// The end of a study's link that connects, and the server that it connects to.
    pub(crate) fn ends(link: &NodeLink, topology: &Topology) -> [String; 2] {
        let [first, second] = &link.between;
        match connects(topology, second, first) {
            true => [second.clone(), first.clone()],
            false => [first.clone(), second.clone()],
        }
    }

    /// Makes a link between `ends` to the server at `to`; none where it is to join networks that
    /// its ends do not have. `rig` is the rig's own program, of which a relay is a command.
    pub(crate) fn make(
        link: &NodeLink,
        ends: [String; 2],
        networks: [Option<Network>; 2],
        to: Endpoint,
        lab: &Lab,
        rig: &Path,
    ) -> Result<Option<SiteLink>, Error> {
        let by = match (link.by, networks) {
            (LinkKind::Relay, _) => LinkBy::Relay,
            (LinkKind::Namespace, [Some(from), Some(to)]) => LinkBy::Namespace { from, to },
            (LinkKind::Namespace, _) => return Ok(None),
        };
        let delay = Duration::from_micros(link.delay_us);
        let shape = TrafficShape { delay, bytes_per_s: link.bandwidth_bits.map(|bits| bits / 8) };
        let config = LinkConfig { program: rig.to_owned(), by, to, shape };
        let is_server_first = link.between[0] == ends[1];
        let (made, name) = (lab.link(&link.name, config)?, link.name.clone());
        Ok(Some(SiteLink { link: made, name, ends, is_server_first, delay }))
    }

    /// True if it leads from one to the other.
    pub(crate) fn joins(&self, from: &str, to: &str) -> bool {
        self.ends[0] == from && self.ends[1] == to
    }

    /// The server that it leads to.
    pub(crate) fn server(&self) -> &str {
        &self.ends[1]
    }

    /// Its name in the study.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the host that its relay is on; none on this machine.
    pub fn host(&self) -> Option<&str> {
        self.link.host()
    }

    /// Its name, and where its counters are read.
    pub fn tap(&self) -> Option<(String, probe::LinkReading)> {
        let tap = match self.link.tap()? {
            lab::LinkTap::Relay(sockets) => probe::LinkReading::Relay(sockets),
            lab::LinkTap::Interface { pid, name } => {
                probe::LinkReading::Interface { pid: u32::try_from(pid).ok()?, name }
            }
        };
        Some((self.name.clone(), tap))
    }

    /// Cuts it; `direction` is seen from the first of the study's `between`. Returns
    /// what proves it.
    pub fn cut(&mut self, direction: Direction) -> Result<String, lab::Error> {
        self.link.cut(if self.is_server_first { direction.reversed() } else { direction })
    }

    /// Ends a cut, and gives it the study's delay again. Returns what proves it.
    pub fn heal(&mut self) -> Result<String, lab::Error> {
        let proof = self.link.heal()?;
        match self.link.shape().delay == self.delay {
            true => Ok(proof),
            false => self.link.delay(self.delay),
        }
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.link.host_pid().and_then(|pid| u32::try_from(pid).ok())
    }
}

fn connects(topology: &Topology, from: &str, to: &str) -> bool {
    topology.node(from).is_some_and(|node| node.connects_to().contains(&to))
}
