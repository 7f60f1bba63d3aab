//! From two sides that stand with their data to what they have shown.

use std::time::Instant;

use load::{Control, Urgency, Workload};
use record::Series;
use record::comparison::{Metric, Shown, Stop};

use crate::answer::Rule;
use crate::common::Common;
use crate::contest::{Arena, CONFIDENCE, Contest, Contested, Told};
use crate::crash::Watched;
use crate::error::Error;
use crate::event::Event;
use crate::pilot::Shape;
use crate::{plans, presets, reach};

/// What was found of two sides.
#[derive(Debug)]
pub struct Compared {
    /// What they have shown.
    pub shown: Shown,
    /// The series from which the ratios of throughput and latency are computed.
    pub series: Vec<Series>,
    /// The figures that decided, at least one.
    pub decides: Vec<Metric>,
    /// The goals that were out of reach, and what would reach them.
    pub notes: Vec<String>,
}

/// Loads two sides in turn by `lanes` threads until the answer is as precise as was asked for. What
/// was measured before an interruption, or before a client failed, is an answer.
pub fn measure(
    arena: &mut dyn Arena,
    workloads: [Vec<Workload>; 2],
    lanes: u32,
    common: &Common,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Compared, Error> {
    // The clients of both sides keep their connections.
    let _ = lab::machine::raise_nofile();
    let Common { precision, threshold, by_threshold, .. } = *common;
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
        rule: Rule {
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
    let watched = Watched::begin(contest.arena.sides());
    let began = Instant::now();
    observe(Event::Pilot { precision, max_time: common.max_time });
    let shape = contest.find_shape(None)?;
    let notes = reach::settle(&mut contest, shape, common);
    let decides = contest.rule.deciding.clone();
    // They hold together (Bonferroni).
    contest.deciding = 1.0 - (1.0 - common.confidence) / decides.len() as f64;
    observe(Event::Planned {
        blocks: contest.begun(shape).blocks(),
        forty_pairs_s: contest.pairs_s(shape, 40),
        notes: &notes,
    });
    let over = contest.measure(&watched, shape, began, &mut |told| {
        observe(match told {
            Told::Progress(progress) => Event::Progress(progress),
            Told::Short(note) => Event::Short(note),
        });
    })?;
    let Over { mut shown, series, crashes, .. } = over;
    shown.doubts.extend(crashes);
    if shown.stop != Stop::Died {
        let sides = contest.arena.sides();
        shown.plans = plans::compare(sides, &contest.workloads, common.seed);
        shown.doubts.extend(presets::doubts(sides));
    }
    Ok(Compared { shown, series, decides, notes })
}

/// The transactions a second that workloads are asked for together; none where a client begins one as soon
/// as the one before has ended.
#[must_use]
pub fn rate(workloads: &[Workload]) -> Option<f64> {
    workloads.iter().map(|workload| workload.pace.rate()).sum()
}

/// A contest that is over.
#[derive(Debug)]
pub struct Over {
    /// The figures and what they rest on.
    pub shown: Shown,
    /// The series from which the ratios of throughput and latency are computed.
    pub series: Vec<Series>,
    /// The crashes of servers, in sentences.
    pub crashes: Vec<String>,
    /// The side whose client failed, and the reason.
    pub lost: Option<String>,
}

impl Contest<'_> {
    /// What is known when the shape of blocks is.
    #[must_use]
    pub fn begun(&self, shape: Shape) -> Shown {
        Shown {
            clients: self.workloads[0].iter().map(|workload| workload.clients).sum(),
            seed: self.seed,
            block_ms: shape.length_ms,
            rest_ms: shape.rest_ms,
            turn: shape.turn,
            ..Shown::default()
        }
    }

    /// Loads both sides in turn until the rule or the time ends it. What was measured before an
    /// interruption, a crash or a failure of a client counts.
    pub fn measure(
        &mut self,
        watched: &Watched,
        shape: Shape,
        began: Instant,
        observe: &mut dyn FnMut(Told<'_>),
    ) -> Result<Over, Error> {
        let (contested, mut stop) = self.run(shape, began, observe)?;
        let seconds = began.elapsed().as_secs_f64();
        // Servers that end because the user has asked for it did not die.
        if stop == Stop::Died && self.control.urgency() != Urgency::None {
            stop = Stop::Interrupted;
        }
        let crashes = match stop {
            Stop::Interrupted => Vec::new(),
            _ => watched.end(self.arena.sides()),
        };
        if !crashes.is_empty() {
            stop = Stop::Died;
        }
        let pairs = contested.pairs();
        let Contested { figures, instances, conditions, identical, background, .. } = contested;
        let threshold = self.rule.threshold;
        let figures = self.rule.judged(&figures, &instances).into_iter();
        let shown = Shown {
            pairs,
            seconds,
            stop,
            figures: figures.map(|figure| figure.under(&conditions, threshold)).collect(),
            identical,
            instances,
            background,
            waits: contested.waits,
            tails: contested.tails,
            profile: contested.profile,
            conditions,
            doubts: contested.doubts,
            looks: contested.looks,
            ..self.begun(shape)
        };
        Ok(Over { shown, series: contested.series, crashes, lost: contested.lost })
    }
}
