//! A contest: two sides, what is found of them, and the pilot loads that find a length of a block
//! that fits both.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use load::{
    ClientGroup, LaneFleet, LoadControl, LoadLimit, LoadPlan, StopUrgency, WarmUp, WorkRecord,
};
use record::comparison::{
    ComparedMetric, InstanceFindings, InterimLook, NoiseFloor, ServerRenewal, WorkComparison,
};
use server::Client;
use stats::sequence::OBSERVATIONS_MIN;

use crate::loading::PreparedLoad;
use crate::pair::answer::StoppingRule;
use crate::pair::design::CYCLE;
use crate::pair::error::PairError;
use crate::pair::figure::{self, ComparedFigure};
use crate::pair::pilot::{self, BlockShape, SLICE_MS};
use crate::pair::schedule;
use crate::pair::tidy::MaintenanceResult;
use crate::pair::work::{ExcludedScript, ScriptRehearsal};

/// The servers of a side, as far as a contest has to do with them.
pub trait ComparedSide: Sync {
    /// The name of the side in messages.
    fn name(&self) -> &str;

    /// A connection for administration to the server that has the data.
    fn connect(&self) -> Result<Client, PairError>;

    /// The postmasters of its servers that run on this machine.
    fn pids(&self) -> Vec<u32>;

    /// Options with which initdb made the files of the server that has the data.
    fn initdb(&self) -> Vec<String>;

    /// The logs of its servers, as far as they are the rig's.
    fn logs(&self) -> String;

    /// Does what would otherwise happen inside a block, within a limit: vacuum, a checkpoint.
    fn tidy(&self, limit: Duration) -> Result<MaintenanceResult, PairError>;
}

/// The ground that both sides stand on.
pub trait ComparedPair {
    /// A's servers, then B's.
    fn sides(&self) -> [&dyn ComparedSide; 2];

    /// The kind of renewal that [`ComparedPair::renew`] makes.
    fn renewal(&self) -> ServerRenewal;

    /// Makes new instances of both sides' servers, as [`ComparedPair::renewal`] says. `is_exchanged` says
    /// whether B is to have the files that were A's in the beginning, where sides exchange them.
    ///
    /// # Errors
    /// If a server does not stop or start.
    fn renew(&mut self, is_exchanged: bool) -> Result<(), PairError>;
}

/// Two sides, and when to stop: a [`crate::PairPlan`] under way.
pub(crate) struct PairContest<'a> {
    pub(crate) arena: &'a mut dyn ComparedPair,
    pub(crate) workloads: [Vec<ClientGroup>; 2],
    pub(crate) floor: NoiseFloor,
    /// From one restart to the next, where that was asked for.
    pub(crate) segment: Option<Duration>,
    pub(crate) lanes: u32,
    pub(crate) seed: u64,
    pub(crate) rule: StoppingRule,
    /// The confidence of each figure that decides ([`StoppingRule::deciding`]); of the others it is
    /// [`CONFIDENCE`].
    pub(crate) deciding: f64,
    pub(crate) has_profile: bool,
    pub(crate) tail: [bool; 2],
    pub(crate) max_time: Duration,
    pub(crate) control: &'a LoadControl,
    /// Scripts of a mixed load get a verdict each.
    pub(crate) has_statements: bool,
    /// The share of production's time that each script has there, by its name.
    pub(crate) time_shares: BTreeMap<String, f64>,
    /// Scripts that are left out of the load.
    pub(crate) excluded: Vec<ExcludedScript>,
    /// What the rehearsal has shown of scripts.
    pub(crate) rehearsal: ScriptRehearsal,
    /// What both sides did so far.
    pub(crate) work: WorkComparison,
    /// The tables that each side has changed in its rehearsal.
    pub(crate) written: [Vec<String>; 2],
}

/// The progress of a contest.
#[derive(Clone, Copy, Debug)]
pub struct PairProgress<'a> {
    /// Pairs of neighbouring blocks so far.
    pub pairs: usize,
    /// The figures of these pairs.
    pub figures: &'a [ComparedFigure],
    /// The ratios so far, the last segment's included.
    pub looks: &'a [InterimLook],
    /// The differences between the servers' instances.
    pub instances: &'a InstanceFindings,
    /// Since measuring began.
    pub seconds: f64,
}

/// The confidence of an interval, or of several together.
pub const CONFIDENCE: f64 = 0.95;

/// Share of a contest's time for which the pilot loads each side, within bounds. Below the lower one it
/// could not judge any length of a block.
const PILOT_SHARE: f64 = 0.05;
const PILOT_MS: RangeInclusive<u64> = 4_000..=12_000;

/// Time for which the pilot loads each side where only the rest of a block is to be found.
const REST_PILOT_MS: u64 = 1_000;

/// With no more transactions than this in a pilot, one is waited for.
const FEW: u64 = 2;

/// Assumed duration of a restart before there was one, its warm-up and the work before it included.
const RESTART_S: f64 = 5.0;

/// At the start of each pilot, and of each segment: caches fill, connections warm up.
pub(crate) const WARM_MS: u64 = 2_000;

/// Time for which the pilot loads one side, in milliseconds.
fn pilot_ms(max_time: Duration, length_ms: Option<u64>) -> u64 {
    let share_ms = (max_time.as_secs_f64() * 1e3 * PILOT_SHARE) as u64;
    match length_ms {
        Some(_) => REST_PILOT_MS,
        None => share_ms.clamp(*PILOT_MS.start(), *PILOT_MS.end()),
    }
}

/// Time that the pilots of both sides take, in seconds.
pub(crate) fn pilots_s(max_time: Duration, length_ms: Option<u64>) -> f64 {
    2.0 * (WARM_MS + pilot_ms(max_time, length_ms)) as f64 / 1e3
}

/// The result of a short load of one side alone.
struct Pilot {
    /// Transactions, one count each [`SLICE_MS`].
    slices: Vec<u64>,
    mean_s: f64,
    /// Transactions a second; none where it was one transaction of each client.
    tps: Option<f64>,
}

impl PairContest<'_> {
    /// Loads each side alone, and chooses a length of a block that fits both. Both are loaded for
    /// the same time, so that neither begins with warmer caches. A given length is taken unless
    /// transactions are too long for it; then it is the next candidate that they fit. Where they fit
    /// none, a block is a turn of so many transactions.
    ///
    /// # Errors
    /// If a side cannot be loaded, or its transactions are too long and have a rate.
    pub(crate) fn find_shape(&self, length_ms: Option<u64>) -> Result<BlockShape, PairError> {
        let pilots = [self.pilot(0, length_ms)?, self.pilot(1, length_ms)?];
        // Five restarts, for an interval, fit the time only with blocks that are not too long.
        let most_s = self.max_time.as_secs_f64() - 2.0 * PILOT_SHARE * self.max_time.as_secs_f64();
        let octet_s = most_s / OBSERVATIONS_MIN as f64 - RESTART_S;
        let short: Vec<u64> = pilot::LENGTHS_MS
            .into_iter()
            .filter(|length_ms| *length_ms as f64 / 1e3 * CYCLE as f64 <= octet_s)
            .collect();
        let blocks = |one: &Pilot| {
            one.tps?;
            match length_ms {
                None => pilot::shape(&one.slices, one.mean_s, &short)
                    .or_else(|| pilot::shape(&one.slices, one.mean_s, &pilot::LENGTHS_MS)),
                Some(given) => pilot::at_least(given)
                    .find_map(|length_ms| pilot::shape(&one.slices, one.mean_s, &[length_ms])),
            }
        };
        let [a, b] = &pilots;
        if let (Some(of_a), Some(of_b)) = (blocks(a), blocks(b)) {
            let (length_ms, rest_ms) = (of_a.0.max(of_b.0), of_a.1.max(of_b.1));
            let tps = |one: &Pilot| one.tps.expect("blocks are shaped of a pilot that had a rate");
            let tps = tps(a).min(tps(b));
            let variances = [a, b].map(|one| pilot::variance_per_second(&one.slices, length_ms));
            let variance_s = variances.into_iter().flatten().reduce(f64::max);
            return Ok(BlockShape { length_ms, rest_ms, turn: None, tps, variance_s });
        }
        let means_s = [a.mean_s, b.mean_s];
        if self.workloads.iter().flatten().any(|workload| workload.pace.rate().is_some()) {
            let given_ms = length_ms.unwrap_or(0); // All lengths are allowed where none is given.
            let longest_ms = pilot::at_least(given_ms).max().expect("the given length is one");
            let seconds = means_s[0].max(means_s[1]);
            return Err(PairError::TooSlow { seconds, block_s: longest_ms as f64 / 1e3 });
        }
        let clients = self.workloads[0].iter().map(|workload| workload.clients).sum();
        Ok(BlockShape::of_turns(means_s, clients))
    }

    fn pilot(&self, side: usize, length_ms: Option<u64>) -> Result<Pilot, PairError> {
        let workloads = &self.workloads[side];
        let window_ms = pilot_ms(self.max_time, length_ms);
        let mut plan = self.plan(workloads.clone(), SLICE_MS);
        plan.limit = LoadLimit::Time { warm_up: WarmUp::Fixed(WARM_MS), window_ms };
        let (outcome, first) = self.load_alone(side, &plan)?;
        // How long transactions wait for a client is no property of blocks.
        let took = workloads.iter().zip(&outcome.workloads).map(|(workload, result)| {
            if workload.pace.rate().is_some() { &result.service } else { &result.latency }
        });
        // Blocks are to fit the longest transactions.
        let means = took.map(|took| took.mean_ns().filter(|_| took.count() > FEW));
        let mean_ns = means.reduce(|one, other| Some(one?.max(other?))).flatten();
        // Without a window there is no interval of it either.
        let open = outcome.window.map_or(0, |window| window.open.0);
        let mut slices: BTreeMap<u64, u64> = BTreeMap::new();
        for slice in outcome.intervals.iter().filter(|slice| slice.start.0 >= open) {
            *slices.entry(slice.start.0).or_default() += slice.counts.transactions;
        }
        let slices: Vec<u64> = slices.into_values().collect();
        let tps = slices.iter().sum::<u64>() as f64 / (window_ms as f64 / 1e3);
        match (mean_ns, first) {
            (Some(mean_ns), _) => Ok(Pilot { slices, mean_s: mean_ns / 1e9, tps: Some(tps) }),
            (_, Some(why)) => Err(self.failing(side, &outcome, why)),
            // The window says little of transactions that hardly fit it.
            (_, None) => self.slow_pilot(side),
        }
    }

    /// One transaction of each client.
    fn slow_pilot(&self, side: usize) -> Result<Pilot, PairError> {
        let mut plan = self.plan(self.workloads[side].clone(), 1_000);
        plan.limit = LoadLimit::Transactions(1);
        let (outcome, first) = self.load_alone(side, &plan)?;
        let means = outcome.workloads.iter().map(|result| result.latency.mean_ns());
        match means.reduce(|one, other| Some(one?.max(other?))).flatten() {
            Some(mean_ns) => Ok(Pilot { slices: Vec::new(), mean_s: mean_ns / 1e9, tps: None }),
            None => {
                let why = first.unwrap_or_else(|| "it gave no answer".to_owned());
                Err(self.failing(side, &outcome, why))
            }
        }
    }

    /// A side of which no transaction ended well: its server ended the clients, or the script fails on it.
    pub(crate) fn failing(
        &self,
        side: usize,
        outcome: &load::LoadOutcome,
        why: String,
    ) -> PairError {
        let side = self.arena.sides()[side].name().to_owned();
        let mut errors = outcome.workloads.iter().flat_map(|one| one.counts_total.errors.keys());
        // Connection exceptions, and operator intervention that ends a session.
        match errors.any(|state| state.starts_with("08") || state.starts_with("57P0")) {
            true => PairError::Died { side, why },
            false => PairError::Failing { side, why },
        }
    }

    /// Loads one side, and returns its first message as well.
    pub(crate) fn load_alone(
        &self,
        side: usize,
        plan: &LoadPlan,
    ) -> Result<(load::LoadOutcome, Option<String>), PairError> {
        let load = PreparedLoad::new(plan, Instant::now(), Vec::new());
        let measured = load.run(LaneFleet::Threads, self.control, &mut []);
        if self.control.urgency() != StopUrgency::None {
            return Err(PairError::Interrupted { doing: "loading the servers" });
        }
        let side = self.arena.sides()[side].name().to_owned();
        let measured =
            measured.map_err(|source| PairError::Load { side, source: Box::new(source) })?;
        Ok((measured.outcome, measured.messages.first.into_iter().next()))
    }

    /// From one restart to the next, where an octet takes `octet_s` and `between_s` passes before each segment.
    pub(crate) fn segment_s(&self, octet_s: f64, between_s: f64) -> f64 {
        match self.segment {
            Some(asked) => asked.as_secs_f64().max(octet_s),
            None => schedule::segment_s(self.max_time.as_secs_f64(), octet_s, between_s),
        }
    }

    /// About how long so many pairs take, in seconds.
    pub(crate) fn pairs_s(&self, shape: BlockShape, pairs: usize) -> f64 {
        let octet_s = shape.octet_s();
        let segment_s = self.segment_s(octet_s, RESTART_S);
        let octets = (pairs as f64 / shape.pairs() as f64).ceil();
        let restarts =
            if self.arena.renewal().restarts() { octets * octet_s / segment_s } else { 0.0 };
        octets * octet_s + restarts.ceil() * RESTART_S
    }

    /// About how long it takes until a figure has an interval here, in seconds.
    pub(crate) fn needs_s(&self, metric: ComparedMetric, shape: BlockShape) -> f64 {
        let octet_s = shape.octet_s();
        let segment_s = self.segment_s(octet_s, RESTART_S);
        let with_restart_s = segment_s + RESTART_S;
        let pilot_s = pilots_s(self.max_time, None);
        let intervals = OBSERVATIONS_MIN as f64 * with_restart_s;
        let transactions = match metric.quantile() {
            Some(_) => figure::transactions_min(metric) as f64,
            None => 0.0,
        };
        // Each side is observed in its own blocks of an octet, and these begin transactions for a part
        // of their length.
        let each_s = shape.pairs() as f64
            * if shape.turn.is_some() { octet_s / 4.0 } else { shape.active_s() };
        let observed = each_s / octet_s * segment_s / with_restart_s;
        pilot_s + intervals.max(transactions / (shape.tps * observed).max(1e-9))
    }

    pub(crate) fn plan(&self, workloads: Vec<ClientGroup>, interval_ms: u64) -> LoadPlan {
        LoadPlan {
            lanes: self.lanes,
            seed: self.seed,
            drain_ms: Some(10_000),
            interval_ms,
            work: WorkRecord::Tags,
            ..LoadPlan::new(workloads, LoadLimit::Transactions(1))
        }
    }
}
