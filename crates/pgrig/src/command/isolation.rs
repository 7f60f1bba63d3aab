//! `pgrig isolation`: the histories of a trial, judged or handed to another checker.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ::history::export::{Model, Notation, export};
use ::history::{Findings, History, Judgement, Level, check};

use crate::arguments::{FormatWord, IsolationArguments, IsolationCommand, ModelWord};
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::terminal;

/// Judges histories, or writes them for others.
pub(crate) fn isolation(arguments: &IsolationArguments) -> Result<Exit, Complaint> {
    match &arguments.command {
        IsolationCommand::Check { directory, level, gate } => {
            let findings = check(&read(directory)?);
            tell(&findings, *level);
            Ok(match (gate, findings.judge(*level)) {
                (true, Judgement::Violated) => Exit::DoesNotHold,
                (true, Judgement::CannotTell) => Exit::CannotTell,
                (true, Judgement::Holds) | (false, _) => Exit::Done,
            })
        }
        IsolationCommand::Export { directory, model, format, out } => {
            let history = read(directory)?;
            let model = match model {
                ModelWord::ListAppend => Model::ListAppend,
                ModelWord::RwRegister => Model::RwRegister,
                ModelWord::Bank => Model::Bank,
            };
            let notation = match format {
                FormatWord::Edn => Notation::Edn,
                FormatWord::Json => Notation::Json,
            };
            write(&history, model, notation, out).map_err(|error| {
                Complaint::new(format_args!("writing {}: {error}", out.display()))
                    .hinted(Some("name another file with --out"))
            })?;
            terminal::result(out.display());
            Ok(Exit::Done)
        }
    }
}

fn read(directory: &Path) -> Result<History, Complaint> {
    let history = record::read_histories(directory)?;
    if history.files().is_empty() {
        let what = format_args!("{} has no file LANE.history", directory.display());
        let hint = "a trial keeps its histories in its folder ledger if they show something, or if \
                    they could not be judged";
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    Ok(history)
}

fn write(history: &History, model: Model, notation: Notation, out: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(out)?);
    export(history, model, notation, &mut file)?;
    file.flush()
}

fn tell(findings: &Findings, level: Level) {
    let counted = findings.counted;
    terminal::result(format_args!(
        "{} transactions committed, {} failed, {} unknown; {} reads, {} writes",
        counted.committed, counted.failed, counted.unknown, counted.reads, counted.writes
    ));
    for fault in &findings.faults {
        terminal::result(fault);
    }
    let least = if findings.is_partial { "at least " } else { "" };
    for (anomaly, count) in &findings.anomalies {
        let forbidden = Level::weakest_that_forbids(*anomaly);
        terminal::result(format_args!("{least}{count} × {anomaly}, forbidden from {forbidden} on"));
    }
    for witness in &findings.witnesses {
        terminal::result(format_args!("\n{witness}"));
    }
    terminal::result(match findings.judge(level) {
        Judgement::Holds => format!("{level}: holds"),
        Judgement::Violated => format!("{level}: does not hold"),
        Judgement::CannotTell => format!("{level}: cannot tell"),
    });
}
