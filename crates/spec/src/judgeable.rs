//! Claims that no run of a study can decide, found before the hours are spent.

use std::fmt;

use stats::{FAMILY_ERROR, HEADLINE_ROUNDS_MIN, holm, sign_test};

use crate::claim::{Claim, ClaimSubject};
use crate::folder::StudyFolder;
use crate::headline::ClaimRank;
use crate::problem::StudyProblem;
use crate::profile::StudyProfile;
use crate::study::Study;

/// The claims about a value that cannot get a verdict in any profile that makes them, and those marked as
/// headlines that cannot get one in some profile, each at its place in the file: they have too few rounds for an
/// interval, or too few for the correction for several claims. None for a folder that is no study.
pub fn never_judged(folder: &StudyFolder) -> Vec<StudyProblem> {
    // What stands against a claim in the profile that does most for it, by its place; against a headline in the
    // profile that does least.
    let mut found: Vec<(StudyProblem, Obstacle, Judge)> = Vec::new();
    // Figures of profile smoke mean nothing, and no claim expects a verdict from it.
    for profile in StudyProfile::of(folder).filter(|profile| *profile != StudyProfile::Smoke) {
        let Ok(study) = Study::parse(folder, profile) else { continue };
        let values = values(&study);
        for (index, (claim, value)) in values.iter().enumerate() {
            let Claim { span, rank, .. } = &study.claims[*claim];
            let is_headline = *rank == ClaimRank::Headline;
            let judge = if is_headline { Judge::One(profile) } else { Judge::Any };
            let obstacle = obstacle(value, &values, index);
            match found.iter_mut().find(|(known, ..)| known.span == *span) {
                Some((_, known, whose)) => {
                    let counts_more = match (*whose, is_headline) {
                        (Judge::One(_), true) => obstacle > *known,
                        (Judge::One(_), false) => false,
                        (Judge::Any, true) => true,
                        (Judge::Any, false) => obstacle < *known,
                    };
                    if counts_more {
                        (*known, *whose) = (obstacle, judge);
                    }
                }
                None => {
                    let file = StudyFolder::STUDY.to_owned();
                    let (span, message) = (span.clone(), String::new());
                    found.push((StudyProblem { file, span, message, hint: None }, obstacle, judge));
                }
            }
        }
    }
    let problems = found.into_iter().filter_map(|(problem, obstacle, judge)| {
        let (message, rounds) = obstacle.words(judge)?;
        let hint = format!(
            "write rounds = {{ smoke = 1, quick = {rounds}, full = {rounds} }}, or more, in the \
             scenarios that it speaks of"
        );
        Some(StudyProblem { message, hint: Some(hint), ..problem })
    });
    problems.collect()
}

/// A claim about a value, as far as its verdict depends on the plan.
#[derive(Clone, Copy)]
struct Value {
    rounds: u32,
    /// True if it is a quotient of two figures: its p-value then has no lower limit.
    is_ratio: bool,
    /// True if its verdict is corrected for those of others.
    is_corrected: bool,
}

impl Value {
    fn is_judged(self) -> bool {
        self.rounds as usize >= HEADLINE_ROUNDS_MIN
    }

    /// True if the verdicts of the others have to survive the correction together with its own.
    fn is_in_family(self) -> bool {
        self.is_corrected && self.is_judged()
    }

    fn least_p(self) -> f64 {
        if self.is_ratio { 0.0 } else { sign_test::least_p(self.rounds as usize) }
    }
}

/// The profiles that have to judge a claim.
#[derive(Clone, Copy)]
enum Judge {
    /// Any that makes it.
    Any,
    /// This one: it is a headline there.
    One(StudyProfile),
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judge::Any => f.write_str("no profile can judge this claim"),
            Judge::One(profile) => write!(f, "profile {profile} cannot judge this headline claim"),
        }
    }
}

/// Obstacles to a verdict, the lesser first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    None,
    /// The median of so few rounds cannot stand the correction for this many claims.
    Crowded {
        claims: usize,
        rounds: u32,
        needed: u32,
    },
    /// Fewer rounds than any verdict takes.
    TooFew {
        missing: u32,
    },
}

impl Obstacle {
    /// In words, and the rounds that it takes.
    fn words(self, judge: Judge) -> Option<(String, u32)> {
        let needed_at_all = HEADLINE_ROUNDS_MIN as u32;
        match self {
            Obstacle::None => None,
            Obstacle::TooFew { missing } => {
                let rounds = needed_at_all - missing;
                let plural = if rounds == 1 { "round" } else { "rounds" };
                let message = format!(
                    "{judge}: it has {rounds} {plural} at most, and a verdict takes {needed_at_all}"
                );
                Some((message, needed_at_all))
            }
            Obstacle::Crowded { claims, rounds, needed } => {
                let least = 1u64 << (rounds - 1).min(63);
                let message = format!(
                    "{judge} among the study's {claims} headline claims about values: it is no \
                     quotient of two figures, the p-value of a median over {rounds} rounds is \
                     1/{least} at best, and that does not stand Holm's correction"
                );
                Some((message, needed))
            }
        }
    }
}

/// The claims about values of a study: index of the claim, and what its verdict depends on.
fn values(study: &Study) -> Vec<(usize, Value)> {
    let claims = study.claims.iter().enumerate().filter_map(|(index, claim)| {
        let ClaimSubject::Value { value, pairs, .. } = &claim.about else { return None };
        let rounds = value.references().iter().map(|one| study.points[one.point].rounds);
        // There are as many pairs as it takes.
        let rounds = pairs.map_or(rounds.min().unwrap_or(0), |_| u32::MAX);
        let (is_ratio, is_corrected) = (value.ratio().is_some(), claim.rank.is_corrected());
        Some((index, Value { rounds, is_ratio, is_corrected }))
    });
    claims.collect()
}

fn obstacle(value: &Value, values: &[(usize, Value)], index: usize) -> Obstacle {
    if !value.is_judged() {
        return Obstacle::TooFew { missing: HEADLINE_ROUNDS_MIN as u32 - value.rounds };
    }
    let family = values.iter().filter(|(_, value)| value.is_in_family()).count();
    // At best, that is where every other verdict is as clear as it can be.
    let stands = |rounds: u32| {
        let p_values = values.iter().enumerate().map(|(other, (_, value))| match *value {
            value if other == index => Value { rounds, ..value }.least_p(),
            value if value.is_in_family() => value.least_p(),
            _ => 0.0,
        });
        holm(&p_values.collect::<Vec<f64>>())[index] <= FAMILY_ERROR
    };
    if !value.is_corrected || family < 2 || stands(value.rounds) {
        return Obstacle::None;
    }
    let needed = (value.rounds..64).find(|rounds| stands(*rounds)).unwrap_or(64);
    Obstacle::Crowded { claims: family, rounds: value.rounds, needed }
}
