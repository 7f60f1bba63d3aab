//! How often a difference is found where there is one.

use verdict::{Verdict, judge};

use crate::machine::Kind;
use crate::run::{run, study};
use crate::{at_least, studies};

const CLAIM: &str = "[[claims]]\nsays = \"b is faster\"\nvalue = \"tps('b/s') / tps('a/s')\"\n\
                     expect = \"> 1\"\n";

#[test]
fn a_difference_that_is_there_is_found() {
    let few = studies(100);
    println!("power at 3, 5 and 10 %, {few} studies each, one claim");
    for kind in Kind::ALL {
        for rounds in [6, 10, 20] {
            let study = study(CLAIM, "[8]", rounds);
            let found = [1.03, 1.05, 1.10].map(|factor| {
                let (mut found, mut wrong) = (0usize, 0usize);
                for seed in 0..few as u64 {
                    let study = study.clone().with_seed(seed);
                    let gain = |variant: &str| if variant == "b" { factor } else { 1.0 };
                    let trials = run(&study, &mut kind.start(seed ^ 0x90), gain);
                    let verdict = judge(&study, &[], &trials, &[]).claims[0].verdict;
                    found += usize::from(verdict == Verdict::Holds);
                    wrong += usize::from(verdict == Verdict::DoesNotHold);
                }
                let wrong = wrong as f64 / few as f64;
                assert!(wrong <= crate::at_most(0.025, few), "{kind:?}: slower in {wrong}");
                found as f64 / few as f64
            });
            println!("{kind:?}, {rounds} rounds: {found:.2?}");
            // What a quiet machine must find: 10 % with six rounds, 5 % with ten, 3 % with twenty.
            if kind == Kind::Quiet {
                let expected = match rounds {
                    6 => (found[2], 0.95),
                    10 => (found[1], 0.85),
                    _ => (found[0], 0.75),
                };
                assert!(expected.0 >= at_least(expected.1, few), "{rounds} rounds: {found:?}");
            }
        }
    }
}
