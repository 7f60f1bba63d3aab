//! A contest under way: segment after segment, look after look.

use std::time::{Duration, Instant};

use lab::machine::CpuTime;
use load::{Blocks, Control, End, Limit, Plan, Urgency, WarmUp};
use record::comparison::{Look, Metric, OCTET_PAIRS, Renewal, Shown, Stop};
use record::{Conditions, Generator};
use stats::sequence::OBSERVATIONS_MIN;

use crate::contest::{CONFIDENCE, ComparedSide, Contest, Progress, WARM_MS};
use crate::crash::CrashWatch;
use crate::design::{self, CYCLE};
use crate::doubts;
use crate::error::Error;
use crate::event::Event;
use crate::figure::{self, ComparedFigure, Confidence};
use crate::instances::{self, RestartCost};
use crate::measure::PairMeasurement;
use crate::meter::{ResourceMeter, SessionLife};
use crate::observation::{self, Octet, Segment};
use crate::pilot::BlockShape;
use crate::profile::{self, Profiler};
use crate::schedule;
use crate::tails::TailSamplers;
use crate::tidy::{self, MaintenanceResult};
use crate::waits::{self, WaitSampler};

impl Contest<'_> {
    /// Loads both sides in turn, in blocks of this shape, until the rule or the time ends it. What was measured
    /// before an interruption, a crash or a failure of a client counts. `began` is when the time of the contest
    /// began.
    pub fn measure(
        &mut self,
        watched: &CrashWatch,
        shape: BlockShape,
        began: Instant,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<PairMeasurement, Error> {
        let cpu = CpuTime::now();
        let mut course = ContestRun::new(self, shape, began);
        let mut stop = course.segments(observe)?;
        course.conditions.steal_share = CpuTime::now().steal_share_since(cpu);
        let ContestRun {
            waits,
            mut conditions,
            units,
            octets,
            cut,
            backlog,
            figures,
            segments,
            ..
        } = course;
        let PairMeasurement { mut shown, lost, .. } = course.found;
        let missed = self.missed_rates(&figures, backlog);
        conditions.is_rate_missed = !missed.is_empty();
        let failures = observation::failures(&units);
        conditions.failed_shares = failures.each_ref().map(|side| observation::share(side));
        let [a, b] = conditions.failed_shares;
        conditions.failed_share_max = a.max(b);
        let [a, b] = &failures;
        conditions.failed_difference =
            stats::failed_share::difference(a, b, Conditions::FAILED_CONFIDENCE);
        let names = self.arena.sides().map(ComparedSide::name);
        shown.doubts.extend(doubts::doubts(&octets, names, &conditions));
        shown.doubts.extend(doubts::of_tidying(names, shown.instances.tidy_s));
        shown.doubts.extend(doubts::of_cut_tidying(names, cut, tidy::limit(self.max_time)));
        shown.doubts.extend(shown.identical.as_ref().and_then(doubts::of_identical));
        shown.doubts.extend(missed);
        shown.doubts.extend(lost.clone());
        let cpu = figures.iter().find(|figure| figure.metric == Metric::Cpu);
        if let (Some(profile), Some(cpu)) = (&mut shown.profile, cpu) {
            for (folded, cpu_us) in profile.folded.iter_mut().zip(cpu.sides) {
                *folded = profile::scaled(folded, cpu_us * 1e3);
            }
        }
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
        let threshold = self.rule.threshold;
        let judged = self.rule.judged(&figures, &shown.instances).into_iter();
        let shown = Shown {
            pairs: pairs(&segments),
            seconds,
            stop,
            figures: judged.map(|figure| figure.under(&conditions, threshold)).collect(),
            background: observation::background(&octets),
            waits: waits::waits(&waits),
            conditions,
            ..shown
        };
        let series = figure::series(&units, &self.names());
        let decides = self.rule.deciding.clone();
        let (differences, notes) = (Vec::new(), Vec::new());
        Ok(PairMeasurement { shown, series, crashes, lost, decides, differences, notes })
    }

    /// The names of the workloads that run together, which are B's; none where there is one.
    fn names(&self) -> Vec<String> {
        match &self.workloads[1][..] {
            [_] => Vec::new(),
            several => several.iter().map(|workload| workload.name.clone()).collect(),
        }
    }

    /// The sides that did not do what was due.
    fn missed_rates(
        &self,
        figures: &[ComparedFigure],
        backlog: [UnstartedTransactions; 2],
    ) -> Vec<String> {
        let throughput = figures.iter().find(|figure| figure.metric == Metric::Throughput);
        let missed = throughput.into_iter().flat_map(|figure| {
            let sides = self.arena.sides().into_iter().zip(&self.workloads);
            sides.zip(figure.sides).zip(backlog).filter_map(|(((side, workloads), tps), backlog)| {
                let rates = workloads.iter().map(|workload| workload.pace.rate());
                let rate = rates.sum::<Option<f64>>()?;
                let UnstartedTransactions { transactions, loads } = backlog;
                if !stats::is_rate_missed(rate, tps, transactions, loads) {
                    return None;
                }
                let name = side.name();
                Some(format!(
                    "side {name} did {} of {} transactions a second: it cannot keep up, and its \
                     latencies depend on how long it was loaded",
                    terms::figure(tps),
                    terms::figure(rate)
                ))
            })
        });
        missed.collect()
    }
}

/// Transactions of a side that were due at the ends of its loads and never started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnstartedTransactions {
    pub(crate) transactions: u64,
    pub(crate) loads: usize,
}

/// A contest under way.
pub(crate) struct ContestRun<'c, 'a> {
    pub(crate) contest: &'c mut Contest<'a>,
    pub(crate) shape: BlockShape,
    began: Instant,
    confidence: Confidence,
    conditions: Conditions,
    pub(crate) waits: [waits::Counts; 2],
    pub(crate) octets: Vec<Octet>,
    /// The segments, each as one.
    units: Vec<Octet>,
    /// The segment under way.
    pub(crate) under_way: Segment,
    cost: RestartCost,
    /// What passed before the segment under way, warming up included, in seconds.
    between_s: f64,
    /// How often vacuum and checkpoint of A and of B were ended by their limit.
    cut: [usize; 2],
    /// Those of A and of B.
    pub(crate) backlog: [UnstartedTransactions; 2],
    /// The segments, each measured from one restart to the next, warm-up left out.
    segments: Vec<Segment>,
    /// The figures of all segments together.
    figures: Vec<ComparedFigure>,
    found: PairMeasurement,
}

impl<'c, 'a> ContestRun<'c, 'a> {
    fn new(contest: &'c mut Contest<'a>, shape: BlockShape, began: Instant) -> Self {
        let is_here = contest.arena.sides().iter().all(|ground| !ground.pids().is_empty());
        let cores = lab::machine::Machine::here().cores;
        let shown = contest.begun(shape);
        ContestRun {
            shape,
            began,
            confidence: Confidence {
                deciding: contest.deciding,
                metrics: contest.rule.deciding.clone(),
                other: CONFIDENCE,
            },
            conditions: Conditions { cores: is_here.then_some(cores), ..Conditions::default() },
            waits: Default::default(),
            octets: Vec::new(),
            units: Vec::new(),
            under_way: Segment::default(),
            cost: RestartCost::default(),
            between_s: WARM_MS as f64 / 1e3,
            cut: [0; 2],
            backlog: Default::default(),
            segments: Vec::new(),
            figures: Vec::new(),
            found: PairMeasurement { shown, ..PairMeasurement::default() },
            contest,
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.contest.max_time.saturating_sub(self.began.elapsed())
    }

    /// Segment after segment, until the rule says that it is enough.
    fn segments(&mut self, observe: &mut dyn FnMut(Event<'_>)) -> Result<Stop, Error> {
        for number in 0.. {
            if self.contest.control.urgency() != Urgency::None {
                return Ok(Stop::Interrupted);
            }
            if self.octets_in(self.left().as_secs_f64() - self.between_s) < 1 {
                return Ok(Stop::Time);
            }
            let ended = Instant::now();
            let is_exchanged = self.is_exchanged(number);
            if let Err(error) = self.renew(is_exchanged) {
                return self.stopped(error);
            }
            let led_in_and_out_s = (WARM_MS + self.shape.led_out_ms()) as f64 / 1e3;
            self.between_s = ended.elapsed().as_secs_f64() + led_in_and_out_s;
            if number == 0 {
                self.tell_if_short(observe);
            }
            let octets = self.octets_in(self.left().as_secs_f64() - led_in_and_out_s);
            if octets < 1 {
                return Ok(Stop::Time);
            }
            self.under_way = Segment { is_exchanged, ..Segment::default() };
            let stop = match self.shape.turn {
                None => self.segment(number, octets),
                Some(transactions) => self.turns(number, octets, transactions),
            };
            let looked = self.look(observe);
            match stop {
                Ok(Some(stop)) => return Ok(stop),
                Ok(None) => {}
                Err(error) => return self.stopped(error),
            }
            if let Some(stop) = looked {
                return Ok(stop);
            }
        }
        Ok(Stop::Time)
    }

    /// Number of octets of a segment that fit into so many seconds.
    fn octets_in(&self, seconds: f64) -> usize {
        (seconds.min(self.segment_s()) / self.shape.octet_s() + 1e-9).floor().max(0.0) as usize
    }

    /// Length of a segment, now that it is known what comes before one.
    fn segment_s(&self) -> f64 {
        let max_s = self.contest.max_time.as_secs_f64();
        schedule::segment_s(max_s, self.shape.octet_s(), self.between_s)
    }

    /// Says that the time is too short for an interval, where it is, and which time would do.
    fn tell_if_short(&mut self, observe: &mut dyn FnMut(Event<'_>)) {
        let (segment_s, between_s) = (self.segment_s(), self.between_s);
        let left_s = self.left().as_secs_f64() - WARM_MS as f64 / 1e3;
        let fits = schedule::segments(left_s, segment_s, between_s);
        if fits >= OBSERVATIONS_MIN {
            return;
        }
        let needs_s =
            self.began.elapsed().as_secs_f64() + OBSERVATIONS_MIN as f64 * (segment_s + between_s);
        let note = format!(
            "vacuum, a checkpoint, a restart and warming up take {} before each segment of {}: {fits} of \
             the {OBSERVATIONS_MIN} segments that an interval takes fit into {}; {} would do",
            terms::duration(between_s),
            terms::duration(segment_s),
            terms::duration(self.contest.max_time.as_secs_f64()),
            terms::duration(needs_s),
        );
        observe(Event::Short(&note));
        self.found.shown.doubts.push(note);
    }

    /// True if the sides have exchanged their files in this segment: in one of two, at random.
    fn is_exchanged(&self, number: u64) -> bool {
        let pair = stats::mix(self.contest.seed.wrapping_add(number / 2));
        self.contest.arena.renewal() == Renewal::Exchanged && (number + pair) % 2 == 1
    }

    /// Vacuum and checkpoint, then new instances.
    fn renew(&mut self, is_exchanged: bool) -> Result<(), Error> {
        let tidied = tidy(self.contest.arena.sides(), tidy::limit(self.contest.max_time))?;
        let began = Instant::now();
        self.contest.arena.renew(is_exchanged)?;
        self.cost.restart_s += began.elapsed().as_secs_f64() + WARM_MS as f64 / 1e3;
        self.cost.times += 1;
        for (side, MaintenanceResult { seconds, is_cut }) in tidied.into_iter().enumerate() {
            self.cost.tidy_s[side] += seconds;
            self.cut[side] += usize::from(is_cut);
        }
        Ok(())
    }

    /// The way in which the contest stops at an error. The measurements until then count if there is an
    /// interval.
    fn stopped(&mut self, error: Error) -> Result<Stop, Error> {
        // What ends because the user asked for it has not failed.
        if self.contest.control.urgency() != Urgency::None {
            return Ok(Stop::Interrupted);
        }
        if self.figures.iter().all(|figure| figure.ratio.is_none()) {
            // Both sides have stood their pilots: whatever ends them now is no mistake in what was asked for.
            return Err(match error {
                Error::Died { .. } | Error::Profile { .. } | Error::Interrupted { .. } => error,
                error => Error::Ended { source: Box::new(error) },
            });
        }
        let pairs = terms::counted(pairs(&self.segments) as u64, "pair");
        self.found.lost = Some(match error {
            // Where nothing of a side ended well, its first clients failed in the lead-in of a later segment.
            Error::Died { side, why } | Error::Failing { side, why } => {
                format!("a client of side {side} failed after {pairs}: {why}")
            }
            error => format!("it ended after {pairs}: {error}"),
        });
        Ok(Stop::Died)
    }

    /// One load of both sides in turn.
    fn segment(&mut self, number: u64, octets: usize) -> Result<Option<Stop>, Error> {
        // Each side has two blocks at least.
        let warm_blocks = (WARM_MS.div_ceil(self.shape.length_ms) as usize).max(4);
        let plan = self.plan(number, warm_blocks, octets);
        let order = plan.blocks.as_ref().map_or(&[][..], |blocks| &blocks.order);
        let block_s = self.shape.active_s();
        let workloads = &self.contest.workloads;
        let of_a = workloads[0].len();
        let clients: [Vec<u32>; 2] =
            workloads.each_ref().map(|side| side.iter().map(|one| one.clients).collect());
        let own = Control::new();
        let mut blocks = 0;
        let mut octet = Octet::default();
        let mut stop = None;
        let mut first = None;
        let profiler = self.profiler(number)?;
        // Sessions of their own, for the servers are new.
        let sides = self.contest.arena.sides();
        let mut meter = ResourceMeter::new(sides, SessionLife::Whole);
        let watch = WaitSampler::new(sides, plan.seed);
        let origin = Instant::now();
        let workloads = &self.contest.workloads;
        let sampled = self.contest.tail;
        let tails = plan.slowest.then(|| TailSamplers::begin(sides, sampled, workloads, origin));
        let outcome = load::run(&plan, &own, origin, &mut |event| {
            if self.contest.control.urgency() != Urgency::None && stop.is_none() {
                stop = Some(Stop::Interrupted);
                own.interrupt();
            }
            match event {
                load::Event::LoadBegan { at } => {
                    if let (Some(tails), Some(blocks)) = (&tails, &plan.blocks) {
                        tails.keep_to_turns(at, blocks);
                    }
                }
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
                            watch.count(true);
                        }
                        return;
                    }
                    // After the last block there may be a rest.
                    let Some(turn) = order.get(blocks - 1) else { return };
                    let number = (blocks - warm_blocks - 1) % CYCLE;
                    if number == 0 {
                        octet.lead_in(cells, of_a);
                        // Nothing began on the other side since the octet before.
                        let idle = 1 - turn.side;
                        meter.read_idle(idle, &mut octet.sides[idle]);
                    } else {
                        octet.add(cells, &clients, turn.side, block_s);
                    }
                    if number == CYCLE - 1 {
                        meter.read(&mut octet.sides);
                        self.under_way.add(&octet, OCTET_PAIRS);
                        self.octets.push(std::mem::take(&mut octet));
                    }
                }
                _ => {}
            }
        });
        for (sum, counts) in self.waits.iter_mut().zip(watch.end()) {
            waits::add(sum, &counts);
        }
        let outcome = outcome.map_err(|source| Error::Load {
            side: "A or B".to_owned(),
            source: Box::new(source),
        })?;
        if let Some(tails) = tails {
            let workloads = &self.contest.workloads;
            let doubts = tails.end(&outcome, workloads, warm_blocks, &mut self.found.shown.tails);
            let known = &mut self.found.shown.doubts;
            for doubt in doubts {
                if !known.contains(&doubt) {
                    known.push(doubt);
                }
            }
        }
        if let Some(profiler) = profiler {
            match profiler.end() {
                Ok(profile) => self.found.shown.profile = Some(profile),
                // Figures are worth as much without it.
                Err(error) => self.found.shown.doubts.push(error.to_string()),
            }
        }
        self.note_generator(&outcome.generator);
        let sides = self.contest.arena.sides();
        self.backlog.iter_mut().for_each(|backlog| backlog.loads += 1);
        for (workload, result) in outcome.workloads.iter().enumerate() {
            if stop.is_none() {
                let place = observation::side_of(workload, of_a);
                self.under_way.add_open(place, &result.open, self.shape);
            }
            let side = observation::side_of(workload, of_a).0;
            self.backlog[side].transactions += result.never_started;
            let side = sides[side];
            let (side, why) = (side.name().to_owned(), first.clone().unwrap_or_default());
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

    /// Keeps the worst that was seen of the generator.
    pub(crate) fn note_generator(&mut self, generator: &Generator) {
        let seen = &mut self.conditions;
        seen.busy_share_max = seen.busy_share_max.max(generator.busy_share_max);
        let delay = generator.run_delay_share.unwrap_or(0.0);
        seen.run_delay_share_max = seen.run_delay_share_max.max(delay);
    }

    /// Samples the first segment, if that was asked for.
    fn profiler(&self, segment: u64) -> Result<Option<Profiler>, Error> {
        if !self.contest.has_profile || segment > 0 {
            return Ok(None);
        }
        let pids = self.contest.arena.sides().map(ComparedSide::pids);
        Profiler::begin(pids).map(Some)
    }

    /// Blocks that warm both sides up, then so many octets, and one block more: while it runs, the sessions are
    /// there whose processes are read after the last octet.
    fn plan(&self, number: u64, warm_blocks: usize, octets: usize) -> Plan {
        // Each segment draws keys of its own, the same on both sides.
        let seed = self.contest.seed.wrapping_add(number);
        let mut order = design::order(octets + 1 + warm_blocks.div_ceil(CYCLE), seed);
        order.truncate(order.len() + 1 - CYCLE);
        let order = order.split_off(order.len() - 1 - octets * CYCLE - warm_blocks);
        let BlockShape { length_ms, rest_ms, .. } = self.shape;
        let window_ms = order.len() as u64 * length_ms;
        let workloads = &self.contest.workloads;
        let sides = [0, 1].map(|side| vec![side; workloads[side].len()]).concat();
        Plan {
            seed,
            limit: Limit::Time { warm_up: WarmUp::Fixed(0), window_ms },
            blocks: Some(Blocks { length_ms, rest_ms, sides, order }),
            slowest: self.contest.tail != [false; 2],
            ..self.contest.plan(workloads.concat(), length_ms)
        }
    }

    /// Evaluates the segments so far; returns the reason to stop if they are enough.
    fn look(&mut self, observe: &mut dyn FnMut(Event<'_>)) -> Option<Stop> {
        // One that was interrupted in its first octet has shown nothing.
        if self.under_way.octets == 0 {
            return None;
        }
        let segment = std::mem::take(&mut self.under_way);
        let whole = segment.whole();
        let (ratio, background) = (whole.ratio(), whole.background());
        let is_exchanged = segment.is_exchanged;
        self.units.push(whole);
        self.segments.push(segment);
        let (renewal, floor) = (self.contest.arena.renewal(), &self.contest.floor);
        let shown = &mut self.found.shown;
        shown.instances = instances::instances(&self.segments, renewal, floor, self.cost);
        shown.identical = figure::identical(&self.units, CONFIDENCE).map(figure::recorded);
        self.figures = figure::figures(&self.units, &self.confidence);
        for figure in &mut self.figures {
            figure.allow_for(&shown.instances);
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let ratios = self.figures.iter().filter_map(|figure| {
            let ratio = figure.ratio?;
            Some((figure.metric, [ratio.point, ratio.low, ratio.high]))
        });
        let (pairs, ratios) = (pairs(&self.segments), ratios.collect());
        shown.looks.push(Look { pairs, seconds, segment: ratio, is_exchanged, ratios, background });
        let (figures, Shown { looks, instances, .. }) = (&self.figures, &*shown);
        observe(Event::Progress(Progress { pairs, figures, looks, instances, seconds }));
        let needed = self.contest.rule.deciding.iter().map(|one| figure::transactions_min(*one));
        let needed = needed.max().unwrap_or(0) as f64;
        let share = seconds / self.contest.max_time.as_secs_f64();
        let is_due = observation::transactions_min(&self.units) as f64 >= needed * share;
        let rule = &self.contest.rule;
        rule.stops(&self.figures, &self.found.shown.instances, is_due).or_else(|| {
            let is_judged = !rule.claims.is_empty()
                && rule.are_judged(&figure::series(&self.units, &self.contest.names()));
            is_judged.then_some(Stop::Decided)
        })
    }
}

/// Pairs of neighbouring blocks.
fn pairs(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.pairs).sum()
}

/// Does for both sides, at the same time, what would otherwise happen inside a block.
fn tidy(grounds: [&dyn ComparedSide; 2], limit: Duration) -> Result<[MaintenanceResult; 2], Error> {
    std::thread::scope(|scope| {
        // Both have begun before either is waited for.
        let tidied = grounds.map(|ground| scope.spawn(move || ground.tidy(limit)));
        let [a, b] = tidied.map(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok([a?, b?])
    })
}
