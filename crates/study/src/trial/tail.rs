//! Slow transactions of a trial by cause: the server that has the data is sampled while it is loaded.

use std::collections::BTreeMap;
use std::time::Instant;

use load::Outcome;
use measure::{TailLoad, TailSample, TailSampler};
use probe::Readings;
use record::Window;
use site::{Service, Site};
use spec::Point;
use tail::Tail;

/// The sampler of the server that has the data.
#[derive(Debug)]
pub(crate) struct NodeTailSampler {
    node: String,
    sampler: TailSampler,
}

/// The samples of the server that has the data.
pub(crate) struct NodeTailSample {
    node: String,
    sample: TailSample,
}

impl NodeTailSampler {
    /// Begins to sample, if the point asks for it.
    pub(crate) fn start(point: &Point, site: &Site, origin: Instant) -> Option<NodeTailSampler> {
        if !point.has_tail {
            return None;
        }
        let node = site.data_node();
        let postmaster = if node.host().is_none() { node.pid() } else { None };
        let load: BTreeMap<String, String> = site.conninfos();
        let load: Vec<&str> = load.values().map(String::as_str).collect();
        let (conninfo, database) = (node.probe_conninfo(), node.database());
        let pids = postmaster.as_slice();
        let sampler = TailSampler::start(&conninfo, Some(&database), pids, &load, origin);
        Some(NodeTailSampler { node: node.name.clone(), sampler })
    }

    /// Ends the sampling, before the server's counters are read a last time.
    pub(crate) fn stop(self) -> NodeTailSample {
        NodeTailSample { node: self.node, sample: self.sampler.stop() }
    }
}

impl NodeTailSample {
    /// Adds notes, and the sampler's own transactions, which the server has counted.
    pub(crate) fn tell(&self, readings: &mut Readings) {
        let notes = self.sample.notes.iter().map(|text| format!("{}: {text}", self.node));
        readings.notes.extend(notes);
        if let Some(delta) = readings.deltas.get_mut(&self.node) {
            delta.own_transactions += self.sample.transactions;
        }
    }

    /// The slow transactions of the workloads that end at the sampled server.
    pub(crate) fn tail(&self, point: &Point, outcome: &Outcome, window: Window) -> Option<Tail> {
        let is_other = |to: &String| {
            *to != self.node && point.topology.node(to).is_some_and(|node| node.is_postgres())
        };
        let own: Vec<usize> = (0..outcome.workloads.len())
            .filter(|index| !point.workloads[*index].to.iter().any(is_other))
            .collect();
        let has_rate = own.iter().any(|index| point.workloads[*index].pace.rate().is_some());
        let load = TailLoad { outcome, workloads: &own, from: window.open, has_rate };
        self.sample.attribute(&load)
    }
}
