//! `pgrig metrics` and `pgrig words`: what a study can ask for, with what it means.

use serde_json::{Value, json};
use spec::{GlossaryWord, Metric, MetricDirection, MetricKind, MetricScope, MetricSource};

use crate::arguments::WordArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal::{self, STRONG, styled};

/// Lists the metrics, or those that a word is found in.
pub(crate) fn metrics(arguments: &WordArguments) -> Result<ProgramExit, Complaint> {
    let has = |metric: &&&'static Metric| {
        fits(arguments, &[metric.name, metric.says, metric.source.says])
    };
    let all: Vec<&'static Metric> = spec::catalogue().collect();
    let found: Vec<&&'static Metric> = all.iter().filter(has).collect();
    if found.is_empty() {
        return Err(nothing(arguments, "metric", all.iter().map(|metric| metric.name)));
    }
    if arguments.json {
        let rows: Vec<Value> = found.iter().map(|metric| of_metric(metric)).collect();
        terminal::json(&json!(rows));
        return Ok(ProgramExit::Done);
    }
    for metric in found {
        let unit =
            if metric.unit.is_empty() { String::new() } else { format!(" [{}]", metric.unit) };
        let name = styled(STRONG, format_args!("{}{unit}", metric.name));
        terminal::result(format_args!("{name}  {}", metric.says));
        let (scope, source) = (scope(metric.scope), metric.source.says);
        let better = match metric.better {
            MetricDirection::Higher => ", more is better",
            MetricDirection::Lower => ", less is better",
            MetricDirection::Neither => "",
        };
        terminal::result(format_args!(
            "    of {scope}; {}: {source}{better}",
            by(metric.source.by)
        ));
    }
    Ok(ProgramExit::Done)
}

/// Lists kinds of nodes, actions and checks, or those that a word is found in.
pub(crate) fn words(arguments: &WordArguments) -> Result<ProgramExit, Complaint> {
    let has = |word: &GlossaryWord| fits(arguments, &[word.word, word.kind.name(), word.says]);
    let found: Vec<GlossaryWord> = spec::words().filter(has).collect();
    if found.is_empty() {
        return Err(nothing(arguments, "word", spec::words().map(|word| word.word)));
    }
    if arguments.json {
        let row = |word: &GlossaryWord| {
            let (kind, form) = (word.kind.name(), word.form);
            json!({ "kind": kind, "name": word.word, "form": form, "says": word.says })
        };
        terminal::json(&json!(found.iter().map(row).collect::<Vec<_>>()));
        return Ok(ProgramExit::Done);
    }
    for word in found {
        let name = styled(STRONG, format_args!("{}", word.word));
        terminal::result(format_args!("{name}  ({}) {}", word.kind.name(), word.says));
        terminal::result(format_args!("    {}", word.form));
    }
    Ok(ProgramExit::Done)
}

fn fits(arguments: &WordArguments, texts: &[&str]) -> bool {
    let Some(word) = &arguments.word else { return true };
    let word = word.to_lowercase();
    texts.iter().any(|text| text.to_lowercase().contains(&word))
}

fn nothing(
    arguments: &WordArguments,
    what: &str,
    known: impl Iterator<Item = &'static str>,
) -> Complaint {
    let word = arguments.word.as_deref().expect("everything fits where no word is given");
    let known: Vec<&str> = known.collect();
    Complaint::new(format!("no {what} has \"{word}\" in its name or its definition"))
        .hinted(spec::nearest(word, &known))
}

fn of_metric(metric: &Metric) -> Value {
    json!({
        "name": metric.name,
        "unit": metric.unit,
        "better": match metric.better {
            MetricDirection::Higher => "higher",
            MetricDirection::Lower => "lower",
            MetricDirection::Neither => "neither",
        },
        "scope": scope(metric.scope),
        "kind": match metric.kind {
            MetricKind::Total => "total",
            MetricKind::Gauge => "gauge",
            MetricKind::Rate => "rate",
        },
        "label": metric.label,
        "measured_by": by(metric.source.by),
        "source": metric.source.says,
        "says": metric.says,
    })
}

fn scope(scope: MetricScope) -> &'static str {
    match scope {
        MetricScope::Trial => "a trial",
        MetricScope::Workload => "a workload",
        MetricScope::Statement => "a statement",
        MetricScope::Node => "a node",
        MetricScope::Machine => "the machine",
    }
}

fn by(by: MetricSource) -> &'static str {
    match by {
        MetricSource::Clients => "clients",
        MetricSource::Generator => "the load engine",
        MetricSource::Ledger => "the clients' ledger",
        MetricSource::LedgerAndRows => "the ledger and the servers' rows",
        MetricSource::Check => "a check after the load",
        MetricSource::Server => "the server",
        MetricSource::Machine => "the operating system",
    }
}
