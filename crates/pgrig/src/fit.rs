//! "Does it fit?" in words.

use study::{PointMisfit, Preflight};

use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal::{STRONG, styled};

/// Complaint about a study that cannot run here: its needs and the machine's resources, and the
/// next step; `smaller` is what can be run instead.
pub(crate) fn complaint(preflight: &Preflight, smaller: Option<String>) -> Complaint {
    Complaint::new(refusal(preflight, smaller.as_deref())).exit(ProgramExit::DoesNotFit)
}

fn refusal(preflight: &Preflight, smaller: Option<&str>) -> String {
    let mut text = String::from("what is asked for does not fit this machine");
    let misfits = preflight.distinct_misfits();
    for line in needs(&misfits) {
        text.push_str(&format!("\n{line}"));
    }
    let hints = misfits.iter().filter_map(|one| one.hint.as_deref());
    let mut told: Vec<&str> = Vec::new();
    for hint in smaller.into_iter().chain(hints) {
        if told.contains(&hint) {
            continue;
        }
        told.push(hint);
        text.push_str(&format!("\n  {}   {hint}", styled(STRONG, "hint:")));
    }
    text
}

/// Needs and resources, a line each.
pub(crate) fn needs(misfits: &[&PointMisfit]) -> Vec<String> {
    // Without a need there is no line to align.
    let longest = misfits.iter().map(|misfit| misfit.needs.chars().count()).max().unwrap_or(0);
    let width = longest.min(NEEDS_COLUMNS_MAX);
    let line =
        |misfit: &&PointMisfit| format!("  needs   {:width$}   has  {}", misfit.needs, misfit.has);
    misfits.iter().map(line).collect()
}

/// A longer one takes the room of the other columns.
const NEEDS_COLUMNS_MAX: usize = 72;
