//! A contest: two sides, what is found of them, and the pilot loads that find a length of a block
//! that fits both.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use load::{Control, Limit, Plan, Urgency, WarmUp, Workload};
use record::comparison::{Background, Floor, Instances, Look, OCTET_PAIRS, Profile, Renewal, Wait};
use record::{Conditions, Series};
use server::Client;

use crate::answer::Rule;
use crate::error::Error;
use crate::figure::Figure;
use crate::observation::Segment;
use crate::pilot::{self, SLICE_MS, Shape};

/// The servers of a side, as far as a contest has to do with them.
pub trait Ground: Sync {
    /// What the side is called in messages.
    fn name(&self) -> &str;

    /// A connection for administration to the server that has the data.
    ///
    /// # Errors
    /// If it cannot be made.
    fn connect(&self) -> Result<Client, Error>;

    /// The postmasters of its servers that run on this machine.
    fn pids(&self) -> Vec<u32>;

    /// The logs of its servers, as far as they are the rig's.
    fn logs(&self) -> String;

    /// Does what would otherwise happen inside a block: vacuum, a checkpoint.
    ///
    /// # Errors
    /// If a statement fails.
    fn tidy(&self) -> Result<(), Error>;
}

/// What both sides stand on.
pub trait Arena {
    /// A's servers, then B's.
    fn sides(&self) -> [&dyn Ground; 2];

    /// What [`Arena::renew`] does.
    fn renewal(&self) -> Renewal;

    /// Makes new instances of both sides' servers, as [`Arena::renewal`] says. `is_exchanged` says
    /// whether B is to have the files that were A's in the beginning, where sides exchange them.
    ///
    /// # Errors
    /// If a server does not stop or start.
    fn renew(&mut self, is_exchanged: bool) -> Result<(), Error>;
}

/// Two sides, and when to stop.
pub struct Contest<'a> {
    /// Their servers.
    pub arena: &'a mut dyn Arena,
    /// The load of A, then of B. A rate is that of the blocks in which a side has its turn.
    pub workloads: [Workload; 2],
    /// What is known of identical servers on this machine.
    pub floor: Floor,
    /// Threads of the generator.
    pub lanes: u32,
    /// Of the order of blocks and of the keys.
    pub seed: u64,
    /// When an interval is narrow enough.
    pub rule: Rule,
    /// The confidence of each figure that decides ([`Rule::deciding`]); of the others it is
    /// [`CONFIDENCE`].
    pub deciding: f64,
    /// Sample where the servers' CPU time goes, during the first segment.
    pub has_profile: bool,
    /// Measure for so long at most, the pilot included.
    pub max_time: Duration,
    /// Interrupts it.
    pub control: &'a Control,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Contested {
    /// What was measured from one restart to the next, warm-up left out.
    pub segments: Vec<Segment>,
    /// What all segments together give.
    pub figures: Vec<Figure>,
    /// What they gave after each segment.
    pub looks: Vec<Look>,
    /// How the servers' instances differ.
    pub instances: Instances,
    /// What the servers of each side did besides the load.
    pub background: [Background; 2],
    /// What the clients waited for.
    pub waits: Vec<Wait>,
    /// What the ratios of throughput and latency are computed from.
    pub series: Vec<Series>,
    /// What was seen of machine and generator.
    pub conditions: Conditions,
    /// Where the servers' CPU time went, where that was asked for.
    pub profile: Option<Profile>,
    /// What stands against the figures, in sentences.
    pub doubts: Vec<String>,
    /// Whose client failed, and why.
    pub lost: Option<String>,
}

/// How far a contest is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Pairs of neighbouring blocks so far.
    pub pairs: usize,
    /// What they give.
    pub figures: &'a [Figure],
    /// The ratios so far, the last segment's included.
    pub looks: &'a [Look],
    /// How the servers' instances differ.
    pub instances: &'a Instances,
    /// Since measuring began.
    pub seconds: f64,
}

impl Contested {
    /// Pairs of neighbouring blocks.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.segments.iter().map(|segment| segment.octets).sum::<usize>() * OCTET_PAIRS
    }
}

/// The confidence of an interval, or of several together.
pub const CONFIDENCE: f64 = 0.95;

/// How long the pilot loads each side: this share of the time that a contest may take, within
/// bounds. Below the lower one it could not judge any length of a block.
const PILOT_SHARE: f64 = 0.05;
const PILOT_MS: RangeInclusive<u64> = 4_000..=12_000;

/// How long it loads each side where only the rest of a block is to be found.
const REST_PILOT_MS: u64 = 1_000;

/// At the start of each pilot, and of each segment: caches fill, connections warm up.
pub(crate) const WARM_MS: u64 = 2_000;

impl Contest<'_> {
    /// Loads each side alone, and chooses a length of a block that fits both. Both are loaded for
    /// the same time, so that neither begins with warmer caches. A given length is taken unless
    /// transactions are too long for it; then it is the next candidate that they fit.
    ///
    /// # Errors
    /// If a side cannot be loaded, or its transactions are too long for blocks.
    pub fn find_shape(&self, length_ms: Option<u64>) -> Result<Shape, Error> {
        let (a, b) = (self.shape_for(0, length_ms)?, self.shape_for(1, length_ms)?);
        Ok(Shape { length_ms: a.length_ms.max(b.length_ms), rest_ms: a.rest_ms.max(b.rest_ms) })
    }

    /// The length of a block that fits one side.
    fn shape_for(&self, side: usize, length_ms: Option<u64>) -> Result<Shape, Error> {
        let (name, workload) = (self.arena.sides()[side].name(), &self.workloads[side]);
        let share_ms = (self.max_time.as_secs_f64() * 1e3 * PILOT_SHARE) as u64;
        let window_ms = match length_ms {
            Some(_) => REST_PILOT_MS,
            None => share_ms.clamp(*PILOT_MS.start(), *PILOT_MS.end()),
        };
        let mut plan = self.plan(vec![workload.clone()], SLICE_MS);
        plan.limit = Limit::Time { warm_up: WarmUp::Fixed(WARM_MS), window_ms };
        let mut first = None;
        let outcome = load::run(&plan, self.control, Instant::now(), &mut |event| {
            if let load::Event::Message(message) = event {
                first.get_or_insert(message.text);
            }
        });
        if self.control.urgency() != Urgency::None {
            return Err(Error::Interrupted { doing: "looking for the length of a block" });
        }
        let outcome = outcome
            .map_err(|source| Error::Load { side: name.to_owned(), source: Box::new(source) })?;
        let result = &outcome.workloads[0];
        // How long transactions wait for a client is no property of blocks.
        let took = match workload.pace.rate() {
            Some(_) => &result.service,
            None => &result.latency,
        };
        let Some(mean_ns) = took.mean_ns() else {
            let silent = || format!("it gave no answer in {} s", window_ms / 1_000);
            let (side, why) = (name.to_owned(), first.unwrap_or_else(silent));
            return Err(Error::Failing { side, why });
        };
        let open = outcome.window.map_or(0, |window| window.open.0);
        let slices = outcome.intervals.iter().filter(|slice| slice.start.0 >= open);
        let slices: Vec<u64> = slices.map(|slice| slice.counts.transactions).collect();
        let mean_s = mean_ns / 1e9;
        let shape = match length_ms {
            None => pilot::shape(&slices, mean_s, &pilot::LENGTHS_MS),
            Some(given) => pilot::at_least(given)
                .find_map(|length_ms| pilot::shape(&slices, mean_s, &[length_ms])),
        };
        let longest_ms = pilot::at_least(length_ms.unwrap_or(0)).max().unwrap_or(0);
        shape.ok_or(Error::TooSlow { seconds: mean_s, block_s: longest_ms as f64 / 1e3 })
    }

    pub(crate) fn plan(&self, workloads: Vec<Workload>, interval_ms: u64) -> Plan {
        Plan {
            lanes: self.lanes,
            seed: self.seed,
            drain_ms: Some(10_000),
            interval_ms,
            ..Plan::new(workloads, Limit::Transactions(1))
        }
    }
}
