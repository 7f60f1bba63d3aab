//! A link, whose relay is here or on a host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fault::link::{Counters, Shape};
use terms::Direction;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::link::{self, LinkCost, LinkTap};
use crate::remote::{RemoteLab, Verb};

/// A running link. It ends, with the connections that go by it, when it is dropped.
#[derive(Debug)]
pub struct Link(Place);

#[derive(Debug)]
enum Place {
    Here(Box<link::Link>),
    There(RemoteLink),
}

/// A relay on a host.
#[derive(Debug)]
pub(crate) struct RemoteLink {
    pub(crate) lab: Arc<RemoteLab>,
    pub(crate) object: u32,
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) sockets: Option<PathBuf>,
    pub(crate) shape: Shape,
}

impl Link {
    pub(crate) fn here(link: link::Link) -> Link {
        Link(Place::Here(Box::new(link)))
    }

    pub(crate) fn there(link: RemoteLink) -> Link {
        Link(Place::There(link))
    }

    /// What is to be connected to instead of the server.
    pub fn endpoint(&self) -> Endpoint {
        match &self.0 {
            Place::Here(link) => link.endpoint(),
            Place::There(link) => link.endpoint.clone(),
        }
    }

    /// Its delay and bandwidth of now.
    pub fn shape(&self) -> Shape {
        match &self.0 {
            Place::Here(link) => link.config().shape,
            Place::There(link) => link.shape,
        }
    }

    /// Gives it another delay; what is on its way already keeps its own.
    ///
    /// # Errors
    /// [`Error::Link`] if a round trip does not show it.
    pub fn delay(&mut self, delay: Duration) -> Result<String, Error> {
        match &mut self.0 {
            Place::Here(link) => link.delay(delay),
            Place::There(link) => {
                let proof = link.ask(Verb::Delay(delay))?;
                link.shape.delay = delay;
                Ok(proof)
            }
        }
    }

    /// Gives it another bandwidth, in bytes a second, or none.
    ///
    /// # Errors
    /// [`Error::Link`] if it does not answer.
    pub fn bandwidth(&mut self, bytes_per_s: Option<u64>) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(link) => link.bandwidth(bytes_per_s),
            Place::There(link) => {
                link.ask::<()>(Verb::Bandwidth(bytes_per_s))?;
                link.shape.bytes_per_s = bytes_per_s;
                Ok(())
            }
        }
    }

    /// Lets nothing pass any more in a direction, without a word to either side: connections stay
    /// open.
    ///
    /// # Errors
    /// [`Error::Link`] if something passes all the same.
    pub fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        match &mut self.0 {
            Place::Here(link) => link.cut(direction),
            Place::There(link) => link.ask(Verb::Cut(direction)),
        }
    }

    /// Resets all connections that go by it.
    ///
    /// # Errors
    /// [`Error::Link`] if there are none.
    pub fn reset(&mut self) -> Result<String, Error> {
        match &mut self.0 {
            Place::Here(link) => link.reset(),
            Place::There(link) => link.ask(Verb::Reset),
        }
    }

    /// Ends a cut: what was held back goes on, what was dropped is sent again by who sent it.
    ///
    /// # Errors
    /// [`Error::Link`] if it still does not pass anything.
    pub fn heal(&mut self) -> Result<String, Error> {
        match &mut self.0 {
            Place::Here(link) => link.heal(),
            Place::There(link) => link.ask(Verb::Heal),
        }
    }

    /// What has passed since it was made.
    ///
    /// # Errors
    /// [`Error::Link`] if it does not answer.
    pub fn counters(&mut self) -> Result<Counters, Error> {
        match &mut self.0 {
            Place::Here(link) => link.counters(),
            Place::There(link) => link.ask(Verb::Counters),
        }
    }

    /// A round trip with and without it.
    ///
    /// # Errors
    /// [`Error::Link`] if nothing passes.
    pub fn measure(&self) -> Result<LinkCost, Error> {
        match &self.0 {
            Place::Here(link) => link.measure(),
            Place::There(link) => link.ask(Verb::Measure),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Place::Here(link) => link.name(),
            Place::There(link) => &link.name,
        }
    }

    /// The process id, as `/proc` of its host outside the lab's namespaces has it, of its relay, or
    /// of the echo at the far end of a link by namespace.
    pub fn host_pid(&self) -> Option<i32> {
        match &self.0 {
            Place::Here(link) => link.host_pid(),
            Place::There(link) => link.ask(Verb::Pid).unwrap_or_default(),
        }
    }

    /// Where its counters can be read, on its host, while it serves.
    pub fn tap(&self) -> Option<LinkTap> {
        match &self.0 {
            Place::Here(link) => link.tap(),
            Place::There(link) => link.sockets.clone().map(LinkTap::Relay),
        }
    }
}

impl RemoteLink {
    fn ask<T: serde::de::DeserializeOwned>(&self, verb: Verb) -> Result<T, Error> {
        self.lab.ask(self.object, verb)
    }
}

impl Drop for RemoteLink {
    fn drop(&mut self) {
        self.lab.give_up(self.object);
    }
}
