//! A whole study: every trial of every round, each in the record when it is done, and what is
//! measured in pairs after them. Servers that could not be stopped, killed or started are built anew, so
//! that one failure stays one failure.

mod budget;
pub(crate) mod controls;
pub(crate) mod dry_run;
pub(crate) mod event;
pub(crate) mod opening;
mod pairing;
pub(crate) mod search;

use std::path::PathBuf;
use std::time::Instant;

use load::{LoadControl, StopUrgency};
use record::{
    AttemptEnding, EndingReason, FaultyParty, PairingAttempt, PlannedTrial, RecordWriter, RunState,
    Trial, VoidKind,
};
use site::{Site, SitePlan, SiteUse, outside};
use spec::{DataReset, Pairing, ScheduledTrial, StudyProfile};

use crate::clock;
use crate::error::Error;
use crate::facts::{self, fact};
use crate::fit::estimate;
use crate::fit::has::HasServers;
use crate::fit::pace::LearntPace;
use crate::fit::preflight::Preflight;
use crate::fit::unprepared::with_protocols;
use crate::fleet::StudyHosts;
use crate::platform::{FoundPlatform, Platform};
use crate::request::StudyRequest;
use crate::run::event::StudyEvent;
use crate::run::opening::open_record;
use crate::trial::order::order;
use crate::trial::result::{needs_its_ledger, skipped};
use crate::trial::stage::LoadStage;
use crate::trial::{self, TrialEnd};

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The record.
    pub directory: PathBuf,
    /// State of the run, as the record has it.
    pub state: RunState,
    /// Trials that broke in this run.
    pub failed: usize,
    /// Trials that could not run here.
    pub skipped: usize,
    /// Wall time ÷ (windows + warm-ups + data builds); none where nothing was measured.
    pub overhead: Option<f64>,
}

/// Runs a study. `control` ends it: the first interruption ends the trial under way, the second
/// one at once; what was measured until then is in the record.
///
/// # Errors
/// When it could not begin, or the record cannot be written any more. Single trials that break are
/// recorded instead.
pub fn run(
    request: &StudyRequest,
    control: &LoadControl,
    observe: &mut dyn FnMut(StudyEvent<'_>),
) -> Result<RunResult, Error> {
    attempt(request, control, observe).map_err(|error| blamed(control, "preparing the run", error))
}

/// Replaces an error after the user has asked for the end, unless it is the record's: it follows
/// from that.
pub(crate) fn blamed(control: &LoadControl, doing: &'static str, error: Error) -> Error {
    match error {
        error @ (Error::Record(_) | Error::Stopped { .. } | Error::Interrupted { .. }) => error,
        error if control.urgency() == StopUrgency::None => error,
        _ => Error::Interrupted { doing },
    }
}

fn attempt(
    request: &StudyRequest,
    control: &LoadControl,
    observe: &mut dyn FnMut(StudyEvent<'_>),
) -> Result<RunResult, Error> {
    let began = Instant::now();
    let trials = request.trials();
    if let (Some(number), true) = (request.trial, trials.is_empty()) {
        let planned = request.study.trials(request.only.as_deref()).len();
        return Err(Error::NoTrial { number, planned });
    }
    if trials.is_empty() {
        let points = request.study.points.iter().map(|point| point.name.to_string());
        // Every name fits an empty pattern.
        let pattern = request.only.clone().unwrap_or_default();
        return Err(Error::NothingFits { pattern, points: points.collect() });
    }
    let labs = std::env::temp_dir();
    let found = FoundPlatform::here(request, control)?;
    let has = found.has(&labs)?;
    let study = with_protocols(request.study.clone(), &has);
    let request = &StudyRequest { study, ..request.clone() };
    let preflight = Preflight::of(&request.study, &trials, &has);
    if preflight.refused {
        return Err(Error::DoesNotFit(Box::new(preflight)));
    }
    let _ = lab::machine::raise_nofile();
    let run_id = run_id();
    let mut platform = Platform::open(found, &run_id, control)?;
    let mut facts = facts::machine(&labs);
    facts.extend(platform.facts());
    if let HasServers::Outside(outside) = &has.servers {
        facts.extend(facts::outside_settings(outside));
    }
    let (writer, done, pairs) = open_record(request, &trials, &facts, &platform, &preflight, &has)?;
    let mut run = Run {
        request,
        control,
        preflight: &preflight,
        writer,
        origin: Instant::now(),
        done,
        pairs,
        pairings: Vec::new(),
        sites: Vec::new(),
        spent: Spent::new(began, has.slowdown),
        failed: 0,
        skipped: 0,
    };
    run.origin -= run.elapsed_before();
    let planned = run.to_run(&trials);
    observe(StudyEvent::Begins {
        preflight: &preflight,
        trials: planned.len(),
        directory: run.writer.directory(),
    });
    if let Some(doubt) = platform.fleet().and_then(|fleet| fleet.clock_doubt(&request.study)) {
        observe(StudyEvent::Note(&doubt));
        run.note(Some(doubt))?;
    }
    let result = run.all(&mut platform, &trials, &planned, observe);
    // Removing servers and data is part of what a run costs.
    run.sites.clear();
    let left = platform.leave();
    drop(platform);
    run.note(left)?;
    run.finish(result)
}

/// A run under way.
struct Run<'a> {
    request: &'a StudyRequest,
    control: &'a LoadControl,
    preflight: &'a Preflight,
    writer: RecordWriter,
    origin: Instant,
    /// Every attempt in the record, earlier runs of it included.
    done: Vec<Trial>,
    /// Every attempt at what is measured in pairs.
    pairs: Vec<PairingAttempt>,
    /// Pairs that are still to be measured.
    pairings: Vec<Pairing>,
    sites: Vec<Site>,
    spent: Spent,
    failed: usize,
    skipped: usize,
}

struct Spent {
    began: Instant,
    measured_s: f64,
    builds_s: f64,
    /// How long the rig's own work takes here, and loads whose length is not fixed.
    work: LearntPace,
    loads: LearntPace,
}

impl Spent {
    /// Nothing yet, on a machine on which work takes so many times as long as on an idle one.
    fn new(began: Instant, slowdown: f64) -> Spent {
        let work = LearntPace::new(slowdown);
        Spent { began, measured_s: 0.0, builds_s: 0.0, work, loads: LearntPace::new(1.0) }
    }

    /// Since the run began.
    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

impl Run<'_> {
    /// Time that the record's clock had reached: moments go on from there.
    fn elapsed_before(&self) -> std::time::Duration {
        // Before the first trial the clock stands at its beginning.
        let last = self.done.iter().map(|trial| trial.ended.0).max().unwrap_or(0);
        std::time::Duration::from_nanos(last)
    }

    /// Trials that are still to be run, or to be recorded as skipped.
    fn to_run(&self, trials: &[ScheduledTrial]) -> Vec<ScheduledTrial> {
        let is_left = |planned: &&ScheduledTrial| match self.last(planned.number) {
            Some(last) => last.ending.is_open() || self.goes_again(last),
            None => true,
        };
        trials.iter().filter(is_left).cloned().collect()
    }

    fn attempts(&self, number: usize) -> impl Iterator<Item = &Trial> {
        self.done.iter().filter(move |trial| trial.number == number)
    }

    /// The last attempt at a trial.
    fn last(&self, number: usize) -> Option<&Trial> {
        self.attempts(number).max_by_key(|trial| trial.attempt)
    }

    /// True if a trial is to be run again after this attempt, its last one: up to a limit, then it
    /// stays as it is. The decision rests on the steadiness of the throughput, never on its height, and on
    /// the moments of actions, never on what they did: nobody may repeat until a figure pleases.
    fn goes_again(&self, last: &Trial) -> bool {
        let is_unsteady = |trial: &Trial| {
            trial.ending.is_unsteady() && self.request.study.profile != StudyProfile::Smoke
        };
        let is_again = |trial: &&Trial| is_unsteady(trial) || trial.ending.is_late();
        is_again(&last) && self.attempts(last.number).filter(is_again).count() <= REPEATS_MAX
    }

    /// The number of the next attempt at a trial.
    fn next_attempt(&self, number: usize) -> usize {
        self.last(number).map_or(1, |last| last.attempt + 1)
    }

    fn all(
        &mut self,
        platform: &mut Platform,
        trials: &[ScheduledTrial],
        planned: &[ScheduledTrial],
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let (fitting, unfit): (Vec<&ScheduledTrial>, Vec<&ScheduledTrial>) =
            planned.iter().partition(|one| self.preflight.reason(one.point).is_none());
        for planned in unfit {
            self.skip(planned, trials.len(), observe)?;
        }
        self.test_flush(platform, observe)?;
        let mut points: Vec<usize> = fitting.iter().map(|planned| planned.point).collect();
        self.pairings = self.pairings_to_run(trials);
        points.extend(self.pairings.iter().flat_map(|pairing| [pairing.above, pairing.below]));
        points.retain(|point| self.preflight.reason(*point).is_none());
        self.build(platform, points, observe)?;
        // Without a trial there is no round.
        let rounds = trials.iter().map(|planned| planned.round).max().unwrap_or(0);
        for (index, planned) in fitting.iter().enumerate() {
            if self.control.urgency() != StopUrgency::None {
                return Err(Error::Interrupted { doing: "running trials" });
            }
            self.one(platform, planned, &fitting[index..], trials.len(), observe)?;
            hosts_are_there(platform)?;
            if let Some(why) = controls::failed(&self.request.study, trials, &self.done) {
                return Err(Error::Control { why });
            }
            if fitting.get(index + 1).is_none_or(|next| next.round != planned.round) {
                let trials = &self.done;
                observe(StudyEvent::RoundEnded { round: planned.round, of: rounds, trials });
            }
        }
        self.measure_pairs(platform, trials, observe)
    }

    /// Measures what a flush costs, where the study asks for it and the record does not have it.
    fn test_flush(
        &mut self,
        platform: &Platform,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let seconds = self.request.study.flush_test_s;
        let known = self.writer.header().facts.iter().any(|fact| fact.group == facts::FLUSHES);
        // Not asked for, known already, or on servers of the user's, whose disks the rig does not write.
        let (1.., false, Some(labs)) = (seconds, known, platform.labs()) else { return Ok(()) };
        let (began, what) = (Instant::now(), facts::FLUSHES);
        observe(StudyEvent::Preparing { what, share: None });
        for lab in labs.iter() {
            let flushes = facts::flushes(lab, seconds);
            self.writer.change_header(|header| match flushes {
                Ok(facts) => header.facts.extend(facts),
                Err(error) => header.notes.push(error.to_string()),
            })?;
        }
        observe(StudyEvent::Prepared { what, seconds: began.elapsed().as_secs_f64() });
        Ok(())
    }

    /// Makes all sites before the first trial, so that nothing is built between trials.
    fn build(
        &mut self,
        platform: &Platform,
        mut points: Vec<usize>,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let study = &self.request.study;
        points.sort_unstable();
        points.dedup();
        let plans = platform.plans(study, &points);
        let estimated_s = estimate::builds_s(&plans);
        let began_s = self.spent.seconds();
        for plan in plans {
            if self.control.urgency() != StopUrgency::None {
                return Err(Error::Interrupted { doing: "building servers" });
            }
            let began = Instant::now();
            let what = what_is_built(&plan);
            observe(StudyEvent::Preparing { what: &what, share: None });
            let mut tell =
                |share: f64| observe(StudyEvent::Preparing { what: &what, share: Some(share) });
            let (sites, control) = (&self.sites, self.control);
            let site = match platform {
                Platform::Labs { labs, targets: hosts, .. } => {
                    let program = &self.request.generator;
                    let place = site::BuildContext { labs, hosts, program, upgrade: None };
                    Site::build(&place, plan, study, sites, control, &mut tell)?
                }
                Platform::Target { target, .. } => {
                    let schema = Some(lab::TARGET_SCHEMA);
                    outside::site(target, plan, schema, study, control, &mut tell)?
                }
            };
            let mut sizes = facts::data(&site, &what);
            sizes.extend(platform.labs().into_iter().flat_map(facts::packages));
            self.writer.change_header(|header| {
                header.facts.retain(|fact| {
                    !sizes.iter().any(|size| (&size.group, &size.name) == (&fact.group, &fact.name))
                });
                header.facts.extend(sizes);
            })?;
            self.sites.push(site);
            let seconds = began.elapsed().as_secs_f64();
            observe(StudyEvent::Prepared { what: &what, seconds });
        }
        if let Some(labs) = platform.labs() {
            labs.sync()?;
        }
        self.spent.builds_s = self.spent.began.elapsed().as_secs_f64();
        self.spent.work.learn(estimated_s, self.spent.seconds() - began_s);
        Ok(())
    }

    fn skip(
        &mut self,
        planned: &ScheduledTrial,
        of: usize,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let why = self.preflight.reason(planned.point).expect("a trial is skipped for a reason");
        let (request, control, origin) = (self.request, self.control, self.origin);
        let attempt = self.next_attempt(planned.number);
        let order = order(request, control, origin, (planned, attempt), SiteUse::Yes, None, None);
        let finished = skipped(&order, why);
        self.writer.add(&finished)?;
        observe(StudyEvent::TrialEnded { trial: &finished.trial, of });
        self.skipped += 1;
        self.keep(finished.trial);
        Ok(())
    }

    fn one(
        &mut self,
        platform: &mut Platform,
        planned: &ScheduledTrial,
        left: &[&ScheduledTrial],
        of: usize,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let point = &self.request.study.points[planned.point];
        let alone = if self.sites.len() == 1 { SiteUse::Yes } else { SiteUse::No };
        let left_s = self.left_s(left);
        let began_s = self.spent.seconds();
        let measured_s = self.spent.measured_s;
        let mut attempts = 0.0;
        observe(StudyEvent::TrialBegins { planned, of, point: &point.name, left_s });
        let is_its_own = |site: &Site| site.plan.points.contains(&planned.point);
        self.stop_sites(platform, |site| !is_its_own(site), observe)?;
        let finished = loop {
            let finished = self.attempt(platform, planned, (alone, of), left_s, observe)?;
            attempts += 1.0;
            // Each attempt is in the record before the next one begins.
            self.add(&finished)?;
            self.spend(&finished.trial);
            self.keep(finished.trial.clone());
            if !self.goes_again(&finished.trial) || self.control.urgency() != StopUrgency::None {
                break finished;
            }
            observe(StudyEvent::Note(&format!(
                "runs again: it was {}",
                finished.trial.ending.why()
            )));
        };
        let loaded_s = self.spent.measured_s - measured_s;
        let estimate::TrialTime { load_s, work_s } = estimate::trial_time(point);
        self.spent.loads.learn(load_s * attempts, loaded_s);
        self.spent.work.learn(work_s * attempts, self.spent.seconds() - began_s - loaded_s);
        if let AttemptEnding::Failed(_) = finished.trial.ending {
            self.failed += 1;
        }
        observe(StudyEvent::TrialEnded { trial: &finished.trial, of });
        self.mend(platform, &finished.trial.ending, is_its_own, observe)
    }

    fn attempt(
        &mut self,
        platform: &Platform,
        planned: &ScheduledTrial,
        (alone, of): (SiteUse, usize),
        left_s: f64,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<record::FinishedTrial, Error> {
        let began = Instant::now();
        let index = self.sites.iter().position(|site| site.plan.points.contains(&planned.point));
        let index = index.expect("a site was built for each point that fits");
        let (request, control, origin) = (self.request, self.control, self.origin);
        let attempt = (planned, self.next_attempt(planned.number));
        let name = &request.study.points[planned.point].name;
        let blank = PlannedTrial::new(planned, name).attempt(attempt.1);
        let ledger = self.writer.ledger_of(&blank)?;
        let record = Some((&self.writer, ledger.as_path()));
        let order = order(request, control, origin, attempt, alone, Some(platform), record);
        let mut show = |stage: LoadStage| {
            let left_s = (left_s - began.elapsed().as_secs_f64()).max(0.0);
            observe(StudyEvent::Load { stage, left_s });
        };
        let ended = trial::run(&order, &mut self.sites[index], &mut show);
        let made_anew = self.sites[index].was_made_anew.take();
        let noted = |mut finished: Box<record::FinishedTrial>| {
            finished.trial.made_anew = made_anew;
            finished
        };
        match ended {
            TrialEnd::Finished(finished) => Ok(*noted(finished)),
            TrialEnd::Stopped { finished, why } => {
                self.add(&noted(finished))?;
                let directory = self.writer.directory().to_owned();
                Err(Error::Statement { trial: point_name(request, planned), why, directory })
            }
            TrialEnd::Interrupted(finished) => {
                let finished = noted(finished);
                self.add(&finished)?;
                observe(StudyEvent::TrialEnded { trial: &finished.trial, of });
                self.keep(finished.trial);
                Err(Error::Interrupted { doing: "running trials" })
            }
            TrialEnd::Unrecorded(error) => Err(error.into()),
        }
    }

    /// Puts an attempt into the record, with its ledger where that is needed.
    fn add(&self, finished: &record::FinishedTrial) -> Result<(), Error> {
        self.writer.add(finished)?;
        Ok(self.writer.end(&finished.trial, needs_its_ledger(&finished.trial))?)
    }

    /// Estimate of the time that the remaining trials take, from those that are over.
    fn left_s(&self, left: &[&ScheduledTrial]) -> f64 {
        let points = left.iter().map(|planned| &self.request.study.points[planned.point]);
        let (loads, work) = (self.spent.loads.factor(), self.spent.work.factor());
        let times = points.map(estimate::trial_time);
        let trials_s: f64 = times.map(|time| time.load_s * loads + time.work_s * work).sum();
        trials_s + self.pairings.iter().map(estimate::pairs_s).sum::<f64>()
    }

    fn spend(&mut self, trial: &Trial) {
        if let Some(window) = trial.window {
            self.spent.measured_s += window.close.since(window.load_began) as f64 / 1e9;
        }
    }

    fn note(&mut self, note: Option<String>) -> Result<(), Error> {
        match note {
            Some(note) => Ok(self.writer.change_header(|header| header.notes.push(note))?),
            None => Ok(()),
        }
    }

    fn keep(&mut self, trial: Trial) {
        self.done.push(trial);
    }

    /// Writes how it ended on the record's first page.
    fn finish(mut self, result: Result<(), Error>) -> Result<RunResult, Error> {
        let result = result.map_err(|error| blamed(self.control, "building servers", error));
        let wall_s = self.spent.began.elapsed().as_secs_f64();
        let needed_s = self.spent.measured_s + self.spent.builds_s;
        let overhead = (self.spent.measured_s > 0.0).then_some(wall_s / needed_s);
        let state = match &result {
            Ok(()) => RunState::Done,
            Err(Error::Interrupted { .. }) => RunState::Interrupted,
            Err(error) => RunState::Broken(error.to_string()),
        };
        // Where nothing was measured, the entry stays empty.
        let ratio = overhead.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let saved = self.writer.change_header(|header| {
            header.ended_at = Some(clock::wall());
            header.state = state.clone();
            header.facts.retain(|fact| fact.group != RUN);
            header.facts.push(fact(RUN, "wall time", format!("{wall_s:.1} s")));
            header.facts.push(fact(RUN, OVERHEAD, ratio));
        });
        let directory = self.writer.directory().to_owned();
        match result {
            Ok(())
            | Err(Error::Interrupted { .. } | Error::Control { .. } | Error::HostLost { .. }) => {}
            Err(Error::Record(source)) => return Err(Error::Stopped { directory, source }),
            Err(error) => return Err(error),
        }
        if let Err(source) = saved {
            return Err(Error::Stopped { directory, source });
        }
        let (failed, skipped) = (self.failed, self.skipped);
        Ok(RunResult { directory, state, failed, skipped, overhead })
    }
}

/// True if the data of an attempt's servers may be damaged.
fn spoils_data(ending: &AttemptEnding) -> bool {
    matches!(ending, AttemptEnding::Failed(reason) if reason.kind == FaultyParty::Server)
}

/// True if the servers of an attempt may be in an unknown state.
fn leaves_doubt(ending: &AttemptEnding) -> bool {
    let action = |reason: &EndingReason<VoidKind>| reason.kind == VoidKind::Action;
    match ending {
        AttemptEnding::Failed(_) => true,
        AttemptEnding::Void(reason) => action(reason),
        AttemptEnding::Done | AttemptEnding::Skipped(_) | AttemptEnding::Interrupted(_) => false,
    }
}

/// A host that is lost takes its servers along: nothing can be built there anew.
pub(super) fn hosts_are_there(platform: &Platform) -> Result<(), Error> {
    match platform.fleet().and_then(StudyHosts::missed) {
        Some((host, why)) => Err(Error::HostLost { host, why }),
        None => Ok(()),
    }
}

impl Run<'_> {
    /// After an attempt that ended so: stops its servers if their state is unknown, and
    /// builds them anew if their data may be damaged and the next trial would begin with them.
    fn mend(
        &mut self,
        platform: &mut Platform,
        ending: &AttemptEnding,
        is_its_own: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        if !leaves_doubt(ending) {
            return Ok(());
        }
        let is_ours = platform.labs().is_some();
        let is_spoilt =
            |site: &Site| is_ours && spoils_data(ending) && site.plan.data.reset == DataReset::Keep;
        self.stop_or_build_anew(platform, is_its_own, is_spoilt, observe)
    }

    /// Stops the sites that are meant, and builds those anew that do not stop.
    fn stop_sites(
        &mut self,
        platform: &mut Platform,
        is_meant: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        self.stop_or_build_anew(platform, is_meant, |_| false, observe)
    }

    fn stop_or_build_anew(
        &mut self,
        platform: &mut Platform,
        is_meant: impl Fn(&Site) -> bool,
        is_spoilt: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let (mut points, mut broken, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, site) in self.sites.iter_mut().enumerate().filter(|(_, site)| is_meant(site)) {
            // Servers that are built anew are killed.
            let stopped = if is_spoilt(site) { None } else { Some(site.stop()) };
            let why = match stopped {
                None => "their data may be damaged".to_owned(),
                Some(Err(why)) => why.to_string(),
                Some(Ok(())) => continue,
            };
            notes.push(format!("servers are built anew: {why}"));
            points.extend(site.plan.points.iter().copied());
            broken.push(index);
        }
        if self.control.urgency() != StopUrgency::None {
            return Err(Error::Interrupted { doing: "running trials" });
        }
        hosts_are_there(platform)?;
        notes.iter().for_each(|note| observe(StudyEvent::Note(note)));
        if platform.reopen(self.control)? {
            observe(StudyEvent::Note(
                "all servers are built anew: the process that kept them has ended",
            ));
            points = self.sites.iter().flat_map(|site| site.plan.points.clone()).collect();
            broken = (0..self.sites.len()).collect();
        }
        if points.is_empty() {
            return Ok(());
        }
        let mut index = 0..;
        self.sites.retain(|_| index.next().is_none_or(|index| !broken.contains(&index)));
        let (began, builds_s) = (Instant::now(), self.spent.builds_s);
        self.build(platform, points, observe)?;
        self.spent.builds_s = builds_s + began.elapsed().as_secs_f64();
        Ok(())
    }
}

fn point_name(request: &StudyRequest, planned: &ScheduledTrial) -> String {
    request.study.points[planned.point].name.to_string()
}

/// By which a run is known on the user's server: when it began, and its process.
fn run_id() -> String {
    format!("{}-{}", clock::wall(), std::process::id())
}

fn what_is_built(plan: &SitePlan) -> String {
    let mut parts = Vec::new();
    if let Some(tables) = &plan.data.pgbench {
        let accounts = terms::grouped(u64::from(tables.scale) * 100_000);
        parts.push(format!("scale {}, {accounts} accounts", tables.scale));
    }
    if let Some(script) = &plan.data.script {
        parts.push(script.name.clone());
    }
    match parts.is_empty() {
        true => format!("servers of topology {}", plan.topology.name),
        false => parts.join(", "),
    }
}

/// Number of times that a trial is run again because its throughput was not steady.
const REPEATS_MAX: usize = 2;

const RUN: &str = "time";
const OVERHEAD: &str = "wall time ÷ (windows + warm-ups + data builds)";
