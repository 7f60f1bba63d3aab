//! A bisection, step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use load::{LoadControl, StopUrgency};
use measure::{ComparisonOptions, StopCondition};
use record::comparison::ComparedMetric;
use study::{ComparedLoad, ComparisonLoad, ComparisonRequest, PairData, SideOptions};

use crate::error::Error;
use crate::repository::{BuildCommand, BuildSource, BuiltCommit, Commit, Repository};
use crate::rule::{IntervalPosition, RatioThreshold, error_per_step};
use crate::search::{CommitSearch, CommitVerdict, SearchAnswer};
use crate::state::{BisectionState, ComparisonStep, StepKind};

/// The user's request.
pub struct BisectionRequest {
    /// The repository, and the commits of its state.
    pub repository: Repository,
    /// The command that builds a commit.
    pub build: BuildCommand,
    /// The data of every server. `{}` in its path, and in `sql`, is the tree of the commit.
    pub data: PairData,
    /// A script that is run on every server after its data are there.
    pub sql: Option<PathBuf>,
    /// Settings of every server.
    pub settings: Vec<(String, String)>,
    /// pgbench's options, and the same as they were typed.
    pub workload: pgbench::options::RunOptions,
    /// See `workload`.
    pub words: String,
    /// The figure that decides.
    pub figure: ComparedMetric,
    /// Options of every comparison; its time is that of a step.
    pub common: ComparisonOptions,
    /// Run VACUUM (ANALYZE) after data of the user's.
    pub analyzes: bool,
    /// The rig's program.
    pub program: PathBuf,
    /// The whole of it takes this long at most.
    pub max_time: Option<Duration>,
}

/// The result of comparing a commit with the good one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommitComparison {
    /// Commit ÷ good: value, lower and upper bound of the figure that decides.
    pub ratio: Option<[f64; 3]>,
    /// Why it cannot be judged.
    pub refusal: Option<String>,
}

/// A function that compares: it is given the name of the step's record as well.
pub type Comparer<'a> = dyn Fn(
        &ComparisonRequest,
        &str,
        &mut dyn FnMut(measure::PairEvent<'_>),
    ) -> Result<CommitComparison, study::Error>
    + 'a;

/// Compares two servers, and keeps the record below a directory.
pub fn compare_servers(
    request: &ComparisonRequest,
    directory: &Path,
    control: &LoadControl,
    observe: &mut dyn FnMut(measure::PairEvent<'_>),
) -> Result<CommitComparison, study::Error> {
    let found = study::versus(request, control, observe)?;
    let comparison = found.header.comparison.as_ref();
    let headline = comparison.map(record::Comparison::headline);
    let threshold = comparison.expect("a comparison was asked for").threshold;
    let shown = &found.paired.shown;
    let figure = headline.and_then(|metric| shown.figure(metric));
    let ratio = figure.and_then(|figure| figure.b_over_a.as_ref());
    let ratio = ratio.map(|ratio| [ratio.value, ratio.low, ratio.high]);
    let refusal = figure.and_then(|figure| figure.refusal(&shown.conditions, threshold));
    let compared = CommitComparison { ratio, refusal: refusal.map(|doubt| doubt.words()) };
    found.save(directory, Some(directory))?;
    Ok(compared)
}

/// An event of a bisection.
#[derive(Debug)]
pub enum BisectionEvent<'a> {
    /// A commit is built.
    Building(&'a Commit),
    /// A step begins.
    Step {
        /// The kind of the step.
        kind: StepKind,
        /// The commit that is compared with the good one.
        commit: &'a Commit,
        /// Steps so far, and how many there are at most.
        number: [usize; 2],
    },
    /// An event of its comparison.
    Comparing(measure::PairEvent<'a>),
    /// A step is over.
    Over(&'a ComparisonStep, &'a Commit),
}

/// A bisection that is over, or was interrupted.
#[derive(Debug)]
pub struct Bisection {
    /// Everything that is known.
    pub state: BisectionState,
    /// It was interrupted, or its time was over, before the answer was there.
    pub is_interrupted: bool,
}

/// Goes on from a state until the answer is there. Every step is written into the directory.
pub fn bisect(
    request: &BisectionRequest,
    mut state: BisectionState,
    directory: &Path,
    control: &LoadControl,
    comparer: &Comparer<'_>,
    observe: &mut dyn FnMut(BisectionEvent<'_>),
) -> Result<Bisection, Error> {
    let began = Instant::now();
    state.write(directory)?;
    let mut course = Course { request, control, comparer, observe };
    let last = state.commits.len() - 1;
    let steps = CommitSearch::steps_max(last) + PREFLIGHT;
    let error = error_per_step(state.error, steps);
    let is_over = |control: &LoadControl| {
        control.urgency() != StopUrgency::None
            || request.max_time.is_some_and(|max_time| began.elapsed() >= max_time)
    };
    for (kind, commit) in [(StepKind::Effect, last), (StepKind::Identical, 0)] {
        // One that did not show what it must is measured again: a step may have more time now.
        if state.step(kind).is_some_and(|step| course.preflight(&state, step).is_ok()) {
            continue;
        }
        if is_over(control) {
            return ended(state, directory, true);
        }
        let until = match kind {
            StepKind::Effect => StopCondition::Resolved,
            _ => StopCondition::Excludes(course.threshold(&state)?.ratio()),
        };
        match course.step(&state, kind, commit, until, error) {
            Ok(step) => state.steps.push(step),
            Err(Error::Interrupted) => return ended(state, directory, true),
            Err(error) => return Err(error),
        }
        state.write(directory)?;
        let step = state.step(kind).expect("the step was added above");
        course.preflight(&state, step)?;
    }
    let threshold = course.threshold(&state)?;
    let mut search = CommitSearch::new(last);
    for step in state.searched() {
        search.note(step.commit, step.verdict);
    }
    while let Some(commit) = search.next() {
        if is_over(control) {
            return ended(settled(state, &search, error), directory, true);
        }
        let until = StopCondition::Excludes(threshold.ratio());
        match course.step(&state, StepKind::Search, commit, until, error) {
            Ok(step) => {
                search.note(commit, step.verdict);
                state.steps.push(step);
            }
            Err(Error::Interrupted) => {
                return ended(settled(state, &search, error), directory, true);
            }
            Err(error) => return Err(error),
        }
        state = settled(state, &search, error);
        state.write(directory)?;
    }
    ended(settled(state, &search, error), directory, false)
}

/// The good commit against the bad one, and against itself.
const PREFLIGHT: u32 = 2;

fn ended(
    state: BisectionState,
    directory: &Path,
    is_interrupted: bool,
) -> Result<Bisection, Error> {
    state.write(directory)?;
    Ok(Bisection { state, is_interrupted })
}

/// The state with the answer as far as it is known.
fn settled(mut state: BisectionState, search: &CommitSearch, error: f64) -> BisectionState {
    let decided = state.steps.iter().filter(|step| step.verdict != CommitVerdict::Skip).count();
    // A verdict is wrong half as often as its interval.
    state.error_used = error / 2.0 * decided as f64;
    let percent = words_of_share(state.error_used);
    let effect = state.step(StepKind::Effect).and_then(|step| step.ratio);
    let effect = effect.map_or(String::new(), |[value, low, high]| {
        format!(
            " The bad commit has {value:.3}× [{low:.3}, {high:.3}] of the good one's {}.",
            state.figure
        )
    });
    let (first, last, said) = match search.answer() {
        SearchAnswer::Commit(commit) => {
            let words = state.commits[commit].words();
            (commit, commit, format!("The first bad commit is {words}."))
        }
        SearchAnswer::Range { good, bad } => {
            let (from, to) = (state.commits[good + 1].words(), state.commits[bad].words());
            let n = bad - good;
            (good + 1, bad, format!("The first bad commit is one of {n}, from {from} to {to}."))
        }
    };
    state.first_bad = Some([first, last]);
    state.answer = format!("{said} That is wrong with a probability of at most {percent}.{effect}");
    state
}

fn words_of_share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

struct Course<'a, 'o> {
    request: &'a BisectionRequest,
    control: &'a LoadControl,
    comparer: &'a Comparer<'a>,
    observe: &'o mut dyn FnMut(BisectionEvent<'_>),
}

impl Course<'_, '_> {
    /// The threshold between good and bad: the middle of what the good and the bad commit differ by.
    fn threshold(&self, state: &BisectionState) -> Result<RatioThreshold, Error> {
        let ratio = state.step(StepKind::Effect).and_then(|step| step.ratio);
        ratio.map(|[value, ..]| RatioThreshold::of_effect(value)).ok_or(Error::NoEffect {
            minutes: self.request.common.max_time.as_secs() / 60,
            figure: self.request.figure.words().to_owned(),
            ratio: "has no interval".to_owned(),
        })
    }

    /// Checks that the preflight's step has shown what it must.
    fn preflight(&self, state: &BisectionState, step: &ComparisonStep) -> Result<(), Error> {
        let figure = self.request.figure.words().to_owned();
        let threshold = self.threshold(state)?;
        let Some([value, low, high]) = step.ratio else {
            return Err(Error::NotIdentical { figure, ratio: "has no interval".to_owned() });
        };
        let ratio = format!("{value:.3}× [{low:.3}, {high:.3}]");
        match step.kind {
            StepKind::Effect if low <= 1.0 && 1.0 <= high => {
                let minutes = self.request.common.max_time.as_secs() / 60;
                Err(Error::NoEffect { minutes, figure, ratio })
            }
            StepKind::Identical => match threshold.judge(low, high) {
                IntervalPosition::Decided(CommitVerdict::Good) => Ok(()),
                _ => Err(Error::NotIdentical { figure, ratio }),
            },
            _ => Ok(()),
        }
    }

    /// One comparison with the good commit.
    fn step(
        &mut self,
        state: &BisectionState,
        kind: StepKind,
        commit: usize,
        until: StopCondition,
        error: f64,
    ) -> Result<ComparisonStep, Error> {
        let began = Instant::now();
        let most = CommitSearch::steps_max(state.commits.len() - 1) + PREFLIGHT;
        let number = [state.steps.len() + 1, (most as usize).max(state.steps.len() + 1)];
        let (good, candidate) = (&state.commits[0], &state.commits[commit]);
        (self.observe)(BisectionEvent::Step { kind, commit: candidate, number });
        let blank = ComparisonStep {
            commit,
            kind,
            verdict: CommitVerdict::Skip,
            ratio: None,
            seconds: 0.0,
            why: None,
            record: None,
        };
        let is_search = kind == StepKind::Search;
        let skipped = |why: String, began: Instant| ComparisonStep {
            why: Some(why),
            seconds: began.elapsed().as_secs_f64(),
            ..blank.clone()
        };
        let of_good = self.built(good)?;
        let of_candidate = match self.built(candidate) {
            Err(error @ Error::Build { .. }) if is_search => {
                return Ok(self.over(skipped(error.to_string(), began), candidate));
            }
            built => built?,
        };
        let sides = [self.side(good, &of_good), self.side(candidate, &of_candidate)];
        let record = format!("step-{}-{}", number[0], candidate.short());
        let request = self.comparison(sides, &of_candidate, kind, until, error);
        let observe = &mut *self.observe;
        let found = match (self.comparer)(&request, &record, &mut |event| {
            observe(BisectionEvent::Comparing(event));
        }) {
            Ok(found) => found,
            Err(study::Error::Interrupted { .. }) => return Err(Error::Interrupted),
            Err(error) if is_search => {
                return Ok(self.over(skipped(error.to_string(), began), candidate));
            }
            Err(source) => {
                let what = format!("{} and {}", good.short(), candidate.short());
                return Err(Error::Compare { what, source: Box::new(source) });
            }
        };
        if self.control.urgency() != StopUrgency::None {
            return Err(Error::Interrupted);
        }
        let CommitComparison { ratio, refusal } = found;
        let said = match (kind, ratio) {
            (StepKind::Effect, _) => IntervalPosition::Decided(CommitVerdict::Bad),
            (_, None) => IntervalPosition::Open,
            (_, Some([_, low, high])) => self.threshold(state)?.judge(low, high),
        };
        // What a doubt keeps from being judged says nothing of a commit either.
        let (verdict, why) = match (said, refusal) {
            (_, Some(doubt)) if is_search => (CommitVerdict::Skip, Some(doubt)),
            (IntervalPosition::Decided(verdict), _) => (verdict, None),
            (IntervalPosition::Open, _) => {
                (CommitVerdict::Skip, Some("it cannot be told in its time".to_owned()))
            }
        };
        let record = Some(record);
        let seconds = began.elapsed().as_secs_f64();
        Ok(self.over(ComparisonStep { verdict, why, ratio, record, seconds, ..blank }, candidate))
    }

    fn over(&mut self, step: ComparisonStep, commit: &Commit) -> ComparisonStep {
        (self.observe)(BisectionEvent::Over(&step, commit));
        step
    }

    fn built(&mut self, commit: &Commit) -> Result<BuiltCommit, Error> {
        (self.observe)(BisectionEvent::Building(commit));
        let is_interrupted = || self.control.urgency() != StopUrgency::None;
        self.request.repository.build(&commit.into(), &self.request.build, &is_interrupted)
    }

    fn side(&self, commit: &Commit, built: &BuiltCommit) -> SideOptions {
        SideOptions {
            source: Some(BuildSource::from(commit).words()),
            conninfo: None,
            bin: built.bin.clone(),
            settings: self.request.settings.clone(),
            sql: self.request.sql.as_deref().map(|path| in_tree(path, built)),
            initdb: Vec::new(),
        }
    }

    fn comparison(
        &self,
        sides: [SideOptions; 2],
        candidate: &BuiltCommit,
        kind: StepKind,
        until: StopCondition,
        error: f64,
    ) -> ComparisonRequest {
        let data = match &self.request.data {
            PairData::File(path) => PairData::File(in_tree(path, candidate)),
            PairData::Pgbench(scale) => PairData::Pgbench(*scale),
        };
        let common = ComparisonOptions {
            time_shares: BTreeMap::new(),
            is_self: kind == StepKind::Identical,
            decides: vec![self.request.figure],
            until: Some(until),
            confidence: 1.0 - error,
            ..self.request.common.clone()
        };
        let options = ComparedLoad {
            data,
            database: None,
            no_init: false,
            words: self.request.words.clone(),
            workload: Box::new(self.request.workload.clone()),
        };
        ComparisonRequest {
            asked: ComparisonLoad::Options(Box::new(options)),
            sides,
            upgrade: None,
            production: study::ProductionOptions::default(),
            common,
            analyzes: self.request.analyzes,
            // Commits are many, and their data are not used again.
            cache: None,
            program: self.request.program.clone(),
        }
    }
}

/// A path with the tree of a commit in the place of `{}`.
fn in_tree(path: &Path, built: &BuiltCommit) -> PathBuf {
    let tree = built.tree.display().to_string();
    PathBuf::from(path.to_string_lossy().replace("{}", &tree))
}
