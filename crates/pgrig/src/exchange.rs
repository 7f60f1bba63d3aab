//! Files for other programs: JUnit, the summary of a GitHub job, github-action-benchmark, Bencher.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use record::Comparison;
use record::comparison::{ComparedMetric, FailOn, FigureVerdict};
use report::{ExportedResults, MeasuredFigure};
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::exit::{self, ProgramExit};
use crate::records::{self, Opened};
use console::terminal;

/// Where results are written for other programs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "For CI")]
pub(crate) struct ExchangeArguments {
    /// Write a JUnit file, in which a case with the verdict "cannot tell" is skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Add a summary to the GitHub job (the file that $GITHUB_STEP_SUMMARY names)
    #[arg(long)]
    pub(crate) github_summary: bool,
    /// Set the outputs of the GitHub step (the file that $GITHUB_OUTPUT names): for a
    /// comparison verdict, ratio, low, high and figure
    #[arg(long)]
    pub(crate) github_output: bool,
    /// Write the summary into a file: the body of a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write files for github-action-benchmark: bigger-is-better.json and smaller-is-better.json
    #[arg(long, value_name = "DIR")]
    pub(crate) benchmark_action: Option<PathBuf>,
    /// Write a file in Bencher's metric format
    #[arg(long, value_name = "FILE")]
    pub(crate) bencher: Option<PathBuf>,
}

impl ExchangeArguments {
    /// True if anything is to be written.
    pub(crate) fn is_asked(&self) -> bool {
        let Self { junit, github_summary, github_output, markdown, benchmark_action, bencher } =
            self;
        let files = [junit, markdown, benchmark_action, bencher];
        *github_summary || *github_output || files.into_iter().any(Option::is_some)
    }

    /// Refuses what cannot work, before anything is measured.
    pub(crate) fn check(&self) -> Result<(), Complaint> {
        let summary = self.github_summary.then(|| github_file(SUMMARY)).transpose()?;
        let output = self.github_output.then(|| github_file(OUTPUT)).transpose()?;
        let files = [&self.junit, &self.markdown, &self.bencher, &summary, &output];
        for path in files.into_iter().flatten() {
            record::check_file(path)?;
        }
        match &self.benchmark_action {
            Some(directory) => Ok(record::check_directory(directory)?),
            None => Ok(()),
        }
    }

    /// Writes what is asked for about a record. Outputs of a step are those of a comparison.
    pub(crate) fn write(&self, opened: &Opened) -> Result<(), Complaint> {
        if !self.is_asked() {
            return Ok(());
        }
        if let (true, Some(comparison)) = (self.github_output, &opened.reader.header().comparison) {
            append(&github_file(OUTPUT)?, &outputs(opened, comparison))?;
        }
        self.write_results(&records::results(opened)?)
    }

    /// Writes what is asked for. Files of measures are not written without a measure: a service would take
    /// an empty one for a result.
    fn write_results(&self, results: &ExportedResults) -> Result<(), Complaint> {
        if let Some(path) = &self.junit {
            put(path, &results.junit())?;
        }
        if self.github_summary {
            append(&github_file(SUMMARY)?, &results.summary())?;
        }
        if let Some(path) = &self.markdown {
            put(path, &results.summary())?;
        }
        if results.figures.is_empty() {
            if self.benchmark_action.is_some() || self.bencher.is_some() {
                terminal::narrate("  no figure has an interval: no file of measures is written");
            }
            return Ok(());
        }
        if let Some(directory) = &self.benchmark_action {
            std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
            for (name, more) in [("bigger-is-better.json", true), ("smaller-is-better.json", false)]
            {
                put(&directory.join(name), &benchmark_action(&results.figures, more))?;
            }
        }
        if let Some(path) = &self.bencher {
            put(path, &bencher(&results.figures))?;
        }
        Ok(())
    }
}

/// An option, and the variable that names the file which it writes.
type GithubFile = (&'static str, &'static str);

const SUMMARY: GithubFile = ("--github-summary", "GITHUB_STEP_SUMMARY");
const OUTPUT: GithubFile = ("--github-output", "GITHUB_OUTPUT");

fn github_file((option, variable): GithubFile) -> Result<PathBuf, Complaint> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    path.map(PathBuf::from).ok_or_else(|| {
        Complaint::new(format!("{option}: ${variable} names no file"))
            .hinted(Some("GitHub sets it inside a job; elsewhere set it yourself"))
    })
}

/// The outputs of a step that compares: what the figure that the answer begins with shows, and the verdict
/// that `--gate` would go by.
fn outputs(opened: &Opened, comparison: &Comparison) -> String {
    let figure = |metric| opened.reader.pairs().last().and_then(|it| it.shown.figure(metric));
    let is_better = |metric: &ComparedMetric| {
        figure(*metric).is_some_and(|it| it.verdict == FigureVerdict::Better)
    };
    let strict = Some(FailOn::WorseOrUnknown);
    let verdict = match exit::of_comparison(&opened.judge().claims, strict) {
        ProgramExit::DoesNotHold => FigureVerdict::Worse,
        ProgramExit::CannotTell => FigureVerdict::CannotTell,
        _ if comparison.decides.iter().any(is_better) => FigureVerdict::Better,
        _ => FigureVerdict::Equal,
    };
    let ratio = figure(comparison.headline()).and_then(|figure| figure.b_over_a.as_ref());
    // An output of a workflow is a text, which is empty where there is no ratio.
    let number = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
    [
        ("verdict", verdict.word().to_owned()),
        ("figure", comparison.headline().name().to_owned()),
        ("ratio", number(ratio.map(|ratio| ratio.value))),
        ("low", number(ratio.map(|ratio| ratio.low))),
        ("high", number(ratio.map(|ratio| ratio.high))),
    ]
    .map(|(name, value)| format!("{name}={value}\n"))
    .concat()
}

fn append(path: &Path, text: &str) -> Result<(), Complaint> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| failed(path, &error))
}

/// Writes a file that the user has named.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), Complaint> {
    std::fs::write(path, text).map_err(|error| failed(path, &error))
}

pub(crate) fn failed(path: &Path, error: &std::io::Error) -> Complaint {
    Complaint::new(format!("writing {}: {error}", path.display()))
}

/// The figures of one direction, as the tools `customBiggerIsBetter` and `customSmallerIsBetter` of
/// github-action-benchmark read them.
fn benchmark_action(figures: &[MeasuredFigure], more_is_better: bool) -> String {
    let figures = figures.iter().filter(|figure| figure.more_is_better == more_is_better);
    let entries = figures.map(|figure| {
        let mut entry = json!({
            "name": format!("{}: {}", figure.benchmark, figure.name),
            "unit": if figure.unit.is_empty() { "ratio" } else { &figure.unit },
            "value": figure.value,
        });
        if let Some([low, high]) = figure.bounds {
            entry["range"] = json!(format!("{low} to {high}"));
        }
        entry
    });
    terms::escaped(&format!("{:#}\n", Value::Array(entries.collect()))).into_owned()
}

/// Bencher Metric Format: benchmark → measure → value and bounds.
fn bencher(figures: &[MeasuredFigure]) -> String {
    let mut benchmarks: BTreeMap<&str, serde_json::Map<String, Value>> = BTreeMap::new();
    for figure in figures {
        let mut value = json!({ "value": figure.value });
        if let Some([low, high]) = figure.bounds {
            value["lower_value"] = json!(low);
            value["upper_value"] = json!(high);
        }
        let measure = figure.name.replace('_', "-");
        benchmarks.entry(&figure.benchmark).or_default().insert(measure, value);
    }
    terms::escaped(&format!("{:#}\n", json!(benchmarks))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Vec<MeasuredFigure> {
        let figure = |name: &str, value, bounds, more_is_better| MeasuredFigure {
            benchmark: "B ÷ A".to_owned(),
            name: name.to_owned(),
            unit: String::new(),
            value,
            bounds,
            more_is_better,
        };
        vec![
            figure("throughput", 0.9, Some([0.88, 0.92]), true),
            figure("temp_bytes", 1.5, None, false),
        ]
    }

    #[test]
    fn benchmark_action_has_one_direction_a_file() {
        let read = |more| -> Value {
            serde_json::from_str(&benchmark_action(&figures(), more)).expect("JSON")
        };
        let bigger = json!([{
            "name": "B ÷ A: throughput", "unit": "ratio", "value": 0.9, "range": "0.88 to 0.92",
        }]);
        assert_eq!(read(true), bigger);
        let smaller = json!([{ "name": "B ÷ A: temp_bytes", "unit": "ratio", "value": 1.5 }]);
        assert_eq!(read(false), smaller);
    }

    #[test]
    fn bencher_has_bounds_where_there_is_an_interval() {
        let read: Value = serde_json::from_str(&bencher(&figures())).expect("JSON");
        let expected = json!({ "B ÷ A": {
            "throughput": { "value": 0.9, "lower_value": 0.88, "upper_value": 0.92 },
            "temp-bytes": { "value": 1.5 },
        }});
        assert_eq!(read, expected);
    }
}
