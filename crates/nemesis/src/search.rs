//! A search as a state machine: it asks for an experiment, and takes its outcome.

use std::collections::{BTreeMap, BTreeSet};

use crate::coverage::FaultCoverage;
use crate::rate::ViolationRate;
use crate::schedule::FaultSchedule;
use crate::shrink::{self, ScheduleReduction};
use crate::space::FaultSpace;

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Schedules that are drawn at most; none for no limit.
    pub schedules: Option<u64>,
    /// Trials that tell the rate of a schedule.
    pub repeats: u64,
}

/// Why a schedule is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialPurpose {
    /// It was drawn.
    Drawn,
    /// It has broken a promise: how often does it?
    Confirm,
    /// Does a smaller one break the same promise?
    Shrink(ScheduleReduction),
    /// The smallest one: how often does it?
    Rate,
}

/// A trial to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleTrial {
    /// The schedule.
    pub schedule: FaultSchedule,
    /// The number of that schedule among all that were asked for, from 1.
    pub number: usize,
    /// Which trial of that schedule it is, from 1.
    pub run: u32,
    /// The reason.
    pub purpose: TrialPurpose,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// Every promise was kept.
    Kept,
    /// These promises were broken.
    Broken(Vec<String>),
    /// It does not tell: it was void, or its servers failed.
    Untold,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromiseViolation {
    /// The promise that is broken.
    pub promise: String,
    /// The schedule as it was drawn, and its number.
    pub drawn: (usize, FaultSchedule),
    /// How often that one breaks the promise, the trial that found it left out.
    pub rate_drawn: ViolationRate,
    /// The smallest schedule that breaks the promise, and its number.
    pub smallest: (usize, FaultSchedule),
    /// How often the smallest one does; no trial of it decided that it is the smallest. None before it was asked.
    pub rate: Option<ViolationRate>,
    /// Smaller schedules that were tried.
    pub candidates: usize,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct ScheduleSearch {
    space: FaultSpace,
    seed: u64,
    limits: SearchLimits,
    phase: Phase,
    /// Number of each schedule that was asked for, and how often it was.
    numbers: BTreeMap<FaultSchedule, (usize, u32)>,
    drawn: u64,
    untold: u64,
    coverage: FaultCoverage,
    /// Schedules that broke a promise once and not again.
    once: Vec<PromiseViolation>,
}

#[derive(Clone, Debug)]
enum Phase {
    Drawing(FaultSchedule),
    Found(PromiseViolation, Stage),
    Over(Option<PromiseViolation>),
}

/// What is asked of a schedule that has broken a promise.
#[derive(Clone, Debug)]
enum Stage {
    Confirming(Tally),
    /// The smaller schedules that do not break it.
    Shrinking(Candidate, BTreeSet<FaultSchedule>),
    Rating(Tally),
}

/// A smaller schedule.
#[derive(Clone, Debug)]
struct Candidate {
    change: ScheduleReduction,
    schedule: FaultSchedule,
    tally: Tally,
}

/// Trials of one schedule.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    rate: ViolationRate,
    untold: u64,
}

impl Tally {
    /// Takes an outcome down; true if it broke this promise.
    fn note(&mut self, outcome: &TrialOutcome, promise: &str) {
        match outcome {
            TrialOutcome::Untold => self.untold += 1,
            TrialOutcome::Kept => self.rate.note(false),
            TrialOutcome::Broken(promises) => {
                self.rate.note(promises.iter().any(|it| it == promise))
            }
        }
    }
}

impl ScheduleSearch {
    /// A search that has asked for nothing yet.
    pub fn new(space: FaultSpace, seed: u64, limits: SearchLimits) -> ScheduleSearch {
        let repeats = limits.repeats.max(1);
        let mut search = ScheduleSearch {
            space,
            seed,
            limits: SearchLimits { repeats, ..limits },
            phase: Phase::Over(None),
            numbers: BTreeMap::new(),
            drawn: 0,
            untold: 0,
            coverage: FaultCoverage::default(),
            once: Vec::new(),
        };
        search.phase = search.drawn();
        search
    }

    /// The next trial; none where the search is over. It is the same until [`ScheduleSearch::tell`] is called.
    pub fn next(&self) -> Option<ScheduleTrial> {
        let (schedule, purpose) = match &self.phase {
            Phase::Drawing(schedule) => (schedule, TrialPurpose::Drawn),
            Phase::Found(finding, Stage::Confirming(_)) => {
                (&finding.drawn.1, TrialPurpose::Confirm)
            }
            Phase::Found(_, Stage::Shrinking(one, _)) => {
                (&one.schedule, TrialPurpose::Shrink(one.change))
            }
            Phase::Found(finding, Stage::Rating(_)) => (&finding.smallest.1, TrialPurpose::Rate),
            Phase::Over(_) => return None,
        };
        let known = self.numbers.get(schedule);
        let (number, run) =
            known.map_or((self.numbers.len() + 1, 1), |(number, runs)| (*number, runs + 1));
        Some(ScheduleTrial { schedule: schedule.clone(), number, run, purpose })
    }

    /// Takes the outcome of the trial that [`ScheduleSearch::next`] asked for; a search that is over takes none. `skipped` are the
    /// indices of the steps that were not done, for there was no such victim.
    pub fn tell(&mut self, outcome: &TrialOutcome, skipped: &[usize]) {
        let Some(ScheduleTrial { schedule, number, run, .. }) = self.next() else {
            // It asked for nothing.
            return;
        };
        self.numbers.insert(schedule.clone(), (number, run));
        match outcome {
            TrialOutcome::Untold => self.untold += 1,
            _ => self.coverage.note(&self.space, &schedule, skipped),
        }
        self.phase = match std::mem::replace(&mut self.phase, Phase::Over(None)) {
            Phase::Drawing(_) => match outcome {
                TrialOutcome::Broken(promises) if !promises.is_empty() => {
                    let finding = PromiseViolation {
                        promise: promises[0].clone(),
                        drawn: (number, schedule.clone()),
                        rate_drawn: ViolationRate::default(),
                        smallest: (number, schedule),
                        rate: None,
                        candidates: 0,
                    };
                    Phase::Found(finding, Stage::Confirming(Tally::default()))
                }
                _ => self.drawn(),
            },
            Phase::Found(finding, Stage::Confirming(tally)) => {
                self.confirm(finding, tally, outcome)
            }
            Phase::Found(finding, Stage::Shrinking(one, seen)) => {
                self.shrink(finding, (number, one), seen, outcome)
            }
            Phase::Found(mut finding, Stage::Rating(mut tally)) => {
                tally.note(outcome, &finding.promise);
                finding.rate = Some(tally.rate);
                // A rare one needs more trials to be seen at all.
                let (_, most) = needed(finding.rate_drawn, self.limits.repeats);
                let most = most.max(self.limits.repeats);
                match tally.rate.of < most && tally.untold <= self.limits.repeats {
                    true => Phase::Found(finding, Stage::Rating(tally)),
                    false => Phase::Over(Some(finding)),
                }
            }
            Phase::Over(finding) => Phase::Over(finding),
        };
    }

    /// Draws no more: the time is up. What was found is still shrunk.
    pub fn end_drawing(&mut self) {
        if let Phase::Drawing(_) = self.phase {
            self.phase = Phase::Over(None);
        }
    }

    /// What was found.
    pub fn finding(&self) -> Option<&PromiseViolation> {
        match &self.phase {
            Phase::Drawing(_) => None,
            Phase::Found(finding, _) => Some(finding),
            Phase::Over(finding) => finding.as_ref(),
        }
    }

    /// Schedules that broke a promise once, and not in all the trials that were to tell how often.
    pub fn seen_once(&self) -> &[PromiseViolation] {
        &self.once
    }

    /// What was tried so far, smaller schedules included.
    pub fn coverage(&self) -> &FaultCoverage {
        &self.coverage
    }

    /// What may be drawn.
    pub fn space(&self) -> &FaultSpace {
        &self.space
    }

    /// Schedules that were drawn and have been run.
    pub fn schedules(&self) -> u64 {
        self.drawn - u64::from(matches!(self.phase, Phase::Drawing(_)))
    }

    /// Trials that did not tell.
    pub fn untold(&self) -> u64 {
        self.untold
    }

    /// Draws the next schedule; one that was drawn before, or is empty, is passed over.
    fn drawn(&mut self) -> Phase {
        let is_new = |it: &FaultSchedule| !it.steps.is_empty() && !self.numbers.contains_key(it);
        let is_left = self.limits.schedules.is_none_or(|most| self.drawn < most);
        let numbers = (self.numbers.len() as u64 + 1)..;
        let numbers = numbers.take(if is_left { DRAWS_MAX } else { 0 });
        let schedule = numbers.map(|number| self.space.draw(self.seed, number)).find(is_new);
        self.drawn += u64::from(schedule.is_some());
        schedule.map_or(Phase::Over(None), Phase::Drawing)
    }

    fn confirm(
        &mut self,
        mut finding: PromiseViolation,
        mut tally: Tally,
        outcome: &TrialOutcome,
    ) -> Phase {
        let repeats = self.limits.repeats;
        tally.note(outcome, &finding.promise);
        finding.rate_drawn = tally.rate;
        let ViolationRate { broken, of } = tally.rate;
        // One that is rare gets more trials, until it is seen again.
        let most = if broken == 0 { repeats * RARE_TIMES } else { repeats };
        let is_over = of >= most || tally.untold > repeats;
        match (is_over, broken) {
            (false, _) => Phase::Found(finding, Stage::Confirming(tally)),
            // Seen once and not again: no smaller one can be told from it, and the search goes on.
            (true, 0) => {
                finding.rate = Some(tally.rate);
                self.once.push(finding);
                self.drawn()
            }
            (true, _) => self.smaller(finding, BTreeSet::new()),
        }
    }

    /// Takes the outcome of a smaller schedule. It is taken where it breaks the promise at least half as often as the
    /// one that was drawn, and not earlier: else a schedule that hardly ever breaks it would take the place of one that
    /// always does.
    fn shrink(
        &self,
        mut finding: PromiseViolation,
        (number, mut one): (usize, Candidate),
        mut seen: BTreeSet<FaultSchedule>,
        outcome: &TrialOutcome,
    ) -> Phase {
        one.tally.note(outcome, &finding.promise);
        let (needed, most) = needed(finding.rate_drawn, self.limits.repeats);
        let ViolationRate { broken, of } = one.tally.rate;
        if broken >= needed {
            finding.smallest = (number, one.schedule);
            return self.smaller(finding, seen);
        }
        let may_be = needed - broken <= most.saturating_sub(of);
        if may_be && one.tally.untold <= self.limits.repeats {
            return Phase::Found(finding, Stage::Shrinking(one, seen));
        }
        seen.insert(one.schedule);
        self.smaller(finding, seen)
    }

    /// Asks for the next smaller schedule, or for the rate of the smallest.
    fn smaller(&self, mut finding: PromiseViolation, seen: BTreeSet<FaultSchedule>) -> Phase {
        let next = shrink::next(&finding.smallest.1, &self.space, &seen);
        let next = next.filter(|_| finding.candidates < CANDIDATES_MAX);
        let Some((change, schedule)) = next else {
            return Phase::Found(finding, Stage::Rating(Tally::default()));
        };
        finding.candidates += 1;
        let one = Candidate { change, schedule, tally: Tally::default() };
        Phase::Found(finding, Stage::Shrinking(one, seen))
    }
}

/// Trials that must break the promise, of how many, for a smaller schedule to be taken: two of three where nearly every
/// trial of the one that was drawn broke it.
fn needed(drawn: ViolationRate, repeats: u64) -> (u64, u64) {
    let share = drawn.share();
    if share >= NEARLY_ALWAYS {
        return (2, 3);
    }
    // So many that one which is as likely to break it is missed in one of twenty cases.
    let most = (0.05_f64.ln() / (1.0 - share).ln()).ceil() as u64;
    (1, most.clamp(repeats.min(3), repeats * RARE_TIMES))
}

const NEARLY_ALWAYS: f64 = 0.8;
/// A violation that is seen in one trial of so many times [`SearchLimits::repeats`] is still shrunk.
const RARE_TIMES: u64 = 4;
/// Smaller schedules that are tried at most.
const CANDIDATES_MAX: usize = 100;
/// Draws in search of a schedule that is new: a space without another one has none left.
const DRAWS_MAX: usize = 1_000;
