//! From two sides that stand with their data to a comparison.

use std::time::Instant;

use lab::machine::Machine;
use load::{Control, Urgency, Workload};
use record::comparison::{DataOrigin, FORMAT, Figure, Instances, Metric, Point, Side, Stop};
use record::{Comparison, Fact};

use crate::answer::{self, Rule};
use crate::common::Common;
use crate::contest::{Arena, CONFIDENCE, Contest, Contested, Told};
use crate::crash::Watched;
use crate::error::Error;
use crate::event::Event;
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
    /// Clients of each side.
    pub clients: u32,
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
    let mut found = blank(subject, rate, common);
    (found.block_ms, found.rest_ms, found.turn) = (shape.length_ms, shape.rest_ms, shape.turn);
    found.notes = reach::settle(&mut contest, shape, common);
    // They hold together (Bonferroni).
    contest.deciding = 1.0 - (1.0 - common.confidence) / contest.rule.deciding.len() as f64;
    let deciding = contest.rule.deciding.clone();
    found.decides.clone_from(&deciding);
    observe(Event::Planned {
        blocks: found.blocks(),
        forty_pairs_s: contest.pairs_s(shape, 40),
        notes: &found.notes,
    });
    let judged = |figures: &[crate::Figure], instances: &Instances| -> Vec<Figure> {
        figures.iter().map(|figure| figure.judged(threshold, &deciding, instances)).collect()
    };
    let (contested, stop) = contest.run(shape, began, &mut |told| {
        let progress = match told {
            Told::Progress(progress) => progress,
            Told::Short(note) => return observe(Event::Short(note)),
        };
        found.looks.extend(progress.looks.last().cloned());
        (found.pairs, found.seconds) = (progress.pairs, progress.seconds);
        found.figures = judged(progress.figures, progress.instances);
        found.instances.clone_from(progress.instances);
        found.answer = answer::answer(&found);
        observe(Event::Progress(&found));
    })?;
    found.seconds = began.elapsed().as_secs_f64();
    // Servers that end because the user has asked for it did not die.
    let is_interrupted = stop == Stop::Died && control.urgency() != Urgency::None;
    found.stop = if is_interrupted { Stop::Interrupted } else { stop };
    let crashes = if is_interrupted { Vec::new() } else { watched.end(contest.arena.sides()) };
    if !crashes.is_empty() && found.stop != Stop::Interrupted {
        found.stop = Stop::Died;
    }
    found.pairs = contested.pairs();
    let Contested { background, waits, profile, doubts, looks, instances, .. } = contested;
    let conditions = contested.conditions;
    found.identical = contested.identical;
    (found.background, found.profile, found.conditions) = (background, profile, conditions);
    let figures = judged(&contested.figures, &instances).into_iter();
    found.figures = figures.map(|figure| figure.under(&conditions)).collect();
    found.instances = instances;
    (found.waits, found.doubts, found.looks) = (waits, doubts, looks);
    found.tails = contested.tails;
    found.doubts.extend(crashes);
    if found.stop != Stop::Died {
        found.plans = plans::compare(contest.arena.sides(), &contest.workloads, common.seed);
        found.doubts.extend(presets::doubts(contest.arena.sides()));
    }
    found.answer = answer::answer(&found);
    Ok(found)
}

/// A comparison of which nothing is measured yet.
fn blank(subject: Subject, rate: Option<f64>, common: &Common) -> Comparison {
    let Subject { sides: [a, b], data, point, workload, set, clients } = subject;
    Comparison {
        format: FORMAT,
        pgrig: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: common.started_at.clone(),
        command: common.command.clone(),
        commit: common.commit.clone(),
        name: common.name.clone(),
        workload,
        set,
        turn: None,
        decides: Vec::new(),
        identical: None,
        notes: Vec::new(),
        answer: String::new(),
        a,
        b,
        point,
        is_self: common.is_self,
        data,
        clients,
        rate,
        block_ms: 0,
        rest_ms: 0,
        pairs: 0,
        seconds: 0.0,
        threshold: common.threshold,
        confidence: common.confidence,
        seed: common.seed,
        stop: Stop::Running,
        figures: Vec::new(),
        instances: Instances::default(),
        background: Default::default(),
        waits: Vec::new(),
        tails: Default::default(),
        plans: Vec::new(),
        profile: None,
        conditions: Default::default(),
        doubts: Vec::new(),
        facts: machine_facts(),
        looks: Vec::new(),
    }
}

/// The machine that the load comes from.
#[must_use]
pub fn machine_facts() -> Vec<Fact> {
    let machine = Machine::here();
    let fact = |group: &str, name: &str, value: String| Fact {
        group: group.to_owned(),
        name: name.to_owned(),
        value,
    };
    let memory = format!("{} MiB", machine.memory.total_bytes >> 20);
    vec![
        fact("machine", "processor", machine.processor()),
        fact("machine", "memory", memory),
        fact("system", "distribution", machine.distribution.clone()),
        fact("system", "kernel", machine.kernel.clone()),
    ]
}
