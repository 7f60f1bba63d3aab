//! From two sides that stand with their data to a comparison.

use std::time::Instant;

use load::{Control, Urgency, Workload};
use record::comparison::{DataOrigin, FORMAT, Metric, Point, Shown, Side, Stop};
use record::{Comparison, Fact, Series};

use crate::answer::{self, Rule};
use crate::common::Common;
use crate::contest::{Arena, CONFIDENCE, Contest, Contested, Told};
use crate::crash::Watched;
use crate::error::Error;
use crate::event::Event;
use crate::pilot::Shape;
use crate::{plans, presets, reach};

/// The description of the sides for a record.
#[derive(Clone, Debug)]
pub struct Subject {
    /// A, then B.
    pub sides: [Side; 2],
    /// The origin of the data of both sides.
    pub data: DataOrigin,
    /// The point of a study whose load it is; none where pgbench's options say what the load is.
    pub point: Option<Point>,
    /// pgbench's options; empty with a study.
    pub workload: String,
    /// The settings that pgrig gave both servers by itself.
    pub set: Vec<(String, String)>,
    /// The machine that the load comes from.
    pub facts: Vec<Fact>,
}

/// Loads two sides in turn by `lanes` threads until the answer is as precise as was asked for. What
/// was measured before an interruption, or before a client failed, is an answer.
pub fn measure(
    subject: Subject,
    arena: &mut dyn Arena,
    workloads: [Vec<Workload>; 2],
    lanes: u32,
    common: &Common,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    // The clients of both sides keep their connections.
    let _ = lab::machine::raise_nofile();
    let Common { precision, threshold, by_threshold, .. } = *common;
    let rate = workloads[0].iter().map(|workload| workload.pace.rate()).sum::<Option<f64>>();
    let deciding = match common.decides.is_empty() {
        true => Metric::deciding(rate).to_vec(),
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
        has_tail: common.has_tail,
        max_time: common.max_time,
        control,
    };
    let watched = Watched::begin(contest.arena.sides());
    let began = Instant::now();
    observe(Event::Pilot { precision, max_time: common.max_time });
    let shape = contest.find_shape(None)?;
    let mut found = blank(subject, rate, contest.begun(shape), common);
    found.notes = reach::settle(&mut contest, shape, common);
    // They hold together (Bonferroni).
    contest.deciding = 1.0 - (1.0 - common.confidence) / contest.rule.deciding.len() as f64;
    found.decides.clone_from(&contest.rule.deciding);
    observe(Event::Planned {
        blocks: found.shown.blocks(),
        forty_pairs_s: contest.pairs_s(shape, 40),
        notes: &found.notes,
    });
    let rule = contest.rule.clone();
    let over = contest.measure(&watched, shape, began, &mut |told| {
        let progress = match told {
            Told::Progress(progress) => progress,
            Told::Short(note) => return observe(Event::Short(note)),
        };
        let so_far = &mut found.shown;
        so_far.looks.extend(progress.looks.last().cloned());
        (so_far.pairs, so_far.seconds) = (progress.pairs, progress.seconds);
        so_far.figures = rule.judged(progress.figures, progress.instances);
        so_far.instances.clone_from(progress.instances);
        found.answer = answer::answer(&found);
        observe(Event::Progress(&found));
    })?;
    found.shown = over.shown;
    found.shown.doubts.extend(over.crashes);
    if found.shown.stop != Stop::Died {
        let sides = contest.arena.sides();
        found.shown.plans = plans::compare(sides, &contest.workloads, common.seed);
        found.shown.doubts.extend(presets::doubts(sides));
    }
    found.answer = answer::answer(&found);
    Ok(found)
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
        let figures = self.rule.judged(&figures, &instances).into_iter();
        let shown = Shown {
            pairs,
            seconds,
            stop,
            figures: figures.map(|figure| figure.under(&conditions)).collect(),
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

/// A comparison of which nothing is measured yet.
fn blank(subject: Subject, rate: Option<f64>, shown: Shown, common: &Common) -> Comparison {
    let Subject { sides: [a, b], data, point, workload, set, facts } = subject;
    Comparison {
        format: FORMAT,
        pgrig: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: common.started_at.clone(),
        command: common.command.clone(),
        commit: common.commit.clone(),
        name: common.name.clone(),
        workload,
        set,
        decides: Vec::new(),
        notes: Vec::new(),
        answer: String::new(),
        a,
        b,
        point,
        is_self: common.is_self,
        data,
        rate,
        threshold: common.threshold,
        confidence: common.confidence,
        facts,
        shown,
    }
}
