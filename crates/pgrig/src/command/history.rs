//! `pgrig history`: results over time.

use std::path::Path;

use report::FigureSeries;
use serde_json::{Value, json};
use terms::figure;

use crate::arguments::{HistoryArguments, HistoryCommand};
use crate::complaint::Complaint;
use crate::exchange::{failed, put};
use crate::exit::ProgramExit;
use crate::history::{self, BenchResult, History};
use crate::{otava, records};
use console::terminal::{self, FAINT, STRONG, styled};

/// Adds to a history, or shows it.
pub(crate) fn history(arguments: &HistoryArguments) -> Result<ProgramExit, Complaint> {
    let file = &arguments.file;
    match &arguments.command {
        HistoryCommand::Add { source, commit, machine } => {
            add(file, source, commit.as_deref(), machine.as_deref())?;
        }
        HistoryCommand::Show { only, json: true } => {
            let series = History::open(file)?.series(only.as_deref())?;
            terminal::json(&series.iter().map(of).collect());
        }
        HistoryCommand::Show { only: None, json: false } => list(&History::open(file)?),
        HistoryCommand::Show { only, json: false } => {
            show(&History::open(file)?.series(only.as_deref())?);
        }
        HistoryCommand::Plot { only, out } => {
            let series = History::open(file)?.series(only.as_deref())?;
            put(out, &report::history(&series))?;
            terminal::result(out.display());
        }
        HistoryCommand::Otava { only, directory } => {
            let series = History::open(file)?.series(only.as_deref())?;
            let tests = otava::tests(&series);
            let Some(first) = tests.first() else {
                let what = format!("{} has no whole result of these figures", file.display());
                let hint = "add a run that went to its end, in another profile than smoke";
                return Err(Complaint::new(what).hinted(Some(hint)));
            };
            std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
            for (name, text) in otava::files(&series) {
                put(&directory.join(name), &text)?;
            }
            let place = directory.display();
            terminal::result(format_args!("{place}/otava.yaml"));
            let test = &first.name;
            terminal::narrate(format_args!(
                "  analyse it: cd {place} && otava analyze {test} --config-file otava.yaml"
            ));
        }
    }
    Ok(ProgramExit::Done)
}

fn add(
    file: &Path,
    source: &Path,
    commit: Option<&str>,
    machine: Option<&str>,
) -> Result<(), Complaint> {
    record::check_file(file)?;
    let count = if source.is_file() {
        let BenchResult { results, subject, mark, machine: of_hosts } = history::of_bench(source)?;
        let here = || history::machine(&study::machine_facts(&std::env::temp_dir()));
        let machine = machine.map(str::to_owned).or(of_hosts).unwrap_or_else(here);
        history::add(file, source, &results, commit, &machine, (subject, mark))?;
        results.figures.len()
    } else {
        let opened = records::open(source)?;
        let (results, header) = (records::results(&opened)?, opened.reader.header());
        if results.figures.is_empty() {
            let what = format!("{} has no figure with an interval to keep", source.display());
            return Err(Complaint::new(what)
                .hinted(Some("add a study's record, or a comparison that ran longer".to_owned())));
        }
        let known = header.comparison.as_ref().and_then(|one| one.commit.as_deref());
        let machine = machine.map_or_else(|| history::machine(&header.facts), str::to_owned);
        let is_held = record::is_held(source);
        let subject = (history::of_record(header), history::mark(header, is_held));
        history::add(file, source, &results, commit.or(known), &machine, subject)?;
        results.figures.len()
    };
    let place = file.display();
    let count = terms::counted(count as u64, "figure");
    terminal::narrate(format_args!("{count} of {} added to {place}", source.display()));
    Ok(())
}

fn of(series: &FigureSeries) -> Value {
    let points = series.points.iter().map(|point| {
        json!({
            "time": point.time,
            "commit": Some(&point.commit).filter(|commit| !commit.is_empty()),
            "machine": point.machine,
            "mark": point.mark.map(record::PastMark::word),
            "value": point.value,
            "low": point.bounds.map(|[low, _]| low),
            "high": point.bounds.map(|[_, high]| high),
        })
    });
    json!({
        "study": series.study,
        "subject": Some(&series.subject).filter(|subject| !subject.is_empty()),
        "benchmark": series.benchmark,
        "name": series.name,
        "unit": series.unit,
        "better": if series.more_is_better { "higher" } else { "lower" },
        "points": points.collect::<Vec<_>>(),
    })
}

fn list(history: &History) {
    for line in history.lines() {
        let commit = line.commit.as_deref().unwrap_or("–");
        let (time, study, answer) = (&line.time, &line.study, &line.answer);
        let mark = line.mark.map_or(String::new(), |mark| format!("{}: ", mark.word()));
        terminal::result(format_args!("{time}  {commit:10.10}  {mark}{study}: {answer}"));
        terminal::result(styled(FAINT, format_args!("  {}  {}", line.record, line.machine)));
    }
}

fn show(series: &[FigureSeries]) {
    for series in series {
        terminal::result(styled(STRONG, series.title()));
        for point in &series.points {
            let commit = if point.commit.is_empty() { "–" } else { &point.commit };
            let interval = point.bounds.map_or_else(
                || "one round, no interval".to_owned(),
                |[low, high]| format!("[{}, {}]", figure(low), figure(high)),
            );
            let (time, value) = (&point.time, figure(point.value));
            let mark = point.mark.map_or(String::new(), |mark| format!("  {}", mark.word()));
            terminal::result(format_args!(
                "  {time}  {commit:10.10}  {value:>10} {interval}{mark}"
            ));
        }
    }
}
