//! One link: how much has passed.

use std::path::PathBuf;

use fault::link::{LinkCounters, RelayControl, RelaySockets};
use os::proc_files;
use serde::{Deserialize, Serialize};
use spec::metrics;

use crate::reading::Reading;

/// Place where a link's counters are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LinkReading {
    /// The relay, by what the paths of the relay's sockets begin with.
    Relay(PathBuf),
    /// An interface in the network namespace of a process, at the server's end.
    Interface {
        /// The process, as this process's `/proc` numbers it.
        pid: u32,
        /// The interface.
        name: String,
    },
}

/// A link that is read every second.
#[derive(Debug)]
pub(crate) struct Link {
    tap: LinkReading,
    control: Option<RelayControl>,
}

impl Link {
    pub(crate) fn of(tap: LinkReading) -> Link {
        Link { tap, control: None }
    }

    /// Bytes and packets that have passed so far; nothing while the counters are unknown.
    pub(crate) fn read(&mut self) -> Vec<Reading> {
        let counters = match &self.tap {
            LinkReading::Relay(sockets) => {
                if self.control.is_none() {
                    self.control = RelayControl::connect(&RelaySockets(sockets.clone())).ok();
                }
                let counters = self.control.as_mut().and_then(|control| control.counters().ok());
                if counters.is_none() {
                    // It was made anew, or is stopped: the next second asks again.
                    self.control = None;
                }
                counters
            }
            LinkReading::Interface { pid, name } => i32::try_from(*pid)
                .ok()
                .and_then(|pid| proc_files::network_of(pid).ok())
                .and_then(|text| LinkCounters::of_interface(&text, name)),
        };
        // A link that is gone has no reading.
        counters.map(|counters| readings(&counters)).unwrap_or_default()
    }
}

fn readings(counters: &LinkCounters) -> Vec<Reading> {
    let rows = [
        (&metrics::LINK_TO_BYTES, counters.to_bytes as f64),
        (&metrics::LINK_FROM_BYTES, counters.from_bytes as f64),
        (&metrics::LINK_TO_PACKETS, counters.to_packets as f64),
        (&metrics::LINK_FROM_PACKETS, counters.from_packets as f64),
        (&metrics::LINK_LATE_MS, counters.late_ns as f64 / 1e6),
    ];
    rows.into_iter().map(|(metric, value)| Reading::new(metric, "", value)).collect()
}
