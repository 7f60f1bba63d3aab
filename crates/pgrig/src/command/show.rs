//! `pgrig show`: the verdicts of a record, for people or for programs.

use serde_json::{Value, json};
use verdict::{ClaimVerdict, Judgement, Measured};

use crate::arguments::ShowArguments;
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::{records, summary, terminal};

/// Prints every claim with what became of it.
pub(crate) fn show(arguments: &ShowArguments) -> Result<Exit, Complaint> {
    let opened = records::open(&arguments.directory)?;
    let judgement = verdict::judge(&opened.study, opened.reader.trials());
    if arguments.json {
        let header = opened.reader.header();
        let value = json(&header.study, &header.profile, &judgement);
        terminal::result(format_args!("{value:#}"));
    } else {
        summary::print(&judgement);
    }
    Ok(Exit::Done)
}

fn json(study: &str, profile: &str, judgement: &Judgement) -> Value {
    let claims: Vec<Value> = judgement.claims.iter().map(claim).collect();
    let discarded = judgement.discarded.iter().map(|trial| {
        json!({
            "trial": trial.number,
            "name": trial.name,
            "status": trial.status,
            "why": trial.why,
        })
    });
    json!({
        "study": study,
        "profile": profile,
        "answer": judgement.answer,
        "noise_percent": judgement.noise.map(|noise| noise.percent),
        "claims": claims,
        "discarded": discarded.collect::<Vec<_>>(),
    })
}

/// Numbers that are none (infinite, undefined) are null, as JSON has it.
fn claim(claim: &ClaimVerdict) -> Value {
    let (measured, low, high, n) = match &claim.measured {
        Measured::Nothing => (None, None, None, None),
        Measured::Value { interval, .. } => {
            (Some(interval.point), Some(interval.low), Some(interval.high), Some(interval.n as u64))
        }
        Measured::Count { trials, failures, rate_max } => {
            let rate = (*trials > 0).then(|| *failures as f64 / *trials as f64);
            (rate, rate.map(|_| 0.0), Some(*rate_max), Some(*trials))
        }
    };
    json!({
        "claim": claim.says,
        "kind": claim.kind.name(),
        "expected": claim.expected,
        "published": claim.published,
        "measured": measured,
        "low": low,
        "high": high,
        "n": n,
        "verdict": claim.verdict.words(),
        "why": claim.why,
    })
}
