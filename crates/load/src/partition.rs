//! Distribution of clients and random numbers over the lanes of all processes.

use std::collections::BTreeMap;

use script::{RandomSeeds, Xoroshiro128};
use serde::{Deserialize, Serialize};

use crate::LoadPlan;

/// The part of a plan that this process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// The place among the processes.
    pub(crate) index: usize,
    /// For each process, its share of the clients relative to the others'.
    pub(crate) weights: Vec<u32>,
}

impl Part {
    /// One of so many equal parts.
    pub(crate) fn equal(index: usize, of: u32) -> Part {
        Part { index, weights: vec![1; of as usize] }
    }

    /// Lanes of each process: as many as its weight asks for, and not more than it has clients,
    /// as a lane without a client would only wake up.
    pub(crate) fn lanes(&self, plan: &LoadPlan) -> Vec<usize> {
        let clients: u64 = plan.workloads.iter().map(|workload| u64::from(workload.clients)).sum();
        let sum: u64 = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let lanes = u64::from(plan.lanes) * self.weights.len() as u64;
        let share = |all: u64, weight: u32| (all * u64::from(weight)).div_ceil(sum.max(1));
        let of = |weight: &u32| share(lanes, *weight).min(share(clients, *weight)).max(1) as usize;
        self.weights.iter().map(of).collect()
    }

    /// Clients of each process.
    pub(crate) fn clients(&self, plan: &LoadPlan) -> Vec<u32> {
        let lanes = self.lanes(plan);
        let mut dealt = all_shares(plan, self).into_iter().map(|share| share.clients.len() as u32);
        lanes.iter().map(|lanes| dealt.by_ref().take(*lanes).sum()).collect()
    }
}

/// The share of one lane.
pub(crate) struct LaneShare {
    /// The number over all processes.
    pub(crate) number: u32,
    pub(crate) states: script::ThreadStates,
    /// Workload, client number, and state of the client's random functions.
    pub(crate) clients: Vec<(usize, u32, Xoroshiro128)>,
    /// The share of each workload's clients.
    pub(crate) shares: Vec<f64>,
    /// Position of its turn in the gaps of a constant rate, 0 to 1: lanes that keep step would make
    /// bursts of it.
    pub(crate) offset: f64,
}

/// pgbench's order: clients first, then `default_seed`, then threads.
pub(crate) fn seeds(plan: &LoadPlan, lanes: usize) -> RandomSeeds {
    let clients = plan.workloads.iter().map(|workload| workload.clients as usize).sum();
    let given = plan
        .workloads
        .iter()
        .flat_map(|workload| &workload.variables)
        .find(|(name, _)| name == "default_seed")
        .and_then(|(_, value)| value.parse().ok());
    RandomSeeds::new(plan.seed, clients, lanes, given)
}

/// The shares of the lanes of one process.
pub(crate) fn shares(plan: &LoadPlan, part: &Part) -> Vec<LaneShare> {
    let lanes = part.lanes(plan);
    let first: usize = lanes[..part.index].iter().sum();
    all_shares(plan, part).drain(first..first + lanes[part.index]).collect()
}

/// Divides clients among the lanes of all processes as pgbench divides them among threads: in runs, as
/// even as can be, or as the weights of the processes say.
fn all_shares(plan: &LoadPlan, part: &Part) -> Vec<LaneShare> {
    let each = part.lanes(plan);
    let lanes = each.iter().sum();
    let RandomSeeds { clients: mut prngs, threads, .. } = seeds(plan, lanes);
    let mut dealt: Vec<LaneShare> = threads
        .into_iter()
        .enumerate()
        .map(|(number, states)| LaneShare {
            number: number as u32,
            states,
            clients: Vec::new(),
            shares: Vec::new(),
            offset: (number + 1) as f64 / lanes as f64,
        })
        .collect();
    // Workloads that run in turn belong to the sides of one comparison: their clients draw the same numbers.
    let twins = prngs.clone();
    let mut drawn: BTreeMap<usize, usize> = BTreeMap::new();
    let mut id = 0;
    let mut first = 0;
    for (index, workload) in plan.workloads.iter().enumerate() {
        let left = workload.clients as usize;
        if let Some(blocks) = &plan.blocks {
            let of_side =
                drawn.entry(blocks.sides.get(index).copied().unwrap_or(index)).or_default();
            prngs.splice(..left.min(prngs.len()), twins[*of_side..*of_side + left].iter().cloned());
            *of_side += left;
        }
        for (lane, n) in split(left, &each, &part.weights, first) {
            // A workload begins where the one before has ended, or many small ones would all
            // fall to the first lanes.
            let share = &mut dealt[lane];
            share.shares.push(n as f64 / f64::from(workload.clients.max(1)));
            for prng in prngs.drain(..n) {
                share.clients.push((index, id, prng));
                id += 1;
            }
        }
        first = (first + workload.clients as usize) % lanes;
    }
    dealt
}

/// Numbers of a workload's clients for each lane, beginning with lane `first`. If all processes
/// weigh the same, lanes get equal numbers as in pgbench; otherwise processes get their shares, and
/// their lanes equal parts of those.
fn split(clients: usize, each: &[usize], weights: &[u32], first: usize) -> Vec<(usize, usize)> {
    let lanes: usize = each.iter().sum();
    if weights.windows(2).all(|pair| pair[0] == pair[1]) {
        return even(clients, lanes).map(|(lane, n)| ((first + lane) % lanes, n)).collect();
    }
    let (mut split, mut left, mut begin) = (Vec::new(), clients, 0);
    let mut weight_left: usize = weights.iter().map(|weight| *weight as usize).sum();
    for (index, (lanes, weight)) in each.iter().zip(weights).enumerate() {
        let weight = *weight as usize;
        let others = weights.len() - index - 1;
        let nearest = (2 * left * weight + weight_left) / (2 * weight_left);
        // Each process gets a client where there is one for each.
        let n = nearest.min(left.saturating_sub(others)).max(usize::from(left > others));
        let n = if others == 0 { left } else { n };
        split.extend(even(n, *lanes).map(|(lane, n)| (begin + (first + lane) % lanes, n)));
        left -= n;
        weight_left -= weight;
        begin += lanes;
    }
    split
}

/// pgbench's way to divide clients among lanes: in runs as even as can be, the longer ones first.
fn even(mut left: usize, lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..lanes).map(move |lane| {
        let n = left.div_ceil(lanes - lane);
        left -= n;
        (lane, n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientGroup, LoadLimit, Protocol};

    fn plan(clients: &[u32], lanes: u32) -> LoadPlan {
        let workload = |clients: &u32| {
            ClientGroup::new("w", String::new(), Vec::new(), *clients, Protocol::Simple)
        };
        let workloads = clients.iter().map(workload).collect();
        LoadPlan { lanes, seed: 42, ..LoadPlan::new(workloads, LoadLimit::Transactions(1)) }
    }

    #[test]
    fn clients_are_dealt_in_runs_as_even_as_can_be() {
        let check = |clients: &[u32], lanes, processes: u32, expected: &[&[u32]]| {
            let plan = plan(clients, lanes);
            let dealt: Vec<Vec<u32>> = (0..processes as usize)
                .flat_map(|index| shares(&plan, &Part::equal(index, processes)))
                .map(|share| share.clients.iter().map(|(_, id, _)| *id).collect())
                .collect();
            assert_eq!(dealt, expected, "{clients:?} on {processes} times {lanes} lanes");
        };
        check(&[5], 2, 1, &[&[0, 1, 2], &[3, 4]]);
        check(&[5], 1, 2, &[&[0, 1, 2], &[3, 4]]);
        check(&[2], 8, 1, &[&[0], &[1]]);
        // Small workloads do not all fall to the first lane.
        check(&[1, 1, 1], 3, 1, &[&[0], &[1], &[2]]);
        check(&[3, 1], 2, 1, &[&[0, 1], &[2, 3]]);
        check(&[1], 2, 2, &[&[0], &[]]);
    }

    #[test]
    fn clients_are_shared_by_weight() {
        let check = |clients: &[u32], lanes, weights: &[u32], expected: &[u32]| {
            let plan = plan(clients, lanes);
            let part = Part { index: 0, weights: weights.to_vec() };
            let what = format!("{clients:?} by {weights:?}, {lanes} lanes each");
            assert_eq!(part.clients(&plan), expected, "{what}");
            let mut ids: Vec<u32> = (0..weights.len())
                .flat_map(|index| shares(&plan, &Part { index, weights: weights.to_vec() }))
                .flat_map(|share| share.clients.into_iter().map(|(_, id, _)| id))
                .collect();
            ids.sort_unstable();
            let all: Vec<u32> = (0..clients.iter().sum()).collect();
            assert_eq!(ids, all, "every client once: {what}");
        };
        check(&[100], 1, &[1, 3], &[25, 75]);
        check(&[100], 2, &[1, 3], &[25, 75]);
        check(&[4_000], 4, &[1, 1, 1, 1], &[1_000; 4]);
        check(&[10], 1, &[1, 1, 1], &[4, 3, 3]);
        check(&[10], 3, &[7, 1], &[9, 1]);
        check(&[6, 6], 2, &[2, 1], &[8, 4]);
    }

    /// The random numbers of a client depend on its number and the seed only; the script that it
    /// runs depends on its lane.
    #[test]
    fn clients_draw_the_same_numbers_however_many_processes_there_are() {
        let plan_of = |lanes| plan(&[12], lanes);
        let draws = |lanes, weights: &[u32]| {
            let dealt = (0..weights.len()).flat_map(|index| {
                shares(&plan_of(lanes), &Part { index, weights: weights.to_vec() })
            });
            let clients = dealt.flat_map(|share| {
                let mut choose = share.states.choose.clone();
                let chosen = choose.double();
                share.clients.into_iter().map(move |(_, id, mut prng)| (id, prng.double(), chosen))
            });
            clients.collect::<Vec<_>>()
        };
        let one = draws(4, &[1]);
        assert_eq!(draws(1, &[1; 4]), one);
        assert_eq!(draws(2, &[1; 2]), one);
        let numbers = |of: Vec<(u32, f64, f64)>| -> Vec<_> {
            of.into_iter().map(|(id, number, _)| (id, number)).collect()
        };
        assert_eq!(numbers(draws(1, &[5, 1])), numbers(one));
    }

    #[test]
    fn shares_of_the_pace_add_up_whatever_the_processes() {
        let plan = plan(&[7, 2], 2);
        let mut sums = [0.0; 2];
        for index in 0..3 {
            for share in shares(&plan, &Part { index, weights: vec![1, 5, 2] }) {
                sums.iter_mut().zip(&share.shares).for_each(|(sum, part)| *sum += part);
            }
        }
        sums.iter().for_each(|sum| assert!((sum - 1.0).abs() < 1e-9, "{sums:?}"));
    }
}
