//! The record that a run begins with, or goes on with.

use lab::guest::StudyRights;
use record::{
    MachineFact, PairingAttempt, PlannedTrial, RecordHeader, RecordReader, RecordWriter, RunState,
    Trial, UnpreparedPooler,
};
use spec::ScheduledTrial;

use crate::clock;
use crate::error::Error;
use crate::facts;
use crate::fit::has::{HasServers, MachineResources};
use crate::fit::hosts;
use crate::fit::preflight::Preflight;
use crate::platform::Platform;
use crate::request::{RecordPlace, StudyRequest};

/// Opens the record, and gives every attempt that it holds already, at trials and at pairs.
pub(crate) fn open_record(
    request: &StudyRequest,
    trials: &[ScheduledTrial],
    facts: &[MachineFact],
    platform: &Platform,
    preflight: &Preflight,
    has: &MachineResources,
) -> Result<(RecordWriter, Vec<Trial>, Vec<PairingAttempt>), Error> {
    if let RecordPlace::Resume(directory) = &request.place {
        // Nobody else adds anything once it is locked.
        let mut writer = RecordWriter::resume(directory)?;
        let reader = RecordReader::open(directory)?;
        let header = writer.header();
        let (had, has) = (facts::of_servers(&header.facts), facts::of_servers(facts));
        if had != has {
            let (had, has) = (had.join(", "), has.join(", "));
            return Err(Error::OtherServers { had, has, again: header.again.clone() });
        }
        let (done, pairs) = (reader.trials().to_vec(), reader.pairs().to_vec());
        let differs = facts.iter().filter(|fact| fact.name != "load average before");
        let differs = differs.filter(|fact| !writer.header().facts.contains(fact));
        let differs: Vec<String> =
            differs.map(|fact| format!("{} now {}", fact.name, fact.value)).collect();
        let resumed = format!("resumed {}; {}", clock::wall(), differs.join("; "));
        writer.change_header(|header| header.notes.push(resumed))?;
        return Ok((writer, done, pairs));
    }
    let mut notes: Vec<String> = Vec::new();
    for (point, _) in &preflight.misfits {
        let name = &request.study.points[*point].name;
        let why = preflight.reason(*point).expect("a misfit has a reason");
        notes.push(format!("left out {name}: {why}"));
    }
    notes.extend(UnpreparedPooler::of(&request.study).into_iter().map(|pooler| {
        let UnpreparedPooler { variant, node, why } = pooler;
        format!("{variant}: clients of {node} use no prepared statements, because it is {why}")
    }));
    if let Platform::Labs { targets: hosts, .. } = platform {
        let run = trials.iter().map(|planned| planned.point);
        let run = run.filter(|point| preflight.reason(*point).is_none());
        notes.extend(hosts::note(hosts, run.map(|point| &request.study.points[point])));
    }
    if let Platform::Target { target, rights, .. } = platform {
        let settings = request.study.points.iter().flat_map(|point| &point.topology.nodes);
        let asked = settings.flat_map(|node| node.settings.iter().map(|(name, _)| name.to_owned()));
        let mut asked: Vec<String> = asked.collect();
        asked.sort_unstable();
        asked.dedup();
        notes.push(format!(
            "ran on {}, which is not ours: no setting was changed, so that those which the study \
             asks for ({}) are as the target has them; {} schema {}",
            target.place(),
            if asked.is_empty() { "none".to_owned() } else { asked.join(", ") },
            match rights {
                StudyRights::OwnSchema => "the study's SQL had no rights but in",
                StudyRights::OfLogin => "--may-change-database let the study change more than",
            },
            lab::TARGET_SCHEMA
        ));
        notes.extend(missing_extensions(request, has));
    }
    let header = header(request, trials, facts.to_vec(), notes);
    let writer = match &request.place {
        RecordPlace::Below(runs) => RecordWriter::create_below(runs, header, &request.folder)?,
        RecordPlace::Directory(directory) | RecordPlace::Resume(directory) => {
            RecordWriter::create(directory, header, &request.folder)?
        }
    };
    Ok((writer, Vec::new(), Vec::new()))
}

fn header(
    request: &StudyRequest,
    trials: &[ScheduledTrial],
    facts: Vec<MachineFact>,
    notes: Vec<String>,
) -> RecordHeader {
    let study = &request.study;
    let plan =
        trials.iter().map(|planned| PlannedTrial::new(planned, &study.points[planned.point].name));
    RecordHeader {
        format: record::FORMAT,
        pgrig: env!("CARGO_PKG_VERSION").to_owned(),
        study: request.folder.name.clone(),
        profile: study.profile.name().to_owned(),
        seed: study.seed,
        rounds: request.rounds,
        only: request.only.clone(),
        again: request.again.clone(),
        started_at: clock::wall(),
        ended_at: None,
        state: RunState::Running,
        plan: plan.collect(),
        facts,
        notes,
        comparison: None,
        unprepared: UnpreparedPooler::of(study),
        search: None,
    }
}

/// Metrics that cannot be measured on the user's server for lack of an extension: the rig creates
/// none there.
fn missing_extensions(request: &StudyRequest, has: &MachineResources) -> Vec<String> {
    let HasServers::Outside(outside) = &has.servers else { return Vec::new() };
    let nodes = request.study.points.iter().flat_map(|point| &point.topology.nodes);
    let asked: std::collections::BTreeSet<&String> =
        nodes.flat_map(|node| &node.extensions).collect();
    let missing = asked.into_iter().filter(|name| !outside.extensions.contains(name));
    let note = |name: &String| {
        format!("extension {name} is not in the target's database: what takes it was not measured")
    };
    missing.map(note).collect()
}
