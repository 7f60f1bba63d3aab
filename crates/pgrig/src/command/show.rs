//! `pgrig show`: the verdicts of a record, for people or for programs.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use record::{Moment, RunState, Trial};
use report::ClaimAnswers;
use serde_json::{Value, json};
use spec::{Study, StudyProfile};
use verdict::{ClaimFigures, ClaimVerdict, MetricNoise, NoiseSource, StudyVerdicts};

use crate::arguments::ShowArguments;
use crate::command::compare::series;
use crate::complaint::Complaint;
use crate::exchange::put;
use crate::exit::ProgramExit;
use crate::records::Opened;
use crate::{compared, records, study_tables, summary};
use console::terminal;

/// Prints every claim with what became of it.
pub(crate) fn show(arguments: &ShowArguments) -> Result<ProgramExit, Complaint> {
    let directory = &arguments.directory;
    arguments.exchange.check()?;
    if arguments.printed {
        return printed(directory);
    }
    if !record::is_record(directory) {
        return list(directory, arguments.json);
    }
    let opened = records::open(directory)?;
    let judgement = opened.judge();
    if arguments.json {
        let value = json(&opened, &judgement);
        terminal::json(&value);
    } else {
        print(&opened, &judgement);
        let header = opened.reader.header();
        if let Some(why) = why(&header.state) {
            terminal::narrate(format_args!("it could not go on: {why}"));
        }
        if header.state == RunState::Interrupted && header.comparison.is_none() {
            let again = opened.go_on(directory);
            terminal::narrate(format_args!("interrupted; go on with: {again}"));
        }
    }
    arguments.exchange.write(&opened)?;
    Ok(ProgramExit::Done)
}

/// Prints the answer and what it rests on.
pub(crate) fn print(opened: &Opened, judgement: &StudyVerdicts) {
    let comparison = opened.reader.header().comparison.as_ref();
    if let Some(comparison) = comparison {
        compared::print_sides(comparison);
    }
    summary::print(opened, judgement);
    if let Some(comparison) = comparison {
        for paired in opened.reader.pairs() {
            compared::print(comparison, paired);
        }
        compared::print_notes(&opened.reader.header().notes);
    }
}

/// Prints a table for each study of a record, or of the records in a folder: what its source printed, and what
/// was met of it.
fn printed(directory: &Path) -> Result<ProgramExit, Complaint> {
    let paths = match record::is_record(directory) {
        true => vec![directory.to_owned()],
        false => records_in(directory)?,
    };
    let mut opened = Vec::new();
    for path in &paths {
        opened.push(records::open(path)?);
    }
    // A study as the newest record has it.
    opened.sort_by(|a, b| a.reader.header().started_at.cmp(&b.reader.header().started_at));
    let (mut folders, mut met) = (BTreeMap::new(), Vec::new());
    for one in opened.iter().filter(|one| one.reader.header().comparison.is_none()) {
        let reader = &one.reader;
        folders.insert(reader.folder().name.as_str(), reader.folder());
        let (header, digest) = (reader.header().clone(), reader.digest()?);
        met.push(ClaimAnswers { header, digest, claims: one.judge().claims });
    }
    for (name, folder) in folders {
        // The published size has every claim with a printed value.
        let study = Study::parse(folder, StudyProfile::Full)
            .map_err(|problems| Complaint::of_problems(folder, name, &problems))?;
        terminal::result(report::printed(&study, &met));
    }
    Ok(ProgramExit::Done)
}

/// The records in a folder; of a file, what to name instead.
fn records_in(directory: &Path) -> Result<Vec<PathBuf>, Complaint> {
    if directory.is_file() {
        let parent = directory.parent().unwrap_or(Path::new("."));
        let what = format!("{} is a file, not a record's folder", directory.display());
        return Err(Complaint::new(what)
            .hinted(Some(format!("name the folder: pgrig show {}", parent.display()))));
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    // A link may lead to a record that is not of this folder.
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut paths: Vec<_> = entries.filter(is_folder).map(|entry| entry.path()).collect();
    paths.retain(|path| record::is_record(path));
    paths.sort();
    if paths.is_empty() {
        // Says what is wrong with it.
        records::open(directory)?;
    }
    Ok(paths)
}

fn list(directory: &Path, as_json: bool) -> Result<ProgramExit, Complaint> {
    let paths = records_in(directory)?;
    if let Some(series) = series::in_folder(&paths)? {
        match as_json {
            true => terminal::json(&series.json()),
            false => series.print(),
        }
        return Ok(ProgramExit::Done);
    }
    let mut rows = Vec::new();
    for path in &paths {
        let reader = record::RecordReader::open(path)?;
        let header = reader.header();
        let answer = match header.comparison {
            Some(_) => Some(records::open(path)?.judge().answer),
            None => None,
        };
        let (ran, planned) = (reader.trials().len(), header.plan.len());
        if as_json {
            rows.push(json!({
                "record": path.display().to_string(),
                "study": header.study,
                "profile": header.profile,
                "state": state(&header.state),
                "why": why(&header.state),
                "started_at": header.started_at,
                "trials": ran,
                "planned": planned,
                "answer": answer,
            }));
            continue;
        }
        let what = answer.unwrap_or_else(|| {
            let (study, profile, started_at) = (&header.study, &header.profile, &header.started_at);
            format!("{study}, profile {profile}, {ran} of {planned} trials, {started_at}")
        });
        let broken = why(&header.state).map_or(String::new(), |why| format!(", broken: {why}"));
        terminal::result(format_args!("{}  {what}{broken}", path.display()));
    }
    match as_json {
        true => terminal::json(&json!(rows)),
        false => terminal::narrate("show one of them: pgrig show DIR"),
    }
    Ok(ProgramExit::Done)
}

/// Writes [`json`] into a file that the user has named.
pub(crate) fn write_json(
    path: &Path,
    opened: &Opened,
    judgement: &StudyVerdicts,
) -> Result<(), Complaint> {
    put(path, &terms::escaped(&format!("{:#}\n", json(opened, judgement))))
}

/// Why a run could not go on.
fn why(state: &RunState) -> Option<&str> {
    match state {
        RunState::Broken(why) => Some(why),
        RunState::Running | RunState::Done | RunState::Interrupted => None,
    }
}

fn state(state: &RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Done => "done",
        RunState::Interrupted => "interrupted",
        RunState::Broken(_) => "broken",
    }
}

/// The same for programs.
pub(crate) fn json(opened: &Opened, judgement: &StudyVerdicts) -> Value {
    let header = opened.reader.header();
    let missed = verdict::missed_rates(&opened.study, opened.reader.trials());
    let missed = missed.iter().map(|one| {
        json!({
            "trial": one.number,
            "name": one.name,
            "workload": one.workload,
            "asked": one.asked,
            "reached": one.reached,
            "backlog": one.backlog,
        })
    });
    let claims: Vec<Value> = judgement.claims.iter().map(claim).collect();
    let discarded = judgement.discarded.iter().map(|trial| {
        json!({
            "trial": trial.number,
            "name": trial.name,
            "status": trial.status,
            "why": trial.why,
        })
    });
    let plan = header.plan.iter().map(|planned| {
        let own = opened.reader.trials().iter().filter(|trial| trial.number == planned.number);
        json!({
            "trial": planned.number,
            "round": planned.round,
            "variant": planned.variant,
            "scenario": planned.scenario,
            "axes": planned.axes,
            "ended": own.max_by_key(|trial| trial.attempt).map(|trial| trial.ending.word()),
        })
    });
    let harm = judgement.harm.iter().map(|harm| {
        json!({
            "kind": harm.kind.name(),
            "says": harm.words(),
            "transactions": harm.transactions,
            "trials": harm.trials,
            "of": harm.of,
            "worst": { "trial": harm.worst.0, "name": harm.worst.1, "ms": harm.worst_ms },
        })
    });
    let sight = verdict::client_sight(opened.reader.trials());
    let anomalies = sight.anomalies.iter().map(|(trial, witness)| {
        json!({ "anomaly": witness.anomaly, "meaning": witness.meaning, "trial": trial.number })
    });
    let tables = verdict::tables(&opened.study, &header.facts, opened.reader.trials());
    json!({
        "harm": harm.collect::<Vec<_>>(),
        "tables": study_tables::json(&tables),
        "errors": sight.errors,
        "anomalies": anomalies.collect::<Vec<_>>(),
        "study": header.study,
        "profile": header.profile,
        "state": state(&header.state),
        "rounds": opened.study.points.iter().map(|point| point.rounds).max(),
        "plan": plan.collect::<Vec<_>>(),
        "answer": judgement.answer,
        "noise": judgement.noise.iter().map(noise).collect::<Vec<_>>(),
        "claims": claims,
        "rates_not_reached": missed.collect::<Vec<_>>(),
        "discarded": discarded.collect::<Vec<_>>(),
        "actions": opened.reader.trials().iter().flat_map(actions).collect::<Vec<_>>(),
        "comparison": header.comparison,
        "pairs": opened.reader.pairs(),
    })
}

/// The actions of an attempt's timeline, in seconds since its window opened.
fn actions(trial: &Trial) -> impl Iterator<Item = Value> {
    let window = trial.window.into_iter();
    window.flat_map(move |window| {
        let at = move |moment: Moment| moment.since(window.open) as f64 / 1e9;
        trial.actions.iter().map(move |one| {
            json!({
                "trial": trial.number,
                "attempt": trial.attempt,
                "action": one.action,
                "planned_s": at(one.planned),
                "possible_s": at(one.possible),
                "began_s": one.began.map(at),
                "ended_s": one.ended.map(at),
                "limit_s": one.limit_ns as f64 / 1e9,
                "is_late": one.is_late(),
                "skipped": one.skipped,
            })
        })
    })
}

fn noise(noise: &MetricNoise) -> Value {
    json!({
        "metric": noise.metric.name,
        "one_percent": noise.one_percent,
        "means_percent": noise.means_percent,
        "rounds": noise.rounds,
        "is_measured_twice": matches!(noise.source, NoiseSource::Twin { .. }),
    })
}

/// A number that is infinite or undefined is null, because JSON has no word for it.
fn claim(claim: &ClaimVerdict) -> Value {
    let ClaimFigures { measured, low, high, confidence, method, n } = claim.measured.figures();
    json!({
        "claim": claim.says,
        "kind": claim.kind.name(),
        "expected": claim.expected,
        "published": claim.published,
        "measured": measured,
        "low": low,
        "high": high,
        "confidence": confidence,
        "method": method,
        "n": n,
        "alone": claim.alone.words(),
        "verdict": claim.verdict.words(),
        "is_harm_seen": claim.saw_harm(),
        "note": claim.note,
        "why": claim.why,
    })
}
