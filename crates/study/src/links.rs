//! The links of a topology, for one trial: which way whoever connects goes.

use std::path::Path;
use std::time::Duration;

use lab::{Endpoint, Lab, LinkBy, LinkConfig, Shape};
use spec::{Direction, LinkKind, Point, Topology};

use crate::error::Error;
use crate::site::Site;

/// A link and its name in the study.
#[derive(Debug)]
pub(crate) struct SiteLink {
    pub(crate) link: lab::Link,
    name: String,
    /// The end that connects, and the server that it connects to.
    ends: [String; 2],
    /// Whether the server stands first in the study's `between`.
    is_server_first: bool,
    /// What the study gives it.
    delay: Duration,
}

impl Site {
    /// Makes the point's links in place of what another point had. `rig` is the rig's own program,
    /// of which a relay is a command.
    ///
    /// # Errors
    /// A relay that does not come up.
    pub(crate) fn make_links(
        &mut self,
        point: &Point,
        lab: Option<&Lab>,
        rig: &Path,
    ) -> Result<(), Error> {
        self.links.clear();
        let Some(lab) = lab else { return Ok(()) };
        for link in &point.topology.links {
            let [first, second] = &link.between;
            let is_server_first = connects(&point.topology, second, first);
            let ends = match is_server_first {
                true => [second.clone(), first.clone()],
                false => [first.clone(), second.clone()],
            };
            let Some(to) = self.endpoint(&ends[1]) else { continue };
            let delay = Duration::from_micros(link.delay_us);
            let shape = Shape { delay, bytes_per_s: link.bandwidth_bits.map(|bits| bits / 8) };
            let Some(by) = self.made_of(link.by, &ends) else { continue };
            let config = LinkConfig { program: rig.to_owned(), by, to, shape };
            let made = lab.link(&link.name, config)?;
            let name = link.name.clone();
            self.links.push(SiteLink { link: made, name, ends, is_server_first, delay });
        }
        Ok(())
    }

    /// Where `from` connects to reach the server `to`: over the link between them, or directly.
    pub(crate) fn way(&self, from: &str, to: &str) -> Option<Endpoint> {
        self.link_between(from, to).or_else(|| self.endpoint(to))
    }

    /// Where `from` connects to reach `to` over the link between them, if there is one.
    pub(crate) fn link_between(&self, from: &str, to: &str) -> Option<Endpoint> {
        let found = self.links.iter().find(|link| link.ends[0] == from && link.ends[1] == to);
        found.map(|link| link.link.endpoint())
    }

    pub(crate) fn link(&mut self, name: &str) -> Option<&mut SiteLink> {
        self.links.iter_mut().find(|link| link.name == name)
    }

    /// A link by namespace joins the networks that its ends were made with.
    fn made_of(&self, by: LinkKind, ends: &[String; 2]) -> Option<LinkBy> {
        let network = |name: &str| {
            let at = self.nodes.iter().position(|node| node.name == name)?;
            self.server(at)?.network().cloned()
        };
        Some(match by {
            LinkKind::Relay => LinkBy::Relay,
            LinkKind::Namespace => {
                LinkBy::Namespace { from: network(&ends[0])?, to: network(&ends[1])? }
            }
        })
    }

    fn endpoint(&self, name: &str) -> Option<Endpoint> {
        let at = self.nodes.iter().position(|node| node.name == name)?;
        self.server(at).map(lab::Node::endpoint)
    }
}

impl SiteLink {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its name, and where its counters are read.
    pub(crate) fn tap(&self) -> Option<(String, probe::Tap)> {
        let tap = match self.link.tap()? {
            lab::LinkTap::Relay(sockets) => probe::Tap::Relay(sockets),
            lab::LinkTap::Interface { pid, name } => {
                probe::Tap::Interface { pid: u32::try_from(pid).ok()?, name }
            }
        };
        Some((self.name.clone(), tap))
    }

    /// Cuts it; `direction` is seen from the first of the study's `between`.
    pub(crate) fn cut(&mut self, direction: Direction) -> Result<String, lab::Error> {
        self.link.cut(match (direction, self.is_server_first) {
            (Direction::Both, _) => lab::Direction::Both,
            (Direction::To, true) | (Direction::From, false) => lab::Direction::From,
            (Direction::To, false) | (Direction::From, true) => lab::Direction::To,
        })
    }

    /// Ends a cut, and gives it the study's delay again.
    pub(crate) fn heal(&mut self) -> Result<String, lab::Error> {
        let proof = self.link.heal()?;
        match self.link.config().shape.delay == self.delay {
            true => Ok(proof),
            false => self.link.delay(self.delay),
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.link.host_pid().and_then(|pid| u32::try_from(pid).ok())
    }
}

fn connects(topology: &Topology, from: &str, to: &str) -> bool {
    topology.node(from).is_some_and(|node| node.connects_to().contains(&to))
}
