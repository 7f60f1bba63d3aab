//! The verdict on one claim.

use spec::{ClaimKind, ClaimRank, Quantifier};

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimVerdict {
    /// The claim in words.
    pub says: String,
    /// Kind of the claim, which says if it must hold everywhere.
    pub kind: ClaimKind,
    /// The rank among the study's claims.
    pub rank: ClaimRank,
    /// Range in which the value is expected, as text; empty for claims about every trial.
    pub expected: String,
    /// The published figure.
    pub published: Option<f64>,
    /// A condition or a doubt that the study itself states.
    pub note: String,
    /// The measured figure.
    pub measured: ClaimMeasurement,
    /// True if it is true only where checks have found harm, as a control claims of what nothing protects.
    pub needs_harm: bool,
    /// The verdict, all claims of the study considered.
    pub verdict: Verdict,
    /// Verdict of the claim's own figures, were it the study's only claim about a value. Differs
    /// from the verdict if it does not survive the correction for several claims.
    pub alone: Verdict,
    /// Why it cannot be told, or the trial that failed; empty if the figures say enough.
    pub why: String,
}

/// The measurement that a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimMeasurement {
    /// Nothing yet.
    Nothing,
    /// Nothing, because the run left out points that the claim is about, as with `--only`.
    LeftOut,
    /// Too little for a claim about a value, in the profile that is a check of the rig.
    BeyondProfile,
    /// A value over rounds.
    Value {
        /// The value, its interval, how that was found, and how many rounds there are.
        interval: stats::ConfidenceInterval,
        /// The value on each round by itself, in the order of the rounds; NaN where it has none.
        per_round: Vec<f64>,
    },
    /// A quotient of two figures, measured in pairs of blocks.
    Pairs {
        /// The quotient and its confidence sequence; `n` counts the units that it rests on.
        interval: stats::ConfidenceInterval,
        /// Pairs of neighbouring blocks.
        pairs: usize,
    },
    /// Trials counted.
    Count {
        /// The number of trials that must show it: every one, or one at least.
        quantifier: Quantifier,
        /// Trials in which it could be seen.
        trials: u64,
        /// Those in which it was not so.
        failures: u64,
        /// The lowest and the highest rate of failures that these trials do not rule out, at 95 %: 0 and 3/n for
        /// no failure, else the interval of Clopper and Pearson.
        rates: (f64, f64),
    },
}

/// Measured numbers, for tables and programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimFigures {
    /// The value; of counted trials the share in which it was so.
    pub measured: Option<f64>,
    /// The lower bound of its interval.
    pub low: Option<f64>,
    /// The upper bound; none for counted trials of which none failed, whose bound is one-sided.
    pub high: Option<f64>,
    /// Confidence of the interval, 0 to 1.
    pub confidence: Option<f64>,
    /// Method by which the interval was computed; empty without one.
    pub method: &'static str,
    /// Rounds, units of pairs, or trials that were counted.
    pub n: Option<u64>,
}

impl ClaimVerdict {
    /// True if the run left out points that it is about, as with `--only`.
    #[must_use]
    pub fn is_left_out(&self) -> bool {
        self.measured == ClaimMeasurement::LeftOut
    }

    /// True if it holds because harm was seen, which is no good news.
    #[must_use]
    pub fn saw_harm(&self) -> bool {
        self.needs_harm && self.verdict == Verdict::Holds
    }

    /// The verdict in words for a person.
    pub fn words(&self) -> &'static str {
        match self.saw_harm() {
            true => "harm seen, as expected",
            false => self.verdict.words(),
        }
    }

    /// The kind, and how its verdict came about where the study has headlines.
    pub fn label(&self) -> String {
        // Only a value is expected somewhere.
        let is_value = !self.expected.is_empty();
        let rank = match self.rank {
            ClaimRank::Headline => ", headline",
            ClaimRank::Aside if is_value => ", by its own interval",
            ClaimRank::Aside | ClaimRank::Alike => "",
        };
        format!("{}{rank}", self.kind.name())
    }
}

impl ClaimMeasurement {
    /// In how many of the counted trials it was so. What every trial must show and what one trial is
    /// enough for read differently.
    pub fn counted(&self) -> Option<String> {
        let ClaimMeasurement::Count { quantifier, trials, failures, .. } = *self else {
            return None;
        };
        Some(match (quantifier, trials - failures) {
            (Quantifier::Some, 0) => format!("seen in none of {trials}"),
            (Quantifier::Some, seen) => format!("seen in {seen} of {trials}"),
            (Quantifier::Every, 1) if trials == 1 => "in the one trial".to_owned(),
            (Quantifier::Every, 2) if trials == 2 => "in both trials".to_owned(),
            (Quantifier::Every, so) if so == trials => format!("in all {trials} trials"),
            (Quantifier::Every, _) => format!("not in {failures} of {trials}"),
        })
    }

    /// The verdict in numbers; a number that is infinite or undefined is left out.
    pub fn figures(&self) -> ClaimFigures {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        match self {
            ClaimMeasurement::Nothing
            | ClaimMeasurement::LeftOut
            | ClaimMeasurement::BeyondProfile => ClaimFigures::default(),
            ClaimMeasurement::Value { interval, .. } | ClaimMeasurement::Pairs { interval, .. } => {
                ClaimFigures {
                    measured: finite(interval.point),
                    low: finite(interval.low),
                    high: finite(interval.high),
                    confidence: finite(interval.confidence),
                    method: interval.method.name(),
                    n: Some(interval.n as u64),
                }
            }
            ClaimMeasurement::Count { trials, failures, rates: (lowest, highest), .. } => {
                ClaimFigures {
                    measured: finite(1.0 - *failures as f64 / *trials as f64),
                    low: finite(1.0 - highest),
                    high: finite(1.0 - lowest).filter(|_| *failures > 0),
                    confidence: Some(stats::failure_rate::CONFIDENCE),
                    method: match failures {
                        0 => "counted; one-sided bound",
                        _ => "counted; Clopper and Pearson",
                    },
                    n: Some(*trials),
                }
            }
        }
    }
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The interval lies inside what is expected.
    Holds,
    /// The interval lies outside.
    DoesNotHold,
    /// It straddles, rests on too little, or the rig itself was the limit.
    CannotTell,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// Findings about a claim.
pub(crate) struct ClaimFinding {
    pub(crate) measured: ClaimMeasurement,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
    /// The chance that the verdict is wrong, of a value that has an interval.
    pub(crate) p: Option<f64>,
}

impl ClaimFinding {
    /// What is found about a claim whose points the run left out.
    pub(crate) fn left_out() -> ClaimFinding {
        ClaimFinding {
            measured: ClaimMeasurement::LeftOut,
            verdict: Verdict::CannotTell,
            why: "this run left out points that it is about".to_owned(),
            p: None,
        }
    }

    /// Takes back what rests on doubtful figures.
    pub(crate) fn doubt(&mut self, reasons: Vec<String>) {
        if reasons.is_empty() {
            return;
        }
        self.verdict = Verdict::CannotTell;
        let all = (!self.why.is_empty()).then(|| self.why.clone()).into_iter().chain(reasons);
        self.why = all.collect::<Vec<_>>().join("; ");
    }
}
