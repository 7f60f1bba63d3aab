//! Do verdicts tell the truth? Noisy machines whose truth is known run whole studies: the real plan
//! decides what runs when, the machine disturbs each trial, and the real judgement is held against
//! what is true.
//!
//! `make test` runs 60 to 400 studies of each kind with fixed seeds; the bounds are wide enough
//! for a right program to pass with any seed but one in a million. `PGRIG_HONESTY=1000 cargo test
//! --release -p verdict --test honesty -- --nocapture` runs as many of each and prints the tables.

#![expect(clippy::print_stdout, reason = "the tables of the big run")]

mod coverage;
mod differences;
mod few;
mod machine;
mod pairs;
mod power;
mod real;
mod run;
mod survivors;
mod violations;

/// How many studies of each kind are run: `few` in `make test`, or what the environment asks for.
fn studies(few: usize) -> usize {
    let asked = std::env::var("PGRIG_HONESTY").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(few)
}

/// The largest share that a thing of probability `p` shows in `n` tries, but for one case in a
/// million: five standard errors, and one more for small numbers.
fn at_most(p: f64, n: usize) -> f64 {
    p + 5.0 * (p * (1.0 - p) / n as f64).sqrt() + 1.0 / n as f64
}

/// The smallest share, in the same way.
fn at_least(p: f64, n: usize) -> f64 {
    1.0 - at_most(1.0 - p, n)
}
