//! The attempts that a figure rests on.
//!
//! An attempt is the unit of evidence, a trial (all attempts of one number) the unit of
//! replication. Of the attempts at a trial at most one counts, and its figures are the trial's,
//! stalls and slumps included. Choosing among attempts or trials by what was measured in them biases
//! a mean: where one trial in three stalls, the mean of the steady ones is too high. So a value is
//! computed again from other choices wherever they differ, and its verdict must be the same.

use std::collections::BTreeMap;

use record::{AttemptEnding, FaultyParty, InterruptedState, Trial};

/// The attempt of each trial that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptChoice {
    /// The one that counts.
    Counted,
    /// The one that counts, of the trials whose throughput was steady.
    Steady,
    /// The first that was measured to its end, even if it still warmed up and was run again.
    FirstComplete,
}

impl AttemptChoice {
    /// In words, where a verdict differs from that of another choice.
    pub(crate) fn words(self) -> &'static str {
        match self {
            AttemptChoice::Counted => "all trials that count",
            AttemptChoice::Steady => "steady trials alone",
            AttemptChoice::FirstComplete => "the first complete attempt of each trial",
        }
    }
}

/// The chosen attempt of each trial, in the order of the trials; trials without one are left out.
pub(crate) fn chosen(trials: &[Trial], which: AttemptChoice) -> impl Iterator<Item = &Trial> {
    let mut first: BTreeMap<usize, &Trial> = BTreeMap::new();
    let fits = |trial: &&Trial| match which {
        AttemptChoice::Counted => trial.ending == AttemptEnding::Done,
        AttemptChoice::Steady => trial.is_steady(),
        AttemptChoice::FirstComplete => trial.ending.is_complete(),
    };
    for trial in trials.iter().filter(fits) {
        let known = first.entry(trial.number).or_insert(trial);
        if trial.attempt < known.attempt {
            *known = trial;
        }
    }
    first.into_values()
}

/// The choices besides [`AttemptChoice::Counted`] that may make a difference.
pub(crate) fn others<'t>(trials: impl Iterator<Item = &'t Trial>) -> Vec<AttemptChoice> {
    let (mut any_unsteady, mut any_again) = (false, false);
    for trial in trials {
        any_unsteady |= trial.ending == AttemptEnding::Done && !trial.is_steady();
        any_again |= trial.ending.is_unsteady();
    }
    let others = [(any_unsteady, AttemptChoice::Steady), (any_again, AttemptChoice::FirstComplete)];
    others.into_iter().filter_map(|(is, chosen)| is.then_some(chosen)).collect()
}

/// Use of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptUse {
    /// The figures are the trial's.
    pub figures: bool,
    /// The reason, for people.
    pub why: &'static str,
}

/// Use of each attempt, in the order of `trials`.
pub fn uses(trials: &[Trial]) -> Vec<AttemptUse> {
    let is_first_complete = |trial: &Trial| {
        let same = trials.iter().filter(|other| other.number == trial.number);
        let first = same.filter(|other| other.ending.is_complete()).map(|other| other.attempt);
        first.min() == Some(trial.attempt)
    };
    let of = |trial: &Trial| match &trial.ending {
        AttemptEnding::Done if trial.is_steady() => {
            AttemptUse { figures: true, why: "its figures count" }
        }
        AttemptEnding::Done => AttemptUse {
            figures: true,
            why: "its figures count; values are computed a second time without it",
        },
        ending if ending.is_unsteady() && is_first_complete(trial) => AttemptUse {
            figures: false,
            why: "not steady: its figures count where values are computed a second time from the \
                  first complete attempt of each trial; what it shows counts for every trial's \
                  claims",
        },
        ending if ending.is_unsteady() => AttemptUse {
            figures: false,
            why: "not steady: no figures; what it shows counts for every trial's claims",
        },
        AttemptEnding::Void(_) => AttemptUse {
            figures: false,
            why: "not what was asked for: it can refute a claim, not support one",
        },
        AttemptEnding::Skipped(_) => AttemptUse { figures: false, why: "not run" },
        AttemptEnding::Interrupted(_) | AttemptEnding::Failed(_) => {
            AttemptUse { figures: false, why: broken(&trial.ending) }
        }
    };
    trials.iter().map(of).collect()
}

/// Why the figures of an attempt that did not come to its end count for nothing.
fn broken(ending: &AttemptEnding) -> &'static str {
    match ending {
        AttemptEnding::Interrupted(reason) => match reason.kind {
            InterruptedState::BeforeLoad => {
                "interrupted by the user before its load: a later attempt may make up for it"
            }
            InterruptedState::Checked => {
                "interrupted by the user, and nothing was wrong: a later attempt may make up for it"
            }
            InterruptedState::Unchecked => {
                "interrupted, and it is not known what it would have shown: no claim about these \
                 trials holds, whatever later attempts show"
            }
        },
        AttemptEnding::Failed(reason) => match reason.kind {
            FaultyParty::Server => {
                "a server's fault: no claim about these trials holds, whatever later attempts show"
            }
            FaultyParty::Unknown => {
                "it may have been a server's fault: no claim about these trials holds, whatever later \
                 attempts show"
            }
            FaultyParty::LeakedSession => {
                "session state leaked through a pooler: no claim about these trials holds, whatever \
                 later attempts show"
            }
            FaultyParty::Study => "the study's fault: a later attempt may make up for it",
            FaultyParty::Machine => "the machine's fault: a later attempt may make up for it",
            FaultyParty::Rig => "the rig's fault: a later attempt may make up for it",
            FaultyParty::GeneratorHost => {
                "the fault of a host that generated load: a later attempt may make up for it"
            }
            FaultyParty::ServerHost => {
                "a host with servers was lost: no claim about these trials holds, whatever later \
                 attempts show"
            }
        },
        AttemptEnding::Done | AttemptEnding::Void(_) | AttemptEnding::Skipped(_) => "",
    }
}
