//! `--tail`: slow transactions by cause.

use std::time::Instant;

use load::Outcome;
use probe::{ActivitySampler, SampledActivity};
use record::Moment;
use tail::{Load, Tail};
use wire::conninfo::Conninfo;

use crate::complaint::Complaint;

/// The sampling of a server while it is loaded.
pub(super) struct Sampling(ActivitySampler);

/// What the sampling found.
pub(super) struct SampledTail {
    pub(super) tail: Option<Tail>,
    pub(super) notes: Vec<String>,
}

impl Sampling {
    /// Begins to sample the server.
    pub(super) fn begin(conninfo: &Conninfo, origin: Instant) -> Result<Sampling, Complaint> {
        let started = ActivitySampler::start(conninfo, &[], origin);
        started.map(Sampling).map_err(|error| {
            Complaint::error(format_args!("could not sample the server for --tail: {error}"))
        })
    }

    /// Ends the sampling, and attributes the slow transactions of the load.
    pub(super) fn end(self, outcome: &Outcome, is_open: bool) -> SampledTail {
        let SampledActivity { activity, notes, .. } = self.0.stop();
        let workload = &outcome.workloads[0];
        // A client of a closed loop always has a transaction under way.
        let clients = f64::from(workload.clients);
        let under_way = |at: u64| match is_open {
            true => outcome.under_way(Moment(at), |_| true).map_or(clients, |n| n.min(clients)),
            false => clients,
        };
        let load = Load {
            slowest: &outcome.slowest[0],
            count: workload.latency.count(),
            latency_ns: &|quantile| workload.latency.quantile_ns(quantile).unwrap_or(0),
            under_way: &under_way,
        };
        SampledTail { tail: tail::attribute(&load, &activity), notes }
    }
}
