//! Slow transactions of both sides by cause: each server is sampled while both have their turns.

use std::time::Instant;

use load::{Outcome, Workload};
use probe::ActivitySampler;
use record::comparison::Tails;
use server::Conninfo;
use stats::Latency;
use tail::{Load, Slowest, Tail};

use crate::contest::Ground;
use crate::observation;

/// The samplers of both sides' servers. A side that cannot be sampled has none.
pub(crate) struct TailWatch([Option<ActivitySampler>; 2]);

impl TailWatch {
    /// Begins to sample, on the clock of the load.
    pub(crate) fn begin(
        sides: [&dyn Ground; 2],
        workloads: &[Vec<Workload>; 2],
        origin: Instant,
    ) -> TailWatch {
        let begin = |side: usize| {
            let conninfo = &workloads[side].first()?.conninfo;
            let conninfo = Conninfo::from_keyword_string(conninfo).ok()?;
            let postmaster = sides[side].pids().first().copied();
            ActivitySampler::start(&conninfo, postmaster, origin).ok()
        };
        TailWatch([0, 1].map(begin))
    }

    /// Ends the sampling, and adds the slow transactions of a load to those of loads before. The first
    /// blocks only warm the servers up.
    pub(crate) fn end(self, outcome: &Outcome, of_a: usize, warm_blocks: usize, sum: &mut Tails) {
        let count = outcome.workloads.len().max(1);
        let measured = outcome.intervals.get(warm_blocks * count);
        let Some(from) = measured.map(|interval| interval.start) else { return };
        for (side, sampler) in self.0.into_iter().enumerate() {
            let Some(sampler) = sampler else { continue };
            let activity = sampler.stop().activity;
            let is_own = |workload: &usize| observation::side_of(*workload, of_a).0 == side;
            let (mut slowest, mut latency, mut clients) = (Slowest::default(), Latency::new(), 0);
            for workload in (0..count).filter(is_own) {
                slowest.merge(outcome.slowest[workload].clone().since(from.0));
                clients += outcome.workloads[workload].clients;
            }
            let own = outcome.intervals.iter().filter(|one| is_own(&one.workload));
            own.filter(|one| one.start >= from).for_each(|one| latency.merge(&one.latency));
            let load = Load {
                slowest: &slowest,
                count: latency.count(),
                latency_ns: &|quantile| latency.quantile_ns(quantile).unwrap_or(0),
                under_way: &|_| f64::from(clients),
            };
            let Some(found) = tail::attribute(&load, &activity) else { continue };
            let place: &mut Option<Tail> = if side == 0 { &mut sum.a } else { &mut sum.b };
            match place {
                Some(before) => before.add(found),
                None => *place = Some(found),
            }
        }
    }
}
