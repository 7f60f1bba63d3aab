//! Rounds of which a few are unlike the others: the middle of the rounds does not see them.

use stats::Prng;
use verdict::{Verdict, judge};

use crate::machine::Kind;
use crate::run::{run, study};
use crate::{at_most, studies};

/// True of the middle of the rounds, and false of their totals: 0.955.
const CLAIM: &str = "[[claims]]\nsays = \"b is as fast\"\nvalue = \"tps('b/s') / tps('a/s')\"\n\
                     expect = \">= 0.97\"\n";

/// This share of b's rounds has this share of the speed.
const SHARE: f64 = 0.1;
const SPEED: f64 = 0.55;

#[test]
fn what_a_few_rounds_cost_is_not_left_out() {
    let few = studies(100);
    println!("a tenth of b's rounds at 55 %, {few} studies each: it holds that b is as fast");
    for rounds in [6, 10, 20] {
        let study = study(CLAIM, "[8]", rounds);
        let (mut holds, mut seen_and_holds) = (0usize, 0usize);
        for seed in 0..few as u64 {
            let study = study.clone().with_seed(seed);
            let mut trials = run(&study, &mut Kind::Quiet.start(seed ^ 0xfe3), |_| 1.0);
            let mut prng = Prng::new(seed ^ 0x5107);
            let mut slow = 0;
            for trial in trials.iter_mut().filter(|trial| trial.variant == "b") {
                if prng.unit() < SHARE {
                    slow += 1;
                    let tps = trial.metrics.get_mut("tps").and_then(|scopes| scopes.get_mut(""));
                    tps.into_iter().for_each(|tps| *tps *= SPEED);
                }
            }
            let verdict = judge(&study, &[], &trials, &[]).claims[0].verdict;
            holds += usize::from(verdict == Verdict::Holds);
            seen_and_holds += usize::from(verdict == Verdict::Holds && slow > 0);
        }
        let [holds, seen] = [holds, seen_and_holds].map(|count| count as f64 / few as f64);
        println!("{rounds} rounds: {holds:.3}, of which with a slow round {seen:.3}");
        // Where no slow round was drawn, nothing shows that there are any.
        assert!(seen <= at_most(0.02, few), "{rounds}: {seen}");
    }
}
