//! A contest under way: segment after segment, look after look.

use std::time::{Duration, Instant};

use lab::machine::CpuTime;
use load::{
    BlockSchedule, LaneFleet, LoadControl, LoadEnd, LoadLimit, LoadPlan, StopUrgency, WarmUp,
    WorkloadWork,
};
use record::comparison::{
    ComparedMetric, ComparisonStop, InterimLook, OCTET_PAIRS, PairResults, PlannedLooks,
    ServerRenewal,
};
use record::{GeneratorCost, MeasuringConditions, WorkloadResult};
use stats::sequence::{self, LookSchedule, OBSERVATIONS_MIN};
use tail::SlowTransactions;

use crate::loading::{LoadMeasurement, PreparedLoad};
use crate::pair::answer::{PLANNED_LOOKS, StoppingEvidence};
use crate::pair::contest::{CONFIDENCE, ComparedSide, PairContest, PairProgress, WARM_MS};
use crate::pair::crash::CrashWatch;
use crate::pair::design::{self, CYCLE, SIDES};
use crate::pair::doubts;
use crate::pair::error::PairError;
use crate::pair::event::PairEvent;
use crate::pair::figure::{self, ComparedFigure, Confidence};
use crate::pair::instances::{self, RestartCost};
use crate::pair::measurement::PairMeasurement;
use crate::pair::meter::{ResourceMeter, SessionLife};
use crate::pair::observation::{self, BlockOctet, RestartSegment};
use crate::pair::pilot::BlockShape;
use crate::pair::profile::{self, Profiler};
use crate::pair::schedule;
use crate::pair::statements::StatementSeries;
use crate::pair::tidy::{self, MaintenanceResult};
use crate::pair::waits::{self, WaitSampler};
use crate::pair::work::{StatementTexts, compare_balances, compare_tags, has_same_scripts};
use crate::tail::{SampledServer, SampledTurns, ServerTail};

impl PairContest<'_> {
    /// Loads both sides in turn, in blocks of this shape, until the rule or the time ends it. What was measured
    /// before an interruption, a crash or a failure of a client counts. `began` is when the time of the contest
    /// began.
    pub(crate) fn measure(
        &mut self,
        watched: &CrashWatch,
        shape: BlockShape,
        began: Instant,
        observe: &mut dyn FnMut(PairEvent<'_>),
    ) -> Result<PairMeasurement, PairError> {
        let cpu = CpuTime::now();
        let rows = self.row_counts();
        let mut course = ContestRun::new(self, shape, began);
        let mut stop = course.segments(observe)?;
        course.look_at_end(stop);
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
            work,
            is_complete,
            statements,
            ..
        } = course;
        let is_complete =
            is_complete && !matches!(stop, ComparisonStop::Died | ComparisonStop::Interrupted);
        let PairMeasurement { mut shown, lost, .. } = course.found;
        let missed = self.missed_rates(&figures, backlog);
        conditions.is_rate_missed = !missed.is_empty();
        if has_same_scripts(&self.workloads) && self.arena.renewal() != ServerRenewal::Shared {
            let texts = StatementTexts::of(&self.workloads[0]);
            for (position, (a, b)) in work[0].iter().zip(&work[1]).enumerate() {
                compare_tags(position, &texts, [a, b], &mut shown.work);
            }
        }
        let after = is_complete.then(|| self.row_counts()).flatten();
        if let (Some(before), Some(after)) = (rows, after) {
            let grown = [after[0] - before[0], after[1] - before[1]];
            compare_balances(grown, [&work[0], &work[1]], &mut shown.work);
        }
        conditions.is_other_work = !shown.work.differences.is_empty();
        let failures = observation::failures(&units);
        conditions.failed_shares = failures.each_ref().map(|side| observation::share(side));
        let [a, b] = conditions.failed_shares;
        conditions.failed_share_max = a.max(b);
        let [a, b] = &failures;
        conditions.failed_difference =
            stats::failed_share::difference(a, b, MeasuringConditions::FAILED_CONFIDENCE);
        let names = self.arena.sides().map(ComparedSide::name);
        shown.doubts.extend(doubts::doubts(&octets, names, &conditions));
        shown.doubts.extend(doubts::of_tidying(names, shown.instances.tidy_s));
        shown.doubts.extend(doubts::of_cut_tidying(names, cut, tidy::limit(self.max_time)));
        shown.doubts.extend(shown.identical.as_ref().and_then(doubts::of_identical));
        shown.doubts.extend(missed);
        shown.doubts.extend(lost.clone());
        let cpu = figures.iter().find(|figure| figure.metric == ComparedMetric::Cpu);
        if let (Some(profile), Some(cpu)) = (&mut shown.profile, cpu) {
            for (folded, cpu_us) in profile.folded.iter_mut().zip(cpu.sides) {
                *folded = profile::scaled(folded, cpu_us * 1e3);
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        // Servers that end because the user has asked for it did not die.
        if stop == ComparisonStop::Died && self.control.urgency() != StopUrgency::None {
            stop = ComparisonStop::Interrupted;
        }
        let crashes = match stop {
            ComparisonStop::Interrupted => Vec::new(),
            _ => watched.end(self.arena.sides()),
        };
        if !crashes.is_empty() {
            stop = ComparisonStop::Died;
        }
        let threshold = self.rule.threshold;
        let judged = self.rule.judged(&figures, &shown.instances).into_iter();
        let judged: Vec<_> = judged.map(|figure| figure.under(&conditions, threshold)).collect();
        let mixed = self.mixed();
        let production = mixed.and_then(|mixed| statements.forecast(mixed, &self.time_shares));
        let by_statement = mixed.map(|mixed| {
            let differences = &self.rehearsal.differences;
            let instances = &shown.instances;
            let mut all =
                statements.judged(mixed, threshold, instances, differences, &self.excluded);
            for one in &mut all {
                one.production = self.time_shares.get(&one.script).copied();
            }
            all
        });
        let shown = PairResults {
            pairs: pairs(&segments),
            seconds,
            stop,
            figures: judged,
            background: observation::background(&octets),
            waits: waits::waits(&waits),
            // A load of one script has none.
            statements: by_statement.unwrap_or_default(),
            production,
            conditions,
            ..shown
        };
        let shown = shown.with_reservations(threshold, self.rule.horizon_s);
        let series = figure::series(&units, &self.names());
        let decides = self.rule.deciding.clone();
        let (differences, notes) = (Vec::new(), Vec::new());
        Ok(PairMeasurement { shown, series, crashes, lost, decides, differences, notes })
    }

    /// The servers of a segment's load whose slow transactions are attributed to causes.
    fn sampled<'s>(&'s self, plan: &'s LoadPlan, warm_blocks: usize) -> Vec<SampledServer<'s>> {
        let sides = self.arena.sides();
        let of_side = |side: usize| {
            let workloads = &self.workloads[side];
            let load: Vec<&str> = workloads.iter().map(|one| one.conninfo.as_str()).collect();
            let of_a = self.workloads[0].len();
            let is_own = |one: &usize| observation::side_of(*one, of_a).0 == side;
            SampledServer {
                conninfo: load.first().expect("a side has a workload"),
                database: None,
                postmasters: sides[side].pids(),
                load,
                workloads: (0..plan.workloads.len()).filter(is_own).collect(),
                has_rate: workloads.iter().any(|one| one.pace.rate().is_some()),
                turns: Some(SampledTurns { side, warm_blocks }),
            }
        };
        self.sampled_sides().map(of_side).collect()
    }

    /// The sides that are sampled.
    fn sampled_sides(&self) -> impl Iterator<Item = usize> + use<> {
        let sampled = self.tail;
        [0, 1].into_iter().filter(move |side| sampled[*side])
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
        let throughput = figures.iter().find(|figure| figure.metric == ComparedMetric::Throughput);
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
    pub(crate) contest: &'c mut PairContest<'a>,
    pub(crate) shape: BlockShape,
    began: Instant,
    confidence: Confidence,
    conditions: MeasuringConditions,
    pub(crate) waits: [waits::Counts; 2],
    pub(crate) octets: Vec<BlockOctet>,
    /// The segments, each as one.
    units: Vec<BlockOctet>,
    /// The segment under way.
    pub(crate) under_way: RestartSegment,
    pub(crate) cost: RestartCost,
    /// What passed before the segment under way, warming up included, in seconds.
    between_s: f64,
    /// The greatest age of a server so far, since its restart, in seconds.
    oldest_s: f64,
    /// How often vacuum and checkpoint of A and of B were ended by their limit.
    cut: [usize; 2],
    /// Those of A and of B.
    pub(crate) backlog: [UnstartedTransactions; 2],
    /// What the statements of A's workloads and of B's did.
    pub(crate) work: [Vec<WorkloadWork>; 2],
    /// The times of the scripts of a mixed load.
    pub(crate) statements: StatementSeries,
    /// Every transaction so far ended well: the tags of its statements say what the tables hold.
    pub(crate) is_complete: bool,
    /// The segments, each measured from one restart to the next, warm-up left out.
    pub(crate) segments: Vec<RestartSegment>,
    /// The figures of all segments together.
    figures: Vec<ComparedFigure>,
    found: PairMeasurement,
}

impl<'c, 'a> ContestRun<'c, 'a> {
    fn new(contest: &'c mut PairContest<'a>, shape: BlockShape, began: Instant) -> Self {
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
                looks: LookSchedule::Any,
            },
            conditions: MeasuringConditions {
                cores: is_here.then_some(cores),
                ..MeasuringConditions::default()
            },
            waits: Default::default(),
            octets: Vec::new(),
            units: Vec::new(),
            under_way: RestartSegment::default(),
            cost: RestartCost::default(),
            between_s: WARM_MS as f64 / 1e3,
            oldest_s: 0.0,
            cut: [0; 2],
            backlog: Default::default(),
            work: Default::default(),
            statements: StatementSeries::default(),
            is_complete: true,
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
    fn segments(
        &mut self,
        observe: &mut dyn FnMut(PairEvent<'_>),
    ) -> Result<ComparisonStop, PairError> {
        for number in 0.. {
            if self.contest.control.urgency() != StopUrgency::None {
                return Ok(ComparisonStop::Interrupted);
            }
            if self.octets_in(self.left().as_secs_f64() - self.between_s) < 1 {
                return Ok(ComparisonStop::Time);
            }
            let ended = Instant::now();
            let is_exchanged = self.is_exchanged(number);
            let renewed = self.renew(is_exchanged);
            let started = Instant::now();
            if let Err(error) = renewed.and_then(|()| self.statements_alone(number)) {
                return self.stopped(error);
            }
            let led_in_and_out_s = (WARM_MS + self.shape.led_out_ms()) as f64 / 1e3;
            self.between_s = ended.elapsed().as_secs_f64() + led_in_and_out_s;
            if number == 0 {
                self.tell_if_short(observe);
                self.plan_looks();
                if let Some(note) = self.power_words() {
                    observe(PairEvent::Outlook(&note));
                }
            }
            let octets = self.octets_in(self.left().as_secs_f64() - led_in_and_out_s);
            if octets < 1 {
                return Ok(ComparisonStop::Time);
            }
            self.under_way =
                RestartSegment { is_exchanged, planned: octets, ..RestartSegment::default() };
            let stop = match self.shape.turn {
                None => self.segment(number, octets),
                Some(transactions) => self.turns(number, octets, transactions),
            };
            self.oldest_s = self.oldest_s.max(started.elapsed().as_secs_f64());
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
        Ok(ComparisonStop::Time)
    }

    /// Number of octets of a segment that fit into so many seconds.
    fn octets_in(&self, seconds: f64) -> usize {
        (seconds.min(self.segment_s()) / self.shape.octet_s() + 1e-9).floor().max(0.0) as usize
    }

    /// Length of a segment, now that it is known what comes before one.
    fn segment_s(&self) -> f64 {
        self.contest.segment_s(self.shape.octet_s(), self.between_s)
    }

    /// Number of segments that fit into the time that is left, the one that is about to begin included.
    fn segments_left(&self) -> usize {
        let left_s = self.left().as_secs_f64() - WARM_MS as f64 / 1e3;
        schedule::segments(left_s, self.segment_s(), self.between_s)
    }

    /// Plans the looks, where that was asked for and the time is not too short.
    fn plan_looks(&mut self) {
        let segments = self.segments_left();
        if self.contest.rule.is_planned && segments >= OBSERVATIONS_MIN {
            let planned = PlannedLooks { of: PLANNED_LOOKS, segments, last: None };
            self.found.shown.planned = Some(planned);
        }
    }

    /// How often differences are found in the time, by the noise of the pilots and of instances here; none where there are
    /// too few segments, or the pilots show nothing.
    fn power_words(&self) -> Option<String> {
        let metric = *self.contest.rule.deciding.first()?;
        let segments = self.segments_left();
        let of_octets = self.shape.variance_s? / self.segment_s();
        let spread = (self.contest.floor.spread(metric).powi(2) + of_octets).sqrt();
        if metric != ComparedMetric::Throughput || segments < OBSERVATIONS_MIN {
            return None;
        }
        let planned = self.found.shown.planned.map(|planned| planned.of);
        let error = 1.0 - self.confidence.deciding;
        let found = FOUND.map(|share: f64| {
            let power = sequence::power(segments, share.ln_1p() / spread, error, planned);
            (format!("{:.0} %", share * 100.0), format!("{:.0}", power * 100.0))
        });
        let [(first, of_first), rest @ ..] = found;
        let rest = rest.map(|(share, power)| format!("{share} in {power}"));
        Some(format!(
            "a difference of {first} is found in {of_first} of 100 such runs ({}), {}",
            terms::counted(segments as u64, "restart"),
            rest.join(", ")
        ))
    }

    /// Says that the time is too short for an interval, where it is, and which time would do.
    fn tell_if_short(&mut self, observe: &mut dyn FnMut(PairEvent<'_>)) {
        let (segment_s, between_s) = (self.segment_s(), self.between_s);
        let fits = self.segments_left();
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
        observe(PairEvent::Outlook(&note));
        self.found.shown.doubts.push(note);
    }

    /// True if the sides have exchanged their files in this segment: in one of two, at random.
    fn is_exchanged(&self, number: u64) -> bool {
        let pair = stats::mix(self.contest.seed.wrapping_add(number / 2));
        self.contest.arena.renewal() == ServerRenewal::Exchanged && (number + pair) % 2 == 1
    }

    /// Vacuum and checkpoint, then new instances.
    fn renew(&mut self, is_exchanged: bool) -> Result<(), PairError> {
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
    fn stopped(&mut self, error: PairError) -> Result<ComparisonStop, PairError> {
        // What ends because the user asked for it has not failed.
        if self.contest.control.urgency() != StopUrgency::None {
            return Ok(ComparisonStop::Interrupted);
        }
        if self.figures.iter().all(|figure| figure.ratio.is_none()) {
            // Both sides have stood their pilots: whatever ends them now is no mistake in what was asked for.
            return Err(match error {
                PairError::Died { .. }
                | PairError::Profile { .. }
                | PairError::Interrupted { .. } => error,
                error => PairError::Ended { source: Box::new(error) },
            });
        }
        let pairs = terms::counted(pairs(&self.segments) as u64, "pair");
        self.found.lost = Some(match error {
            // Where nothing of a side ended well, its first clients failed in the lead-in of a later segment.
            PairError::Died { side, why } | PairError::Failing { side, why } => {
                format!("a client of side {side} failed after {pairs}: {why}")
            }
            error => format!("it ended after {pairs}: {error}"),
        });
        Ok(ComparisonStop::Died)
    }

    /// One load of both sides in turn.
    fn segment(&mut self, number: u64, octets: usize) -> Result<Option<ComparisonStop>, PairError> {
        // Each side has two blocks at least.
        let warm_blocks = (WARM_MS.div_ceil(self.shape.length_ms) as usize).max(4);
        let plan = self.plan(number, warm_blocks, octets);
        let order = plan.blocks.as_ref().map_or(&[][..], |blocks| &blocks.order);
        let block_s = self.shape.active_s();
        let workloads = &self.contest.workloads;
        let of_a = workloads[0].len();
        let clients: [Vec<u32>; 2] =
            workloads.each_ref().map(|side| side.iter().map(|one| one.clients).collect());
        let own = LoadControl::new();
        let mut blocks = 0;
        let mut octet = BlockOctet::default();
        let mut stop = None;
        let mut first = None;
        let profiler = self.profiler(number)?;
        // Sessions of their own, for the servers are new.
        let sides = self.contest.arena.sides();
        let mut meter = ResourceMeter::new(sides, SessionLife::Whole);
        let watch = WaitSampler::new(sides, plan.seed);
        let sampled = self.contest.sampled(&plan, warm_blocks);
        let load = PreparedLoad::new(&plan, Instant::now(), sampled);
        let mut watch_blocks = |event: &load::LoadEvent<'_>| {
            if self.contest.control.urgency() != StopUrgency::None && stop.is_none() {
                stop = Some(ComparisonStop::Interrupted);
                own.interrupt();
            }
            match event {
                // A client ends: the rest of the segment would compare fewer clients with more.
                load::LoadEvent::Message(message) if message.level == load::MessageLevel::Error => {
                    first.get_or_insert_with(|| message.text.clone());
                    if stop.is_none() {
                        stop = Some(ComparisonStop::Died);
                        own.interrupt();
                    }
                }
                load::LoadEvent::Interval(cells) if stop.is_none() => {
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
        };
        let measured = load.run(LaneFleet::Threads, &own, &mut [&mut watch_blocks]);
        for (sum, counts) in self.waits.iter_mut().zip(watch.end()) {
            waits::add(sum, &counts);
        }
        let LoadMeasurement { mut outcome, tails, .. } = measured.map_err(|source| {
            PairError::Load { side: "A or B".to_owned(), source: Box::new(source) }
        })?;
        self.note_tails(tails);
        for (workload, done) in std::mem::take(&mut outcome.work).into_iter().enumerate() {
            let result = &outcome.workloads[workload];
            self.note_work(observation::side_of(workload, of_a), done, result);
        }
        if let Some(profiler) = profiler {
            match profiler.end() {
                Ok(profile) => self.found.shown.profile = Some(profile),
                // Figures are worth as much without it.
                Err(error) => self.found.shown.doubts.push(error.to_string()),
            }
        }
        self.note_generator(&outcome.generator);
        if self.contest.mixed().is_some() {
            let sides = [0, 1].map(|side| &outcome.scripts[side][..]);
            self.statements.add_together(sides);
        }
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
            let counts = &result.counts_total;
            let is_over = counts.aborted_clients > 0 || outcome.end == LoadEnd::Completed;
            let why = first.clone().unwrap_or_else(|| {
                format!(
                    "no client said why; of its transactions {} ended, {} failed, {} were due and did not begin",
                    counts.transactions,
                    counts.failed(),
                    result.never_started
                )
            });
            let side = side.name().to_owned();
            if counts.transactions == 0 && is_over {
                return Err(PairError::Failing { side, why });
            }
            if counts.aborted_clients > 0 {
                return Err(PairError::Died { side, why });
            }
        }
        Ok(stop)
    }

    /// Adds the slow transactions of a segment to those of the segments before, and doubts about them.
    fn note_tails(&mut self, tails: Vec<ServerTail>) {
        for (side, found) in self.contest.sampled_sides().zip(tails) {
            let (shown, name) = (&mut self.found.shown, SIDES[side]);
            for note in found.notes {
                let doubt = format!("tail of {name}: {note}");
                if !shown.doubts.contains(&doubt) {
                    shown.doubts.push(doubt);
                }
            }
            let place: &mut Option<SlowTransactions> =
                if side == 0 { &mut shown.tails.a } else { &mut shown.tails.b };
            match (place, found.tail) {
                (Some(before), Some(tail)) => before.add(tail),
                (place, Some(tail)) => *place = Some(tail),
                (_, None) => {}
            }
        }
    }

    /// Adds what a workload of a side did, and whether all of its transactions ended well.
    pub(crate) fn note_work(
        &mut self,
        (side, position): (usize, usize),
        done: WorkloadWork,
        result: &WorkloadResult,
    ) {
        let counts = &result.counts_total;
        let has_failed = counts.failed() + counts.retries + counts.aborted_clients + result.unknown;
        self.is_complete &= has_failed == 0;
        let work = &mut self.work[side];
        let len = work.len().max(position + 1);
        // A workload without an answer so far did nothing.
        work.resize(len, WorkloadWork::default());
        work[position].add(done);
    }

    /// Keeps the worst that was seen of the generator.
    pub(crate) fn note_generator(&mut self, generator: &GeneratorCost) {
        let seen = &mut self.conditions;
        seen.busy_share_max = seen.busy_share_max.max(generator.busy_share_max);
        // A share that was not read is not the worst one.
        let delay = generator.run_delay_share.unwrap_or(0.0);
        seen.run_delay_share_max = seen.run_delay_share_max.max(delay);
    }

    /// Samples the first segment, if that was asked for.
    fn profiler(&self, segment: u64) -> Result<Option<Profiler>, PairError> {
        if !self.contest.has_profile || segment > 0 {
            return Ok(None);
        }
        let pids = self.contest.arena.sides().map(ComparedSide::pids);
        Profiler::begin(pids).map(Some)
    }

    /// Blocks that warm both sides up, then so many octets, and one block more: while it runs, the sessions are
    /// there whose processes are read after the last octet.
    fn plan(&self, number: u64, warm_blocks: usize, octets: usize) -> LoadPlan {
        // Each segment draws keys of its own, the same on both sides.
        let seed = self.contest.seed.wrapping_add(number);
        let mut order = design::order(octets + 1 + warm_blocks.div_ceil(CYCLE), seed);
        order.truncate(order.len() + 1 - CYCLE);
        let order = order.split_off(order.len() - 1 - octets * CYCLE - warm_blocks);
        let BlockShape { length_ms, rest_ms, .. } = self.shape;
        let window_ms = order.len() as u64 * length_ms;
        let workloads = &self.contest.workloads;
        let sides = [0, 1].map(|side| vec![side; workloads[side].len()]).concat();
        LoadPlan {
            seed,
            limit: LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms },
            blocks: Some(BlockSchedule { length_ms, rest_ms, sides, order }),
            slowest: self.contest.tail != [false; 2],
            ..self.contest.plan(workloads.concat(), length_ms)
        }
    }

    /// Evaluates the segments so far; returns the reason to stop if they are enough.
    fn look(&mut self, observe: &mut dyn FnMut(PairEvent<'_>)) -> Option<ComparisonStop> {
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
        let planned = self.found.shown.planned;
        let number = planned.and_then(|planned| planned.at(self.units.len()));
        self.evaluate(number);
        let shown = &mut self.found.shown;
        let seconds = self.began.elapsed().as_secs_f64();
        let ratios = self.figures.iter().filter_map(|figure| {
            let ratio = figure.ratio?;
            Some((figure.metric, [ratio.point, ratio.low, ratio.high]))
        });
        let (pairs, ratios) = (pairs(&self.segments), ratios.collect());
        shown.looks.push(InterimLook {
            pairs,
            seconds,
            segment: ratio,
            is_exchanged,
            ratios,
            background,
        });
        let (figures, PairResults { looks, instances, .. }) = (&self.figures, &*shown);
        observe(PairEvent::Progress(PairProgress { pairs, figures, looks, instances, seconds }));
        // The other scripts of a mixed load are compared.
        if self.contest.mixed().is_none() && !self.found.shown.work.differences.is_empty() {
            return Some(ComparisonStop::OtherWork);
        }
        let needed = self.contest.rule.deciding.iter().map(|one| figure::transactions_min(*one));
        // Where no figure decides, none needs transactions.
        let needed = needed.max().unwrap_or(0) as f64;
        let share = seconds / self.contest.max_time.as_secs_f64();
        let is_due = observation::transactions_min(&self.units) as f64 >= needed * share;
        if planned.is_some() && number.is_none() {
            return None;
        }
        let rule = &self.contest.rule;
        let PairResults { instances, rare, .. } = &self.found.shown;
        let rare = rare.as_ref();
        let stop =
            rule.stops(&self.figures, StoppingEvidence { instances, rare }, is_due).or_else(|| {
                let is_judged = !rule.claims.is_empty()
                    && rule.are_judged(&figure::series(&self.units, &self.contest.names()), rare);
                is_judged.then_some(ComparisonStop::Decided)
            });
        stop.or_else(|| (number == Some(PLANNED_LOOKS)).then_some(ComparisonStop::Time))
    }

    /// The figures of all segments so far, at a planned look with this number, or between two looks.
    fn evaluate(&mut self, number: Option<u32>) {
        let (renewal, floor) = (self.contest.arena.renewal(), &self.contest.floor);
        let shown = &mut self.found.shown;
        shown.instances = instances::instances(&self.segments, renewal, floor, self.cost);
        shown.identical = figure::identical(&self.units, CONFIDENCE).map(figure::recorded);
        shown.rare = self
            .shape
            .turn
            .is_none()
            .then(|| observation::rare(&self.units, renewal.restarts(), self.oldest_s));
        shown.trend = figure::trend(&self.segments, CONFIDENCE).map(figure::recorded);
        shown.neighbours = figure::neighbours(&self.units);
        if let Some(planned) = &mut shown.planned {
            planned.last = number;
        }
        let confidence = Confidence { looks: shown.looked_at(), ..self.confidence.clone() };
        self.figures = figure::figures(&self.units, &confidence);
        for figure in &mut self.figures {
            figure.allow_for(&shown.instances);
        }
    }

    /// The last of the planned looks, where the time was over before it.
    fn look_at_end(&mut self, stop: ComparisonStop) {
        let is_open = self.found.shown.planned.is_some_and(|planned| planned.last.is_none());
        if is_open && stop == ComparisonStop::Time {
            self.evaluate(Some(PLANNED_LOOKS));
        }
    }
}

/// Differences of which it is said how often they are found.
const FOUND: [f64; 3] = [0.1, 0.05, 0.02];

/// Pairs of neighbouring blocks.
fn pairs(segments: &[RestartSegment]) -> usize {
    segments.iter().map(|segment| segment.pairs).sum()
}

/// Does for both sides, at the same time, what would otherwise happen inside a block.
fn tidy(
    grounds: [&dyn ComparedSide; 2],
    limit: Duration,
) -> Result<[MaintenanceResult; 2], PairError> {
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
