//! Claims are as strong as what their sources printed. The threshold of a claim is computed from `published.csv`, whose figures are
//! those of `figures.csv`, and compared with the one that the claim has.

use std::collections::{BTreeMap, BTreeSet};

use spec::{Claim, ClaimExpression, ClaimRank, ClaimSubject, Study, StudyProfile};
use stats::Expectation;

use super::shipped::{parse, shipped};

/// Words in the text of a claim whose threshold is weaker than the printed value, or has none.
const OURS: &str = "(threshold ours)";

/// Digits of a computed ratio that count. The sources print four digits or more of what they
/// compare. Thresholds are rounded so that the source itself keeps them.
const DIGITS: i32 = 4;

/// Values that `published.csv` cannot give: sentences of a source, which bind by their own words, and
/// figures of one machine or one progress line. Study, start of the claim's text, threshold.
const IN_WORDS: [(&str, &str, f64); 14] = [
    // 91 % idle of each standby against 48 % of the primary.
    ("replication", "composite, synchronous commits: a standby uses", 9.0 / 52.0),
    ("replication", "composite, synchronous commits: the standby that commits do not", 9.0 / 52.0),
    ("replication", "set-up A, composite: over 2 billion inserts a day", 2e9),
    ("replication", "set-up A, composite: over 1 billion queries a day", 1e9),
    // "16 times", and "linear".
    ("sharding", "writes limited by the disk: 16 shards ÷ one server", 16.0),
    ("sharding", "writes limited by the disk: throughput is linear, 16 shards", 16.0),
    ("sharding", "writes limited by the disk: throughput is linear, 8 shards", 8.0),
    ("sharding", "writes limited by the disk: throughput is linear, 4 shards", 4.0),
    ("sharding", "writes limited by the disk: throughput is linear, 2 shards", 2.0),
    ("sharding", "16 shards ÷ 1 shard, both behind the proxy: throughput is linear", 16.0),
    // The longest times between progress lines.
    ("sharding", "limited I/O makes a client wait", 10_200.0),
    ("sharding", "limited I/O makes a client of read, log and update wait", 5_700.0),
    // "No effect" on SELECT: as far from 1 as the printed figures are apart, to either side.
    ("fsync", "fsync=off has no more effect on SELECT than was printed", 0.988),
    // "Very likely" does not start.
    (
        "fsync",
        "fsync=off, plain settings, 64 clients: after a power cut the server very likely",
        0.2,
    ),
];

/// The value of an expression with the published figures; none where one of them was not published.
fn published_value(study: &Study, value: &ClaimExpression) -> Option<f64> {
    let figures: Option<Vec<f64>> = value
        .references()
        .iter()
        .map(|reference| {
            let name = &study.points[reference.point].name;
            let axes = name.axes.iter().map(|(axis, value)| format!("{axis}={value}"));
            let axes = axes.collect::<Vec<_>>().join(",");
            let figure = |metric: &str| {
                study.published.iter().find(|figure| {
                    figure.metric == metric
                        && figure.variant == name.variant
                        && figure.scenario == name.scenario
                        && figure.scope == reference.scope
                        && figure.axes == axes
                })
            };
            // Few have published a clean window; the others' ratio is that of their TPS.
            let asked = reference.metric.name;
            figure(asked)
                .or_else(|| figure("tps_published").filter(|_| asked == "tps"))
                .map(|figure| figure.value)
        })
        .collect();
    let computed = value.evaluate(std::iter::once(figures?.as_slice()))[0];
    computed.is_finite().then_some(computed)
}

/// The unit of the last digit that counts.
fn unit(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    10f64.powi(value.abs().log10().floor() as i32 - DIGITS + 1)
}

/// True if the expected range begins or ends at the value and no more than a unit of its last digit on the easy side.
fn is_as_strong(expect: &Expectation, value: f64) -> bool {
    let slack = unit(value) * (1.0 + 1e-6);
    let is_near = |easier: f64| (-1e-9 * value.abs()..=slack).contains(&easier);
    match *expect {
        Expectation::AtLeast(bound) => is_near(value - bound),
        Expectation::AtMost(bound) => is_near(bound - value),
        // As far from 1 to either side.
        Expectation::Between { low, high } => is_near(value - low) && is_near(high - (2.0 - value)),
        _ => false,
    }
}

/// The printed value of what a claim speaks of.
fn printed(study: &Study, claim: &Claim, value: &ClaimExpression) -> Option<f64> {
    let words = IN_WORDS.iter().find(|(name, says, _)| {
        *name == study.name && claim.says.starts_with(says) && !claim.says.ends_with(OURS)
    });
    words.map(|(.., value)| *value).or_else(|| published_value(study, value))
}

#[test]
fn a_claim_about_a_printed_value_bears_that_value() {
    let mut wrong = Vec::new();
    let mut strong = 0;
    for folder in shipped() {
        let study = parse(&folder, StudyProfile::Full);
        for claim in &study.claims {
            let ClaimSubject::Value { value, expect, .. } = &claim.about else { continue };
            let Some(printed) = printed(&study, claim, value) else {
                assert!(
                    claim.published.is_none(),
                    "{}: {}: printed where?",
                    study.name,
                    claim.says
                );
                continue;
            };
            let is_strong = is_as_strong(expect, printed);
            strong += usize::from(is_strong);
            if !is_strong && !claim.says.contains(OURS) {
                wrong.push(format!("{}: {}: {expect}, printed {printed}", study.name, claim.says));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(strong >= 80, "{strong} claims bear a printed value");
}

/// Points that no machine of two cores and 24 GiB holds, and why. Study, axes of the point.
const TOO_LARGE: [(&str, &str, &str); 1] = [(
    "pool",
    "clients=16384",
    "16,384 backends alone took 24.4 GB of the 24.1 GB that such a machine has",
)];

/// Each claim with a printed value can be met on a small machine: it is made in the profile published, or a point of
/// it is too large.
#[test]
fn a_printed_value_is_met_in_the_profile_published() {
    let mut missing = Vec::new();
    let mut met = 0;
    for folder in shipped() {
        if StudyProfile::of(&folder).all(|profile| profile != StudyProfile::Published) {
            continue;
        }
        let made: BTreeSet<String> = parse(&folder, StudyProfile::Published)
            .claims
            .into_iter()
            .map(|claim| claim.says)
            .collect();
        let study = parse(&folder, StudyProfile::Full);
        for claim in &study.claims {
            let Some(value) = claim.about.value() else { continue };
            if printed(&study, claim, value).is_none() {
                continue;
            }
            let is_too_large = value.references().iter().any(|reference| {
                let axes = &study.points[reference.point].name.axes;
                let mut axes = axes.iter().map(|(axis, value)| format!("{axis}={value}"));
                axes.any(|axis| {
                    TOO_LARGE.iter().any(|(of, at, _)| *of == study.name && *at == axis)
                })
            });
            match (made.contains(&claim.says), is_too_large) {
                (true, false) => met += 1,
                (false, true) => {}
                (false, false) => missing.push(format!("{}: {}", study.name, claim.says)),
                (true, true) => missing.push(format!("{}: {}: too large?", study.name, claim.says)),
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(met >= 70, "{met} printed values are met");
}

/// A weaker claim stands beside the one that bears the printed value, and is a headline only where that one is.
#[test]
fn a_weaker_claim_is_no_headline_alone() {
    for folder in shipped() {
        for profile in StudyProfile::of(&folder) {
            let study = parse(&folder, profile);
            let of = |claim: &Claim| claim.about.value().map(|value| value.source().to_owned());
            let mut headlines: BTreeMap<String, bool> = BTreeMap::new();
            for claim in study.claims.iter().filter(|claim| claim.rank == ClaimRank::Headline) {
                let Some(value) = claim.about.value() else { continue };
                let is_printed = published_value(&study, value).is_some();
                let is_strong = !(is_printed && claim.says.contains(OURS));
                *headlines.entry(of(claim).unwrap()).or_default() |= is_strong;
            }
            for (value, is_strong) in headlines {
                assert!(
                    is_strong,
                    "{} in {profile}: {value} has a weaker headline alone",
                    study.name
                );
            }
        }
    }
}

/// The published value beside a claim is that of the published figures, to its last digit.
#[test]
fn a_published_ratio_is_that_of_the_published_figures() {
    for folder in shipped() {
        let study = parse(&folder, StudyProfile::Full);
        for claim in &study.claims {
            let ClaimSubject::Value { value, .. } = &claim.about else { continue };
            let Some((published, computed)) = claim.published.zip(published_value(&study, value))
            else {
                continue;
            };
            let off = (computed - published).abs();
            let allowed = unit(computed) * 0.501;
            assert!(off <= allowed, "{}: {} is {computed}", folder.name, claim.says);
        }
    }
}

/// A threshold that the text of a claim names is the one that it has.
#[test]
fn the_text_of_a_claim_names_its_threshold() {
    for folder in shipped() {
        for profile in StudyProfile::of(&folder) {
            let study = parse(&folder, profile);
            for claim in &study.claims {
                let ClaimSubject::Value { expect, .. } = &claim.about else { continue };
                for sign in ["≥ ", "≤ "] {
                    let Some((_, said)) = claim.says.split_once(sign) else { continue };
                    let end = said.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
                    let said = said[..end.unwrap_or(said.len())].trim_end_matches(['.', ',']);
                    let said: f64 = said.replace(',', "").parse().unwrap();
                    let (Expectation::AtLeast(has) | Expectation::AtMost(has)) = *expect else {
                        panic!("{}: {}: {expect}", folder.name, claim.says)
                    };
                    assert_eq!(said, has, "{} in {profile}: {}", folder.name, claim.says);
                }
            }
        }
    }
}

/// A number of clients in the text of a claim is that of a point that it speaks of.
#[test]
fn the_text_of_a_claim_names_the_clients_of_its_points() {
    let mut wrong = Vec::new();
    for folder in shipped() {
        for profile in StudyProfile::of(&folder) {
            let study = parse(&folder, profile);
            for claim in &study.claims {
                let points: Vec<usize> = match &claim.about {
                    ClaimSubject::Value { value, .. } => {
                        value.references().iter().map(|one| one.point).collect()
                    }
                    ClaimSubject::Every { points, .. } => points.clone(),
                };
                let mut known = BTreeSet::new();
                for point in points.iter().map(|point| &study.points[*point]) {
                    known.insert(point.clients());
                    known.extend(point.workloads.iter().map(|workload| workload.clients));
                }
                for said in clients_in(&claim.says) {
                    if !known.contains(&said) {
                        wrong.push(format!(
                            "{} in {profile}: {}: {known:?}",
                            folder.name, claim.says
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Numbers before the word "clients", or before "client" or "connections".
fn clients_in(says: &str) -> Vec<u32> {
    let words: Vec<&str> = says.split([' ', ':']).collect();
    let counted = words.windows(2).filter(|pair| {
        let noun = pair[1].trim_end_matches(|c: char| !c.is_alphabetic());
        ["clients", "client", "connections"].contains(&noun) && !pair[0].ends_with(',')
    });
    counted.filter_map(|pair| pair[0].replace(',', "").parse().ok()).collect()
}
