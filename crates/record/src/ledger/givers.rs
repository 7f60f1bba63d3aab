//! The servers that acknowledged transactions, and whether two of them did so at the same time.

use std::collections::{BTreeMap, BTreeSet};

use super::look::AcknowledgingServer;
use super::{Ledger, LedgerTransaction};
use crate::Moment;

/// Acknowledgements by more than one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitAcknowledgements {
    /// Servers that acknowledged transactions. One that was started again is another one.
    pub servers: u64,
    /// Acknowledgements whose server is not known.
    pub unknown: u64,
    /// Acknowledgements of a server for transactions that were sent after another one of the same cluster with a
    /// later timeline had acknowledged one.
    pub acknowledged: u64,
    /// Time for which both acknowledged, in nanoseconds: in it, neither was silent for longer than
    /// [`SILENCE_NS_MAX`].
    pub at_least_ns: u64,
    /// Time outside of which they did not both acknowledge, in nanoseconds: from the moment at which the first
    /// transaction that the later timeline acknowledged was sent, to the last acknowledgement of the earlier one.
    pub at_most_ns: u64,
}

/// A server that acknowledges nothing for longer than this may not have been able to.
pub const SILENCE_NS_MAX: u64 = 1_000_000_000;

impl SplitAcknowledgements {
    /// The split among the acknowledgements of a ledger, none where the server of none of them is known; and how
    /// many of them there are whose server is not known.
    pub fn of(ledger: &Ledger) -> (Option<SplitAcknowledgements>, u64) {
        let acknowledged = ledger.clients().flat_map(|(_, all)| all);
        let acknowledged = acknowledged.filter(|one| one.outcome.is_acknowledged());
        let mut split = SplitAcknowledgements::default();
        let mut given: BTreeMap<AcknowledgingServer, Vec<&LedgerTransaction>> = BTreeMap::new();
        for one in acknowledged {
            match ledger.giver(one) {
                Some(giver) => given.entry(giver).or_default().push(one),
                None => split.unknown += 1,
            }
        }
        let servers: BTreeSet<_> = given.keys().map(|one| (one.cluster, one.server)).collect();
        split.servers = servers.len() as u64;
        for (giver, all) in &given {
            let later = given.iter().filter(|(other, _)| {
                other.cluster == giver.cluster
                    && other.server != giver.server
                    && other.timeline > giver.timeline
            });
            let later: Vec<&LedgerTransaction> = later.flat_map(|(_, all)| all).copied().collect();
            let Some(first) = later.iter().map(|one| one.ended).min() else { continue };
            let (sent, ended) = (|one: &&&LedgerTransaction| one.intended > first, moments(&later));
            let own: Vec<&LedgerTransaction> = all.iter().filter(sent).copied().collect();
            let own = moments(&own);
            let Some(last) = own.last() else { continue };
            split.acknowledged += own.len() as u64;
            split.at_least_ns = split.at_least_ns.max(overlap_ns(&runs(&own), &runs(&ended)));
            let first_sent = later.iter().map(|one| one.intended).min().unwrap_or(first);
            split.at_most_ns = split.at_most_ns.max(last.since(first_sent));
        }
        ((!given.is_empty()).then_some(split), split.unknown)
    }
}

/// The moments of acknowledgements, in their order.
fn moments(acknowledged: &[&LedgerTransaction]) -> Vec<Moment> {
    let mut moments: Vec<Moment> = acknowledged.iter().map(|one| one.ended).collect();
    moments.sort_unstable();
    moments
}

/// Stretches of time from a moment to a later one, none of which is further from the one before it than
/// [`SILENCE_NS_MAX`].
fn runs(moments: &[Moment]) -> Vec<(Moment, Moment)> {
    let mut runs: Vec<(Moment, Moment)> = Vec::new();
    for at in moments {
        match runs.last_mut().filter(|(_, last)| at.since(*last) <= SILENCE_NS_MAX) {
            Some((_, last)) => *last = *at,
            None => runs.push((*at, *at)),
        }
    }
    runs
}

/// Time that is in a stretch of each.
fn overlap_ns(one: &[(Moment, Moment)], other: &[(Moment, Moment)]) -> u64 {
    let both = one.iter().flat_map(|(from, until)| {
        other.iter().map(move |(begins, ends)| ((*from).max(*begins), (*until).min(*ends)))
    });
    both.filter(|(from, until)| from < until).map(|(from, until)| until.since(from)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_acknowledges_after_a_later_timeline_did_is_a_second_primary() {
        // Servers, acknowledgements of unknown servers, of second primaries; at least, at most.
        let check = |name: &str, lines: &str, expected: Option<(u64, u64, u64, u64, u64)>| {
            let mut ledger = Ledger::default();
            let text = format!("ledger 4 seed 1\n{lines}");
            ledger.add("0.ledger", text.as_bytes()).unwrap();
            let found = SplitAcknowledgements::of(&ledger).0.map(|split| {
                let SplitAcknowledgements {
                    servers,
                    unknown,
                    acknowledged,
                    at_least_ns,
                    at_most_ns,
                } = split;
                (servers, unknown, acknowledged, at_least_ns, at_most_ns)
            });
            assert_eq!(found, expected, "{name}");
        };
        check("no server is known", "i 0 1 10\na 0 1 20\n", None);
        // All servers have the same address: what tells them apart is their start.
        let first = "s 0 0 5 9 71 1 127.0.0.1 5432 0\ni 0 1 10\na 0 1 20\n";
        check("one server", first, Some((1, 0, 0, 0, 0)));
        let moved = format!("{first}i 0 2 30\nt 0 2 40 9 82 2 127.0.0.1 5433 0\na 0 2 40\n");
        check("a server after another", &moved, Some((2, 0, 0, 0, 0)));
        // It was sent before the new primary had acknowledged anything.
        let other = format!("{moved}s 1 0 6 9 71 1 127.0.0.1 5432 0\n");
        let in_flight = format!("{other}i 1 1 39\na 1 1 45\n");
        check("one in flight", &in_flight, Some((2, 0, 0, 0, 0)));
        let both = format!("{other}i 1 1 41\na 1 1 45\n");
        check("two primaries", &both, Some((2, 0, 1, 0, 15)));
        let longer = format!(
            "{both}i 1 2 46\na 1 2 48\ni 0 3 50\nt 0 3 58 9 82 2 127.0.0.1 5433 0\na 0 3 58\n"
        );
        check("both for a time", &longer, Some((2, 0, 2, 3, 18)));
        let unknown = format!("{other}i 1 1 41\nu 1 1 45\n");
        check("what is not acknowledged proves nothing", &unknown, Some((2, 0, 0, 0, 0)));
        let lost = format!("{other}l 1 0 38\ni 1 1 41\na 1 1 45\n");
        check("a lost connection ends what is known", &lost, Some((2, 1, 0, 0, 0)));
        let same = "i 0 1 10\nt 0 1 20 9 71 2 - 5432 0\na 0 1 20\ni 0 2 41\nt 0 2 45 9 71 1 - 5432 0\na 0 2 45\n";
        check("a server with two timelines is one", same, Some((1, 0, 0, 0, 0)));
        let foreign = both.replace(" 9 71 ", " 8 71 ");
        check("servers of two clusters", &foreign, Some((2, 0, 0, 0, 0)));
        // The old primary stands still from 1 to 40 s, while the new one is at work; then both are, for 2 s.
        let mut paused = String::from("s 0 0 1 9 71 1 - 5432 0\ns 1 0 1 9 82 2 - 5433 0\n");
        let mut acknowledges = |client: u32, from: u64, until: u64| {
            for seq in 1..=until - from {
                let at = (from + seq) * 500_000_000;
                paused += &format!("i {client} {seq} {}\na {client} {seq} {at}\n", at - 1);
            }
        };
        acknowledges(1, 20, 84);
        acknowledges(0, 79, 90);
        let half_s = 500_000_000;
        let expected = Some((2, 0, 11, 4 * half_s, 69 * half_s + 1));
        check("one that stood still meanwhile", &paused, expected);
        // As scripts said it until format 3.
        let mut ledger = Ledger::default();
        ledger.add("0.ledger", b"ledger 3 seed 1\ni 0 1 10\ng 0 1 20 7 1\na 0 1 20\n").unwrap();
        assert_eq!(SplitAcknowledgements::of(&ledger).0.map(|split| split.servers), Some(1));
    }
}
