//! Slow transactions of a trial by cause: the server that has the data is sampled while it is loaded.

use std::time::Instant;

use load::Outcome;
use probe::{ActivitySampler, Readings};
use record::{Moment, Window};
use server::Conninfo;
use site::{Service, Site};
use spec::Point;
use stats::Latency;
use tail::{Load, Slowest, Tail};

/// The sampler of the server that has the data.
#[derive(Debug)]
pub(crate) struct TailSampler {
    node: String,
    sampler: Result<ActivitySampler, String>,
}

pub(crate) struct Sampled {
    node: String,
    activity: tail::Activity,
}

impl TailSampler {
    /// Begins to sample, if the point asks for it.
    pub(crate) fn start(point: &Point, site: &Site, origin: Instant) -> Option<TailSampler> {
        if !point.has_tail {
            return None;
        }
        let node = site.data_node();
        let sampler = match Conninfo::from_keyword_string(&node.probe_conninfo()) {
            Ok(mut conninfo) => {
                conninfo.dbname = node.database();
                let postmaster = if node.host().is_none() { node.pid() } else { None };
                ActivitySampler::start(&conninfo, postmaster.as_slice(), origin)
                    .map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        Some(TailSampler { node: node.name.clone(), sampler })
    }

    /// Ends the sampling, before the server's counters are read a last time.
    pub(crate) fn stop(self) -> (Option<Sampled>, Stopped) {
        let TailSampler { node, sampler } = self;
        let note = |text: String| format!("{node}: {text}");
        match sampler {
            Ok(sampler) => {
                let sampled = sampler.stop();
                let notes = sampled.notes.into_iter().map(note).collect();
                let transactions = sampled.transactions;
                let stopped = Stopped { node: node.clone(), notes, transactions };
                (Some(Sampled { node, activity: sampled.activity }), stopped)
            }
            Err(why) => {
                let notes = vec![note(format!("its activity was not sampled: {why}"))];
                (None, Stopped { node: node.clone(), notes, transactions: 0 })
            }
        }
    }
}

/// What the readings must know of a sampler that has ended.
pub(crate) struct Stopped {
    node: String,
    notes: Vec<String>,
    transactions: u64,
}

impl Stopped {
    /// Adds notes, and the sampler's own transactions, which the server has counted.
    pub(crate) fn tell(self, readings: &mut Readings) {
        readings.notes.extend(self.notes);
        if let Some(delta) = readings.deltas.get_mut(&self.node) {
            delta.own_transactions += self.transactions;
        }
    }
}

impl Sampled {
    /// The slow transactions of the workloads that end at the sampled server.
    pub(crate) fn tail(&self, point: &Point, outcome: &Outcome, window: Window) -> Option<Tail> {
        let is_other = |to: &String| {
            *to != self.node && point.topology.node(to).is_some_and(|node| node.is_postgres())
        };
        let own: Vec<usize> = (0..outcome.workloads.len())
            .filter(|index| !point.workloads[*index].to.iter().any(is_other))
            .collect();
        let (mut slowest, mut latency, mut clients) = (Slowest::default(), Latency::new(), 0);
        for index in &own {
            slowest.merge(outcome.slowest.get(*index)?.clone().since(window.load_began.0));
            latency.merge(&outcome.workloads[*index].latency);
            clients += outcome.workloads[*index].clients;
        }
        let clients = f64::from(clients);
        let is_open = own.iter().any(|index| point.workloads[*index].pace.rate().is_some());
        let under_way = |at: u64| match is_open {
            true => outcome
                .under_way(Moment(at), |index| own.contains(&index))
                .unwrap_or(0.0)
                .min(clients),
            false => clients,
        };
        let load = Load {
            slowest: &slowest,
            count: latency.count(),
            latency_ns: &|quantile| latency.quantile_ns(quantile).unwrap_or(0),
            under_way: &under_way,
        };
        tail::attribute(&load, &self.activity)
    }
}
