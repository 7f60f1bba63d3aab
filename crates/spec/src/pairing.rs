//! Points of a study that are measured in pairs.

use std::collections::BTreeSet;

use stats::{Expectation, FAMILY_ERROR};
use terms::Pace;

use crate::catalogue::{Metric, metrics};
use crate::claim::{Claim, ClaimSubject};
use crate::data::DataReset;
use crate::expression::ClaimExpression;
use crate::headline::ClaimRank;
use terms::Settings;

use crate::pairs::PairSettings;
use crate::plan::ScheduledTrial;
use crate::point::TrialPoint;
use crate::problem::Problems;
use crate::study::Study;
use crate::workload::Workload;

/// Two points that are measured in pairs, as indices of the study's points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairing {
    /// Position in the study's order of pairings, from 1.
    pub number: usize,
    /// The point of the numerator.
    pub above: usize,
    /// That of the denominator.
    pub below: usize,
    /// The narrowest precision and the longest time that a claim about them asks for.
    pub pairs: PairSettings,
}

/// Metrics that are measured in pairs.
const MEASURED: [&Metric; 5] = [
    &metrics::TPS,
    &metrics::LATENCY_P50_MS,
    &metrics::LATENCY_P95_MS,
    &metrics::LATENCY_P99_MS,
    &metrics::SERVER_CPU_US_PER_TX,
];

/// The points of a claim that asks for pairs, numerator first; none for others.
fn asked(claim: &Claim) -> Option<(&ClaimExpression, PairSettings)> {
    match &claim.about {
        ClaimSubject::Value { value, pairs: Some(pairs), .. } => Some((value, *pairs)),
        ClaimSubject::Value { .. } | ClaimSubject::Every { .. } => None,
    }
}

fn points(value: &ClaimExpression) -> Option<(usize, usize)> {
    let (above, below) = value.ratio()?;
    Some((value.references()[above].point, value.references()[below].point))
}

/// Reports the claims whose points cannot be measured in pairs.
pub(crate) fn check(claims: &[Claim], points: &[TrialPoint], problems: &Problems) {
    for claim in claims {
        let Some((value, _)) = asked(claim) else { continue };
        if let Some((message, hint)) = misfit(value, points) {
            problems.hinted(&claim.span, message, hint);
        }
    }
}

/// Why a value cannot be measured in pairs, and what to write instead.
fn misfit(value: &ClaimExpression, points: &[TrialPoint]) -> Option<(String, &'static str)> {
    let shape = "pairs measure one figure of two points: tps('new/load') / tps('old/load')";
    let Some((above, below)) = value.ratio() else {
        return Some(("a claim in pairs is one figure divided by another".to_owned(), shape));
    };
    let (above, below) = (&value.references()[above], &value.references()[below]);
    let names = || MEASURED.map(|metric| metric.name).join(", ");
    if above.metric != below.metric || !MEASURED.contains(&above.metric) {
        return Some((format!("pairs measure one of {} on both sides", names()), shape));
    }
    let (one, other) = (&points[above.point], &points[below.point]);
    if above.point == below.point {
        return Some(("a claim in pairs compares two points".to_owned(), shape));
    }
    let clients = [one, other].map(TrialPoint::clients);
    if clients[0] != clients[1] {
        let [one, other] = clients;
        return Some((
            format!(
                "a claim in pairs has as many clients on both sides, and not {one} and {other}"
            ),
            "give both sides as many clients, or leave out pairs",
        ));
    }
    let parts = [one.part(&above.scope), other.part(&below.scope)];
    // All workloads of a side are one load, however many they are.
    if parts[0] != parts[1] || (parts[0].is_some() && one.workloads.len() != other.workloads.len())
    {
        let message = "a claim in pairs compares workloads at the same position of both sides";
        return Some((message.to_owned(), shape));
    }
    if parts[0].is_some() && above.metric != &metrics::TPS {
        let message = "of one of several workloads, pairs measure tps alone";
        return Some((message.to_owned(), "measure it in whole trials: leave out pairs"));
    }
    let simple = "measure it in whole trials: leave out pairs";
    [one, other].into_iter().find_map(|point| {
        let why = point.unfit_for_pairs()?;
        Some((format!("{} {why}, and cannot be measured in pairs", point.name), simple))
    })
}

impl TrialPoint {
    /// Why its clients cannot take turns with another point's, as a predicate; none if
    /// they can.
    pub fn unfit_for_pairs(&self) -> Option<&'static str> {
        let has_patience = |workload: &Workload| {
            workload.deadline_ms.is_some()
                || workload.retry.is_some()
                || workload.capacity.is_some()
                || !workload.storms_ms.is_empty()
        };
        match &self.workloads[..] {
            some if some.iter().any(has_patience) => {
                Some("has a deadline, retries, a capacity or storms")
            }
            [workload] if workload.pace != Pace::Closed && workload.latency_limit_ms.is_some() => {
                Some("has a rate and a latency limit")
            }
            [workload] if workload.ledger.is_some() => Some("keeps a ledger"),
            [workload] if workload.keeps_history => Some("keeps a history"),
            [_] if !self.timeline.is_empty() => Some("has a timeline"),
            _ if !self.phases.is_empty() => Some("has phases"),
            [_] => None,
            several => {
                let is_plain = |workload: &Workload| {
                    workload.pace == Pace::Closed
                        && workload.ledger.is_none()
                        && !workload.keeps_history
                };
                let is_plain = self.timeline.is_empty() && several.iter().all(is_plain);
                (!is_plain).then_some(
                    "has several workloads and a rate, a ledger, a history or a timeline",
                )
            }
        }
    }

    /// The position of the workload that a scope means, where several run together.
    pub fn part(&self, scope: &str) -> Option<usize> {
        let is_meant = |workload: &Workload| workload.name == scope;
        self.workloads.iter().position(is_meant).filter(|_| self.workloads.len() > 1)
    }
}

/// Gives the numerator's point of pairs servers of its own where both points would share them.
pub(crate) fn part_servers(claims: &[Claim], points: &mut [TrialPoint]) {
    let asked = claims.iter().filter_map(|claim| self::points(asked(claim)?.0));
    for (above, below) in asked.collect::<BTreeSet<_>>() {
        if share_servers(&points[above], &points[below]) {
            points[above].has_own_servers = true;
        }
    }
}

/// True if the trials of two points run on the same servers in turn: settings are given to a server at
/// each start, but a server that keeps its data keeps its settings. What stands in front of servers is
/// a trial's own.
fn share_servers(one: &TrialPoint, other: &TrialPoint) -> bool {
    let settings = |point: &TrialPoint| -> Vec<Settings> {
        let servers = point.topology.nodes.iter().filter(|node| node.is_postgres());
        servers.map(|node| node.settings.clone()).collect()
    };
    one.data.reset != DataReset::Keep || settings(one) == settings(other)
}

/// A claim about the ratio of two points that are measured in pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedClaim {
    /// The metric on both sides.
    pub metric: &'static Metric,
    /// The numerator's workload, where several run together and the claim is about one of them.
    pub workload: Option<String>,
    /// The range in which the ratio is expected.
    pub expect: Expectation,
    /// The error with which its verdict may be wrong, so that it stands beside the others of its family.
    pub error: f64,
}

impl Study {
    /// The claims about a pairing.
    pub fn claims_of(&self, pairing: &Pairing) -> Vec<PairedClaim> {
        let is_value = |claim: &&Claim| matches!(claim.about, ClaimSubject::Value { .. });
        let values = || self.claims.iter().filter(is_value);
        let family = values().filter(|claim| claim.rank.is_corrected()).count().max(1);
        let claimed = values().filter_map(|claim| {
            let ClaimSubject::Value { value, expect, pairs: Some(_) } = &claim.about else {
                return None;
            };
            let above = &value.references()[value.ratio()?.0];
            let part = self.points[above.point].part(&above.scope);
            let (metric, workload) = (above.metric, part.map(|_| above.scope.clone()));
            let members = if claim.rank.is_corrected() { family } else { 1 };
            let error = FAMILY_ERROR / members as f64;
            (points(value)? == (pairing.above, pairing.below)).then_some(PairedClaim {
                metric,
                workload,
                expect: *expect,
                error,
            })
        });
        claimed.collect()
    }

    /// True if a headline is about a pairing.
    pub fn is_of_headline(&self, pairing: &Pairing) -> bool {
        let headlines = self.claims.iter().filter(|claim| claim.rank == ClaimRank::Headline);
        let mut values = headlines.filter_map(asked);
        values.any(|(value, _)| points(value) == Some((pairing.above, pairing.below)))
    }

    /// The pairings, each two points once, in the order of the claims.
    pub fn pairings(&self) -> Vec<Pairing> {
        let mut pairings: Vec<Pairing> = Vec::new();
        for claim in &self.claims {
            let Some((value, pairs)) = asked(claim) else { continue };
            let Some((above, below)) = points(value) else { continue };
            let known = pairings.iter_mut().find(|one| (one.above, one.below) == (above, below));
            match known {
                Some(known) => known.pairs = known.pairs.or(pairs),
                None => {
                    let number = pairings.len() + 1;
                    pairings.push(Pairing { number, above, below, pairs });
                }
            }
        }
        pairings
    }

    /// Those of which both points are among these trials.
    pub fn pairings_of(&self, trials: &[ScheduledTrial]) -> Vec<Pairing> {
        let runs = |point: usize| trials.iter().any(|planned| planned.point == point);
        let mut pairings = self.pairings();
        pairings.retain(|pairing| runs(pairing.above) && runs(pairing.below));
        pairings
    }
}
