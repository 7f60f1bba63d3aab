//! The servers that acknowledged transactions, and whether two of them did so at the same time.

use super::{Ledger, Transaction};
use crate::Moment;

/// A server that acknowledges, as a script asks for it in the transaction itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Giver {
    /// The server's number: its address, say.
    pub server: i64,
    /// Its timeline.
    pub timeline: i64,
}

/// Acknowledgements by more than one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Servers that acknowledged transactions.
    pub servers: u64,
    /// Acknowledgements of a server for transactions that were sent after another one with a later
    /// timeline had acknowledged one.
    pub acknowledged: u64,
    /// From the first acknowledgement with the later timeline to the last of those, in nanoseconds.
    pub span_ns: u64,
}

impl Split {
    /// The split among the acknowledgements of a ledger; none where none of them names its server.
    pub fn of(ledger: &Ledger) -> Option<Split> {
        let given: Vec<(Giver, &Transaction)> = ledger
            .clients()
            .flat_map(|(_, all)| all)
            .filter(|one| one.outcome.is_acknowledged())
            .filter_map(|one| Some((ledger.giver(one)?, one)))
            .collect();
        let mut servers: Vec<i64> = given.iter().map(|(giver, _)| giver.server).collect();
        servers.sort_unstable();
        servers.dedup();
        let mut split = Split { servers: servers.len() as u64, ..Split::default() };
        // When each timeline was first heard of.
        let mut firsts: Vec<(Giver, Moment)> = Vec::new();
        for (giver, one) in &given {
            match firsts.iter_mut().find(|(known, _)| known == giver) {
                Some((_, at)) => *at = one.ended.min(*at),
                None => firsts.push((*giver, one.ended)),
            }
        }
        for (giver, one) in &given {
            let later = firsts.iter().filter(|(other, _)| {
                other.timeline > giver.timeline && other.server != giver.server
            });
            let before = later.map(|(_, at)| *at).filter(|at| one.intended > *at).min();
            if let Some(first) = before {
                split.acknowledged += 1;
                split.span_ns = split.span_ns.max(one.ended.since(first));
            }
        }
        (!given.is_empty()).then_some(split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_acknowledges_after_a_later_timeline_did_is_a_second_primary() {
        let check = |name: &str, lines: &str, expected: Option<(u64, u64, u64)>| {
            let mut ledger = Ledger::default();
            let text = format!("ledger 2 seed 1\n{lines}");
            ledger.add("0.ledger", text.as_bytes()).unwrap();
            let split = Split::of(&ledger);
            let found = split.map(|split| (split.servers, split.acknowledged, split.span_ns));
            assert_eq!(found, expected, "{name}");
        };
        check("no server is named", "i 0 1 10\na 0 1 20\n", None);
        let first = "i 0 1 10\ng 0 1 20 7 1\na 0 1 20\n";
        check("one server", first, Some((1, 0, 0)));
        let moved = format!("{first}i 0 2 30\ng 0 2 40 8 2\na 0 2 40\n");
        check("a server after another", &moved, Some((2, 0, 0)));
        // It was sent before the new primary had acknowledged anything.
        let in_flight = format!("{moved}i 1 1 39\ng 1 1 45 7 1\na 1 1 45\n");
        check("one in flight", &in_flight, Some((2, 0, 0)));
        let both = format!("{moved}i 1 1 41\ng 1 1 45 7 1\na 1 1 45\n");
        check("two primaries", &both, Some((2, 1, 5)));
        let unknown = format!("{moved}i 1 1 41\ng 1 1 45 7 1\nu 1 1 45\n");
        check("what is not acknowledged proves nothing", &unknown, Some((2, 0, 0)));
        let same =
            format!("{first}i 0 2 30\ng 0 2 40 7 2\na 0 2 40\ni 1 1 41\ng 1 1 45 7 1\na 1 1 45\n");
        check("a server with two timelines is one", &same, Some((1, 0, 0)));
    }
}
