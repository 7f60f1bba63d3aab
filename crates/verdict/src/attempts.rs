//! Which attempts a figure rests on.
//!
//! An attempt is the unit of evidence, a trial (all attempts of one number) the unit of
//! replication. The steady attempt of a trial gives its figures, of which there is at most one. A
//! trial is run again because it was not steady, though, and what is kept then leans towards what
//! happens in steady times: where one trial in three stalls, the mean of the steady attempts is too
//! high. So values are computed a second time from the first complete attempt of each trial, which
//! was chosen by nothing that was measured.

use std::collections::BTreeMap;

use record::{Ending, Trial};

/// Which attempt of each trial is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The one that counts.
    Steady,
    /// The first that was measured to its end, steady or not.
    FirstComplete,
}

/// The chosen attempt of each trial, in the order of the trials; trials without one are left out.
pub(crate) fn chosen(trials: &[Trial], which: Chosen) -> impl Iterator<Item = &Trial> {
    let mut first: BTreeMap<usize, &Trial> = BTreeMap::new();
    let fits = |trial: &&Trial| match which {
        Chosen::Steady => trial.ending == Ending::Done,
        Chosen::FirstComplete => trial.ending.is_complete(),
    };
    for trial in trials.iter().filter(fits) {
        let known = first.entry(trial.number).or_insert(trial);
        if trial.attempt < known.attempt {
            *known = trial;
        }
    }
    first.into_values()
}

/// Whether the choice makes a difference.
pub(crate) fn any_unsteady(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.ending.is_unsteady())
}
