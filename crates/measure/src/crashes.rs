//! Crashes that nobody asked for.
//!
//! A server's log tells of them, and so do the processes of the postmaster: they begin anew. What an
//! action asked for explains the signs that follow from it.

use probe::{CrashKind, CrashSign, SamplerReadings};
use record::Moment;

/// The end of a node's processes, which was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDeath {
    /// The node.
    pub node: String,
    /// True if it was killed or lost its power, rather than being stopped.
    pub is_sudden: bool,
    /// Time at which ending them began.
    pub from: Moment,
    /// Time at which they were gone for certain.
    pub until: Moment,
    /// Time at which starting it again began, if it was started.
    pub restarted: Option<Moment>,
    /// Time at which it ran again, if it did.
    pub back: Option<Moment>,
    /// The power was cut: what its disk has afterwards is what the trial is about.
    pub is_power_cut: bool,
}

/// Ends of servers that were asked for: they explain signs of a crash.
#[derive(Clone, Debug, Default)]
pub struct ExplainedEnds {
    /// The nodes that were stopped, killed or cut off from power.
    pub deaths: Vec<NodeDeath>,
    /// Nodes whose disks fail, from that moment on.
    pub failing: Vec<(String, Moment)>,
}

/// Crashes of servers that nothing explains.
#[derive(Debug, Default)]
pub struct UnaskedCrashes {
    /// The count of each server.
    pub counts: Vec<(String, usize)>,
    /// The first sign of each server that has any, in words.
    pub words: Vec<String>,
}

impl UnaskedCrashes {
    /// Those of the servers of these names.
    pub fn of<'n>(
        nodes: impl Iterator<Item = &'n str>,
        explained: &ExplainedEnds,
        readings: &SamplerReadings,
    ) -> UnaskedCrashes {
        let mut crashes = UnaskedCrashes::default();
        for node in nodes {
            let deaths: Vec<&NodeDeath> =
                explained.deaths.iter().filter(|death| death.node == node).collect();
            let signs = readings.crashes.iter().filter(|sign| sign.node == node);
            // A server ends when its disk fails, and starts anew; what is left then is judged by other figures.
            let failing = explained.failing.iter().filter(|(failing, _)| failing == node);
            let failing = failing.map(|(_, from)| *from).min();
            let is_failing =
                |sign: &CrashSign| failing.is_some_and(|from| sign.at >= earlier(from));
            let is_explained = |sign: &CrashSign| {
                is_failing(sign) || deaths.iter().any(|death| explains(death, sign))
            };
            let signs: Vec<&CrashSign> = signs.filter(|sign| !is_explained(sign)).collect();
            let mut count = episodes(&signs);
            if let Some(sign) = signs.first() {
                let at = sign.at.as_secs_f64();
                crashes.words.push(format!("{node}, at {at:.1} s: {}", sign.text));
            } else if deaths.is_empty()
                && failing.is_none()
                && readings.deltas.get(node).is_some_and(|delta| delta.has_restarted)
            {
                count = 1;
                crashes.words.push(format!("{node}: its processes were started anew unasked"));
            }
            crashes.counts.push((node.to_owned(), count));
        }
        crashes
    }

    /// The same without the servers that are meant.
    pub fn without(self, is_meant: impl Fn(&str) -> bool) -> UnaskedCrashes {
        let counts = self.counts.into_iter().filter(|(node, _)| !is_meant(node));
        UnaskedCrashes { counts: counts.collect(), words: self.words }
    }

    /// Crashes of all servers together.
    #[must_use]
    pub fn total(&self) -> usize {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// The crashes in words; none where there was none.
    pub fn why(&self) -> Option<String> {
        (self.total() > 0).then(|| format!("a server crashed unasked: {}", self.words.join("; ")))
    }
}

/// True if what an action did to a server is why its log says that.
fn explains(death: &NodeDeath, sign: &CrashSign) -> bool {
    let within = |first: Moment, last: Moment| {
        (earlier(first)..=last.plus_ns(CLOCK_ERROR_NS)).contains(&sign.at)
    };
    if death.is_power_cut {
        return sign.at >= earlier(death.from);
    }
    match sign.kind {
        // No end of a process damages data.
        CrashKind::Damage => false,
        CrashKind::Process | CrashKind::Panic | CrashKind::Interrupted => {
            let recovers = death.restarted.zip(death.back);
            within(death.from, death.until)
                || recovers.is_some_and(|(restarted, back)| within(restarted, back))
        }
    }
}

/// The earliest moment of a log that can be that one.
fn earlier(moment: Moment) -> Moment {
    Moment(moment.0.saturating_sub(CLOCK_ERROR_NS))
}

/// The number of crashes: signs that follow each other closely are of one.
fn episodes(signs: &[&CrashSign]) -> usize {
    let apart = |pair: &[&CrashSign]| pair[1].at.since(pair[0].at) > EPISODE_NS;
    match signs {
        [] => 0,
        signs => 1 + signs.windows(2).filter(|pair| apart(pair)).count(),
    }
}

/// By how much a log's clock may differ from the run's.
const CLOCK_ERROR_NS: u64 = 250_000_000;

/// Signs of one crash follow each other within this time.
const EPISODE_NS: u64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sign(at_ms: u64, kind: CrashKind) -> CrashSign {
        CrashSign { at: Moment(at_ms * MS), node: "n".to_owned(), kind, text: "it".to_owned() }
    }

    fn death(from_ms: u64, back_ms: Option<u64>) -> NodeDeath {
        let moment = |ms| Moment(ms * MS);
        NodeDeath {
            node: "n".to_owned(),
            is_sudden: true,
            from: moment(from_ms),
            until: moment(from_ms + 100),
            restarted: back_ms.map(|back_ms| moment(back_ms - 500)),
            back: back_ms.map(moment),
            is_power_cut: false,
        }
    }

    #[test]
    fn what_no_action_explains_is_a_crash() {
        use CrashKind::{Damage, Interrupted, Panic, Process};
        let check = |deaths: &[NodeDeath], signs: &[(u64, CrashKind)], expected| {
            let explained = ExplainedEnds { deaths: deaths.to_vec(), ..ExplainedEnds::default() };
            let crashes = signs.iter().map(|(at_ms, kind)| sign(*at_ms, *kind)).collect();
            let readings = SamplerReadings { crashes, ..SamplerReadings::default() };
            let found = UnaskedCrashes::of(["n", "other"].into_iter(), &explained, &readings);
            assert_eq!(found.total(), expected, "{deaths:?} {signs:?}");
            assert_eq!(found.why().is_some(), expected > 0);
        };
        check(&[], &[], 0);
        check(&[], &[(5_000, Process), (5_010, Process), (5_100, Interrupted)], 1);
        check(&[], &[(5_000, Process), (9_000, Panic)], 2);
        // A kill, and the recovery when it is started again.
        let killed = [death(5_000, Some(8_000))];
        check(&killed, &[(5_050, Process), (7_600, Interrupted)], 0);
        check(&killed, &[(4_000, Process), (7_600, Interrupted)], 1);
        check(&killed, &[(7_600, Interrupted), (8_900, Process)], 1);
        check(&killed, &[(7_600, Damage)], 1);
        check(&[death(5_000, None)], &[(5_050, Process)], 0);
        // A disk that fails explains what comes after, on its own server.
        let failing = |node: &str, expected| {
            let failing = vec![(node.to_owned(), Moment(5_000 * MS))];
            let explained = ExplainedEnds { failing, ..ExplainedEnds::default() };
            let crashes = [(5_100, Panic), (7_000, Damage)].map(|(at, kind)| sign(at, kind)).into();
            let readings = SamplerReadings { crashes, ..SamplerReadings::default() };
            assert_eq!(
                UnaskedCrashes::of(["n"].into_iter(), &explained, &readings).total(),
                expected
            );
        };
        failing("n", 0);
        failing("other", 1);
        // Whatever a power cut has left is judged by other figures.
        let cut = [NodeDeath { is_power_cut: true, ..death(5_000, None) }];
        check(&cut, &[(5_050, Panic), (9_000, Damage)], 0);
        check(&cut, &[(4_000, Panic)], 1);
    }

    #[test]
    fn processes_that_began_anew_are_a_crash_where_the_log_says_nothing() {
        let check = |deaths: Vec<NodeDeath>, expected| {
            let explained = ExplainedEnds { deaths, ..ExplainedEnds::default() };
            let delta =
                probe::CounterDelta { has_restarted: true, ..probe::CounterDelta::default() };
            let deltas = [("n".to_owned(), delta)].into();
            let readings = SamplerReadings { deltas, ..SamplerReadings::default() };
            let found = UnaskedCrashes::of(["n"].into_iter(), &explained, &readings);
            assert_eq!(found.total(), expected);
        };
        check(Vec::new(), 1);
        check(vec![death(5_000, Some(8_000))], 0);
    }
}
