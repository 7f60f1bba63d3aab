//! Slow transactions of both sides by cause: each server is sampled while it has its turn.

use std::time::Instant;

use load::{Blocks, Outcome, Workload};
use measure::{TailLoad, TailSampler};
use record::Moment;
use record::comparison::Tails;
use tail::Tail;

use crate::contest::ComparedSide;
use crate::observation;

/// The samplers of both sides' servers; none for a side that shall not be sampled.
pub(crate) struct TailSamplers([Option<TailSampler>; 2]);

impl TailSamplers {
    /// Begins to sample, on the clock of the load.
    pub(crate) fn begin(
        sides: [&dyn ComparedSide; 2],
        sampled: [bool; 2],
        workloads: &[Vec<Workload>; 2],
        origin: Instant,
    ) -> TailSamplers {
        let begin = |side: usize| {
            let load: Vec<&str> = workloads[side].iter().map(|one| one.conninfo.as_str()).collect();
            let conninfo = load.first().expect("a side has a workload");
            TailSampler::start(conninfo, None, &sides[side].pids(), &load, origin)
        };
        TailSamplers([0, 1].map(|side| sampled[side].then(|| begin(side))))
    }

    /// Samples each side in its own turns from now on.
    pub(crate) fn keep_to_turns(&self, began: Moment, blocks: &Blocks) {
        for (side, sampler) in self.0.iter().enumerate() {
            let Some(sampler) = sampler else { continue };
            sampler.keep_to_turns(side, began, blocks);
        }
    }

    /// Ends the sampling, and adds the slow transactions of a load to those of loads before. The first
    /// blocks only warm the servers up. Returns doubts.
    pub(crate) fn end(
        self,
        outcome: &Outcome,
        workloads: &[Vec<Workload>; 2],
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
            let sample = sampler.stop();
            doubts.extend(sample.notes.iter().map(|note| format!("tail of {name}: {note}")));
            let is_own = |one: &usize| observation::side_of(*one, workloads[0].len()).0 == side;
            let own: Vec<usize> = (0..count).filter(is_own).collect();
            let has_rate = workloads[side].iter().any(|one| one.pace.rate().is_some());
            let load = TailLoad { outcome, workloads: &own, from, has_rate };
            let Some(found) = sample.attribute(&load) else { continue };
            let place: &mut Option<Tail> = if side == 0 { &mut sum.a } else { &mut sum.b };
            match place {
                Some(before) => before.add(found),
                None => *place = Some(found),
            }
        }
        doubts
    }
}
