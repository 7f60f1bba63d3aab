//! Harm is said first, and what holds because of it is no good news.

use record::{PublishedWay, TransactionCounts, WorkloadResult};
use stats::LatencyHistogram;
use verdict::{TableCell, client_sight, harms, tables};

use super::*;

/// Trials with the numbers 1, 2 and so on, each with such figures.
fn trials(figures: &[&[(&str, f64)]]) -> Vec<Trial> {
    let numbered = (1..).zip(figures);
    numbered.map(|(number, figures)| Trial { number, ..trial(1, "b", figures) }).collect()
}

#[test]
fn what_was_lost_and_split_is_counted_over_all_attempts() {
    let check = |trials: &[Trial], expected: &[&str]| {
        let words: Vec<String> = harms(trials).iter().map(verdict::HarmCount::words).collect();
        assert_eq!(words, expected);
    };
    check(&trials(&[&[("ledger_lost", 0.0), ("ledger_split", 0.0)], &[("tps", 3.0)]]), &[]);
    check(
        &trials(&[&[("ledger_lost", 0.0)], &[("ledger_lost", 5934.0)], &[]]),
        &["lost: 5,934 acknowledged commits, in 1 of 2 trials: trial 2, b/s clients=8"],
    );
    let split = [("ledger_lost", 1.0), ("ledger_split", 4.0), ("ledger_split_ms", 9_800.0)];
    let mut both = trials(&[&split, &[("ledger_lost", 3.0), ("ledger_split", 0.0)]]);
    let words = [
        "lost: 4 acknowledged commits, in 2 of 2 trials; most in trial 2, b/s clients=8: 3",
        "split: two servers acknowledged at once, 4 commits by the earlier primary, in 1 of 2 trials: \
         trial 1, b/s clients=8, for 9.80 s there",
    ];
    check(&both, &words);
    // However the attempt ended, and whatever a later one shows.
    both[0].ending = AttemptEnding::failed(FaultyParty::Server, "it died");
    both.push(Trial {
        attempt: 2,
        ..trials(&[&[("ledger_lost", 0.0), ("ledger_split", 0.0)]]).remove(0)
    });
    check(&both, &words);
}

#[test]
fn a_claim_that_holds_because_of_harm_says_so() {
    let check = |claim: &str, figures: &[(&str, f64)], expected: &str| {
        let study = format!("{STUDY}[[claims]]\nsays = \"x\"\n{claim}\n");
        let trials = trials(&[figures]);
        let judged = judge(&parse(&study), &[], &trials, &[]).claims.remove(3);
        assert_eq!(judged.words(), expected, "{claim}");
    };
    let lost = [("ledger_lost", 2.0), ("ledger_acknowledged", 9.0), ("ledger_split", 3.0)];
    let harm = "harm seen, as expected";
    check("some = \"ledger_lost > 0\"\nkind = \"control\"", &lost, harm);
    check("some = \"ledger_split > 0 and ledger_lost > 0\"\nkind = \"control\"", &lost, harm);
    check("some = \"ledger_lost > 0\"", &lost, harm);
    check("some = \"cut_survived == 0\"", &[("cut_survived", 0.0)], harm);
    check("every = \"two_primaries_ms > 0\"", &[("two_primaries_ms", 9.0)], harm);
    // A claim that is true of a sound trial needs none, and neither does one about speed or times.
    check("every = \"ledger_lost <= 2\"", &lost, "holds");
    check("every = \"explore_states >= 100\"", &[("explore_states", 200.0), lost[1]], "holds");
    check("every = \"ack_pause_max_ms >= 5000\"", &[("ack_pause_max_ms", 6000.0)], "holds");
    check("some = \"ledger_lost > 5\"\nkind = \"control\"", &lost, "does not hold");
}

#[test]
fn a_table_has_a_row_for_each_point_that_was_run() {
    let table = r#"
[[tables]]
title = "What it costs"
first = true
each = "*"
columns = [
  { says = "Lost", sum = "ledger_lost" },
  { says = "Pause", max = "ack_pause_max_ms", of = "w" },
  { says = "Rate", rate = "ledger_lost > 0" },
]
"#;
    let study =
        parse(&format!("{}{table}", STUDY.replace("[variants.b]", "[variants.b]\nsays = \"bee\"")));
    assert!(study.tables[0].is_first && study.tables[0].rows.len() == 2);
    let mut trials =
        trials(&[&[("ledger_lost", 4.0)], &[("ledger_lost", 0.0)], &[("ledger_lost", 2.0)]]);
    let of_w = |ms: f64| [("w".to_owned(), ms), ("v".to_owned(), 9e9)].into();
    trials[0].metrics.insert("ack_pause_max_ms".to_owned(), of_w(700.0));
    trials[1].metrics.insert("ack_pause_max_ms".to_owned(), of_w(12_000.0));
    let found = tables(&study, &[], &trials);
    let says: Vec<&str> = found[0].rows.iter().map(|row| row.says.as_str()).collect();
    assert_eq!(says, ["s, clients 8: bee"]);
    let [
        TableCell::Sum { value, count, of, .. },
        TableCell::Figure { value: pause, .. },
        TableCell::Rate(low, high),
    ] = &found[0].cells[0][..]
    else {
        panic!("{:?}", found[0].cells)
    };
    assert_eq!((*value, *count, *of, *pause), (6.0, 2, 3, 12_000.0));
    assert!((low - 0.094).abs() < 0.001 && (high - 0.992).abs() < 0.001, "{low} {high}");
}

#[test]
fn errors_and_anomalies_are_told_in_words() {
    let mut trials = trials(&[&[], &[]]);
    for (trial, count) in trials.iter_mut().zip([4_000, 329]) {
        let errors = [("25006".to_owned(), count), ("40001".to_owned(), 1)].into();
        trial.workloads = vec![WorkloadResult {
            name: "w".to_owned(),
            clients: 1,
            counts: TransactionCounts::default(),
            counts_total: TransactionCounts { errors, ..TransactionCounts::default() },
            unknown: 0,
            latency: LatencyHistogram::default(),
            open: LatencyHistogram::default(),
            never_started: 0,
            service: LatencyHistogram::default(),
            lag: LatencyHistogram::default(),
            statements: Vec::new(),
            per_client: Vec::new(),
            per_client_good: Vec::new(),
            served: LatencyHistogram::new(),
            unserved: LatencyHistogram::new(),
            longest_wait_ns: 0,
            longest_wait_is_open: false,
            published_way: PublishedWay::default(),
        }];
    }
    trials[1].witnesses = vec![record::WitnessPicture {
        anomaly: "G2-item".to_owned(),
        meaning: "write skew".to_owned(),
        transactions: Vec::new(),
        links: Vec::new(),
        why: String::new(),
    }];
    assert_eq!(
        client_sight(&trials).sentences(),
        [
            "errors that clients got, by SQLSTATE: 25006 × 4,329, 40001 × 2",
            "anomaly G2-item (write skew): trial 2, b/s clients=8",
        ]
    );
}
