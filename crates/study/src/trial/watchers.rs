//! Watchers of servers: each server is asked again and again during a load what it is, by a thread and a
//! session of its own, so that two primaries at the same time are seen, and none, and so that nobody waits
//! for a server that stands still.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::Way;
use postgres::SimpleQueryMessage;
use record::{MeasuredWindow, Moment};
use server::{Client, Limits};
use site::Site;
use spec::{ActionTarget, TimelineEntry, metrics};

use crate::clock;
use crate::trial::roles::{Role, Roles};

/// The watchers of a trial's servers.
pub(crate) struct ServerWatchers {
    is_over: Arc<AtomicBool>,
    roles: Arc<Roles>,
    threads: Vec<Watcher>,
}

/// The thread that asks a server.
struct Watcher {
    thread: JoinHandle<Vec<ServerAnswer>>,
    is_managed: bool,
}

/// A server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServerAnswer {
    asked: Moment,
    answered: Moment,
    role: Role,
    /// The standbys that stream from it.
    streaming: usize,
}

impl ServerAnswer {
    /// True if it takes writes.
    fn is_primary(&self) -> bool {
        matches!(self.role, Role::Primary { .. })
    }
}

/// The answers of all managed servers of a trial.
pub(crate) struct WatchedServers {
    servers: Vec<Vec<ServerAnswer>>,
}

impl ServerWatchers {
    /// Begins to ask the managed servers of a site; all servers where an action is done to one that is found
    /// by its role.
    pub(crate) fn start(
        site: &Site,
        timeline: &[TimelineEntry],
        origin: Instant,
    ) -> ServerWatchers {
        let chosen = timeline.iter().flat_map(|timed| [&timed.chosen, &timed.chosen_of]).flatten();
        let all = chosen.into_iter().any(|chosen| !matches!(chosen, ActionTarget::Earlier(_)));
        let nodes: Vec<_> = site.nodes.iter().filter(|node| all || node.is_managed()).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let roles = Arc::new(Roles::new(nodes.iter().map(|node| node.name.clone()).collect()));
        let threads = nodes.into_iter().enumerate().map(|(number, node)| {
            let (way, is_over) = (node.server.way(), Arc::clone(&is_over));
            let watch = Watch { number, roles: Arc::clone(&roles), origin, is_over };
            Watcher {
                thread: thread::spawn(move || watch.run(&way)),
                is_managed: node.is_managed(),
            }
        });
        let threads = threads.collect();
        ServerWatchers { is_over, roles, threads }
    }

    /// What the servers say of their roles.
    pub(crate) fn roles(&self) -> &Roles {
        &self.roles
    }

    pub(crate) fn stop(self) -> WatchedServers {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.threads.into_iter().map(|one| {
            let answers = one.thread.join().unwrap_or_else(|it| resume_unwind(it));
            one.is_managed.then_some(answers)
        });
        WatchedServers { servers: ended.flatten().collect() }
    }
}

/// The watch of one server.
struct Watch {
    number: usize,
    roles: Arc<Roles>,
    origin: Instant,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    fn run(&self, way: &Way) -> Vec<ServerAnswer> {
        let limits = Limits { connect: PATIENCE, answer: Some(PATIENCE), ..Limits::of_questions() };
        let mut answers = Vec::new();
        while !self.is_over() {
            let asked = self.asks();
            let Ok(mut client) = way(&limits) else {
                self.roles.answers(self.number, asked, None);
                thread::sleep(PAUSE);
                continue;
            };
            while !self.is_over() {
                let asked = self.asks();
                let said = ask(&mut client);
                let role = said.map(|(role, _)| role);
                self.roles.answers(self.number, asked, role);
                let Some((role, streaming)) = said else { break };
                let answered = clock::now(self.origin);
                answers.push(ServerAnswer { asked, answered, role, streaming });
                thread::sleep(PAUSE);
            }
        }
        answers
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn asks(&self) -> Moment {
        let asked = clock::now(self.origin);
        self.roles.asks(self.number, asked);
        asked
    }
}

fn ask(client: &mut Client) -> Option<(Role, usize)> {
    let said = client.simple_query(QUESTION).ok()?;
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })?;
    let role = match (row.get(0)?, row.get(1)) {
        ("t", _) => Role::Standby,
        (_, None) => Role::ReadOnly,
        (_, Some(timeline)) => Role::Primary { timeline: u32::from_str_radix(timeline, 16).ok()? },
    };
    Some((role, row.get(2)?.parse().ok()?))
}

impl WatchedServers {
    /// The figures; none where no server is a manager's. `fault` is the first action of the timeline.
    pub(crate) fn outcome(
        &self,
        window: MeasuredWindow,
        fault: Option<Moment>,
    ) -> check::CheckOutcome {
        let mut outcome = check::CheckOutcome::default();
        if self.servers.is_empty() {
            return outcome;
        }
        let reigns: Vec<Vec<(Moment, Moment)>> =
            self.servers.iter().map(|answers| reigns(answers)).collect();
        let ms = |ns: u64| ns as f64 / 1e6;
        outcome.set(&metrics::TWO_PRIMARIES_MS, "", ms(overlap_ns(&reigns)));
        outcome.set(&metrics::NO_PRIMARY_MS, "", ms(gap_ns(&reigns, window)));
        let fault = fault.unwrap_or(window.open);
        let whole = self.whole_since(fault);
        outcome.set(&metrics::WHOLE_AT_END, "", if whole.is_some() { 1.0 } else { 0.0 });
        if let Some(whole) = whole {
            outcome.set(&metrics::WHOLE_AGAIN_MS, "", ms(whole.since(fault)));
        }
        outcome
    }

    /// The end of the first answer from which on no primary lacks a standby; none if the last answer of
    /// all lacks one, or no primary was there at the end. Only answers to questions at `from` or later count.
    fn whole_since(&self, from: Moment) -> Option<Moment> {
        let others = self.servers.len() - 1;
        let primaries = self.servers.iter().flatten();
        let mut primaries: Vec<&ServerAnswer> =
            primaries.filter(|one| one.is_primary() && one.asked >= from).collect();
        primaries.sort_by_key(|one| one.answered);
        let is_whole = |one: &&&ServerAnswer| one.streaming >= others;
        let last = primaries.last().filter(is_whole)?;
        // A primary that has reported nothing since counts as gone.
        let end = self.servers.iter().flatten().map(|one| one.answered).max()?;
        if end.since(last.answered) > GONE_NS {
            return None;
        }
        let since = primaries.iter().rev().take_while(is_whole).last()?;
        Some(since.answered)
    }
}

/// The stretches in which a server was a primary for sure: between answers that say so and follow each
/// other closely. One that stands still takes no writes.
fn reigns(answers: &[ServerAnswer]) -> Vec<(Moment, Moment)> {
    let mut reigns: Vec<(Moment, Moment)> = Vec::new();
    let mut last: Option<Moment> = None;
    for one in answers {
        if !one.is_primary() {
            last = None;
            continue;
        }
        match (last, reigns.last_mut()) {
            (Some(before), Some(reign)) if one.answered.since(before) <= CLOSE_NS => {
                reign.1 = one.asked.max(reign.1);
            }
            _ => reigns.push((one.answered, one.answered)),
        }
        last = Some(one.answered);
    }
    reigns
}

/// The time in which two servers or more were primaries.
fn overlap_ns(servers: &[Vec<(Moment, Moment)>]) -> u64 {
    let ends = |(from, until): &(Moment, Moment)| [(*from, 1), (*until, -1)];
    let mut ends: Vec<(Moment, i32)> = servers.iter().flatten().flat_map(ends).collect();
    ends.sort_unstable();
    let (mut count, mut since, mut total) = (0, Moment(0), 0);
    for (at, step) in ends {
        if count >= 2 {
            total += at.since(since);
        }
        (count, since) = (count + step, at);
    }
    total
}

/// The longest time inside the window in which no server was a primary.
fn gap_ns(servers: &[Vec<(Moment, Moment)>], window: MeasuredWindow) -> u64 {
    let mut all: Vec<(Moment, Moment)> = servers.iter().flatten().copied().collect();
    all.sort_unstable();
    let (mut reached, mut longest) = (window.open, 0);
    for (from, until) in all {
        if from > reached {
            longest = longest.max(from.min(window.close).since(reached));
        }
        reached = reached.max(until.min(window.close));
    }
    longest.max(window.close.since(reached))
}

/// If it recovers; the timeline that it writes on, in hexadecimal digits, where it takes writes: one that its
/// manager has made read-only takes none, and one that subscribes to another server is no primary; the standbys that stream from it.
const QUESTION: &str = "SELECT pg_is_in_recovery(), \
                        CASE WHEN NOT current_setting('transaction_read_only')::boolean \
                        AND NOT EXISTS (SELECT FROM pg_subscription WHERE subenabled) \
                        THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END, \
                        (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming')";
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(10);
/// One that answers later stands still or is out of reach.
const PATIENCE: Duration = Duration::from_millis(1000);
/// A primary that is there answers more often.
const GONE_NS: u64 = 800_000_000;
/// Answers that lie farther apart say nothing of the time between them.
const CLOSE_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Answers of one server: when it was asked, in milliseconds, and `p` or `s`; each takes 1 ms.
    fn server(said: &str) -> Vec<ServerAnswer> {
        let answers = said.split_whitespace().map(|word| {
            let (at, role) = word.split_at(word.len() - 1);
            let asked = Moment(at.parse::<u64>().unwrap() * MS);
            let streaming = usize::from(role == "w");
            let role = if role == "s" { Role::Standby } else { Role::Primary { timeline: 1 } };
            ServerAnswer { asked, answered: asked.plus_ns(MS), role, streaming }
        });
        answers.collect()
    }

    #[test]
    fn primaries_are_counted_by_what_they_said_closely_enough() {
        let check = |servers: [&str; 2], two: u64, none: u64, whole: Option<u64>| {
            let watched = WatchedServers { servers: servers.map(server).to_vec() };
            let reigns: Vec<_> = watched.servers.iter().map(|one| reigns(one)).collect();
            let (open, close) = (Moment(0), Moment(1000 * MS));
            let window = MeasuredWindow { load_began: open, open, close };
            let found = (overlap_ns(&reigns) / MS, gap_ns(&reigns, window) / MS);
            assert_eq!(found, (two, none), "{servers:?}");
            let since = watched.whole_since(Moment(0)).map(|at| at.0 / MS);
            assert_eq!(since, whole, "{servers:?}");
        };
        let steady = "0p 150p 300p 450p 600p 750p 900p 999w";
        check([steady, "0s 500s"], 0, 1, Some(1000));
        // The second one follows at 600.
        check(["0w 150p 200p", "0s 600p 750p 900w 999w"], 0, 401, Some(901));
        // The first one stood still from 200 to 700, and says then that it is still a primary.
        check(["0p 150p 200p 700p 800p 850s", "0s 600p 750p 900p 999p"], 99, 401, None);
        // Nobody follows the first one, which had a standby when it was killed.
        check(["0w 150w", "0s 500s 999s"], 0, 850, None);
        check(["", ""], 0, 1000, None);
    }
}
