//! Claims that are measured in pairs, on servers whose instances differ.

use std::collections::BTreeMap;

use record::comparison::{
    ComparedMetric, ComparisonStop, InstanceFindings, PairResults, ServerRenewal,
};
use record::{AttemptEnding, MeasuringConditions, Moment, PairingAttempt, RatioSeries};
use stats::Prng;
use verdict::{Verdict, judge};

use crate::run::study;
use crate::{at_most, studies};

/// Nothing of it is true of servers that are the same.
const CLAIMS: &str = "\
[[claims]]\nsays = \"b is faster\"\nvalue = \"tps('b/s') / tps('a/s')\"\nexpect = \"> 1\"\n\
pairs = { precision = \"1%\" }\n";

/// Restarts for which there is time in ten minutes.
const RESTARTS: usize = 30;

/// Two sides of which the instances differ by 1.5 %, octets by 7.5 %, of which each has half of what
/// the one before had.
fn paired(effect: f64, seed: u64, conditions: MeasuringConditions) -> PairingAttempt {
    let mut prng = Prng::new(seed);
    let mut normal = || {
        let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * prng.unit()).cos()
    };
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for _ in 0..RESTARTS {
        let (lasting, mut own) = (effect + 0.015 * normal(), 0.075 * normal());
        let (mut a, mut b) = (0.0, 0.0);
        for _ in 0..8 {
            own = 0.5 * own + 0.075 * 0.75f64.sqrt() * normal();
            a += 1_000.0 * (-own / 2.0).exp();
            b += 1_000.0 * (lasting + own / 2.0).exp();
        }
        above.push(b);
        below.push(a);
    }
    let instances = InstanceFindings {
        renewal: ServerRenewal::Restarted,
        segments: RESTARTS,
        ..InstanceFindings::default()
    };
    PairingAttempt {
        number: 1,
        attempt: 1,
        above: "b".to_owned(),
        below: "a".to_owned(),
        scenario: "s".to_owned(),
        below_scenario: None,
        axes: BTreeMap::from([("clients".to_owned(), "8".to_owned())]),
        below_axes: None,
        ending: AttemptEnding::Done,
        started_at: String::new(),
        began: Moment(0),
        ended: Moment(1),
        precision: 0.01,
        series: vec![RatioSeries::new(ComparedMetric::Throughput, above, below)],
        shown: PairResults {
            clients: 8,
            block_ms: 200,
            rest_ms: 5,
            pairs: 32 * RESTARTS,
            seconds: 600.0,
            seed,
            stop: ComparisonStop::Time,
            instances,
            conditions,
            ..PairResults::default()
        },
    }
}

#[test]
fn instances_that_differ_are_no_difference_of_variants() {
    let few = studies(300);
    let study = study(CLAIMS, "[8]", 1);
    let verdicts = |effect: f64, conditions: MeasuringConditions| -> Vec<Verdict> {
        let of =
            |seed| judge(&study, &[], &[], &[paired(effect, seed, conditions)]).claims[0].verdict;
        (0..few as u64).map(of).collect()
    };
    let share = |verdicts: &[Verdict], of: Verdict| {
        verdicts.iter().filter(|one| **one == of).count() as f64 / few as f64
    };
    let quiet = MeasuringConditions::default();
    let same = verdicts(0.0, quiet);
    let told = share(&same, Verdict::Holds) + share(&same, Verdict::DoesNotHold);
    println!("pairs of the same, {few}: told apart {told:.3}");
    assert!(told <= at_most(0.05, few), "{told}");
    let faster = verdicts(0.10, quiet);
    assert!(share(&faster, Verdict::Holds) > 0.8, "{}", share(&faster, Verdict::Holds));
    let doubted = [
        MeasuringConditions { failed_share_max: 0.025, ..quiet },
        MeasuringConditions { busy_share_max: 0.92, ..quiet },
        MeasuringConditions { steal_share: 0.2, ..quiet },
    ];
    for conditions in doubted {
        assert_eq!(share(&verdicts(0.10, conditions), Verdict::Holds), 0.0, "{conditions:?}");
    }
}
