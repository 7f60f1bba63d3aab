//! The roles of servers as they say them, asked all the time by threads of their own: whoever wants to know
//! the server that takes writes now looks here, and waits for no server.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use record::Moment;
use spec::ActionTarget;

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It takes writes, on this timeline.
    Primary { timeline: u32 },
    /// It recovers.
    Standby,
    /// Neither: its manager has made it read-only.
    ReadOnly,
}

/// What is known of a server at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Role(Role),
    /// It gives no answer.
    Silent,
    /// It was asked a moment ago.
    NotYet,
}

/// A server's last answer, and the question under way.
#[derive(Clone, Copy, Debug, Default)]
struct Talk {
    /// The moment at which the question was asked that has no answer yet.
    asked: Option<Moment>,
    /// The moment of the last question that has ended, and the answer; none where it could not be asked.
    last: Option<(Moment, Option<Role>)>,
}

impl Talk {
    /// What is known at `now`. Answers to questions before `since` say nothing.
    fn known(&self, since: Moment, now: Moment) -> Known {
        match (self.last, self.asked) {
            (Some((asked, role)), _) if asked >= since => role.map_or(Known::Silent, Known::Role),
            (_, Some(asked)) if now.since(asked) > SILENT_NS => Known::Silent,
            _ => Known::NotYet,
        }
    }
}

/// The server that is meant, by its number, and whether all that could be another choice are known.
fn choose(wanted: &ActionTarget, known: &[Known]) -> (Option<usize>, bool) {
    let is_known = known.iter().all(|one| *one != Known::NotYet);
    let mut found = None;
    for (number, one) in known.iter().enumerate() {
        match (wanted, one) {
            (ActionTarget::StandbyNow, Known::Role(Role::Standby)) => {
                found = found.or(Some((0, number)));
            }
            // The one with the latest timeline counts.
            (ActionTarget::PrimaryNow, Known::Role(Role::Primary { timeline })) => {
                found =
                    found.filter(|(latest, _)| latest >= timeline).or(Some((*timeline, number)));
            }
            _ => {}
        }
    }
    (found.map(|(_, number)| number), is_known)
}

/// A server that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    /// The moment from which it was known to be there.
    pub(crate) since: Moment,
}

/// What servers say of their roles.
#[derive(Debug)]
pub(crate) struct Roles {
    names: Vec<String>,
    talks: Mutex<Vec<Talk>>,
    news: Condvar,
}

impl Roles {
    /// The roles of servers of these names, in the order of the topology.
    pub(crate) fn new(names: Vec<String>) -> Roles {
        let talks = Mutex::new(vec![Talk::default(); names.len()]);
        Roles { names, talks, news: Condvar::new() }
    }

    /// A server is asked.
    pub(crate) fn asks(&self, number: usize, asked: Moment) {
        self.lock()[number].asked = Some(asked);
    }

    /// It has answered the question of that moment, or could not be asked.
    pub(crate) fn answers(&self, number: usize, asked: Moment, role: Option<Role>) {
        self.lock()[number] = Talk { asked: None, last: Some((asked, role)) };
        self.news.notify_all();
    }

    /// The server that is meant, found before `deadline` by answers to questions from `since` on; what was
    /// known, in words, where there is none. `clock` tells the moment.
    pub(crate) fn find(
        &self,
        wanted: &ActionTarget,
        since: Moment,
        deadline: Moment,
        clock: impl Fn() -> Moment,
    ) -> Result<Found, String> {
        let mut talks = self.lock();
        let mut seen: Option<Moment> = None;
        loop {
            let now = clock();
            let known: Vec<Known> = talks.iter().map(|talk| talk.known(since, now)).collect();
            let (number, is_known) = choose(wanted, &known);
            let is_late = now >= deadline;
            match number {
                Some(number) => {
                    let since = *seen.get_or_insert(now);
                    if is_known || is_late {
                        return Ok(Found { name: self.names[number].clone(), since });
                    }
                }
                None if is_late => return Err(self.words(&known)),
                None => seen = None,
            }
            let waited = self.news.wait_timeout(talks, PAUSE);
            talks = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn words(&self, known: &[Known]) -> String {
        let one = |(name, known): (&String, &Known)| match known {
            Known::Role(Role::Primary { .. }) => format!("{name} takes writes"),
            Known::Role(Role::Standby) => format!("{name} is a standby"),
            Known::Role(Role::ReadOnly) => format!("{name} refuses writes"),
            Known::Silent | Known::NotYet => format!("{name} gave no answer"),
        };
        self.names.iter().zip(known).map(one).collect::<Vec<_>>().join(", ")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Talk>> {
        self.talks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server that goes on answers sooner, unless the machine is very busy; a later answer counts as a paused server.
const SILENT_NS: u64 = 150_000_000;
/// Silence has no news.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::{Path, PathBuf};

    use spec::{Study, StudyFolder, StudyProfile};

    use super::*;

    const MS: u64 = 1_000_000;

    fn primary(timeline: u32) -> Known {
        Known::Role(Role::Primary { timeline })
    }

    #[test]
    fn the_server_that_is_meant_is_chosen_among_those_that_answer() {
        use Known::{NotYet, Silent};
        const STANDBY: Known = Known::Role(Role::Standby);
        let check = |wanted: ActionTarget, known: &[Known], expected| {
            assert_eq!(choose(&wanted, known), expected, "{wanted:?} of {known:?}");
        };
        check(ActionTarget::StandbyNow, &[primary(1), STANDBY, STANDBY], (Some(1), true));
        check(ActionTarget::StandbyNow, &[primary(1), Silent, STANDBY], (Some(2), true));
        check(ActionTarget::StandbyNow, &[primary(1), NotYet, STANDBY], (Some(2), false));
        check(ActionTarget::StandbyNow, &[primary(1), Silent, Silent], (None, true));
        check(ActionTarget::PrimaryNow, &[primary(1), primary(3), primary(2)], (Some(1), true));
        check(ActionTarget::PrimaryNow, &[primary(2), primary(2)], (Some(0), true));
        check(
            ActionTarget::PrimaryNow,
            &[Silent, STANDBY, Known::Role(Role::ReadOnly)],
            (None, true),
        );
    }

    /// The studies that ship, in profile quick.
    fn shipped() -> Vec<Study> {
        let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let folders = fs::read_dir(studies).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: PathBuf| {
            let files = fs::read_dir(&path).unwrap().map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            });
            let (name, is_private) = (path.display().to_string(), false);
            let folder = StudyFolder { name, files: files.collect(), is_private };
            Study::parse(&folder, StudyProfile::Quick).unwrap()
        };
        folders.filter(|path| path.is_dir()).map(read).collect()
    }

    #[test]
    fn whichever_node_of_a_shipped_study_stands_still_an_action_is_done_at_its_moment() {
        let mut cases: Vec<(Vec<String>, ActionTarget)> = Vec::new();
        for point in shipped().iter().flat_map(|study| &study.points) {
            let servers = point.topology.nodes.iter().filter(|node| node.has_server());
            let names: Vec<String> = servers.map(|node| node.name.clone()).collect();
            let ways = point.timeline.iter().flat_map(|timed| [&timed.chosen, &timed.chosen_of]);
            for wanted in ways.flatten().filter(|one| !matches!(one, ActionTarget::Earlier(_))) {
                let case = (names.clone(), wanted.clone());
                if !cases.contains(&case) {
                    cases.push(case);
                }
            }
        }
        assert!(cases.len() >= 2, "{cases:?}");
        let due = Moment(1000 * MS);
        for (names, wanted) in &cases {
            let all = || 0..names.len();
            // Each takes writes by turns, and each stands still: for long, and since just before the action.
            let combinations = all().flat_map(|primary| {
                all().flat_map(move |paused| [(primary, paused, 100), (primary, paused, 990)])
            });
            for (primary, paused, since_ms) in combinations {
                let roles = Roles::new(names.clone());
                let role = |number| match number == primary {
                    true => Role::Primary { timeline: 1 },
                    false => Role::Standby,
                };
                for number in all() {
                    let asked_ms = if number == paused { since_ms } else { 985 };
                    roles.answers(number, Moment((asked_ms - 15) * MS), Some(role(number)));
                    roles.asks(number, Moment(asked_ms * MS));
                }
                for number in all().filter(|number| *number != paused) {
                    roles.answers(number, Moment(995 * MS), Some(role(number)));
                }
                // The pause was an action: what was said before it does not count.
                let since = Moment(since_ms.max(900) * MS);
                let now = Cell::new(due.0);
                let clock = || Moment(now.replace(now.get() + 50 * MS));
                let found = roles.find(wanted, since, due.plus_ns(1000 * MS), clock);
                let is_primary = *wanted == ActionTarget::PrimaryNow;
                let mut able = all().filter(|number| *number != paused);
                let expected = able.find(|number| (*number == primary) == is_primary);
                let found = found.ok().map(|found| found.name);
                assert_eq!(found, expected.map(|number| names[number].clone()), "{wanted:?}");
                let is_in_time = now.get() <= due.plus_ns(250 * MS).0;
                assert!(is_in_time || expected.is_none(), "{wanted:?}: {}", now.get());
            }
        }
    }

    #[test]
    fn an_answer_is_of_its_time_and_a_server_without_one_is_silent_soon() {
        let check = |asked: Option<u64>, last: Option<(u64, Option<Role>)>, expected| {
            let at = |ms: u64| Moment(ms * MS);
            let talk = Talk { asked: asked.map(at), last: last.map(|(ms, role)| (at(ms), role)) };
            assert_eq!(talk.known(at(1000), at(1200)), expected, "{asked:?} {last:?}");
        };
        check(None, None, Known::NotYet);
        check(Some(1190), Some((1000, Some(Role::Standby))), Known::Role(Role::Standby));
        // Before the last action it may have been something else.
        check(Some(1190), Some((999, Some(Role::Standby))), Known::NotYet);
        check(Some(1190), Some((1180, None)), Known::Silent);
        check(Some(900), Some((890, Some(Role::Standby))), Known::Silent);
    }

    #[test]
    fn a_search_ends_when_all_are_known_or_its_time_is_up() {
        let check = |said: &[Option<Role>], wanted: ActionTarget, expected: Result<&str, &str>| {
            let names = ["a", "b", "c"].iter().take(said.len()).map(|name| (*name).to_owned());
            let roles = Roles::new(names.collect());
            for (number, role) in said.iter().enumerate() {
                roles.asks(number, Moment(MS));
                // The one without an answer stands still.
                if role.is_some() {
                    roles.answers(number, Moment(MS), *role);
                }
            }
            let now = Cell::new(MS);
            let clock = || Moment(now.replace(now.get() + 40 * MS));
            let found = roles.find(&wanted, Moment(0), Moment(1000 * MS), clock);
            assert_eq!(found.as_ref().map(|found| &*found.name).map_err(|why| &**why), expected);
            // Whoever is there decides before the deadline, whatever the others do.
            assert!(now.get() < if found.is_ok() { 300 * MS } else { 1200 * MS });
        };
        let first = Some(Role::Primary { timeline: 1 });
        check(&[first, None, Some(Role::Standby)], ActionTarget::StandbyNow, Ok("c"));
        check(&[None, Some(Role::Standby)], ActionTarget::StandbyNow, Ok("b"));
        check(&[first, None], ActionTarget::StandbyNow, Err("a takes writes, b gave no answer"));
    }
}
