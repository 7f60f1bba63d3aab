//! A comparison, from two servers to an answer.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use lab::machine::{CpuTime, Machine};
use load::{Blocks, Control, End, Limit, Plan, Urgency, WarmUp, Workload};
use record::Fact;
use record::comparison::{Comparison, DataOrigin, FORMAT, Look, Metric, Stop};

use crate::answer::{self, Rule};
use crate::design::{self, QUAD, SIDES};
use crate::doubts::{self, Conditions};
use crate::error::Error;
use crate::figure::{self, Confidence, Figure};
use crate::meter::Meter;
use crate::observation::Quad;
use crate::pilot::{self, SLICE_MS, Shape};
use crate::request::Request;
use crate::side::{Data, Side};
use crate::waits::Watch;
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
    /// There is more to say.
    Progress {
        /// Pairs so far.
        pairs: usize,
        /// What they give.
        figures: &'a [Figure],
        /// Since measuring began.
        seconds: f64,
    },
}

/// All figures hold together at this level.
const CONFIDENCE: f64 = 0.95;

/// How long the pilot loads each side: this share of the time that a comparison may take, within
/// bounds. Below the lower one it could not judge any length of a block.
const PILOT_SHARE: f64 = 0.1;
const PILOT_MS: RangeInclusive<u64> = 4_000..=12_000;

/// At the start of each pilot, and of each segment: caches fill, connections warm up.
const WARM_MS: u64 = 2_000;

/// Between two checkpoints, which both servers make at the same time while nothing is measured.
const SEGMENT_S: f64 = 60.0;

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
    let (began, cpu) = (Instant::now(), CpuTime::now());
    observe(Event::Pilot);
    let shape = find_shape(request, &sides, scale, control)?;
    let mut run = Run::new(request, &sides, shape, scale, began, control);
    let stop = run.segments(observe)?;
    let seconds = began.elapsed().as_secs_f64();
    run.conditions.steal_share = CpuTime::now().steal_share_since(cpu);
    let machine = Machine::here();
    run.conditions.cores = (!request.is_outside()).then_some(machine.cores);
    let mut doubts = doubts::doubts(&run.quads, &run.conditions);
    doubts.extend(run.lost.take());
    let figures = run.figures.iter().map(|figure| figure.judged(request.threshold));
    let [a, b] = [0, 1].map(|index| sides[index].facts(&request.sides[index]));
    let mut found = Comparison {
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
        block_ms: shape.length_ms,
        rest_ms: shape.rest_ms,
        pairs: run.pairs(),
        seconds,
        threshold: request.threshold,
        confidence: CONFIDENCE,
        seed: request.seed,
        stop,
        figures: figures.collect(),
        waits: run.watch.take().map(Watch::end).unwrap_or_default(),
        plans: match stop {
            Stop::Died => Vec::new(),
            _ => plans::compare(request, &sides, scale),
        },
        doubts,
        facts: facts(&machine),
        looks: std::mem::take(&mut run.looks),
    };
    found.answer = answer::answer(&found);
    Ok(found)
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

/// Loads each side alone, and chooses a length of a block that fits both. Both are loaded for the
/// same time, so that neither begins with warmer caches.
fn find_shape(
    request: &Request,
    sides: &[Side; 2],
    scale: i64,
    control: &Control,
) -> Result<Shape, Error> {
    let a = shape_for(request, sides, 0, scale, control)?;
    let b = shape_for(request, sides, 1, scale, control)?;
    Ok(Shape { length_ms: a.length_ms.max(b.length_ms), rest_ms: a.rest_ms.max(b.rest_ms) })
}

/// The length of a block that fits one side.
fn shape_for(
    request: &Request,
    sides: &[Side; 2],
    index: usize,
    scale: i64,
    control: &Control,
) -> Result<Shape, Error> {
    let name = SIDES[index];
    let share_ms = (request.max_time.as_secs_f64() * 1e3 * PILOT_SHARE) as u64;
    let window_ms = share_ms.clamp(*PILOT_MS.start(), *PILOT_MS.end());
    let mut plan = plan(request, vec![workload(request, &sides[index], scale)], SLICE_MS);
    plan.limit = Limit::Time { warm_up: WarmUp::Fixed(WARM_MS), window_ms };
    let mut first = None;
    let outcome = load::run(&plan, control, Instant::now(), &mut |event| {
        if let load::Event::Message(message) = event {
            first.get_or_insert(message.text);
        }
    });
    let outcome = outcome
        .map_err(|source| Error::Load { side: name.to_owned(), source: Box::new(source) })?;
    if control.urgency() != Urgency::None {
        return Err(Error::Interrupted { doing: "looking for the length of a block" });
    }
    let result = &outcome.workloads[0];
    let Some(mean_ns) = result.latency.mean_ns() else {
        let why = first.unwrap_or_else(|| format!("it gave no answer in {} s", window_ms / 1_000));
        return Err(Error::Failing { side: name, why });
    };
    let open = outcome.window.map_or(0, |window| window.open.0);
    let slices = outcome.intervals.iter().filter(|slice| slice.start.0 >= open);
    let slices: Vec<u64> = slices.map(|slice| slice.counts.transactions).collect();
    let mean_s = mean_ns / 1e9;
    pilot::shape(&slices, mean_s).ok_or(Error::TooSlow { seconds: mean_s })
}

fn workload(request: &Request, side: &Side, scale: i64) -> Workload {
    let mut workload = pgbench::workload(&request.workload, side.conninfo.clone(), scale);
    side.name.clone_into(&mut workload.name);
    workload.session.clone_from(&side.session);
    workload
}

fn plan(request: &Request, workloads: Vec<Workload>, interval_ms: u64) -> Plan {
    Plan {
        lanes: request.workload.lanes,
        seed: request.seed,
        drain_ms: Some(10_000),
        interval_ms,
        ..Plan::new(workloads, Limit::Transactions(1))
    }
}

/// A comparison under way.
struct Run<'a> {
    request: &'a Request,
    sides: &'a [Side; 2],
    shape: Shape,
    scale: i64,
    began: Instant,
    control: &'a Control,
    rule: Rule,
    confidence: Confidence,
    quads: Vec<Quad>,
    figures: Vec<Figure>,
    looks: Vec<Look>,
    conditions: Conditions,
    watch: Option<Watch>,
    /// Which side stopped answering, and why.
    lost: Option<String>,
}

impl<'a> Run<'a> {
    fn new(
        request: &'a Request,
        sides: &'a [Side; 2],
        shape: Shape,
        scale: i64,
        began: Instant,
        control: &'a Control,
    ) -> Self {
        let quad_s = QUAD as f64 * shape.length_ms as f64 / 1e3;
        let quads = request.max_time.as_secs_f64() / quad_s;
        let confidence = Confidence {
            deciding: 1.0 - (1.0 - CONFIDENCE) / Metric::DECIDING.len() as f64,
            other: CONFIDENCE,
            // Narrowest in the second half of the time that there is.
            tuned_for: (quads * 0.6).ceil() as usize,
        };
        let Request { precision, threshold, by_threshold, .. } = *request;
        Run {
            request,
            sides,
            shape,
            scale,
            began,
            control,
            rule: Rule { precision, threshold, by_threshold },
            confidence,
            quads: Vec::new(),
            figures: Vec::new(),
            looks: Vec::new(),
            conditions: Conditions::default(),
            watch: Some(Watch::new(sides, request.seed)),
            lost: None,
        }
    }

    fn pairs(&self) -> usize {
        self.quads.len() * QUAD / 2
    }

    fn left(&self) -> Duration {
        self.request.max_time.saturating_sub(self.began.elapsed())
    }

    fn count_waits(&self, counts: bool) {
        if let Some(watch) = &self.watch {
            watch.count(counts);
        }
    }

    /// Segment after segment, until the rule says that it is enough.
    fn segments(&mut self, observe: &mut dyn FnMut(Event<'_>)) -> Result<Stop, Error> {
        let mut meter = Meter::new(self.sides);
        for number in 0.. {
            if let Err(error) = tidy(self.sides) {
                return self.stopped(error);
            }
            let quad_s = QUAD as f64 * self.shape.length_ms as f64 / 1e3;
            let seconds = self.left().as_secs_f64().min(SEGMENT_S);
            let quads = (seconds / quad_s).floor() as usize;
            if quads < 2 {
                return Ok(Stop::Time);
            }
            let stop = self.segment(number, quads, &mut meter, observe);
            self.count_waits(false);
            match stop {
                Ok(None) => {}
                Ok(Some(stop)) => return Ok(stop),
                Err(error) => return self.stopped(error),
            }
        }
        Ok(Stop::Time)
    }

    /// What was measured until a side stopped answering counts, if there is an interval.
    fn stopped(&mut self, error: Error) -> Result<Stop, Error> {
        if self.figures.iter().all(|figure| figure.ratio.is_none()) {
            return Err(error);
        }
        self.lost = Some(match error {
            Error::Died { side, why } => {
                format!("side {side} stopped answering after {} pairs: {why}", self.pairs())
            }
            error => format!("it ended after {} pairs: {error}", self.pairs()),
        });
        Ok(Stop::Died)
    }

    /// One load of both sides in turn.
    fn segment(
        &mut self,
        number: u64,
        quads: usize,
        meter: &mut Meter,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<Stop>, Error> {
        let warm_quads = (WARM_MS as usize).div_ceil(QUAD * self.shape.length_ms as usize);
        let plan = self.plan(number, quads + warm_quads);
        let own = Control::new();
        let mut blocks = 0;
        let mut quad = Quad::default();
        let mut stop = None;
        let mut first = None;
        let outcome = load::run(&plan, &own, Instant::now(), &mut |event| {
            if self.control.urgency() != Urgency::None && stop.is_none() {
                stop = Some(Stop::Interrupted);
                own.interrupt();
            }
            match event {
                // A client ends: the rest of the segment would compare fewer clients with more.
                load::Event::Message(message) if message.level == load::Level::Error => {
                    first.get_or_insert(message.text);
                    if stop.is_none() {
                        stop = Some(Stop::Died);
                        own.interrupt();
                    }
                }
                load::Event::Interval(cells) if stop.is_none() => {
                    blocks += 1;
                    if blocks <= warm_quads * QUAD {
                        if blocks == warm_quads * QUAD {
                            meter.reset();
                            self.count_waits(true);
                        }
                        return;
                    }
                    quad.add(cells);
                    if blocks % QUAD == 0 {
                        meter.read(&mut quad.sides);
                        self.quads.push(std::mem::take(&mut quad));
                        stop = self.look(observe);
                        if stop.is_some() {
                            own.interrupt();
                        }
                    }
                }
                _ => {}
            }
        });
        let outcome = outcome.map_err(|source| Error::Load {
            side: "A or B".to_owned(),
            source: Box::new(source),
        })?;
        let seen = &mut self.conditions;
        seen.busy_share_max = seen.busy_share_max.max(outcome.generator.busy_share_max);
        let delay = outcome.generator.run_delay_share.unwrap_or(0.0);
        seen.run_delay_share_max = seen.run_delay_share_max.max(delay);
        for (side, result) in self.sides.iter().zip(&outcome.workloads) {
            let why = first.clone().unwrap_or_default();
            let counts = &result.counts_total;
            let is_over = counts.aborted_clients > 0 || outcome.end == End::Completed;
            if counts.transactions == 0 && is_over {
                return Err(Error::Failing { side: side.name, why });
            }
            if counts.aborted_clients > 0 {
                return Err(Error::Died { side: side.name, why });
            }
        }
        Ok(stop)
    }

    fn plan(&self, number: u64, quads: usize) -> Plan {
        let order = design::order(quads, self.request.seed.wrapping_add(number));
        let workloads = self.sides.iter().map(|side| workload(self.request, side, self.scale));
        let mut plan = plan(self.request, workloads.collect(), self.shape.length_ms);
        // Each segment draws keys of its own, the same on both sides.
        plan.seed = self.request.seed.wrapping_add(number);
        let window_ms = order.len() as u64 * self.shape.length_ms;
        plan.limit = Limit::Time { warm_up: WarmUp::Fixed(0), window_ms };
        plan.blocks =
            Some(Blocks { length_ms: self.shape.length_ms, rest_ms: self.shape.rest_ms, order });
        plan
    }

    /// What the quads say, and whether that is enough.
    fn look(&mut self, observe: &mut dyn FnMut(Event<'_>)) -> Option<Stop> {
        let active_s = 2.0 * (self.shape.length_ms - self.shape.rest_ms) as f64 / 1e3;
        self.figures = figure::figures(&self.quads, active_s, self.confidence);
        let seconds = self.began.elapsed().as_secs_f64();
        let ratios = self.figures.iter().filter_map(|figure| {
            let ratio = figure.ratio?;
            Some((figure.metric, [ratio.point, ratio.low, ratio.high]))
        });
        self.looks.push(Look {
            pairs: self.pairs(),
            seconds,
            quad: self.quads.last().and_then(Quad::ratio),
            ratios: ratios.collect(),
        });
        observe(Event::Progress { pairs: self.pairs(), figures: &self.figures, seconds });
        self.rule.stops(&self.figures)
    }
}

/// Does for both servers, at the same time, what would otherwise happen inside a block.
fn tidy(sides: &[Side; 2]) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let tidied = sides.iter().map(|side| scope.spawn(move || side.tidy()));
        // Both have begun before either is waited for.
        let tidied: Vec<_> = tidied.collect();
        tidied.into_iter().try_for_each(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
