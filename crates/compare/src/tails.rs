//! Slow transactions of both sides by cause: each server is sampled while both have their turns.

use std::time::Instant;

use load::{Blocks, Outcome, Workload};
use probe::ActivitySampler;
use record::Moment;
use record::comparison::Tails;
use server::Conninfo;
use stats::Latency;
use tail::{Load, Slowest, Tail};

use crate::contest::Ground;
use crate::observation;

/// The samplers of both sides' servers; the reason for a side that cannot be sampled; none for one that
/// shall not be.
pub(crate) struct TailWatch([Option<Result<ActivitySampler, String>>; 2]);

impl TailWatch {
    /// Begins to sample, on the clock of the load.
    pub(crate) fn begin(
        sides: [&dyn Ground; 2],
        sampled: [bool; 2],
        workloads: &[Vec<Workload>; 2],
        origin: Instant,
    ) -> TailWatch {
        let begin = |side: usize| -> Result<ActivitySampler, String> {
            let workload = workloads[side].first().ok_or("it has no clients")?;
            let conninfo = Conninfo::from_keyword_string(&workload.conninfo);
            let conninfo = conninfo.map_err(|error| error.to_string())?;
            let started = ActivitySampler::start(&conninfo, &sides[side].pids(), origin);
            started.map_err(|error| error.to_string())
        };
        TailWatch([0, 1].map(|side| sampled[side].then(|| begin(side))))
    }

    /// Samples each side in its own turns from now on: its server does nothing in the others, and looks at
    /// it would take CPU time from the other side.
    pub(crate) fn keep_to_turns(&self, began: Moment, blocks: &Blocks) {
        let length_ns = blocks.length_ms * 1_000_000;
        for (side, sampler) in self.0.iter().enumerate() {
            let Some(Ok(sampler)) = sampler else { continue };
            let turns = blocks.order.iter().zip(0..).filter(|(turn, _)| turn.side == side);
            let spans = turns.map(|(_, number)| {
                let from = began.0 + number * length_ns;
                (from, from + length_ns)
            });
            sampler.keep_to(spans.collect());
        }
    }

    /// Ends the sampling, and adds the slow transactions of a load to those of loads before. The first
    /// blocks only warm the servers up. Returns doubts.
    pub(crate) fn end(
        self,
        outcome: &Outcome,
        of_a: usize,
        warm_blocks: usize,
        sum: &mut Tails,
    ) -> Vec<String> {
        let mut doubts = Vec::new();
        let count = outcome.workloads.len().max(1);
        let measured = outcome.intervals.get(warm_blocks * count);
        let Some(from) = measured.map(|interval| interval.start) else { return doubts };
        for (side, sampler) in self.0.into_iter().enumerate() {
            let name = ["A", "B"][side];
            let Some(sampler) = sampler else { continue };
            let sampled = match sampler {
                Ok(sampler) => sampler.stop(),
                Err(why) => {
                    doubts.push(format!("the slow transactions of {name} have no causes: {why}"));
                    continue;
                }
            };
            doubts.extend(sampled.notes.iter().map(|note| format!("tail of {name}: {note}")));
            let activity = sampled.activity;
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
        doubts
    }
}
