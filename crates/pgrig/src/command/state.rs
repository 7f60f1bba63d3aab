//! `pgrig run STUDY --state N`: a state of an exploration that failed, once more.

use std::fs;
use std::path::{Path, PathBuf};

use record::{KeptExploration, Trial};
use study::StateRequest;

use crate::arguments::RunArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::records::{self, Opened};
use crate::studies;
use console::terminal;

/// Finds the newest record of the study that kept states, and looks at one of them.
pub(crate) fn state(arguments: &RunArguments, number: usize) -> Result<ProgramExit, Complaint> {
    if !arguments.trust_record {
        let what = "a state is not looked at without --trust-record: the SQL of its record's study runs, \
                    and a server starts from the files that the record has kept";
        let hint = "add --trust-record where you have made the record or trust who has";
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    let study = studies::named(arguments.study.as_deref())?;
    let (opened, trial, kept) = kept(study, arguments.trial)?;
    let point = opened.study.point(&trial.variant, &trial.scenario, &trial.axes);
    let point = point.ok_or_else(|| {
        Complaint::new(format_args!("trial {} is of no point of its study", trial.number))
            .hinted(Some("the record was changed; run the study again"))
    })?;
    let program = studies::program()?;
    let place = kept.path();
    let request = StateRequest {
        study: opened.study,
        point,
        kept,
        number,
        image: arguments.image.clone(),
        pg_bin: arguments.pg_bin.clone(),
        program,
    };
    let (trial_number, place) = (trial.number, place.display());
    terminal::narrate(format_args!("state {number} of trial {trial_number}, kept in {place}"));
    let again = study::look_again(&request, &console::interrupted(lab::end_labs))?;
    for line in &again.then {
        terminal::result(format_args!("then: {line}"));
    }
    terminal::result(format_args!("now: {}", again.now));
    for image in &again.images {
        let image = image.display();
        terminal::narrate(format_args!("the disk is in {image}: debugfs {image} reads it"));
    }
    Ok(ProgramExit::Done)
}

/// The newest record of a study, or the record that is named, and the trial whose states it kept.
fn kept(study: &str, number: Option<usize>) -> Result<(Opened, Trial, KeptExploration), Complaint> {
    let records = match record::is_record(Path::new(study)) {
        true => vec![PathBuf::from(study)],
        false => newest_first(),
    };
    for directory in records {
        let Ok(opened) = records::open(&directory) else { continue };
        let is_meant = directory == Path::new(study) || opened.study.name == study;
        if !is_meant {
            continue;
        }
        let trials = opened.reader.trials().iter();
        let trials = trials.filter(|trial| number.is_none_or(|one| one == trial.number));
        let mut found = None;
        for trial in trials {
            if let Some(kept) = opened.reader.exploration(trial)? {
                found = Some((trial.clone(), kept));
                break;
            }
        }
        if let Some((trial, kept)) = found {
            return Ok((opened, trial, kept));
        }
    }
    let what = format!("no record of {study} below runs has kept the states of an exploration");
    let hint = "states are kept where one failed; name another record's directory as the study";
    Err(Complaint::new(what).hinted(Some(hint)))
}

fn newest_first() -> Vec<PathBuf> {
    let entries = fs::read_dir("runs").into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    all.sort();
    all.into_iter().rev().map(|(_, path)| path).collect()
}
