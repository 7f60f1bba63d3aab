//! `pgrig run`: a study, from its folder to its verdicts.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use import::BuildCache;
use lab::guest::StudyRights;
use load::OnHostLoss;
use record::{AttemptEnding, RunState, Trial};
use spec::{ClaimKind, ClaimSubject, ScheduledTrial, Study, StudyFolder, StudyProfile};
use study::{MachineResources, Preflight, RecordPlace, RunResult, StudyRequest, StudyServers};
use terms::grouped;
use verdict::StudyVerdicts;

use crate::arguments::{HostLossName, RunArguments, set};
use crate::command::{check, hosts, show};
use crate::complaint::Complaint;
use crate::exit::{self, ProgramExit};
use crate::progress::Progress;
use crate::scraped::{OfRun, Scraped};
use crate::served::{self, ServedStudy};
use crate::studies::NamedStudy;
use crate::{fit, records, studies, summary};
use console::terminal;

/// Runs a study, writes its report, prints its verdicts.
pub(crate) fn run(arguments: &RunArguments) -> Result<ProgramExit, Complaint> {
    let request = request(arguments)?;
    if arguments.dry_run {
        terminal::verbatim(
            study::dry_run(&request, &console::interrupted(lab::end_labs))?.trim_end(),
        );
        return Ok(ProgramExit::Done);
    }
    if let Some(path) = &arguments.json {
        record::check_file(path)?;
    }
    let points = request.trials().into_iter().map(|trial| trial.point);
    check::tell_commands(&request.folder, &study::commands(&request.study, points));
    let control = console::interrupted(lab::end_labs);
    let title = format!("pgrig run {}", request.study.name);
    let page = served::asked(arguments.serve, &title)?;
    let mut page = ServedStudy::new(&request.study, page);
    let figures = OfRun::of(&request.study.name);
    let mut scraped = Scraped::open(arguments.metrics.as_ref(), figures)?;
    let mut progress = Progress::of(&request.study);
    let ended = study::run(&request, &control, &mut |event| {
        progress.show(&event);
        page.hear(&event);
        scraped.show(|figures| figures.hear(&event));
    });
    progress.end();
    let ended = match ended {
        Err(study::Error::DoesNotFit(preflight)) => {
            return Err(fit::complaint(&preflight, smaller_profile(arguments)));
        }
        ended => ended?,
    };
    let opened = records::open(&ended.directory)?;
    let judgement = opened.judge();
    let is_interrupted = |trial: &Trial| matches!(trial.ending, AttemptEnding::Interrupted(_));
    if ended.state == RunState::Interrupted && opened.reader.trials().iter().all(is_interrupted) {
        return Err(Complaint::new("interrupted before the first trial was over")
            .hinted(Some(format!("go on with: {}", opened.go_on(&ended.directory))))
            .exit(ProgramExit::Interrupted));
    }
    let written = records::write_report(&opened)?;
    show::print(&opened, &judgement);
    if let Some(path) = &arguments.json {
        show::write_json(path, &opened, &judgement)?;
    }
    summary::print_ways_on(&written, &opened.reader.header().again);
    if ended.state == RunState::Interrupted {
        let again = opened.go_on(&ended.directory);
        terminal::narrate(format_args!("interrupted; go on with: {again}"));
    }
    if let RunState::Broken(why) = &ended.state {
        terminal::narrate(format_args!("stopped: {why}"));
    }
    page.end(&judgement.answer);
    let is_hollow = is_hollow(&opened.study, opened.reader.trials());
    Ok(exit(&ended, &judgement, gate(arguments), is_hollow))
}

/// The condition that the exit code depends on besides the run itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Verdicts are for people.
    Open,
    /// Invariants must hold.
    Invariants,
    /// Everything must hold.
    Everything,
}

fn gate(arguments: &RunArguments) -> Gate {
    match (arguments.gate, arguments.strict) {
        (false, _) => Gate::Open,
        (true, false) => Gate::Invariants,
        (true, true) => Gate::Everything,
    }
}

/// True if there is nothing behind the verdicts: no trial counts, or none of those that a claim speaks
/// of, although some of them were run. What was left out as unfit is said elsewhere.
fn is_hollow(study: &Study, trials: &[Trial]) -> bool {
    if !trials.iter().any(|trial| trial.ending == AttemptEnding::Done) {
        return true;
    }
    let point = |trial: &Trial| study.point(&trial.variant, &trial.scenario, &trial.axes);
    let in_vain = |points: &[usize], counts: fn(&AttemptEnding) -> bool| {
        let mut ran = trials.iter().filter(|trial| {
            !matches!(trial.ending, AttemptEnding::Skipped(_) | AttemptEnding::Interrupted(_))
                && point(trial).is_some_and(|point| points.contains(&point))
        });
        ran.clone().next().is_some() && !ran.any(|trial| counts(&trial.ending))
    };
    study.claims.iter().any(|claim| match &claim.about {
        ClaimSubject::Value { value, .. } => value
            .references()
            .iter()
            .any(|reference| in_vain(&[reference.point], |ending| *ending == AttemptEnding::Done)),
        ClaimSubject::Every { points, .. } => in_vain(points, AttemptEnding::is_complete),
    })
}

/// The exit code of the program after a run. Missing results take precedence over what was found. Where
/// there is nothing behind a verdict (`is_hollow`), where `--only` left out every claim of the gate, or
/// where something stands against the run as a whole, no gate is passed.
fn exit(ended: &RunResult, judgement: &StudyVerdicts, gate: Gate, is_hollow: bool) -> ProgramExit {
    match &ended.state {
        RunState::Interrupted => return ProgramExit::Interrupted,
        RunState::Running | RunState::Broken(_) => return ProgramExit::Incomplete,
        RunState::Done if ended.failed > 0 => return ProgramExit::Incomplete,
        RunState::Done => {}
    }
    let counts = |kind: ClaimKind| match gate {
        Gate::Open => false,
        Gate::Invariants => kind != ClaimKind::Finding,
        Gate::Everything => true,
    };
    let gated: Vec<_> = judgement.asked().filter(|claim| counts(claim.kind)).collect();
    // A gate that asks nothing of what it is about is not passed.
    let is_hollow =
        is_hollow || (gated.is_empty() && judgement.claims.iter().any(|claim| counts(claim.kind)));
    match exit::of_claims(gated.into_iter()) {
        ProgramExit::Done if gate != Gate::Open && (is_hollow || !judgement.against.is_empty()) => {
            ProgramExit::CannotTell
        }
        exit => exit,
    }
}

fn request(arguments: &RunArguments) -> Result<StudyRequest, Complaint> {
    let generator = studies::program()?;
    let elsewhere = match (&arguments.target, &arguments.hosts) {
        (Some(_), _) => Some("--target"),
        (None, Some(_)) => Some("--hosts"),
        (None, None) => None,
    };
    if let (true, Some(option)) = (arguments.keep_data, elsewhere) {
        let what = format!(
            "--keep-data keeps the data of servers that pgrig builds on this machine; with {option} \
             there are none"
        );
        return Err(Complaint::new(what).hinted(Some("leave out --keep-data".to_owned())));
    }
    let servers = match (&arguments.target, &arguments.hosts) {
        (Some(conninfo), _) => StudyServers::Outside {
            conninfo: conninfo.clone(),
            rights: match arguments.may_change_database {
                true => StudyRights::OfLogin,
                false => StudyRights::OwnSchema,
            },
        },
        (None, Some(file)) => {
            let on_loss = match arguments.on_host_loss {
                HostLossName::Stop => OnHostLoss::Stop,
                HostLossName::GoOn => OnHostLoss::GoOn,
            };
            let pg_bin = arguments.pg_bin.as_deref();
            StudyServers::OnHosts(hosts::asked(file, arguments.push, pg_bin, on_loss)?)
        }
        (None, None) => {
            let hosts = arguments.node.iter().cloned().collect();
            let cache = arguments.keep_data.then(BuildCache::of_user).transpose()?;
            StudyServers::Built { pg_bin: arguments.pg_bin.clone(), hosts, cache }
        }
    };
    if let Some(directory) = &arguments.resume {
        return resumed(directory, servers, generator);
    }
    let found = studies::find(studies::named(arguments.study.as_deref())?)?;
    let found = found.with(&set::all(&arguments.set));
    let profile = arguments.profile.map_or(StudyProfile::Quick, StudyProfile::from);
    let mut study = studies::parse(&found, profile)?;
    if let Some(rounds) = arguments.rounds {
        study = study.with_rounds(rounds);
    }
    let fresh = || (!study.is_seed_given).then(fresh_seed);
    if let Some(seed) = arguments.seed.or_else(fresh) {
        study = study.with_seed(seed);
    }
    if let StudyServers::Built { pg_bin, .. } = &servers
        // A study checks by itself that the file is there.
        && let Ok(installation) = lab::find::find(pg_bin.as_deref())
        && let Ok(programs) = study::StudyPrograms::find(installation, &study)
    {
        check::settings(&study, &programs)?;
    }
    let place = match &arguments.out {
        Some(directory) => RecordPlace::Directory(directory.clone()),
        None => RecordPlace::Below(PathBuf::from("runs")),
    };
    let again = again(&found, arguments, profile, study.seed);
    Ok(StudyRequest {
        folder: found.folder,
        study,
        rounds: arguments.rounds,
        only: arguments.only.clone(),
        trial: arguments.trial,
        place,
        servers,
        generator,
        again,
    })
}

/// A seed that was not used before: with one of their own for all, everybody's trials would run in the
/// same order. Short enough to be typed again.
fn fresh_seed() -> u64 {
    // The standard library seeds each of these from the operating system.
    RandomState::new().build_hasher().finish() % 1_000_000_000
}

/// The largest smaller profile that fits here, and how far it goes.
fn smaller_profile(arguments: &RunArguments) -> Option<String> {
    let found = studies::find(arguments.study.as_deref()?).ok()?.with(&set::all(&arguments.set));
    let asked = arguments.profile.map_or(StudyProfile::Quick, StudyProfile::from);
    let installation = lab::find::find(arguments.pg_bin.as_deref()).ok()?;
    let has = MachineResources::here(installation, &std::env::temp_dir()).ok()?;
    StudyProfile::of(&found.folder).rev().filter(|profile| *profile < asked).find_map(|profile| {
        let study = study::with_protocols(studies::parse(&found, profile).ok()?, &has);
        let preflight = Preflight::of(&study, &study.trials(None), &has);
        let fitting = study.points.iter().enumerate();
        let fitting = fitting.filter(|(index, _)| preflight.reason(*index).is_none());
        let clients = fitting.map(|(_, point)| point.clients()).max()?;
        let clients = grouped(u64::from(clients));
        (!preflight.refused).then(|| format!("--profile {profile} goes to {clients} clients here"))
    })
}

/// The study, seed and rounds of a record that goes on.
fn resumed(
    directory: &Path,
    servers: StudyServers,
    generator: PathBuf,
) -> Result<StudyRequest, Complaint> {
    let opened = records::open(directory)?;
    let header = opened.reader.header();
    if header.comparison.is_some() {
        let what = format!("{} is a comparison, and no run goes on with it", directory.display());
        return Err(Complaint::new(what).hinted(Some(format!("compare again: {}", header.again))));
    }
    if header.search.is_some() {
        let what = format!("{} is a search, and no run goes on with it", directory.display());
        let hint = format!("go on with: {}", opened.go_on(directory));
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    let folder: StudyFolder = opened.reader.folder().clone();
    let request = StudyRequest {
        folder,
        study: opened.study,
        rounds: header.rounds,
        only: header.only.clone(),
        trial: match &header.plan[..] {
            [one] => Some(one.number),
            _ => None,
        },
        place: RecordPlace::Resume(directory.to_owned()),
        servers,
        generator,
        again: header.again.clone(),
    };
    let is_planned = |planned: &ScheduledTrial| {
        let name = &request.study.points[planned.point].name;
        header.plan.iter().any(|known| {
            known.number == planned.number
                && known.round == planned.round as usize
                && (&known.variant, &known.scenario) == (&name.variant, &name.scenario)
                && name.axes.iter().all(|(axis, value)| known.axes.get(axis) == Some(value))
        })
    };
    // The last attempt at a trial decides: it stands after the others.
    let last: BTreeMap<usize, &AttemptEnding> =
        opened.reader.trials().iter().map(|trial| (trial.number, &trial.ending)).collect();
    let over = last.values().filter(|ending| !ending.is_open()).count();
    if header.state == RunState::Done && over == header.plan.len() {
        let directory = directory.display();
        let what = format!("{directory} is finished: each of its {over} trials was run");
        return Err(Complaint::new(what).hinted(Some(format!("read it: pgrig show {directory}"))));
    }
    let trials = request.trials();
    if trials.len() != header.plan.len() || !trials.iter().all(is_planned) {
        let what = format!(
            "going on with {}: its trials were planned in another order",
            directory.display()
        );
        let hint =
            format!("it was written by pgrig {}; run it again: {}", header.pgrig, header.again);
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    Ok(request)
}

/// The command that runs the same again. The target is left out: it may hold a password.
fn again(found: &NamedStudy, arguments: &RunArguments, profile: StudyProfile, seed: u64) -> String {
    let mut again = format!("pgrig run {}", found.place);
    if profile != StudyProfile::Quick {
        again.push_str(&format!(" --profile {profile}"));
    }
    again.push_str(&format!(" --seed {seed}"));
    for (name, value) in set::all(&arguments.set) {
        again.push_str(&format!(" --set '{name}={value}'"));
    }
    if let Some(rounds) = arguments.rounds {
        again.push_str(&format!(" --rounds {rounds}"));
    }
    if let Some(pattern) = &arguments.only {
        again.push_str(&format!(" --only '{pattern}'"));
    }
    if let Some(trial) = arguments.trial {
        again.push_str(&format!(" --trial {trial}"));
    }
    if arguments.target.is_some() {
        again.push_str(" --target URI");
    }
    if arguments.may_change_database {
        again.push_str(" --may-change-database");
    }
    if let Some(folder) = &arguments.pg_bin {
        again.push_str(&format!(" --pg-bin {}", folder.display()));
    }
    if let Some(file) = &arguments.hosts {
        again.push_str(&format!(" --hosts {}", file.display()));
    }
    if arguments.push {
        again.push_str(" --push");
    }
    if let HostLossName::GoOn = arguments.on_host_loss {
        again.push_str(" --on-host-loss go-on");
    }
    for (name, _) in &arguments.node {
        again.push_str(&format!(" --node {name}=CONNINFO"));
    }
    again
}

#[cfg(test)]
mod tests {
    use spec::ClaimRank;
    use verdict::{ClaimMeasurement, ClaimVerdict, Verdict};

    use super::*;

    #[test]
    fn a_gate_asks_no_claim_that_was_left_out_and_needs_one_that_was_not() {
        use ClaimKind::{Finding, Invariant};
        let check = |kinds: &[(ClaimKind, ClaimMeasurement)], expected: ProgramExit| {
            let verdicts: Vec<_> = kinds.iter().map(|(kind, _)| (*kind, Verdict::Holds)).collect();
            let mut judged = judgement(&verdicts);
            for (claim, (_, measured)) in judged.claims.iter_mut().zip(kinds) {
                claim.measured = measured.clone();
                if claim.is_left_out() {
                    claim.verdict = Verdict::CannotTell;
                }
            }
            let (directory, skipped, overhead) = Default::default();
            let ended =
                RunResult { directory, state: RunState::Done, failed: 0, skipped, overhead };
            assert_eq!(exit(&ended, &judged, Gate::Invariants, false), expected, "{kinds:?}");
        };
        let (asked, left_out) = (|| ClaimMeasurement::Nothing, || ClaimMeasurement::LeftOut);
        check(&[(Invariant, asked()), (Invariant, left_out())], ProgramExit::Done);
        check(&[(Finding, asked()), (Invariant, left_out())], ProgramExit::CannotTell);
        check(&[(Finding, left_out())], ProgramExit::Done);
    }

    fn judgement(claims: &[(ClaimKind, Verdict)]) -> StudyVerdicts {
        let claims = claims.iter().map(|(kind, verdict)| ClaimVerdict {
            says: String::new(),
            kind: *kind,
            rank: ClaimRank::Alike,
            expected: String::new(),
            published: None,
            note: String::new(),
            measured: ClaimMeasurement::Nothing,
            needs_harm: false,
            verdict: *verdict,
            alone: *verdict,
            why: String::new(),
        });
        let (harm, noise, discarded, against) = Default::default();
        let (answer, claims) = (String::new(), claims.collect());
        StudyVerdicts { answer, harm, claims, noise, discarded, against }
    }

    #[test]
    fn the_exit_code_tells_what_a_script_asks() {
        use ClaimKind::{Finding, Invariant};
        use Verdict::{CannotTell, DoesNotHold, Holds};
        let check = |gate, state: RunState, failed, claims: &[(ClaimKind, Verdict)], expected| {
            let (directory, skipped, overhead) = Default::default();
            let ended = RunResult { directory, state, failed, skipped, overhead };
            assert_eq!(
                exit(&ended, &judgement(claims), gate, false),
                expected,
                "{gate:?} {claims:?}"
            );
            let mut marred = judgement(claims);
            marred.against.push("trial 1 failed".to_owned());
            let marred = exit(&ended, &marred, gate, false);
            assert!(gate == Gate::Open || marred != ProgramExit::Done, "{gate:?} {claims:?}");
            let without = exit(&ended, &judgement(claims), gate, true);
            assert!(gate == Gate::Open || without != ProgramExit::Done, "{gate:?} {claims:?}");
        };
        let done = || RunState::Done;
        check(Gate::Open, done(), 0, &[(Invariant, DoesNotHold)], ProgramExit::Done);
        check(Gate::Open, done(), 1, &[(Invariant, Holds)], ProgramExit::Incomplete);
        check(Gate::Open, RunState::Interrupted, 0, &[], ProgramExit::Interrupted);
        let stopped = RunState::Broken("this machine cannot reproduce the fault".to_owned());
        check(Gate::Invariants, stopped, 0, &[(Invariant, DoesNotHold)], ProgramExit::Incomplete);
        check(Gate::Invariants, done(), 0, &[(Finding, DoesNotHold)], ProgramExit::Done);
        check(Gate::Invariants, done(), 0, &[(Invariant, DoesNotHold)], ProgramExit::DoesNotHold);
        check(Gate::Invariants, done(), 0, &[(Invariant, CannotTell)], ProgramExit::CannotTell);
        check(Gate::Invariants, done(), 0, &[(Invariant, Holds)], ProgramExit::Done);
        check(Gate::Everything, done(), 0, &[(Finding, DoesNotHold)], ProgramExit::DoesNotHold);
        check(
            Gate::Everything,
            done(),
            0,
            &[(Finding, CannotTell), (Invariant, DoesNotHold)],
            ProgramExit::DoesNotHold,
        );
        check(Gate::Everything, done(), 2, &[(Finding, DoesNotHold)], ProgramExit::Incomplete);
    }
}
