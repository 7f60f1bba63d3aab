//! Times for which hosts kept servers or clients from their work, and what these times explain of a wait. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{HostUse, Moment, Trial};

/// A time for which a host kept its servers or clients from their work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostGap {
    /// The way in which it did.
    pub kind: HostGapKind,
    /// The beginning, in the window.
    pub from: Moment,
    /// The length in nanoseconds.
    pub length_ns: u64,
    /// The host with servers at the other end of a link; none where this machine asked, and of other gaps. Which of the
    /// two ends was cut off is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

/// The way in which a host kept its servers or clients from their work. What is named first is the cause of what is named
/// later, where both are seen at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostGapKind {
    /// It stood still.
    Stall,
    /// The disk of its servers was full.
    FullDisk,
    /// A link of it carried nothing.
    Link,
}

impl HostGap {
    /// The end.
    pub fn to(&self) -> Moment {
        self.from.plus_ns(self.length_ns)
    }

    /// What the host did or had, in words that follow its name.
    pub fn words(&self) -> String {
        match (self.kind, &self.other) {
            (HostGapKind::Stall, _) => "stood still".to_owned(),
            (HostGapKind::Link, Some(other)) => format!("was cut off from host {other}"),
            (HostGapKind::Link, None) => "was cut off".to_owned(),
            (HostGapKind::FullDisk, _) => "had a full disk".to_owned(),
        }
    }
}

/// The time that hosts took of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTimeLost<'t> {
    /// The host with the longest gap.
    pub host: &'t HostUse,
    /// That gap; of several at once, the one that is the cause of the others.
    pub gap: HostGap,
    /// The time in which one host or several kept servers or clients from their work, in nanoseconds. What several did at
    /// once counts once.
    pub total_ns: u64,
    /// The longest wait of a client that all this explains, in nanoseconds: after a link was down, also the time until TCP
    /// sends again.
    pub wait_ns: u64,
    /// A disk of servers was full.
    pub has_full_disk: bool,
}

/// The first timeout of TCP: 1 s while no round trip has been measured, as of a connection that is being made (RFC 6298,
/// 2.1; `TCP_TIMEOUT_INIT` in Linux). Later it is SRTT + max(4 RTTVAR, 200 ms) in Linux, which is less.
const FIRST_TIMEOUT_NS: u64 = 1_000_000_000;

/// No timeout of Linux is longer (`TCP_RTO_MAX`).
const TIMEOUT_MAX_NS: u64 = 120_000_000_000;

/// The longest time from the end of an outage of a link until a sender tries again what was lost in it, in nanoseconds.
///
/// Each timeout is twice the one before (RFC 6298, 5.5): tries come t₁ = RTO, t₂ = 3 RTO, t₃ = 7 RTO … after the first
/// loss, that is tₙ₊₁ = 2 tₙ + RTO. The last one that fails lies before the outage's end, tₙ < L, so that the one that
/// succeeds comes before 2 L + RTO: at most L + RTO after the end. No timeout is longer than 120 s.
pub fn retransmission_ns(outage_ns: u64) -> u64 {
    outage_ns.saturating_add(FIRST_TIMEOUT_NS).min(TIMEOUT_MAX_NS)
}

/// From and to, in nanoseconds.
type Stretch = (u64, u64);

impl Trial {
    /// The time that its hosts took of its window; none where they took nothing that can be seen.
    pub fn host_time_lost(&self) -> Option<HostTimeLost<'_>> {
        // A record that tells of no window has its gaps at one moment or another.
        let open = self.window.map_or(Moment(0), |window| window.open);
        let gaps: Vec<(&HostUse, HostGap)> = self
            .hosts
            .iter()
            .flat_map(|host| host.all_gaps(open).into_iter().map(move |gap| (host, gap)))
            .collect();
        let longest = gaps.iter().max_by_key(|(_, gap)| gap.length_ns)?;
        // What is seen of one fault begins and ends at different moments for those who see it.
        let is_of_it = |gap: &HostGap| {
            gap.from < longest.1.to()
                && longest.1.from < gap.to()
                && 2 * gap.length_ns >= longest.1.length_ns
        };
        let at_once = gaps.iter().filter(|(_, gap)| is_of_it(gap));
        let (host, gap) =
            at_once.min_by_key(|(_, gap)| (gap.kind, std::cmp::Reverse(gap.length_ns)))?;
        let stretch = |gap: &HostGap| (gap.from.0, gap.to().0);
        let all: Vec<Stretch> = gaps.iter().map(|(_, gap)| stretch(gap)).collect();
        let mut links: BTreeMap<(&str, Option<&str>), Vec<Stretch>> = BTreeMap::new();
        for (host, gap) in gaps.iter().filter(|(_, gap)| gap.kind == HostGapKind::Link) {
            let link = (host.name.as_str(), gap.other.as_deref());
            links.entry(link).or_default().push(stretch(gap));
        }
        let waited = links.into_values().flat_map(until_sent_again);
        Some(HostTimeLost {
            host,
            gap: gap.clone(),
            total_ns: covered_ns(all.clone()),
            wait_ns: covered_ns(all.iter().copied().chain(waited).collect()),
            has_full_disk: gaps.iter().any(|(_, gap)| gap.kind == HostGapKind::FullDisk),
        })
    }
}

/// The outages of a link, each until a sender has tried again. One that begins before that may meet the try, so that the
/// timeouts go on to grow: both are one.
fn until_sent_again(mut outages: Vec<Stretch>) -> Vec<Stretch> {
    outages.sort_unstable();
    let again = |(from, to): Stretch| to.saturating_add(retransmission_ns(to.saturating_sub(from)));
    let mut chains: Vec<Stretch> = Vec::new();
    for outage in outages {
        match chains.last_mut() {
            Some(last) if outage.0 <= again(*last) => last.1 = last.1.max(outage.1),
            _ => chains.push(outage),
        }
    }
    chains.into_iter().map(|chain| (chain.0, again(chain))).collect()
}

/// The time that stretches cover, which may overlap.
fn covered_ns(mut stretches: Vec<Stretch>) -> u64 {
    stretches.sort_unstable();
    let (mut reached, mut covered) = (0, 0);
    for (from, to) in stretches {
        covered += to.saturating_sub(from.max(reached));
        reached = reached.max(to);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlannedTrial;

    const MS: u64 = 1_000_000;

    fn gap(kind: HostGapKind, from_ms: u64, to_ms: u64, other: Option<&str>) -> HostGap {
        let (from, length_ns) = (Moment(from_ms * MS), (to_ms - from_ms) * MS);
        HostGap { kind, from, length_ns, other: other.map(str::to_owned) }
    }

    fn host(name: &str, gaps: Vec<HostGap>) -> HostUse {
        HostUse { gaps, ..HostUse::new(name) }
    }

    fn trial(hosts: Vec<HostUse>) -> Trial {
        let planned = PlannedTrial {
            number: 1,
            round: 1,
            variant: "a".to_owned(),
            scenario: "s".to_owned(),
            axes: BTreeMap::new(),
        };
        Trial { hosts, ..planned.attempt(1) }
    }

    #[test]
    fn what_several_hosts_did_at_once_counts_once_and_the_cause_is_named() {
        use HostGapKind::{FullDisk, Link, Stall};
        let check = |hosts: Vec<HostUse>, expected: Option<(&str, &str, u64)>| {
            let trial = trial(hosts);
            let lost = trial.host_time_lost();
            let found = lost.as_ref().map(|one| (&*one.host.name, one.gap.words(), one.total_ns));
            let expected = expected.map(|(name, words, ms)| (name, words.to_owned(), ms * MS));
            assert_eq!(found, expected);
        };
        check(vec![host("a", vec![])], None);
        // A server's host stands still, and its clients see that.
        let db1 = host("db1", vec![gap(Stall, 1_000, 4_000, None)]);
        let cut = |from, to| host("load1", vec![gap(Link, from, to, Some("db1"))]);
        check(vec![cut(980, 4_020), db1.clone()], Some(("db1", "stood still", 3_040)));
        // Two faults one after the other.
        let both = Some(("load1", "was cut off from host db1", 8_000));
        check(vec![cut(6_000, 11_000), db1.clone()], both);
        // Many short ones.
        let many = (0..10).map(|at| gap(Stall, at * 1_000, at * 1_000 + 450, None)).collect();
        check(vec![host("db1", many)], Some(("db1", "stood still", 4_500)));
        let full = host("db2", vec![gap(FullDisk, 1_200, 3_900, None)]);
        check(vec![cut(1_000, 4_000), full], Some(("db2", "had a full disk", 3_000)));
    }

    #[test]
    fn a_wait_lasts_until_tcp_has_sent_again() {
        use HostGapKind::{Link, Stall};
        let check = |gaps: Vec<HostGap>, expected_ms: u64| {
            let trial = trial(vec![host("load1", gaps.clone())]);
            let wait_ns = trial.host_time_lost().map(|lost| lost.wait_ns);
            assert_eq!(wait_ns, Some(expected_ms * MS), "{gaps:?}");
        };
        let down = |from, to| gap(Link, from, to, Some("db1"));
        check(vec![gap(Stall, 0, 3_000, None)], 3_000);
        check(vec![down(0, 2_000)], 5_000);
        // The try after the first outage may be lost in the second one.
        check(vec![down(0, 2_000), down(4_000, 5_000)], 11_000);
        check(vec![down(0, 2_000), down(6_000, 7_000)], 8_000);
        // Another link has connections of its own.
        check(vec![down(0, 2_000), gap(Link, 4_000, 5_000, None)], 7_000);
        check(vec![down(0, 300_000)], 420_000);
    }

    /// Every sequence of tries that begins in an outage and doubles its timeouts ends within the bound.
    #[test]
    fn no_timeout_that_doubles_goes_beyond_the_bound() {
        for first_ms in [200, 250, 400, 700, 1_000] {
            for outage_ms in (10..60_000).step_by(70) {
                let (mut tried_ms, mut timeout_ms) = (0, first_ms);
                while tried_ms < outage_ms {
                    tried_ms += timeout_ms;
                    timeout_ms = (2 * timeout_ms).min(120_000);
                }
                let most_ms = outage_ms + retransmission_ns(outage_ms * MS) / MS;
                assert!(tried_ms <= most_ms, "{first_ms} {outage_ms}: {tried_ms} {most_ms}");
            }
        }
    }

    #[test]
    fn a_record_that_tells_of_longest_gaps_only_has_these() {
        let mut old = HostUse::new("db1");
        old.stall_max_ns = Some(0);
        old.link_gap_max_ns = Some(3_000 * MS);
        old.link_gap_to = Some("db2".to_owned());
        let trial = trial(vec![old]);
        let lost = trial.host_time_lost().unwrap();
        assert_eq!(lost.gap.words(), "was cut off from host db2");
        assert_eq!(lost.total_ns, 3_000 * MS);
    }
}
