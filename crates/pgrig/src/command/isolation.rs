//! `pgrig isolation`: the histories of a trial, judged or handed to another checker.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ::history::export::{ExportNotation, OperationModel, export};
use ::history::{
    ASSUMES, History, HistoryFindings, IsolationLevel, LevelJudgement, NEVER_LOOKS_AT, check,
};
use serde_json::{Value, json};

use crate::arguments::{FormatWord, IsolationArguments, IsolationCommand, ModelWord};
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

/// Judges histories, or writes them for others.
pub(crate) fn isolation(arguments: &IsolationArguments) -> Result<ProgramExit, Complaint> {
    match &arguments.command {
        IsolationCommand::Check { directory, level, gate, json } => {
            let findings = check(&read(directory)?);
            match json {
                true => terminal::json(&of(&findings, *level)),
                false => tell(&findings, *level),
            }
            Ok(match (gate, findings.judge(*level)) {
                (true, LevelJudgement::Violated) => ProgramExit::DoesNotHold,
                (true, LevelJudgement::CannotTell) => ProgramExit::CannotTell,
                (true, LevelJudgement::Holds) | (false, _) => ProgramExit::Done,
            })
        }
        IsolationCommand::Export { directory, model, format, out } => {
            let history = read(directory)?;
            let model = match model {
                ModelWord::ListAppend => OperationModel::ListAppend,
                ModelWord::RwRegister => OperationModel::RwRegister,
                ModelWord::Bank => OperationModel::Bank,
            };
            let notation = match format {
                FormatWord::Edn => ExportNotation::Edn,
                FormatWord::Json => ExportNotation::Json,
            };
            write(&history, model, notation, out).map_err(|error| {
                Complaint::new(format_args!("writing {}: {error}", out.display()))
                    .hinted(Some("name another file with --out"))
            })?;
            terminal::result(out.display());
            Ok(ProgramExit::Done)
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

fn write(
    history: &History,
    model: OperationModel,
    notation: ExportNotation,
    out: &Path,
) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(out)?);
    export(history, model, notation, &mut file)?;
    file.flush()
}

fn tell(findings: &HistoryFindings, level: IsolationLevel) {
    let counted = findings.counted;
    terminal::result(format_args!(
        "{} committed, {} failed, {} unknown; {}, {}",
        terms::counted(counted.committed, "transaction"),
        counted.failed,
        counted.unknown,
        terms::counted(counted.reads, "read"),
        terms::counted(counted.writes, "write")
    ));
    terminal::result(findings.observed);
    for fault in &findings.faults {
        terminal::result(fault);
    }
    let least = if findings.is_partial { "at least " } else { "" };
    for (anomaly, count) in &findings.anomalies {
        let forbidden = IsolationLevel::weakest_that_forbids(*anomaly);
        terminal::result(format_args!("{least}{count} × {anomaly}, forbidden from {forbidden} on"));
    }
    for witness in &findings.witnesses {
        terminal::result(format_args!("\n{witness}"));
    }
    terminal::result(format_args!("{level}: {}", verdict(findings, level)));
    if findings.judge(level) == LevelJudgement::CannotTell {
        findings.doubts(level).iter().for_each(|doubt| terminal::result(format_args!("  {doubt}")));
    }
}

fn of(findings: &HistoryFindings, level: IsolationLevel) -> Value {
    let counted = findings.counted;
    let anomalies = findings.anomalies.iter().map(|(anomaly, count)| {
        json!({
            "anomaly": anomaly.to_string(),
            "count": count,
            "forbidden_from": IsolationLevel::weakest_that_forbids(*anomaly).to_string(),
        })
    });
    let witnesses = findings.witnesses.iter().map(
        |witness| json!({ "anomaly": witness.anomaly.to_string(), "says": witness.to_string() }),
    );
    json!({
        "level": level.to_string(),
        "verdict": verdict(findings, level),
        "committed": counted.committed,
        "failed": counted.failed,
        "unknown": counted.unknown,
        "reads": counted.reads,
        "writes": counted.writes,
        "writes_read_share": findings.observed.read_share(),
        "doubts": findings.doubts(level).iter().map(ToString::to_string).collect::<Vec<_>>(),
        "assumes": ASSUMES,
        "never_looks_at": NEVER_LOOKS_AT,
        "is_partial": findings.is_partial,
        "anomalies": anomalies.collect::<Vec<_>>(),
        "witnesses": witnesses.collect::<Vec<_>>(),
        "faults": findings.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn verdict(findings: &HistoryFindings, level: IsolationLevel) -> &'static str {
    match findings.judge(level) {
        LevelJudgement::Holds => "holds",
        LevelJudgement::Violated => "does not hold",
        LevelJudgement::CannotTell => "cannot tell",
    }
}
