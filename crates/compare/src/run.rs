//! A comparison, from two servers to an answer.

use std::time::{Duration, Instant};

use load::{Blocks, Connecting, Control, End, Limit, Plan, Urgency, WarmUp, Workload};
use pgbench::options::{Length, RunOptions};

use crate::answer::{Rule, Stop};
use crate::design::{self, QUAD, SIDES};
use crate::error::Error;
use crate::figure::{self, Confidence, Figure, Metric};
use crate::meter::Meter;
use crate::observation::Quad;
use crate::pilot::{self, SLICE_MS, Shape};
use crate::result::{Comparison, SideFacts};
use crate::side::{self, Build, Data, Side, SideOptions};

/// What to compare.
pub struct Request {
    /// A, then B.
    pub sides: [SideOptions; 2],
    /// Compare A with a copy of itself.
    pub is_self: bool,
    /// What both hold.
    pub data: Data,
    /// pgbench's options: scripts, clients, protocol.
    pub workload: Box<RunOptions>,
    /// Stop when the interval of throughput is as narrow as this on either side, as a share.
    pub precision: f64,
    /// A difference below this share counts as none.
    pub threshold: f64,
    /// Stop as soon as the threshold is decided.
    pub by_threshold: bool,
    /// Measure for so long at most; building the servers is not part of it.
    pub max_time: Duration,
    /// Of the order of blocks and of the keys.
    pub seed: u64,
}

/// What happens while a comparison runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// The servers are being built.
    Building,
    /// They run.
    Built {
        /// PostgreSQL of A and of B.
        versions: [&'a str; 2],
        /// Whether B's files were copied from A's.
        copied: bool,
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

/// How long the pilot loads side A.
const PILOT_MS: u64 = 12_000;

/// At the start of the pilot, and of each segment: caches fill, connections warm up.
const WARM_MS: u64 = 2_000;

/// Between two checkpoints, which both servers make at the same time while nothing is measured.
const SEGMENT_S: f64 = 60.0;

/// Compares the sides.
///
/// # Errors
/// [`Error`], when nothing can be said; what was measured before an interruption is an answer.
pub fn compare(
    request: &Request,
    control: &Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    check(request)?;
    let began = Instant::now();
    observe(Event::Building);
    let clients = request.workload.clients;
    // Both servers have room for all clients: which one runs is decided block by block.
    let build = Build { sides: &request.sides, data: &request.data, clients: 2 * clients, control };
    let (sides, origin) = side::build(&build)?;
    let copied = origin == side::DataOrigin::Copied;
    observe(Event::Built {
        versions: [&sides[0].version, &sides[1].version],
        copied,
        seconds: began.elapsed().as_secs_f64(),
    });
    let began = Instant::now();
    observe(Event::Pilot);
    let shape = find_shape(request, &sides[0], control)?;
    let mut run = Run::new(request, &sides, shape, began, control);
    let stop = run.segments(observe)?;
    let doubts = run.doubts();
    Ok(Comparison {
        sides: [SideFacts::of(&sides[0], request, 0), SideFacts::of(&sides[1], request, 1)],
        is_self: request.is_self,
        copied,
        clients,
        block_ms: shape.length_ms,
        rest_ms: shape.rest_ms,
        pairs: run.pairs(),
        seconds: began.elapsed().as_secs_f64(),
        threshold: request.threshold,
        confidence: CONFIDENCE,
        seed: request.seed,
        stop,
        figures: run.figures,
        doubts,
    })
}

/// Whether the request can mean anything.
fn check(request: &Request) -> Result<(), Error> {
    let unfit = |option, why| Err(Error::Option { option, why });
    let workload = &request.workload;
    if workload.pace != load::Pace::Closed {
        return unfit("-R", "sides take turns, and a rate has no meaning for a side that waits");
    }
    if workload.connect_each {
        return unfit("-C", "sides keep their connections open");
    }
    if workload.log.is_some() {
        return unfit("-l", "a comparison writes no transaction log");
    }
    if workload.length != Length::Transactions(DEFAULT_TRANSACTIONS) {
        return unfit("-t, -T", "the precision decides how long it takes; see --max-time");
    }
    if let (true, [a, b]) = (request.is_self, &request.sides) {
        let option = |side: &SideOptions| match side {
            SideOptions { bin: Some(_), .. } => Some("a bin directory"),
            SideOptions { sql: Some(_), .. } => Some("a script"),
            SideOptions { settings, .. } if !settings.is_empty() => Some("a setting"),
            _ => None,
        };
        if a != b
            && let Some(option) = option(b)
        {
            return Err(Error::NotSelf { side: SIDES[1], option });
        }
    }
    if !request.is_self && request.sides[0] == request.sides[1] {
        return Err(Error::SameSides);
    }
    Ok(())
}

/// pgbench's own number of transactions where nobody gives one.
const DEFAULT_TRANSACTIONS: u32 = 10;

/// Loads side A alone, and chooses the length of a block from what it shows.
fn find_shape(request: &Request, side: &Side, control: &Control) -> Result<Shape, Error> {
    let mut plan = plan(request, vec![workload(request, side)], SLICE_MS);
    plan.limit = Limit::Time { warm_up: WarmUp::Fixed(WARM_MS), window_ms: PILOT_MS };
    let mut first = None;
    let outcome = load::run(&plan, control, Instant::now(), &mut |event| {
        if let load::Event::Message(message) = event {
            first.get_or_insert(message.text);
        }
    });
    let outcome = outcome
        .map_err(|source| Error::Load { side: SIDES[0].to_owned(), source: Box::new(source) })?;
    if control.urgency() != Urgency::None {
        return Err(Error::Interrupted { doing: "looking for the length of a block" });
    }
    let result = &outcome.workloads[0];
    let Some(mean_ns) = result.latency.mean_ns() else {
        let why = first.unwrap_or_else(|| "it gave no answer in twelve seconds".to_owned());
        return Err(Error::Failing { side: SIDES[0], why });
    };
    let open = outcome.window.map_or(0, |window| window.open.0);
    let slices = outcome.intervals.iter().filter(|slice| slice.start.0 >= open);
    let slices: Vec<u64> = slices.map(|slice| slice.counts.transactions).collect();
    let mean_s = mean_ns / 1e9;
    pilot::shape(&slices, mean_s).ok_or(Error::TooSlow { seconds: mean_s })
}

fn workload(request: &Request, side: &Side) -> Workload {
    let scale = match request.data {
        Data::Pgbench(scale) => scale,
        Data::Script(_) => request.workload.scale.unwrap_or(1),
    };
    let mut workload =
        pgbench::workload(&request.workload, side.conninfo.clone(), i64::from(scale));
    side.name.clone_into(&mut workload.name);
    workload
}

fn plan(request: &Request, workloads: Vec<Workload>, interval_ms: u64) -> Plan {
    Plan {
        workloads,
        lanes: request.workload.lanes,
        seed: request.seed,
        connecting: Connecting::default(),
        limit: Limit::Transactions(1),
        drain_ms: Some(10_000),
        interval_ms,
        blocks: None,
        statements: false,
        log: None,
        ledger: None,
        exit_on_abort: false,
        verbose_errors: false,
        debug: false,
    }
}

/// A comparison under way.
struct Run<'a> {
    request: &'a Request,
    sides: &'a [Side; 2],
    shape: Shape,
    began: Instant,
    control: &'a Control,
    rule: Rule,
    confidence: Confidence,
    quads: Vec<Quad>,
    figures: Vec<Figure>,
    /// The busiest generator thread of any segment.
    busy_share_max: f64,
}

impl<'a> Run<'a> {
    fn new(
        request: &'a Request,
        sides: &'a [Side; 2],
        shape: Shape,
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
        let rule = Rule { precision, threshold, by_threshold };
        let (quads, figures) = (Vec::new(), Vec::new());
        let busy_share_max = 0.0;
        Run {
            request,
            sides,
            shape,
            began,
            control,
            rule,
            confidence,
            quads,
            figures,
            busy_share_max,
        }
    }

    fn pairs(&self) -> usize {
        self.quads.len() * QUAD / 2
    }

    fn left(&self) -> Duration {
        self.request.max_time.saturating_sub(self.began.elapsed())
    }

    /// Segment after segment, until the rule says that it is enough.
    fn segments(&mut self, observe: &mut dyn FnMut(Event<'_>)) -> Result<Stop, Error> {
        let mut meter = Meter::new(self.sides);
        for number in 0.. {
            tidy(self.sides)?;
            let quad_s = QUAD as f64 * self.shape.length_ms as f64 / 1e3;
            let seconds = self.left().as_secs_f64().min(SEGMENT_S);
            let quads = (seconds / quad_s).floor() as usize;
            if quads < 2 {
                return Ok(Stop::Time);
            }
            if let Some(stop) = self.segment(number, quads, &mut meter, observe)? {
                return Ok(stop);
            }
        }
        Ok(Stop::Time)
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
        let order = design::order(quads + warm_quads, self.request.seed.wrapping_add(number));
        let workloads =
            self.sides.iter().map(|side| workload(self.request, side)).collect::<Vec<_>>();
        let mut plan = plan(self.request, workloads, self.shape.length_ms);
        // Each segment draws keys of its own, the same on both sides.
        plan.seed = self.request.seed.wrapping_add(number);
        let window_ms = order.len() as u64 * self.shape.length_ms;
        plan.limit = Limit::Time { warm_up: WarmUp::Fixed(0), window_ms };
        plan.blocks =
            Some(Blocks { length_ms: self.shape.length_ms, rest_ms: self.shape.rest_ms, order });
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
                load::Event::Message(message) if message.level == load::Level::Error => {
                    first.get_or_insert(message.text);
                }
                load::Event::Interval(cells) if stop.is_none() => {
                    blocks += 1;
                    if blocks <= warm_quads * QUAD {
                        if blocks == warm_quads * QUAD {
                            meter.reset();
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
        self.busy_share_max = self.busy_share_max.max(outcome.generator.busy_share_max);
        for (side, result) in self.sides.iter().zip(&outcome.workloads) {
            let why = first.clone().unwrap_or_default();
            if result.counts_total.aborted_clients > 0 {
                return Err(Error::Died { side: side.name, why });
            }
            if result.counts_total.transactions == 0 && outcome.end == End::Completed {
                return Err(Error::Failing { side: side.name, why });
            }
        }
        Ok(stop)
    }

    /// What the quads say, and whether that is enough.
    fn look(&mut self, observe: &mut dyn FnMut(Event<'_>)) -> Option<Stop> {
        let active_s = 2.0 * (self.shape.length_ms - self.shape.rest_ms) as f64 / 1e3;
        self.figures = figure::figures(&self.quads, active_s, self.confidence);
        let seconds = self.began.elapsed().as_secs_f64();
        observe(Event::Progress { pairs: self.pairs(), figures: &self.figures, seconds });
        self.rule.stops(&self.figures)
    }

    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.busy_share_max > record::Generator::BUSY_SHARE_MAX {
            let percent = self.busy_share_max * 100.0;
            doubts.push(format!(
                "a generator thread was busy for {percent:.0} % of a segment: differences between \
                 the servers may be larger than they look (more threads: -j)"
            ));
        }
        let failures = |index: usize| -> u64 {
            self.quads.iter().map(|quad| quad.sides[index].failures).sum()
        };
        for (index, name) in SIDES.into_iter().enumerate() {
            if failures(index) > 0 {
                doubts.push(format!("{} transactions of side {name} failed", failures(index)));
            }
        }
        doubts
    }
}

/// Does for both servers, at the same time, what would otherwise happen in somebody's block.
fn tidy(sides: &[Side; 2]) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let tidied = sides.iter().map(|side| {
            scope.spawn(move || -> Result<(), Error> {
                let mut client = side.node.connect()?;
                for statement in ["VACUUM", "CHECKPOINT"] {
                    client.batch_execute(statement).map_err(|source| lab::Error::Query {
                        server: format!("side {}", side.name),
                        statement: statement.to_owned(),
                        source,
                    })?;
                }
                Ok(())
            })
        });
        // Both have begun before either is waited for.
        let tidied: Vec<_> = tidied.collect();
        tidied.into_iter().try_for_each(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
