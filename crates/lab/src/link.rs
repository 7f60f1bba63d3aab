//! One link of a lab: a way to a server that can be slow, and be cut.
//!
//! Who shall use it connects to [`Link::endpoint`] instead of the server's own. Every verb proves
//! its effect, and returns the proof in words.

mod relay;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fault::link::{Counters, RoundTrips, Shape};
use terms::Direction;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::network::Network;
use crate::shared::Shared;
use relay::Relay;
use serde::{Deserialize, Serialize};
use wire::Wire;

/// What a link is made from.
#[derive(Debug, Clone)]
pub struct LinkConfig {
    /// The program that becomes its processes: `program link …` calls [`fault::link::serve`].
    pub program: PathBuf,
    /// What it is made of.
    pub by: LinkBy,
    /// The server that it leads to.
    pub to: Endpoint,
    /// Its delay and bandwidth.
    pub shape: Shape,
}

/// What a link is made of.
#[derive(Debug, Clone)]
pub enum LinkBy {
    /// A process that passes bytes on. A cut holds them back; the senders' kernels are told that
    /// they have arrived.
    Relay,
    /// A pair of interfaces between two nodes that have networks of their own: packets vanish
    /// without a word. Delay needs netem in the kernel.
    Namespace {
        /// The network of the node that connects.
        from: Network,
        /// The network of the server that the link leads to.
        to: Network,
    },
}

/// A round trip by a link, and what it takes without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCost {
    /// Without the link.
    pub without: RoundTrips,
    /// By the link, its delay included.
    pub with: RoundTrips,
}

/// Where another process can read a link's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTap {
    /// From its relay: what the paths of [`fault::link::Sockets`] begin with.
    Relay(PathBuf),
    /// From an interface in the network namespace of this process, as `/proc` outside the lab
    /// numbers it.
    Interface {
        /// The process.
        pid: i32,
        /// The interface.
        name: String,
    },
}

/// A running link. It ends, with the connections that go by it, when it is dropped.
#[derive(Debug)]
pub(crate) struct Link {
    config: LinkConfig,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Relay(Relay),
    Wire(Wire),
}

impl Link {
    /// Makes it and returns when it can be used. Its server need not be there.
    pub(crate) fn open(shared: Arc<Shared>, name: &str, config: LinkConfig) -> Result<Self, Error> {
        let program = config.program.clone();
        let way = match config.by.clone() {
            LinkBy::Relay => Way::Relay(Relay::open(shared, name, program, config.to.clone())?),
            LinkBy::Namespace { from, to } => {
                Way::Wire(Wire::open(shared, name, program, from, to)?)
            }
        };
        let mut link = Self { config, way };
        link.shape(link.config.shape)?;
        Ok(link)
    }

    /// What is to be connected to instead of the server.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match &self.way {
            Way::Relay(relay) => relay.endpoint(),
            Way::Wire(wire) => wire.endpoint(&self.config.to),
        }
    }

    /// What it was made from, with its delay and bandwidth of now.
    pub(crate) fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Gives it another delay; what is on its way already keeps its own.
    ///
    /// # Errors
    /// [`Error::Link`] if a round trip does not show it.
    pub(crate) fn delay(&mut self, delay: Duration) -> Result<String, Error> {
        self.shape(Shape { delay, ..self.config.shape })?;
        let cost = self.measure()?;
        let why = format!("a round trip takes {}", cost.in_words());
        match cost.with.median >= 2 * delay {
            true => Ok(why),
            false => Err(Error::Link { doing: "delaying", link: self.name().to_owned(), why }),
        }
    }

    /// Gives it another bandwidth, in bytes a second, or none.
    ///
    /// # Errors
    /// [`Error::Link`] if it does not answer.
    pub(crate) fn bandwidth(&mut self, bytes_per_s: Option<u64>) -> Result<(), Error> {
        self.shape(Shape { bytes_per_s, ..self.config.shape })
    }

    /// Lets nothing pass any more in a direction, without a word to either side: connections stay
    /// open.
    ///
    /// # Errors
    /// [`Error::Link`] if something passes all the same.
    pub(crate) fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.cut(direction),
            Way::Wire(wire) => wire.cut(direction),
        }
    }

    /// Resets all connections that go by it.
    ///
    /// # Errors
    /// [`Error::Link`] if there are none.
    pub(crate) fn reset(&mut self) -> Result<String, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.reset(),
            Way::Wire(wire) => wire.reset(),
        }
    }

    /// Ends a cut: what was held back goes on, what was dropped is sent again by who sent it.
    ///
    /// # Errors
    /// [`Error::Link`] if it still does not pass anything.
    pub(crate) fn heal(&mut self) -> Result<String, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.heal(),
            Way::Wire(wire) => wire.heal(),
        }?;
        Ok(format!("a round trip takes {}", self.measure()?.in_words()))
    }

    /// What has passed since it was made.
    ///
    /// # Errors
    /// [`Error::Link`] if it does not answer.
    pub(crate) fn counters(&mut self) -> Result<Counters, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.counters(),
            Way::Wire(wire) => wire.counters(),
        }
    }

    /// A round trip with and without it.
    ///
    /// # Errors
    /// [`Error::Link`] if nothing passes.
    pub(crate) fn measure(&self) -> Result<LinkCost, Error> {
        let delay = self.config.shape.delay;
        let count = if delay < Duration::from_millis(20) { 50 } else { 5 };
        let timeout = ANSWER_TIMEOUT + 4 * delay;
        match &self.way {
            Way::Relay(relay) => relay.measure(count, timeout),
            Way::Wire(wire) => wire.measure(count, timeout),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match &self.way {
            Way::Relay(relay) => relay.name(),
            Way::Wire(wire) => wire.name(),
        }
    }

    /// The process id, as `/proc` outside the lab's namespaces has it, of its relay, or of the echo
    /// at the far end of a link by namespace.
    pub(crate) fn host_pid(&self) -> Option<i32> {
        match &self.way {
            Way::Relay(relay) => relay.host_pid(),
            Way::Wire(wire) => wire.host_pid(),
        }
    }

    /// Where its counters can be read while it serves.
    pub(crate) fn tap(&self) -> Option<LinkTap> {
        match &self.way {
            Way::Relay(relay) => Some(LinkTap::Relay(relay.sockets().0.clone())),
            Way::Wire(wire) => {
                Some(LinkTap::Interface { pid: wire.host_pid()?, name: wire.interface() })
            }
        }
    }

    fn shape(&mut self, shape: Shape) -> Result<(), Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.shape(shape),
            Way::Wire(wire) => wire.shape(shape),
        }?;
        self.config.shape = shape;
        Ok(())
    }
}

impl LinkCost {
    /// As in "10.060 ms, 0.020 ms without the link".
    pub fn in_words(&self) -> String {
        let ms = |trips: RoundTrips| trips.median.as_secs_f64() * 1e3;
        format!("{:.3} ms, {:.3} ms without the link", ms(self.with), ms(self.without))
    }
}

/// How long nothing must pass to be taken for cut: a hundred round trips.
const SILENCE: Duration = Duration::from_millis(200);

/// A link that is not cut answers in microseconds, behind what it already has to pass on.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
