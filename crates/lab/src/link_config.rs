//! The configuration of a link, and what can be seen of it.

use std::path::PathBuf;

use fault::link::{RoundTrips, TrafficShape};
use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::network::Network;

/// The configuration of a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkConfig {
    /// The program that becomes its processes: `program link …` calls [`fault::link::serve`].
    pub program: PathBuf,
    /// Its kind.
    pub by: LinkBy,
    /// The server that it leads to.
    pub to: Endpoint,
    /// Its delay and bandwidth.
    pub shape: TrafficShape,
}

/// The kind of a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// The place where another process can read a link's counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTap {
    /// From its relay: what the paths of [`fault::link::RelaySockets`] begin with.
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

impl LinkCost {
    /// As in "10.060 ms, 0.020 ms without the link".
    pub fn in_words(&self) -> String {
        let ms = |trips: RoundTrips| trips.median.as_secs_f64() * 1e3;
        format!("{:.3} ms, {:.3} ms without the link", ms(self.with), ms(self.without))
    }
}
