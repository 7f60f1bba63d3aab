//! What a run says while it goes on. Nothing here is text: the caller chooses the words.

use std::path::Path;

use record::{Paired, Trial};
use spec::{Pairing, Planned, PointName};

use crate::fit::preflight::Preflight;
use crate::trial::stage::Stage;

/// Something that happened. Events arrive in order, on the thread that called
/// [`run`](crate::run).
#[derive(Debug)]
pub enum Event<'a> {
    /// The plan is made and fits, and the record is there.
    Begins {
        /// What it needs.
        preflight: &'a Preflight,
        /// Trials to come; fewer than planned where a record goes on.
        trials: usize,
        /// The record.
        directory: &'a Path,
    },
    /// Servers or data are being made.
    Preparing {
        /// What.
        what: &'a str,
        /// How much of it is done, 0 to 1, where that is known.
        share: Option<f64>,
    },
    /// Servers or data are made.
    Prepared {
        /// What.
        what: &'a str,
        /// How long it took.
        seconds: f64,
    },
    /// A trial begins.
    TrialBegins {
        /// Which one.
        planned: &'a Planned,
        /// Of how many.
        of: usize,
        /// Its point.
        point: &'a PointName,
        /// How long the whole run still takes, about, in seconds.
        left_s: f64,
    },
    /// What its clients do now.
    Load {
        /// The stage that the load is in.
        stage: Stage,
        /// How long the whole run still takes, about, in seconds.
        left_s: f64,
    },
    /// A trial is over and in the record.
    TrialEnded {
        /// The trial.
        trial: &'a Trial,
        /// Of how many.
        of: usize,
    },
    /// A round is over: every trial of it that could run is in the record.
    RoundEnded {
        /// Which one, from 1.
        round: u32,
        /// Of how many.
        of: u32,
        /// All trials so far, earlier rounds included.
        trials: &'a [Trial],
    },
    /// Two points begin to be measured in pairs.
    PairsBegin {
        /// Which ones.
        pairing: &'a Pairing,
        /// Of how many.
        of: usize,
    },
    /// Pairs have shown something.
    Pairs {
        /// Pairs of blocks so far, and what they give.
        progress: compare::Progress<'a>,
        /// How long the whole run still takes, about, in seconds.
        left_s: f64,
    },
    /// Two points have been measured in pairs, and that is in the record.
    PairsEnded {
        /// What came out.
        paired: &'a Paired,
        /// Of how many.
        of: usize,
    },
    /// Something that a person should know now rather than at the end.
    Note(&'a str),
}
