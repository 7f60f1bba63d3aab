//! One link of a lab.

mod relay;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use fault::link::{LinkCounters, TrafficShape};
use terms::Direction;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::inner::network::Network;
use crate::inner::shared::Shared;
use crate::link_config::{LinkConfig, LinkCost, LinkTap};
use relay::Relay;
use wire::Wire;

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
    /// Makes it, between these two networks or by a relay, and returns when it can be used. Its
    /// server need not be there.
    pub(crate) fn open(
        shared: Arc<Shared>,
        name: &str,
        config: LinkConfig,
        networks: Option<[Network; 2]>,
    ) -> Result<Self, Error> {
        let program = config.program.clone();
        let way = match networks {
            None => Way::Relay(Relay::open(shared, name, program, config.to.clone())?),
            Some([from, to]) => Way::Wire(Wire::open(shared, name, program, from, to)?),
        };
        let mut link = Self { config, way };
        link.shape(link.config.shape)?;
        Ok(link)
    }

    /// The address to connect to instead of the server's.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match &self.way {
            Way::Relay(relay) => relay.endpoint(),
            Way::Wire(wire) => wire.endpoint(&self.config.to),
        }
    }

    /// Its delay and bandwidth of now.
    pub(crate) fn shape_now(&self) -> TrafficShape {
        self.config.shape
    }

    pub(crate) fn delay(&mut self, delay: Duration) -> Result<String, Error> {
        self.shape(TrafficShape { delay, ..self.config.shape })?;
        let cost = self.measure()?;
        let why = format!("a round trip takes {}", cost.in_words());
        match cost.with.median >= 2 * delay {
            true => Ok(why),
            false => Err(Error::Link { doing: "delaying", link: self.name().to_owned(), why }),
        }
    }

    pub(crate) fn bandwidth(&mut self, bytes_per_s: Option<u64>) -> Result<(), Error> {
        self.shape(TrafficShape { bytes_per_s, ..self.config.shape })
    }

    pub(crate) fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.cut(direction),
            Way::Wire(wire) => wire.cut(direction),
        }
    }

    pub(crate) fn reset(&mut self) -> Result<String, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.reset(),
            Way::Wire(wire) => wire.reset(),
        }
    }

    pub(crate) fn heal(&mut self) -> Result<String, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.heal(),
            Way::Wire(wire) => wire.heal(),
        }?;
        Ok(format!("a round trip takes {}", self.measure()?.in_words()))
    }

    pub(crate) fn counters(&mut self) -> Result<LinkCounters, Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.counters(),
            Way::Wire(wire) => wire.counters(),
        }
    }

    pub(crate) fn measure(&self) -> Result<LinkCost, Error> {
        let delay = self.config.shape.delay;
        let count = if delay < Duration::from_millis(20) { 50 } else { 5 };
        let timeout = ANSWER_TIMEOUT + 4 * delay;
        match &self.way {
            Way::Relay(relay) => relay.measure(count, timeout),
            Way::Wire(wire) => wire.measure(count, timeout),
        }
    }

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

    /// The place where its counters can be read while it serves.
    pub(crate) fn tap(&self) -> Option<LinkTap> {
        match &self.way {
            Way::Relay(relay) => Some(LinkTap::Relay(relay.sockets().0.clone())),
            Way::Wire(wire) => {
                Some(LinkTap::Interface { pid: wire.host_pid()?, name: wire.interface() })
            }
        }
    }

    fn shape(&mut self, shape: TrafficShape) -> Result<(), Error> {
        match &mut self.way {
            Way::Relay(relay) => relay.shape(shape),
            Way::Wire(wire) => wire.shape(shape),
        }?;
        self.config.shape = shape;
        Ok(())
    }
}

/// The time in which nothing must pass to be taken for cut: a hundred round trips.
const SILENCE: Duration = Duration::from_millis(200);

/// A link that is not cut answers in microseconds, behind what it already has to pass on.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
