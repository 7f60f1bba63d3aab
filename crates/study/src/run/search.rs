//! A search for the schedule of faults that breaks a promise: each schedule is a trial of the study, on servers that go
//! on from one to the next.

mod found;
mod grown;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use load::{LoadControl, StopUrgency};
use nemesis::{
    FaultSchedule, PromiseViolation, ScheduleSearch, ScheduleTrial, SearchLimits, TrialOutcome,
    TrialPurpose,
};
use record::{PairingAttempt, PlannedTrial, RecordWriter, SearchTerms, Trial};
use site::Site;
use spec::{NemesisPlan, PointName, ScheduledTrial, Study, StudyFolder, invariants_of};
use stats::mix;
use verdict::Verdict;

use super::{Run, RunResult, Spent, blamed, run_id};
use crate::error::{Error, SearchError};
use crate::facts;
use crate::fit::preflight::Preflight;
use crate::platform::{FoundPlatform, Platform};
use crate::request::{RecordPlace, StudyRequest};
use crate::run::event::StudyEvent;
use crate::run::opening::open_record;
use grown::GrowingStudy;

/// A search that is asked for.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The study and its servers; `only` means the point whose load runs, its seed is that of all schedules.
    pub request: StudyRequest,
    /// Schedules that are drawn at most; none for no limit.
    pub schedules: Option<u64>,
    /// The time after which none is drawn any more; what was found is shrunk all the same.
    pub time: Option<Duration>,
    /// Trials that tell the rate of a schedule.
    pub repeats: u64,
}

/// Something that happened in a search.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum SearchEvent<'a> {
    /// The plan is made, and the record is there.
    Begins {
        point: &'a PointName,
        plan: &'a NemesisPlan,
        /// Every condition that a schedule must not break.
        promises: &'a [String],
        directory: &'a std::path::Path,
    },
    /// Something of its trials and servers.
    OfRun(StudyEvent<'a>),
    /// A trial begins.
    Asks {
        experiment: &'a ScheduleTrial,
        /// The schedule in words.
        words: &'a str,
    },
    /// A trial is over.
    Told {
        experiment: &'a ScheduleTrial,
        words: &'a str,
        outcome: &'a TrialOutcome,
        trial: &'a Trial,
        /// True if the record had it.
        is_known: bool,
    },
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The run that it was.
    pub run: RunResult,
    /// The search as it ended: what was tried, and what was found.
    pub search: ScheduleSearch,
    /// How its schedules are written.
    pub plan: NemesisPlan,
    /// The point whose load ran.
    pub point: PointName,
    /// What the cluster lacked when it was made anew, each with the number of the trial.
    pub made_anew: Vec<(usize, String)>,
    /// Trials that did not tell, each with the reason.
    pub untold: Vec<(usize, String)>,
    /// The study with the smallest schedule alone, which runs without the search; none where nothing was found.
    pub found: Option<PathBuf>,
}

/// The faults of a study's search and its promises, without a search.
///
/// # Errors
/// The study does not say which trial is meant, has no promise, or no fault that fits.
pub fn search_plan(request: &StudyRequest) -> Result<(PointName, NemesisPlan, Vec<String>), Error> {
    let study = &request.study;
    let pattern = request.only.as_deref().or(study.nemesis.trial.as_deref());
    let meant = |point: &&spec::TrialPoint| pattern.is_none_or(|pattern| point.name.fits(pattern));
    let mut points: Vec<&spec::TrialPoint> = study.points.iter().filter(meant).collect();
    // A name is a part of longer ones.
    if let Some(exact) = points.iter().find(|point| Some(&*point.name.to_string()) == pattern) {
        points = vec![*exact];
    }
    let known = || study.points.iter().map(|point| point.name.to_string()).collect();
    let point = match points.as_slice() {
        [one] => *one,
        [] => {
            let pattern = pattern.unwrap_or("").to_owned();
            return Err(Error::NothingFits { pattern, points: known() });
        }
        several => {
            let points = several.iter().map(|point| point.name.to_string()).collect();
            return Err(SearchError::SeveralPoints { points }.into());
        }
    };
    let name = point.name.to_string();
    let plan = study.nemesis.plan(point);
    let plan = plan.map_err(|why| SearchError::NothingToDraw { point: name.clone(), why })?;
    let index = study.points.iter().position(|one| one.name == point.name);
    let invariants = index.into_iter().flat_map(|index| invariants_of(&study.claims, index));
    let promises: Vec<String> =
        plan.promises.iter().cloned().chain(invariants.map(|it| it.says.clone())).collect();
    if promises.is_empty() {
        return Err(SearchError::NoPromise { point: name }.into());
    }
    Ok((point.name.clone(), plan, promises))
}

/// Searches. `control` ends it: the first interruption ends the trial under way, the second one at once; a search goes
/// on with its record.
///
/// # Errors
/// When it could not begin, or the record cannot be written any more.
pub fn search(
    asked: &SearchRequest,
    control: &LoadControl,
    observe: &mut dyn FnMut(SearchEvent<'_>),
) -> Result<SearchResult, Error> {
    let result = attempt(asked, control, observe);
    result.map_err(|error| blamed(control, "preparing the search", error))
}

fn attempt(
    asked: &SearchRequest,
    control: &LoadControl,
    observe: &mut dyn FnMut(SearchEvent<'_>),
) -> Result<SearchResult, Error> {
    let began = Instant::now();
    let (point, plan, promises) = search_plan(&asked.request)?;
    let limits = SearchLimits { schedules: asked.schedules, repeats: asked.repeats };
    let search = ScheduleSearch::new(plan.space.clone(), asked.request.study.seed, limits);
    let growing = GrowingStudy::new(&asked.request, point.clone(), plan.clone());
    let mut under_way = UnderWay {
        asked,
        control,
        growing,
        search,
        began,
        number: 0,
        made_anew: Vec::new(),
        untold: Vec::new(),
    };
    let Some(first) = under_way.search.next() else {
        let (point, why) = (point.to_string(), "no schedule can be drawn".to_owned());
        return Err(SearchError::NothingToDraw { point, why }.into());
    };
    let (request, trial) = under_way.growing.with(&first.schedule, &first, 1)?;
    let trials = [trial];
    let labs = std::env::temp_dir();
    let found = FoundPlatform::here(&request, control)?;
    let has = found.has(&labs)?;
    let preflight = Preflight::of(&request.study, &trials, &has);
    if preflight.refused {
        return Err(Error::DoesNotFit(Box::new(preflight)));
    }
    let _ = lab::machine::raise_nofile();
    let mut platform = Platform::open(found, &run_id(), control)?;
    let mut facts = facts::machine(&labs);
    facts.extend(platform.facts());
    let (mut writer, done, pairs) =
        open_record(&request, &trials, &facts, &platform, &preflight, &has)?;
    writer.change_header(|header| {
        header.search = Some(SearchTerms { trial: point.to_string(), repeats: asked.repeats });
        if let RecordPlace::Below(_) | RecordPlace::Directory(_) = asked.request.place {
            header.plan.clear();
        }
    })?;
    observe(SearchEvent::Begins {
        point: &point,
        plan: &plan,
        promises: &promises,
        directory: writer.directory(),
    });
    let last = done.iter().map(|trial| trial.ended.0).max();
    let before = Duration::from_nanos(last.into_iter().sum());
    let mut kept = Kept {
        writer,
        origin: Instant::now() - before,
        done,
        pairs,
        sites: Vec::new(),
        spent: Spent::new(began, has.slowdown),
        failed: 0,
    };
    let mut result = Ok(());
    while result.is_ok() {
        let step;
        (kept, step) = under_way.step(kept, &mut platform, &preflight, observe);
        match step {
            Ok(SearchProgress::GoesOn) => {}
            Ok(SearchProgress::Over) => break,
            Err(error) => result = Err(error),
        }
    }
    kept.sites.clear();
    let left = platform.leave();
    drop(platform);
    let UnderWay { mut growing, search, made_anew, untold, .. } = under_way;
    let smallest = search.finding().map(|finding: &PromiseViolation| finding.smallest.clone());
    let found = match smallest {
        Some((number, schedule)) => {
            Some(found::write(&kept.writer, &mut growing, number, &schedule)?)
        }
        None => None,
    };
    let run = kept.lend(&growing.request, &preflight, control, |mut run| {
        let noted = run.note(left);
        run.finish(noted.and(result))
    });
    Ok(SearchResult { run: run?, search, plan, point, made_anew, untold, found })
}

/// A search and all that it has seen.
struct UnderWay<'a> {
    asked: &'a SearchRequest,
    control: &'a LoadControl,
    growing: GrowingStudy,
    search: ScheduleSearch,
    began: Instant,
    /// The number of the last trial.
    number: usize,
    made_anew: Vec<(usize, String)>,
    untold: Vec<(usize, String)>,
}

enum SearchProgress {
    GoesOn,
    Over,
}

impl UnderWay<'_> {
    /// Runs the next trial, or takes it from the record.
    fn step(
        &mut self,
        mut kept: Kept,
        platform: &mut Platform,
        preflight: &Preflight,
        observe: &mut dyn FnMut(SearchEvent<'_>),
    ) -> (Kept, Result<SearchProgress, Error>) {
        let Some(experiment) = self.search.next() else { return (kept, Ok(SearchProgress::Over)) };
        let number = self.number + 1;
        let last = kept.done.iter().filter(|trial| trial.number == number);
        let last = last.max_by_key(|trial| trial.attempt);
        let known = last.filter(|trial| !trial.ending.is_open()).cloned();
        let is_over = self.asked.time.is_some_and(|time| self.began.elapsed() >= time);
        if is_over && known.is_none() && experiment.purpose == TrialPurpose::Drawn {
            self.search.end_drawing();
            return (kept, Ok(SearchProgress::GoesOn));
        }
        self.number = number;
        let words = experiment.schedule.words(self.search.space());
        let made = self.growing.with(&experiment.schedule, &experiment, number);
        let (request, planned) = match made {
            Ok(made) => made,
            Err(error) => return (kept, Err(error)),
        };
        let is_known = known.is_some();
        let trial = match known {
            Some(trial) => {
                let (name, recorded) = (&request.study.points[planned.point].name, &trial.scenario);
                if *recorded != name.scenario {
                    let directory = kept.writer.directory().to_owned();
                    return (kept, Err(SearchError::OtherSchedules { directory }.into()));
                }
                trial
            }
            None => {
                observe(SearchEvent::Asks { experiment: &experiment, words: &words });
                let ran;
                (kept, ran) = self.run(kept, platform, preflight, (&request, &planned), observe);
                match ran {
                    Ok(trial) => trial,
                    Err(error) => return (kept, Err(error)),
                }
            }
        };
        let outcome = outcome(&request.study, planned.point, &trial);
        let skipped = skipped(&experiment.schedule, &trial);
        self.made_anew.extend(trial.made_anew.clone().map(|why| (number, why)));
        if outcome == TrialOutcome::Untold {
            self.untold.push((number, trial.ending.why().to_owned()));
        }
        observe(SearchEvent::Told {
            experiment: &experiment,
            words: &words,
            outcome: &outcome,
            trial: &trial,
            is_known,
        });
        self.search.tell(&outcome, &skipped);
        (kept, Ok(SearchProgress::GoesOn))
    }

    /// Runs a trial on the servers that are there, or that are built for the first one.
    fn run(
        &self,
        kept: Kept,
        platform: &mut Platform,
        preflight: &Preflight,
        (request, planned): (&StudyRequest, &ScheduledTrial),
        observe: &mut dyn FnMut(SearchEvent<'_>),
    ) -> (Kept, Result<Trial, Error>) {
        let observe = &mut |event: StudyEvent<'_>| observe(SearchEvent::OfRun(event));
        let (kept, ran) = kept.lend(request, preflight, self.control, |mut run| {
            let ran = run.one_schedule(platform, planned, observe);
            (run.into(), ran)
        });
        (kept, ran)
    }
}

impl Run<'_> {
    fn one_schedule(
        &mut self,
        platform: &mut Platform,
        planned: &ScheduledTrial,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<Trial, Error> {
        if self.control.urgency() != StopUrgency::None {
            return Err(Error::Interrupted { doing: "searching" });
        }
        let name = &self.request.study.points[planned.point].name;
        let text = self.request.folder.files.get(StudyFolder::SCHEDULES);
        let place = format!("study/{}/{}", self.request.folder.name, StudyFolder::SCHEDULES);
        if let Some(text) = text {
            self.writer.attach(&place, text)?;
        }
        let entry = PlannedTrial::new(planned, name);
        if !self.writer.header().plan.contains(&entry) {
            self.writer.change_header(|header| header.plan.push(entry))?;
        }
        match self.sites.first_mut() {
            Some(site) => site.plan.points = vec![planned.point],
            None => self.build(platform, vec![planned.point], observe)?,
        }
        self.one(platform, planned, &[planned], planned.number, observe)?;
        super::hosts_are_there(platform)?;
        let last = self.last(planned.number).cloned();
        Ok(last.expect("a trial that was run is among those that are done"))
    }
}

/// What a run has beside its request, from one schedule to the next.
struct Kept {
    writer: RecordWriter,
    origin: Instant,
    done: Vec<Trial>,
    pairs: Vec<PairingAttempt>,
    sites: Vec<Site>,
    spent: Spent,
    failed: usize,
}

impl Kept {
    /// Has something done by a run of this request.
    fn lend<'r, T>(
        self,
        request: &'r StudyRequest,
        preflight: &'r Preflight,
        control: &'r LoadControl,
        act: impl FnOnce(Run<'r>) -> T,
    ) -> T {
        let Kept { writer, origin, done, pairs, sites, spent, failed } = self;
        act(Run {
            request,
            control,
            preflight,
            writer,
            origin,
            done,
            pairs,
            pairings: Vec::new(),
            sites,
            spent,
            failed,
            skipped: 0,
        })
    }
}

impl From<Run<'_>> for Kept {
    fn from(run: Run<'_>) -> Kept {
        let Run { writer, origin, done, pairs, sites, spent, failed, .. } = run;
        Kept { writer, origin, done, pairs, sites, spent, failed }
    }
}

/// What a trial says of the promises: one that is not what the study asks for can show that one is broken, and not that
/// it is kept.
fn outcome(study: &Study, point: usize, trial: &Trial) -> TrialOutcome {
    let is_broken = |claim: &&spec::Claim| {
        let judged = verdict::judge_claim(study, claim, std::slice::from_ref(trial), &[]);
        judged.verdict == Verdict::DoesNotHold
    };
    let broken = invariants_of(&study.claims, point).filter(is_broken);
    let broken: Vec<String> = broken.map(|claim| claim.says.clone()).collect();
    match (broken.is_empty(), trial.ending.is_complete()) {
        (false, _) => TrialOutcome::Broken(broken),
        (true, true) => TrialOutcome::Kept,
        (true, false) => TrialOutcome::Untold,
    }
}

/// The steps of a schedule that a trial left out.
fn skipped(schedule: &FaultSchedule, trial: &Trial) -> Vec<usize> {
    let in_order = schedule.in_order();
    let actions = in_order.iter().zip(&trial.actions);
    let left_out = actions.filter(|((_, _, is_end), one)| !is_end && one.began.is_none());
    left_out.map(|((_, step, _), _)| *step).collect()
}

/// The seed of a trial's load: others of the same schedule draw other keys.
fn load_seed(seed: u64, number: usize) -> u64 {
    mix(seed.wrapping_add(number as u64)) >> 1
}
