//! `pgrig check`: what a study would do here, or what this machine can do.

use std::collections::BTreeSet;

use load::OnHostLoss;
use serde_json::{Value, json};
use spec::{Study, StudyFolder, StudyProfile};
use study::{MachineResources, PointPair, Preflight, StudyPrograms};
use terms::{duration, grouped};

use crate::arguments::{CheckArguments, set};
use crate::command::{hosts, machine};
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::fit;
use crate::studies;
use console::terminal::{self, BAD, GOOD, STRONG, styled};

/// Prints the plan; without a study, the machine or the hosts of an inventory.
pub(crate) fn check(arguments: &CheckArguments) -> Result<ProgramExit, Complaint> {
    let reached = match &arguments.hosts {
        None => None,
        Some(inventory) => {
            let reached = hosts::check(inventory, arguments)?;
            let is_alone = arguments.study.is_none() || reached.exit != ProgramExit::Done;
            if is_alone && arguments.json {
                terminal::json(&reached.json);
            }
            if is_alone {
                return Ok(reached.exit);
            }
            if !arguments.json {
                terminal::result("");
            }
            Some(reached.json)
        }
    };
    let Some(name) = &arguments.study else { return machine::check(arguments) };
    let found = studies::find(name)?.with(&set::all(&arguments.set));
    let mut commands: Vec<String> = Vec::new();
    // Whatever is wrong in any profile is wrong now.
    for profile in StudyProfile::of(&found.folder) {
        let study = studies::parse(&found, profile)?;
        let planned = study.trials(arguments.only.as_deref());
        let more = study::commands(&study, planned.iter().map(|trial| trial.point));
        commands.extend(more.into_iter().filter(|one| !commands.contains(one)).collect::<Vec<_>>());
    }
    Complaint::warn(&found.folder, &found.place, &spec::never_judged(&found.folder));
    let profile = arguments.profile.map_or(StudyProfile::Quick, StudyProfile::from);
    let study = studies::parse(&found, profile)?;
    let has = match &arguments.hosts {
        Some(file) => {
            let asked =
                hosts::asked(file, arguments.push, arguments.pg_bin.as_deref(), OnHostLoss::Stop)?;
            study::has_on_hosts(&asked, &study, &console::interrupted(lab::end_labs))?
        }
        None => {
            let installation = lab::find::find(arguments.pg_bin.as_deref())?;
            let programs = StudyPrograms::find(installation, &study)?;
            settings(&study, &programs)?;
            MachineResources::here(programs, &std::env::temp_dir())?
        }
    };
    let study = study::with_protocols(study, &has);
    let trials = study.trials(arguments.only.as_deref());
    if trials.is_empty() {
        // Every name fits an empty pattern.
        let pattern = arguments.only.clone().unwrap_or_default();
        let points = study.points.iter().map(|point| point.name.to_string());
        return Err(study::Error::NothingFits { pattern, points: points.collect() }.into());
    }
    let preflight = Preflight::of(&study, &trials, &has);
    let planned: BTreeSet<usize> = trials.iter().map(|trial| trial.point).collect();
    match arguments.json {
        true => {
            let mut plan = json(&study, &planned, &preflight, &commands);
            if let Some(reached) = reached {
                plan["hosts"] = reached["hosts"].clone();
            }
            terminal::json(&plan);
        }
        false => {
            plan(&study, &planned, &preflight);
            if has.slowdown >= BUSY {
                terminal::narrate(format_args!(
                    "this machine is busy: all but the loads is estimated to take {:.1} times as long as on an idle one",
                    has.slowdown
                ));
            }
            tell_protocols(&study, &planned);
            tell_commands(&found.folder, &commands);
        }
    }
    if preflight.refused {
        return Err(study::Error::DoesNotFit(Box::new(preflight)).into());
    }
    let hosts = arguments.hosts.as_ref();
    // Servers on this machine need no inventory.
    let hosts = hosts.map(|file| format!(" --hosts {}", file.display())).unwrap_or_default();
    let pg_bin = arguments.pg_bin.as_ref();
    // Without the option a run finds the programs of PostgreSQL as this check has.
    let pg_bin = pg_bin.map(|folder| format!(" --pg-bin {}", folder.display())).unwrap_or_default();
    let only = arguments.only.iter().map(|pattern| format!(" --only '{pattern}'"));
    let set = set::all(&arguments.set).into_iter();
    let set = set.map(|(name, value)| format!(" --set '{name}={value}'"));
    let chosen: String = only.chain(set).collect();
    terminal::narrate(format_args!(
        "run it with: pgrig run {name} --profile {profile}{pg_bin}{hosts}{chosen}"
    ));
    Ok(ProgramExit::Done)
}

/// The slowdown from which an estimate is told to be that of a busy machine.
const BUSY: f64 = 1.5;

/// Has postgres look at every setting of a study.
pub(crate) fn settings(study: &Study, programs: &StudyPrograms) -> Result<(), Complaint> {
    let mistakes = study::mistakes(study, programs)
        .map_err(|error| Complaint::new(format!("asking postgres about settings: {error}")))?;
    if mistakes.is_empty() {
        return Ok(());
    }
    let hint = "correct the setting in the study, or in --set; nothing was run";
    Err(Complaint::new(mistakes.join("\n       ")).hinted(Some(hint)))
}

/// Says which points use another protocol here than the study asks for first.
fn tell_protocols(study: &Study, planned: &BTreeSet<usize>) {
    let points = planned.iter().map(|index| &study.points[*index]);
    let fallen = points.flat_map(|point| {
        let workloads = point.workloads.iter();
        let fallen = workloads.filter_map(|one| Some((one, one.fell_back.as_ref()?)));
        fallen.map(|(one, why)| (&point.name.variant, &one.name, one.protocol.name(), why))
    });
    for (variant, workload, protocol, why) in fallen.collect::<BTreeSet<_>>() {
        terminal::narrate(format_args!(
            "{workload} of {variant} uses the {protocol} protocol here, because of {why}"
        ));
    }
}

/// Says which commands of the operating system a study of somebody else runs. They run as the user of the
/// servers. Nothing is said of a shipped study, whose commands are part of pgrig.
pub(crate) fn tell_commands(folder: &StudyFolder, commands: &[String]) {
    if !commands.is_empty() && !studies::is_shipped(folder) {
        terminal::narrate("this study runs commands:");
        commands.iter().for_each(|command| terminal::narrate(format_args!("  {command}")));
    }
}

fn json(
    study: &Study,
    planned: &BTreeSet<usize>,
    preflight: &Preflight,
    commands: &[String],
) -> Value {
    let points = study.points.iter().enumerate().filter(|(index, _)| planned.contains(index));
    let points = points.map(|(index, point)| {
        json!({
            "point": point.name.to_string(),
            "rounds": point.rounds,
            "seconds": point.load_ms_max() as f64 / 1e3,
            "clients": point.clients(),
            "left_out_because": preflight.reason(index),
        })
    });
    let needs = preflight.needs.iter();
    let needs = needs.map(|one| json!({ "what": one.what, "needs": one.needs, "has": one.has }));
    let pairs = preflight.pairs.iter();
    let pairs = pairs.map(|one| {
        let PointPair { name, misfit, rounds, short_s, .. } = one;
        json!({
            "points": name,
            "left_out_because": misfit,
            "rounds_instead": misfit.as_ref().map(|_| rounds),
            "too_short_needs_s": short_s,
        })
    });
    json!({
        "study": study.name,
        "profile": study.profile.name(),
        "question": study.question,
        "trials": preflight.trials,
        "seconds": preflight.estimate.seconds(),
        "disk_bytes": preflight.estimate.disk_bytes,
        "memory_bytes": preflight.estimate.memory_bytes,
        "is_fit": !preflight.refused,
        "points": points.collect::<Vec<_>>(),
        "pairs": pairs.collect::<Vec<_>>(),
        "needs": needs.collect::<Vec<_>>(),
        "commands": commands,
    })
}

fn plan(study: &Study, planned: &BTreeSet<usize>, preflight: &Preflight) {
    let points = || study.points.iter().enumerate().filter(|(index, _)| planned.contains(index));
    let rounds = points().map(|(_, point)| point.rounds).max();
    let rounds = rounds.expect("a plan without a trial was refused");
    terminal::result(format_args!(
        "{}: {}",
        styled(STRONG, format_args!("{}, profile {}", study.name, study.profile)),
        study.question
    ));
    terminal::result(format_args!(
        "{} trials in up to {rounds} rounds, about {}: {} for servers and data, {} for trials",
        preflight.trials,
        duration(preflight.estimate.seconds()),
        duration(preflight.estimate.build_s),
        duration(preflight.estimate.trials_s)
    ));
    terminal::result("");
    let width = points().map(|(_, point)| point.name.to_string().len()).max();
    let width = width.expect("a plan without a trial was refused");
    for (index, point) in points() {
        let load_s = point.load_ms_max() as f64 / 1e3;
        let clients = grouped(u64::from(point.clients()));
        let plural = if point.clients() == 1 { "" } else { "s" };
        let what = format!(
            "{:>2} × {:>12}  {clients:>7} client{plural:1}",
            point.rounds,
            duration(load_s)
        );
        let fits = match preflight.reason(index) {
            None => styled(GOOD, "fits"),
            Some(_) => styled(BAD, "left out"),
        };
        terminal::result(format_args!("  {:width$}  {what}  {fits}", point.name.to_string()));
    }
    for pair in &preflight.pairs {
        let fits = match (&pair.misfit, pair.short_s) {
            (None, None) => styled(GOOD, "fits"),
            (None, Some(needs_s)) => format!(
                "{}: an interval takes about {} here, more than their max",
                styled(BAD, "too short"),
                duration(needs_s)
            ),
            (Some(why), _) => {
                let few = if pair.has_verdict { "" } else { ", too few for a verdict" };
                let rounds = pair.rounds;
                let plural = if rounds == 1 { "" } else { "s" };
                format!(
                    "{} ({why}): {rounds} round{plural} of whole trials instead{few}",
                    styled(BAD, "left out")
                )
            }
        };
        terminal::result(format_args!("  in pairs: {}  {fits}", pair.name));
    }
    terminal::result("");
    let misfits = preflight.distinct_misfits();
    if !misfits.is_empty() {
        terminal::result("left out because of");
        fit::needs(&misfits).iter().for_each(terminal::result);
        let mut hints: Vec<&str> = misfits.iter().filter_map(|one| one.hint.as_deref()).collect();
        hints.dedup();
        for hint in hints {
            terminal::result(format_args!("  {}   {hint}", styled(STRONG, "hint:")));
        }
        terminal::result("");
    }
    for need in &preflight.needs {
        terminal::result(format_args!(
            "  {:12}  needs {:>22}   has {}",
            need.what, need.needs, need.has
        ));
    }
}
