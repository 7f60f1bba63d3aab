//! "Does it fit?" in words.

use study::Preflight;

use crate::terminal::{STRONG, styled};

/// Why a study cannot run here: what it needs beside what there is, and what to do.
pub(crate) fn refusal(preflight: &Preflight) -> String {
    let mut text = String::from("the study does not fit this machine");
    let misfits = preflight.distinct_misfits();
    let longest = misfits.iter().map(|misfit| misfit.needs.chars().count()).max().unwrap_or(0);
    let width = longest.min(NEEDS_COLUMNS_MAX);
    for misfit in &misfits {
        text.push_str(&format!("\n  needs   {:width$}   has  {}", misfit.needs, misfit.has));
    }
    let mut hints: Vec<&str> = misfits.iter().filter_map(|one| one.hint.as_deref()).collect();
    hints.dedup();
    for hint in hints {
        text.push_str(&format!("\n  {}   {hint}", styled(STRONG, "hint:")));
    }
    text
}

/// A longer one takes the room of what there is.
const NEEDS_COLUMNS_MAX: usize = 72;
