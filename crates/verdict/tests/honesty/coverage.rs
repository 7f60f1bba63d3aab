//! How often an interval contains the truth.

use stats::IntervalMethod;
use verdict::{ClaimMeasurement, judge};

use crate::machine::Kind;
use crate::run::{run, study};
use crate::{at_least, studies};

/// A ratio, whose truth is 1.2, and a figure by itself, whose truth is the machine's median.
const CLAIMS: &str = "\
[[claims]]\nsays = \"a ratio\"\nvalue = \"tps('b/s') / tps('a/s')\"\nexpect = \">= 1\"\n\
[[claims]]\nsays = \"a figure\"\nvalue = \"tps('a/s')\"\nexpect = \">= 1\"\n";

#[test]
fn intervals_contain_the_truth_as_often_as_they_promise() {
    let few = studies(200);
    println!("coverage of 95 % intervals, {few} studies each: ratio, single figure; median width");
    for kind in Kind::ALL {
        for rounds in [6, 10, 20] {
            let study = study(CLAIMS, "[8]", rounds);
            let truths = [1.2, 1000.0 * kind.median()];
            let (mut covered, mut seen, mut widths) = ([0usize; 2], [0usize; 2], Vec::new());
            for seed in 0..few as u64 {
                let study = study.clone().with_seed(seed);
                let gain = |variant: &str| if variant == "b" { 1.2 } else { 1.0 };
                let trials = run(&study, &mut kind.start(seed ^ 0x5eed), gain);
                let judged = judge(&study, &[], &trials, &[]);
                for (index, claim) in judged.claims.iter().enumerate() {
                    let ClaimMeasurement::Value { interval, .. } = &claim.measured else {
                        panic!()
                    };
                    // Where servers die, too few rounds may be left for a 95 % interval.
                    if interval.method == IntervalMethod::Range {
                        continue;
                    }
                    seen[index] += 1;
                    covered[index] += usize::from(interval.contains(truths[index]));
                    if index == 0 {
                        widths.push((interval.high / interval.low - 1.0) * 100.0);
                    }
                }
            }
            let share = |index: usize| covered[index] as f64 / seen[index].max(1) as f64;
            let (ratio, figure) = (share(0), share(1));
            let width = stats::sample::median(&widths).unwrap_or(f64::NAN);
            println!("{kind:?}, {rounds} rounds: {ratio:.3} {figure:.3}; {width:.1} %");
            // Where a machine drifts, a figure by itself has no truth to contain.
            let least = if kind.is_stationary() { 0.94 } else { 0.90 };
            assert!(seen[0] > few / 3, "{kind:?}, {rounds} rounds: {seen:?} intervals");
            assert!(ratio >= at_least(least, seen[0]), "{kind:?}, {rounds} rounds: {ratio}");
            if kind.is_stationary() {
                assert!(figure >= at_least(0.94, seen[1]), "{kind:?}, {rounds} rounds: {figure}");
            }
        }
    }
}
