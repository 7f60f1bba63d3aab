//! From two sides that stand with their data to what they have shown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use load::{ClientGroup, LoadControl};
use record::RatioSeries;
use record::comparison::{
    ComparedMetric, ComparisonStop, NoiseFloor, PairResults, ServerDifference, WorkComparison,
};

use crate::pair::answer::StoppingRule;
use crate::pair::contest::{CONFIDENCE, ComparedPair, ComparedSide, PairContest};
use crate::pair::crash::CrashWatch;
use crate::pair::error::PairError;
use crate::pair::event::PairEvent;
use crate::pair::pilot::BlockShape;
use crate::pair::rows::fetch_rows;
use crate::pair::work::ScriptRehearsal;
use crate::pair::{plans, presets, reach};

/// What two sides have shown that were loaded in turn.
#[derive(Debug, Default)]
pub struct PairMeasurement {
    /// The figures and what they rest on.
    pub shown: PairResults,
    /// The series from which the ratios of throughput and latency are computed.
    pub series: Vec<RatioSeries>,
    /// The crashes of servers, in sentences.
    pub crashes: Vec<String>,
    /// The side whose client failed, and the reason.
    pub lost: Option<String>,
    /// The figures that decided, at least one.
    pub decides: Vec<ComparedMetric>,
    /// Defaults and build options of the servers that differ without being asked for.
    pub differences: Vec<ServerDifference>,
    /// The goals that were out of reach, and what would reach them.
    pub notes: Vec<String>,
}

/// What is asked of two sides that are loaded in turn.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// The workloads of A, which run together, then those of B, as many. A rate is that of the blocks in
    /// which a side has its turn.
    pub workloads: [Vec<ClientGroup>; 2],
    /// Threads of the generator.
    pub lanes: u32,
    /// The seed of the order of blocks and of the keys.
    pub seed: u64,
    /// The known difference between identical servers on this machine.
    pub floor: NoiseFloor,
    /// The rule for stopping. Without a figure that decides, the usual ones do.
    pub rule: StoppingRule,
    /// Who judges the figures.
    pub judge: PairJudge,
    /// Both sides hold the same rows when measuring begins: only then can what their statements do be compared.
    pub has_same_rows: bool,
    /// The length of a block in milliseconds; found by pilot loads where none is given.
    pub block_ms: Option<u64>,
    /// From one restart to the next; as is usual without it.
    pub segment: Option<Duration>,
    /// Sample where the servers' CPU time goes, during the first segment.
    pub has_profile: bool,
    /// The sides that are sampled, so that their slow transactions are attributed to causes.
    pub tail: [bool; 2],
    /// The share of production's time that each script has there, by its name.
    pub time_shares: BTreeMap<String, f64>,
    /// Measure for so long at most, the pilot included.
    pub max_time: Duration,
}

/// Who judges the figures of two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairJudge {
    /// The measurement itself, which explains differences by plans and presets.
    Comparison {
        /// The confidence of the figures that decide, together.
        confidence: f64,
        /// A figure that decides stays although its interval is out of reach in the time: the user has named it.
        keeps_figures: bool,
    },
    /// The verdicts of a study, which are corrected for several claims when they are made.
    Study,
}

/// Loads two sides in turn until the answer is as precise as was asked for. What was measured before an
/// interruption, or before a client failed, is an answer.
///
/// # Errors
/// If a side cannot be loaded, or ends before it has shown anything.
pub fn measure_pair(
    arena: &mut dyn ComparedPair,
    plan: PairPlan,
    control: &LoadControl,
    observe: &mut dyn FnMut(PairEvent<'_>),
) -> Result<PairMeasurement, PairError> {
    // The clients of both sides keep their connections.
    let _ = lab::machine::raise_nofile();
    let PairPlan {
        mut workloads, lanes, seed, floor, mut rule, has_profile, tail, max_time, ..
    } = plan;
    // A search for a commit asks for one figure, and verdicts of a study for none of a script.
    let has_statements = plan.judge != PairJudge::Study && rule.until.is_none();
    let names = arena.sides().map(ComparedSide::name);
    let excluded = fetch_rows(&mut workloads, names, has_statements, control)?;
    if rule.deciding.is_empty() {
        rule.deciding = ComparedMetric::deciding(asked_rate(&workloads[0])).to_vec();
    }
    let precision = rule.precision;
    let mut contest = PairContest {
        segment: plan.segment,
        arena,
        workloads,
        floor,
        lanes,
        seed,
        rule,
        deciding: CONFIDENCE,
        has_profile,
        tail,
        max_time,
        control,
        has_statements,
        excluded,
        time_shares: plan.time_shares,
        rehearsal: ScriptRehearsal::default(),
        work: WorkComparison::default(),
        written: [Vec::new(), Vec::new()],
    };
    let watched = CrashWatch::begin(contest.arena.sides());
    let began = Instant::now();
    observe(PairEvent::Pilot { precision, max_time });
    let is_same = contest.check_scripts()?;
    match plan.has_same_rows {
        true => contest.rehearse(is_same)?,
        false => contest.work.not_judged.push(
            "trials before the pairs have changed the rows of both sides: what their statements did is not compared"
                .to_owned(),
        ),
    }
    let shape = contest.find_shape(plan.block_ms)?;
    let mut notes = Vec::new();
    if let PairJudge::Comparison { confidence, keeps_figures } = plan.judge {
        notes = reach::settle(&mut contest, shape, keeps_figures);
        // They hold together (Bonferroni).
        contest.deciding = 1.0 - (1.0 - confidence) / contest.rule.deciding.len() as f64;
    }
    let begun = contest.begun(shape);
    let forty_pairs_s = contest.pairs_s(shape, 40);
    observe(PairEvent::Planned { begun: &begun, forty_pairs_s, notes: &notes });
    let mut measured = contest.measure(&watched, shape, began, observe)?;
    let shown = &mut measured.shown;
    if let Some(given) = plan.block_ms.filter(|given| *given != shape.length_ms) {
        let length_ms = shape.length_ms;
        let doubt =
            format!("transactions are too long for blocks of {given} ms: they are {length_ms} ms");
        shown.doubts.insert(0, doubt);
    }
    if plan.judge == PairJudge::Study {
        return Ok(measured);
    }
    shown.doubts.extend(measured.crashes.iter().cloned());
    let mut differences = Vec::new();
    if shown.stop != ComparisonStop::Died {
        let sides = contest.arena.sides();
        shown.plans = plans::compare(sides, &contest.workloads, seed);
        contest.add_reasons(&mut shown.statements);
        let unasked = presets::unasked(sides);
        shown.doubts.extend(unasked.doubts);
        differences = unasked.differences;
    }
    Ok(PairMeasurement { differences, notes, ..measured })
}

/// The transactions a second that workloads are asked for together; none where a client begins one as soon
/// as the one before has ended.
#[must_use]
pub fn asked_rate(workloads: &[ClientGroup]) -> Option<f64> {
    workloads.iter().map(|workload| workload.pace.rate()).sum()
}

impl PairContest<'_> {
    /// What is known when the shape of blocks is.
    pub(crate) fn begun(&self, shape: BlockShape) -> PairResults {
        PairResults {
            clients: self.workloads[0].iter().map(|workload| workload.clients).sum(),
            seed: self.seed,
            block_ms: shape.length_ms,
            rest_ms: shape.rest_ms,
            turn: shape.turn,
            work: self.work.clone(),
            ..PairResults::default()
        }
    }
}
