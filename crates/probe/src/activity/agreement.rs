//! Comparison of shared memory with the view, before it is trusted and as long as it is read.

use std::{
    collections::{BTreeMap, HashMap},
    thread,
    time::Duration,
};

use super::memory::{self, Backends, Search};
use super::view::{Kind, Process, View};

/// Names of events by their number in shared memory, each with the looks that saw the pair.
pub(crate) type Names = HashMap<u32, HashMap<String, u32>>;

/// Comparisons of shared memory with the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreement {
    pub(crate) same: u32,
    pub(crate) other: u32,
}

impl Agreement {
    /// True if what is read may be believed. An event that came and went between two readings differs
    /// from the view's as well: 6 to 8 % did beside clients with 20,000 to 45,000 transactions a
    /// second.
    pub(crate) fn is_good(self) -> bool {
        let all = self.same + self.other;
        all >= 20 && f64::from(self.other) <= OTHER_MAX * f64::from(all)
    }

    /// The comparisons in half a sentence.
    pub(crate) fn words(self) -> String {
        let all = self.same + self.other;
        format!("of {all} wait events in it, {} were others than the view's", self.other)
    }
}

/// Share of events that may differ from the view's.
const OTHER_MAX: f64 = 0.2;

/// The name of an event that is known by its number: the one that most looks saw, or its class where no look at
/// the view met it.
pub(crate) fn learned_name(event: &str, names: &Names) -> Option<String> {
    let (class, number) = event.split_once(":0x")?;
    let seen = names.get(&u32::from_str_radix(number, 16).ok()?);
    let most =
        seen.and_then(|seen| seen.iter().max_by_key(|(name, looks)| (**looks, name.as_str())));
    Some(most.map_or_else(|| format!("{class}:name not seen"), |(name, _)| name.clone()))
}

/// A server's memory for the thread that asks the view, with the names of events that are known already, and
/// for the one that reads on.
pub(crate) type Pair = ((Backends, Names), Backends);

/// Shared memory of a server, if it agrees with the view.
pub(crate) fn trusted(postmaster: u32, view: &mut View) -> Result<Pair, String> {
    let search = Search::open(postmaster).map_err(|error| error.to_string())?;
    let mut attempts = 0;
    let mut backends = loop {
        let known = steady(&view.look().map_err(|error| error.to_string())?);
        if let Some(found) = search.find(&known).map_err(|error| error.to_string())? {
            break found;
        }
        // A process may do something else between the view's answer and the reading.
        attempts += 1;
        if attempts == FIND_ATTEMPTS {
            return Err(match known.len() {
                0 => "pg_stat_activity shows no process whose place could be looked for".to_owned(),
                1 => "the place of the one known process was not found in it".to_owned(),
                n => format!("the places of {n} known processes were not found in it"),
            });
        }
        thread::sleep(Duration::from_millis(5));
    };
    let (mut agreement, mut names) = (Agreement::default(), Names::new());
    for _ in 0..CHECKS {
        let (before, processes, after) = around(&mut backends, view)?;
        compare(&before, &processes, &after, &mut agreement, &mut names);
        thread::sleep(Duration::from_millis(3));
    }
    if !agreement.is_good() {
        return Err(agreement.words());
    }
    let second = backends.again().map_err(|error| error.to_string())?;
    Ok(((backends, names), second))
}

/// Processes by which the places are found: those that work in the background and mostly wait for their
/// next work. Clients under load do something else a moment later; they are taken as well only where
/// there are few others.
fn steady(processes: &[Process]) -> BTreeMap<i32, String> {
    let is_idle = |process: &Process| process.event.starts_with("Activity:");
    let stays = |process: &&Process| {
        !matches!(process.kind, Kind::Client | Kind::AutovacuumWorker)
            && (is_idle(process) || process.kind != Kind::Other)
    };
    let background: Vec<&Process> = processes.iter().filter(stays).collect();
    let idle = background.iter().filter(|process| is_idle(process)).count();
    let (taken, is_certain): (Vec<&Process>, _) = match idle >= IDLE_MIN {
        true => (background, true),
        false => (processes.iter().collect(), false),
    };
    let event = |process: &Process| match is_certain && !is_idle(process) {
        true => memory::ANY_EVENT.to_owned(),
        false => process.event.clone(),
    };
    taken.into_iter().map(|process| (process.backend, event(process))).collect()
}

/// Idle processes that tell the place of the wait event.
const IDLE_MIN: usize = 3;

const FIND_ATTEMPTS: u32 = 30;
const CHECKS: u32 = 8;

/// Wait events in shared memory, by process.
pub(crate) type Waits = HashMap<i32, u32>;

/// The view's answer, and shared memory right before and after it.
pub(crate) fn around(
    backends: &mut Backends,
    view: &mut View,
) -> Result<(Waits, Vec<Process>, Waits), String> {
    let mut read = || -> Result<Waits, String> {
        let seen = backends.read_all().map_err(|error| error.to_string())?;
        Ok(seen.iter().map(|seen| (seen.pid, seen.wait)).collect())
    };
    let before = read()?;
    let processes = view.look().map_err(|error| error.to_string())?;
    Ok((before, processes, read()?))
}

/// Compares what did not change between two readings with what the view told between them.
pub(crate) fn compare(
    before: &Waits,
    processes: &[Process],
    after: &Waits,
    agreement: &mut Agreement,
    names: &mut Names,
) {
    for Process { backend, event, .. } in processes {
        let Some(wait) = before.get(backend).filter(|wait| after.get(backend) == Some(wait)) else {
            continue;
        };
        match memory::class(event) {
            None => {}
            Some(class) if wait >> 24 == class => {
                agreement.same += 1;
                if !event.is_empty() {
                    let seen = names.entry(*wait).or_default();
                    *seen.entry(event.clone()).or_default() += 1;
                }
            }
            Some(_) => agreement.other += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_events_may_have_come_and_gone() {
        let check = |same: u32, other: u32, expected: bool| {
            assert_eq!(Agreement { same, other }.is_good(), expected, "{same} {other}");
        };
        check(269, 22, true);
        check(50, 50, false);
        // Too few to know.
        check(19, 0, false);
    }
}
