//! Events of a run while it goes on. They contain no text: the caller chooses the words.

use std::path::Path;

use record::{PairingAttempt, Trial};
use spec::{Pairing, PointName, ScheduledTrial};

use crate::fit::preflight::Preflight;
use crate::trial::stage::LoadStage;

/// Something that happened. Events arrive in order, on the thread that called
/// [`run`](crate::run).
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StudyEvent<'a> {
    /// The plan is made and fits, and the record is there.
    Begins {
        /// Needs of the study.
        preflight: &'a Preflight,
        /// Trials to come; fewer than planned where a record goes on.
        trials: usize,
        directory: &'a Path,
    },
    /// Servers or data are being made.
    Preparing {
        /// The part that is being made.
        what: &'a str,
        /// Share of it that is done, 0 to 1, if that is known.
        share: Option<f64>,
    },
    /// Servers or data are made.
    Prepared {
        /// The part that was made.
        what: &'a str,
        /// Time that it took.
        seconds: f64,
    },
    /// A trial begins.
    TrialBegins {
        planned: &'a ScheduledTrial,
        /// Of how many.
        of: usize,
        point: &'a PointName,
        /// Estimate of the time until the end of the whole run, in seconds.
        left_s: f64,
    },
    /// Activity of its clients.
    Load {
        /// The stage that the load is in.
        stage: LoadStage,
        /// Estimate of the time until the end of the whole run, in seconds.
        left_s: f64,
    },
    /// A trial is over and in the record.
    TrialEnded {
        trial: &'a Trial,
        /// Of how many.
        of: usize,
    },
    /// A round is over: every trial of it that could run is in the record.
    RoundEnded {
        /// Number of the round, from 1.
        round: u32,
        /// Of how many.
        of: u32,
        /// All trials so far, earlier rounds included.
        trials: &'a [Trial],
    },
    /// Two points begin to be measured in pairs.
    PairsBegin {
        pairing: &'a Pairing,
        /// Of how many.
        of: usize,
    },
    /// Pairs have shown something.
    Pairs {
        /// Pairs of blocks so far, and what they give.
        progress: measure::PairProgress<'a>,
        /// Estimate of the time until the end of the whole run, in seconds.
        left_s: f64,
    },
    /// Two points have been measured in pairs, and that is in the record.
    PairsEnded {
        paired: &'a PairingAttempt,
        /// Of how many.
        of: usize,
    },
    /// Something that a person should know now rather than at the end.
    Note(&'a str),
}
