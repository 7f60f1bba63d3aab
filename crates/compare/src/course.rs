//! A contest under way: segment after segment, look after look.

use std::time::{Duration, Instant};

use lab::machine::CpuTime;
use load::{Blocks, Control, End, Limit, Plan, Urgency, WarmUp};
use record::Conditions;
use record::comparison::{Look, Metric, OCTET_PAIRS, Stop};

use crate::contest::{CONFIDENCE, Contest, Contested, Ground, Progress, WARM_MS};
use crate::design::{self, CYCLE};
use crate::doubts;
use crate::error::Error;
use crate::figure::{self, Confidence, Figure};
use crate::meter::Meter;
use crate::observation::{self, Octet};
use crate::pilot::Shape;
use crate::profile::{self, Profiler};
use crate::waits::Watch;

/// Between two checkpoints, which both servers make at the same time while nothing is measured.
const SEGMENT_S: f64 = 60.0;

/// A rate counts as reached from this share of it on.
const RATE_SHARE_MIN: f64 = 0.95;

impl Contest<'_> {
    /// Loads the sides in turn in blocks of this shape, and says why it ended. What was measured
    /// before an interruption, or before a client failed, is a result. `began` is when the
    /// time of the contest began.
    ///
    /// # Errors
    /// When nothing can be said.
    pub fn run(
        &self,
        shape: Shape,
        began: Instant,
        observe: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(Contested, Stop), Error> {
        let cpu = CpuTime::now();
        let mut course = Course::new(self, shape, began);
        let stop = course.segments(observe)?;
        course.conditions.steal_share = CpuTime::now().steal_share_since(cpu);
        let missed = self.missed_rates(&course.found.figures);
        course.conditions.is_rate_missed = !missed.is_empty();
        course.conditions.failed_share_max = observation::failed_share_max(&course.found.octets);
        let Course { watch, conditions, confidence, mut found, .. } = course;
        found.series = figure::series(&found.octets, confidence.tuned_for);
        found.conditions = conditions;
        found.background = observation::background(&found.octets);
        let grounds = self.sides.each_ref().map(|side| side.ground);
        let doubts = doubts::doubts(&found.octets, grounds.map(Ground::name), &conditions);
        found.doubts.extend(doubts);
        found.doubts.extend(missed);
        found.doubts.extend(found.lost.clone());
        found.waits = watch.end();
        let cpu = found.figures.iter().find(|figure| figure.metric == Metric::Cpu);
        if let (Some(profile), Some(cpu)) = (&mut found.profile, cpu) {
            for (folded, cpu_us) in profile.folded.iter_mut().zip(cpu.sides) {
                *folded = profile::scaled(folded, cpu_us * 1e3);
            }
        }
        Ok((found, stop))
    }

    /// Which sides did not do what was due.
    fn missed_rates(&self, figures: &[Figure]) -> Vec<String> {
        let throughput = figures.iter().find(|figure| figure.metric == Metric::Throughput);
        let missed = throughput.into_iter().flat_map(|figure| {
            self.sides.iter().zip(figure.sides).filter_map(|(side, tps)| {
                let rate = side.workload.pace.rate().filter(|rate| tps < RATE_SHARE_MIN * rate)?;
                let name = side.ground.name();
                Some(format!(
                    "side {name} did {tps:.0} of {rate:.0} transactions a second: it cannot keep \
                     up, and its latencies depend on how long it was loaded"
                ))
            })
        });
        missed.collect()
    }
}

/// A contest under way.
struct Course<'a> {
    contest: &'a Contest<'a>,
    shape: Shape,
    began: Instant,
    confidence: Confidence,
    conditions: Conditions,
    watch: Watch,
    found: Contested,
}

impl<'a> Course<'a> {
    fn new(contest: &'a Contest<'a>, shape: Shape, began: Instant) -> Self {
        let grounds = contest.sides.each_ref().map(|side| side.ground);
        let is_here = grounds.iter().all(|ground| !ground.pids().is_empty());
        let cores = lab::machine::Machine::here().cores;
        Course {
            contest,
            shape,
            began,
            confidence: Confidence::of(contest, shape),
            conditions: Conditions { cores: is_here.then_some(cores), ..Conditions::default() },
            watch: Watch::new(grounds, contest.seed),
            found: Contested::default(),
        }
    }

    fn left(&self) -> Duration {
        self.contest.max_time.saturating_sub(self.began.elapsed())
    }

    /// Segment after segment, until the rule says that it is enough.
    fn segments(&mut self, observe: &mut dyn FnMut(Progress<'_>)) -> Result<Stop, Error> {
        let grounds = self.contest.sides.each_ref().map(|side| side.ground);
        let mut meter = Meter::new(grounds);
        for number in 0.. {
            if let Err(error) = tidy(grounds) {
                return self.stopped(error);
            }
            if self.contest.control.urgency() != Urgency::None {
                return Ok(Stop::Interrupted);
            }
            let seconds = self.left().as_secs_f64().min(SEGMENT_S.max(self.shape.octet_s()));
            let octets = (seconds / self.shape.octet_s()).floor() as usize;
            if octets < 1 {
                return Ok(Stop::Time);
            }
            let stop = self.segment(number, octets, &mut meter, observe);
            self.watch.count(false);
            match stop {
                Ok(None) => {}
                Ok(Some(stop)) => return Ok(stop),
                Err(error) => return self.stopped(error),
            }
        }
        Ok(Stop::Time)
    }

    /// What was measured until a client failed counts, if there is an interval.
    fn stopped(&mut self, error: Error) -> Result<Stop, Error> {
        // What ends because the user asked for it has not failed.
        if self.contest.control.urgency() != Urgency::None {
            return Ok(Stop::Interrupted);
        }
        if self.found.figures.iter().all(|figure| figure.ratio.is_none()) {
            return Err(error);
        }
        let pairs = self.found.pairs();
        self.found.lost = Some(match error {
            Error::Died { side, why } => {
                format!("a client of side {side} failed after {pairs} pairs: {why}")
            }
            error => format!("it ended after {pairs} pairs: {error}"),
        });
        Ok(Stop::Died)
    }

    /// One load of both sides in turn.
    fn segment(
        &mut self,
        number: u64,
        octets: usize,
        meter: &mut Meter,
        observe: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Stop>, Error> {
        // Each side has two blocks at least.
        let warm_blocks = (WARM_MS.div_ceil(self.shape.length_ms) as usize).max(4);
        let plan = self.plan(number, warm_blocks, octets);
        let order = plan.blocks.as_ref().map_or(&[][..], |blocks| &blocks.order);
        let own = Control::new();
        let mut blocks = 0;
        let mut octet = Octet::default();
        let mut stop = None;
        let mut first = None;
        let profiler = self.profiler(number)?;
        let outcome = load::run(&plan, &own, Instant::now(), &mut |event| {
            if self.contest.control.urgency() != Urgency::None && stop.is_none() {
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
                    if blocks <= warm_blocks {
                        if blocks == warm_blocks {
                            meter.reset();
                            self.watch.count(true);
                        }
                        return;
                    }
                    // After the last block there may be a rest.
                    let Some(turn) = order.get(blocks - 1) else { return };
                    let number = (blocks - warm_blocks - 1) % CYCLE;
                    if number == 0 {
                        octet.lead_in(cells);
                        // Nothing began on the other side since the octet before.
                        let idle = 1 - turn.workload;
                        meter.read_idle(idle, &mut octet.sides[idle]);
                    } else {
                        octet.add(cells);
                    }
                    if number == CYCLE - 1 {
                        meter.read(&mut octet.sides);
                        self.found.octets.push(std::mem::take(&mut octet));
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
        if let Some(profiler) = profiler {
            match profiler.end() {
                Ok(profile) => self.found.profile = Some(profile),
                // Figures are worth as much without it.
                Err(error) => self.found.doubts.push(error.to_string()),
            }
        }
        let seen = &mut self.conditions;
        seen.busy_share_max = seen.busy_share_max.max(outcome.generator.busy_share_max);
        let delay = outcome.generator.run_delay_share.unwrap_or(0.0);
        seen.run_delay_share_max = seen.run_delay_share_max.max(delay);
        for (side, result) in self.contest.sides.iter().zip(&outcome.workloads) {
            let (side, why) = (side.ground.name().to_owned(), first.clone().unwrap_or_default());
            let counts = &result.counts_total;
            let is_over = counts.aborted_clients > 0 || outcome.end == End::Completed;
            if counts.transactions == 0 && is_over {
                return Err(Error::Failing { side, why });
            }
            if counts.aborted_clients > 0 {
                return Err(Error::Died { side, why });
            }
        }
        Ok(stop)
    }

    /// Samples the first segment, if that was asked for.
    fn profiler(&self, segment: u64) -> Result<Option<Profiler>, Error> {
        if !self.contest.has_profile || segment > 0 {
            return Ok(None);
        }
        let pids = self.contest.sides.each_ref().map(|side| side.ground.pids());
        Profiler::begin(pids).map(Some)
    }

    /// Blocks that warm both sides up, then so many octets.
    fn plan(&self, number: u64, warm_blocks: usize, octets: usize) -> Plan {
        // Each segment draws keys of its own, the same on both sides.
        let seed = self.contest.seed.wrapping_add(number);
        let mut order = design::order(octets + warm_blocks.div_ceil(CYCLE), seed);
        let order = order.split_off(order.len() - octets * CYCLE - warm_blocks);
        let workloads = self.contest.sides.iter().map(|side| side.workload.clone());
        let Shape { length_ms, rest_ms } = self.shape;
        let window_ms = order.len() as u64 * length_ms;
        Plan {
            seed,
            limit: Limit::Time { warm_up: WarmUp::Fixed(0), window_ms },
            blocks: Some(Blocks { length_ms, rest_ms, order }),
            ..self.contest.plan(workloads.collect(), length_ms)
        }
    }

    /// What the octets say, and whether that is enough.
    fn look(&mut self, observe: &mut dyn FnMut(Progress<'_>)) -> Option<Stop> {
        let active_s =
            OCTET_PAIRS as f64 * (self.shape.length_ms - self.shape.rest_ms) as f64 / 1e3;
        let found = &mut self.found;
        found.figures = figure::figures(&found.octets, active_s, self.confidence);
        let seconds = self.began.elapsed().as_secs_f64();
        let ratios = found.figures.iter().filter_map(|figure| {
            let ratio = figure.ratio?;
            Some((figure.metric, [ratio.point, ratio.low, ratio.high]))
        });
        let pairs = found.pairs();
        found.looks.push(Look {
            pairs,
            seconds,
            octet: found.octets.last().and_then(Octet::ratio),
            ratios: ratios.collect(),
            background: found.octets.last().map(Octet::background).unwrap_or_default(),
        });
        let (figures, looks) = (&found.figures, &found.looks);
        observe(Progress { pairs, figures, looks, seconds });
        let quantile = self.contest.rule.deciding[1].quantile().unwrap_or(0.5);
        let share = seconds / self.contest.max_time.as_secs_f64();
        let is_due = observation::transactions_min(&found.octets) as f64
            >= figure::transactions_min(quantile) as f64 * share;
        self.contest.rule.stops(&found.figures, is_due)
    }
}

impl Confidence {
    /// Of a contest that may take so long: narrowest in the second half of that time.
    fn of(contest: &Contest<'_>, shape: Shape) -> Confidence {
        let octets = contest.max_time.as_secs_f64() / shape.octet_s();
        Confidence {
            deciding: contest.deciding,
            metrics: contest.rule.deciding,
            other: CONFIDENCE,
            tuned_for: (octets * 0.6).ceil() as usize,
        }
    }
}

/// Does for both sides, at the same time, what would otherwise happen inside a block.
fn tidy(grounds: [&dyn Ground; 2]) -> Result<(), Error> {
    std::thread::scope(|scope| {
        // Both have begun before either is waited for.
        let tidied = grounds.map(|ground| scope.spawn(|| ground.tidy()));
        tidied.into_iter().try_for_each(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
