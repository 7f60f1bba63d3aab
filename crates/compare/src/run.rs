//! A comparison, from two servers to an answer.

use std::time::Instant;

use lab::machine::Machine;
use load::{Control, Workload};
use record::Fact;
use record::comparison::{Comparison, DataOrigin, FORMAT, Metric, Stop};

use crate::answer::{self, Rule};
use crate::contest::{CONFIDENCE, Contest, Contested, Corner, Ground};
use crate::error::Error;
use crate::figure::Figure;
use crate::profile::Profiler;
use crate::request::Request;
use crate::side::{Data, Side};
use crate::{build, outside, plans};

/// What happens while a comparison runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// The servers are being built, or servers of the user's are given data.
    Building {
        /// They are the user's.
        is_outside: bool,
    },
    /// They run.
    Built {
        /// PostgreSQL of A and of B.
        versions: [&'a str; 2],
        /// How the data of both came to be the same.
        data: DataOrigin,
        /// How long it took.
        seconds: f64,
    },
    /// A short load finds the length of a block.
    Pilot,
    /// There is more to say: the comparison as it would be if it ended now.
    Progress(&'a Comparison),
}

/// Compares the sides. What was measured before an interruption, or before a side stopped
/// answering, is an answer.
///
/// # Errors
/// [`Error`], when nothing can be said.
pub fn compare(
    request: &Request,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    request.check()?;
    if request.has_profile {
        Profiler::check()?;
    }
    let began = Instant::now();
    observe(Event::Building { is_outside: request.is_outside() });
    let (sides, data) = match request.is_outside() {
        true => outside::open(request, control)?,
        false => build::build(request, control)?,
    };
    let scale = scale(request, &sides[0]);
    observe(Event::Built {
        versions: [&sides[0].version, &sides[1].version],
        data,
        seconds: began.elapsed().as_secs_f64(),
    });
    let began = Instant::now();
    observe(Event::Pilot);
    let contest = contest(request, &sides, scale, control);
    let shape = contest.find_shape(None)?;
    let mut found = blank(request, &sides, data);
    (found.block_ms, found.rest_ms) = (shape.length_ms, shape.rest_ms);
    let (contested, stop) = contest.run(shape, began, &mut |progress| {
        found.looks.extend(progress.looks.last().cloned());
        (found.pairs, found.seconds) = (progress.pairs, progress.seconds);
        found.figures = judged(progress.figures, request);
        found.answer = answer::answer(&found);
        observe(Event::Progress(&found));
    })?;
    found.seconds = began.elapsed().as_secs_f64();
    found.stop = stop;
    found.pairs = contested.pairs();
    let Contested { figures, waits, profile, doubts, looks, .. } = contested;
    found.profile = profile;
    found.figures = judged(&figures, request);
    (found.waits, found.doubts, found.looks) = (waits, doubts, looks);
    if stop != Stop::Died {
        found.plans = plans::compare(request, &sides, scale);
    }
    found.answer = answer::answer(&found);
    Ok(found)
}

/// A comparison of which nothing is measured yet.
fn blank(request: &Request, sides: &[Side; 2], data: DataOrigin) -> Comparison {
    let [a, b] = [0, 1].map(|index| sides[index].facts(&request.sides[index]));
    Comparison {
        format: FORMAT,
        pgrig: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: request.started_at.clone(),
        command: request.command.clone(),
        commit: request.commit.clone(),
        answer: String::new(),
        a,
        b,
        is_self: request.is_self,
        data,
        clients: request.workload.clients,
        block_ms: 0,
        rest_ms: 0,
        pairs: 0,
        seconds: 0.0,
        threshold: request.threshold,
        confidence: CONFIDENCE,
        seed: request.seed,
        stop: Stop::Running,
        figures: Vec::new(),
        waits: Vec::new(),
        plans: Vec::new(),
        profile: None,
        doubts: Vec::new(),
        facts: facts(&Machine::here()),
        looks: Vec::new(),
    }
}

fn judged(figures: &[Figure], request: &Request) -> Vec<record::comparison::Figure> {
    figures.iter().map(|figure| figure.judged(request.threshold)).collect()
}

fn contest<'a>(
    request: &Request,
    sides: &'a [Side; 2],
    scale: i64,
    control: &'a Control,
) -> Contest<'a> {
    let Request { precision, threshold, by_threshold, .. } = *request;
    Contest {
        sides: sides.each_ref().map(|side| Corner {
            ground: side as &dyn Ground,
            workload: workload(request, side, scale),
        }),
        lanes: request.workload.lanes,
        seed: request.seed,
        rule: Rule { precision, threshold, by_threshold },
        // They hold together (Bonferroni).
        deciding: 1.0 - (1.0 - CONFIDENCE) / Metric::DECIDING.len() as f64,
        has_profile: request.has_profile,
        max_time: request.max_time,
        control,
    }
}

fn workload(request: &Request, side: &Side, scale: i64) -> Workload {
    let mut workload = pgbench::workload(&request.workload, side.conninfo.clone(), scale);
    side.name.clone_into(&mut workload.name);
    workload.session.clone_from(&side.session);
    workload
}

/// The machine that the load came from.
fn facts(machine: &Machine) -> Vec<Fact> {
    let fact = |group: &str, name: &str, value: String| Fact {
        group: group.to_owned(),
        name: name.to_owned(),
        value,
    };
    let memory = format!("{} MiB", machine.memory.total_bytes >> 20);
    vec![
        fact("machine", "processor", format!("{}, {} cores", machine.cpu_model, machine.cores)),
        fact("machine", "memory", memory),
        fact("system", "distribution", machine.distribution.clone()),
        fact("system", "kernel", machine.kernel.clone()),
    ]
}

/// The scale of pgbench's tables, which is a variable of scripts.
fn scale(request: &Request, side: &Side) -> i64 {
    let given = request.workload.scale.map(i64::from);
    let found = || -> Option<i64> {
        let row = side.connect().ok()?.query_one("SELECT count(*) FROM pgbench_branches", &[]);
        Some(row.ok()?.get(0))
    };
    match request.data {
        Data::Pgbench(scale) => i64::from(scale),
        Data::Script(_) => given.unwrap_or(1),
        Data::Found => given.or_else(found).unwrap_or(1),
    }
}
