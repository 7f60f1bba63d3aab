//! From two sides that stand with their data to what they have shown.

use std::time::Instant;

use load::{Control, Workload};
use record::Series;
use record::comparison::{Metric, ServerDifference, Shown, Stop};

use crate::answer::StoppingRule;
use crate::common::ComparisonOptions;
use crate::contest::{CONFIDENCE, ComparedPair, Contest};
use crate::crash::CrashWatch;
use crate::error::Error;
use crate::event::Event;
use crate::pilot::BlockShape;
use crate::{plans, presets, reach};

/// What two sides have shown that were loaded in turn.
#[derive(Debug, Default)]
pub struct PairMeasurement {
    /// The figures and what they rest on.
    pub shown: Shown,
    /// The series from which the ratios of throughput and latency are computed.
    pub series: Vec<Series>,
    /// The crashes of servers, in sentences.
    pub crashes: Vec<String>,
    /// The side whose client failed, and the reason.
    pub lost: Option<String>,
    /// The figures that decided, at least one.
    pub decides: Vec<Metric>,
    /// Defaults and build options of the servers that differ without being asked for.
    pub differences: Vec<ServerDifference>,
    /// The goals that were out of reach, and what would reach them.
    pub notes: Vec<String>,
}

/// Loads two sides in turn by `lanes` threads until the answer is as precise as was asked for. What
/// was measured before an interruption, or before a client failed, is an answer.
pub fn measure(
    arena: &mut dyn ComparedPair,
    workloads: [Vec<Workload>; 2],
    lanes: u32,
    common: &ComparisonOptions,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<PairMeasurement, Error> {
    // The clients of both sides keep their connections.
    let _ = lab::machine::raise_nofile();
    let ComparisonOptions { precision, threshold, by_threshold, .. } = *common;
    let deciding = match common.decides.is_empty() {
        true => Metric::deciding(rate(&workloads[0])).to_vec(),
        false => common.decides.clone(),
    };
    let mut contest = Contest {
        arena,
        workloads,
        floor: common.floor.clone(),
        lanes,
        seed: common.seed,
        rule: StoppingRule {
            deciding,
            precision,
            threshold,
            by_threshold,
            until: common.until,
            claims: Vec::new(),
        },
        deciding: CONFIDENCE,
        has_profile: common.has_profile,
        tail: common.tail,
        max_time: common.max_time,
        control,
    };
    let watched = CrashWatch::begin(contest.arena.sides());
    let began = Instant::now();
    observe(Event::Pilot { precision, max_time: common.max_time });
    let shape = contest.find_shape(None)?;
    let notes = reach::settle(&mut contest, shape, common);
    // They hold together (Bonferroni).
    contest.deciding = 1.0 - (1.0 - common.confidence) / contest.rule.deciding.len() as f64;
    observe(Event::Planned {
        blocks: contest.begun(shape).blocks(),
        forty_pairs_s: contest.pairs_s(shape, 40),
        notes: &notes,
    });
    let mut measured = contest.measure(&watched, shape, began, observe)?;
    let shown = &mut measured.shown;
    shown.doubts.extend(measured.crashes.iter().cloned());
    let mut differences = Vec::new();
    if shown.stop != Stop::Died {
        let sides = contest.arena.sides();
        shown.plans = plans::compare(sides, &contest.workloads, common.seed);
        let unasked = presets::unasked(sides);
        shown.doubts.extend(unasked.doubts);
        differences = unasked.differences;
    }
    Ok(PairMeasurement { differences, notes, ..measured })
}

/// The transactions a second that workloads are asked for together; none where a client begins one as soon
/// as the one before has ended.
#[must_use]
pub fn rate(workloads: &[Workload]) -> Option<f64> {
    workloads.iter().map(|workload| workload.pace.rate()).sum()
}

impl Contest<'_> {
    /// What is known when the shape of blocks is.
    #[must_use]
    pub fn begun(&self, shape: BlockShape) -> Shown {
        Shown {
            clients: self.workloads[0].iter().map(|workload| workload.clients).sum(),
            seed: self.seed,
            block_ms: shape.length_ms,
            rest_ms: shape.rest_ms,
            turn: shape.turn,
            ..Shown::default()
        }
    }
}
