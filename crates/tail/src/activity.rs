//! Samples of a server's activity, as small as they can be: thousands of looks a minute, each with all
//! backends.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use serde::{Deserialize, Serialize};

use crate::{
    ProcessTimes,
    background::{BackgroundWork, Checkpoint},
};

/// The way in which a server was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingMethod {
    /// The server's shared memory was read.
    SharedMemory,
    /// A session asked for `pg_stat_activity`.
    #[default]
    View,
}

impl SamplingMethod {
    /// The name in output.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            SamplingMethod::SharedMemory => "shared memory",
            SamplingMethod::View => "pg_stat_activity",
        }
    }
}

/// Samples of one server.
#[derive(Clone, Debug, Default)]
pub struct ActivitySamples {
    /// The way in which backends were sampled.
    pub source: SamplingMethod,
    /// Why shared memory was not read, in half a sentence; empty if it was.
    pub refusal: String,
    /// Wait events by the number that entries give them.
    events: Vec<String>,
    numbers: HashMap<String, u16>,
    looks: Vec<ActivityLook>,
    /// Nobody has looked since the last look.
    is_paused: bool,
    entries: Vec<Entry>,
    /// Backends that bear the load's `application_name`, as those of a pooler do that work for it.
    pub of_load: BTreeSet<i32>,
    /// Who held what a backend waited for, in order of time.
    pub held: Vec<HeldLock>,
    /// The holders that `held` names.
    pub holders: Vec<LockHolder>,
}

/// One look at all backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityLook {
    /// The moment of it.
    pub at: u64,
    /// CPU time that the hypervisor took, in 255ths of all that was wanted.
    pub(crate) steal: u8,
    /// Time that the load's threads have waited for a CPU so far.
    pub(crate) load_waited_ns: u64,
    autovacuum: bool,
    /// The number of the checkpointer's event.
    checkpointer: Option<u16>,
    /// Nobody looked between the look before and this one.
    pub(crate) follows_pause: bool,
    first: usize,
    count: usize,
}

/// Work of the server and the machine beside the clients', at a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundActivity<'a> {
    /// The checkpointer's wait event, as a backend's; none if it was not seen.
    pub checkpointer: Option<&'a str>,
    /// An autovacuum worker is at work.
    pub autovacuum: bool,
    /// CPU time that the hypervisor took, in 255ths of all that was wanted.
    pub steal: u8,
    /// Time that a thread of the load has been ready to run without a CPU so far: clients whose answers
    /// have arrived wait for that long.
    pub load_waited_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    backend: i32,
    event: u16,
    has_account: bool,
    /// Microseconds on a CPU and without one so far. They begin again at 0 after an hour of them.
    cpu_us: u32,
    run_delay_us: u32,
}

/// A backend at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendLook<'a> {
    /// The process id.
    pub backend: i32,
    /// The wait event as `type:event`; empty if it waited for nothing.
    pub event: &'a str,
    /// The kernel's account of it; none if it was not read.
    pub spent: Option<ProcessTimes>,
}

/// A lock that a backend waited for, and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The moment at which the server was asked.
    pub at: u64,
    /// The backend that waited.
    pub waiter: i32,
    /// The process that held the lock.
    pub backend: i32,
    /// Index of the holder.
    pub holder: usize,
}

/// A holder of locks, without what differs between two sessions that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// The `backend_type`.
    pub backend_type: String,
    /// The `application_name`.
    pub application: String,
    /// The `state`.
    pub state: String,
    /// The last statement, with `?` for numbers and strings, shortened.
    pub statement: String,
}

/// Entries beyond which every other look is dropped.
const ENTRIES_MAX: usize = 1 << 21;

impl ActivitySamples {
    /// Samples from this source, none yet.
    #[must_use]
    pub fn from(source: SamplingMethod) -> ActivitySamples {
        ActivitySamples { source, ..ActivitySamples::default() }
    }

    /// Adds a look, later than those before. False when the memory for looks was full: every other
    /// look was dropped, and the caller had better look half as often.
    pub fn add<'a>(
        &mut self,
        at: u64,
        background: BackgroundActivity<'_>,
        backends: impl IntoIterator<Item = BackendLook<'a>>,
    ) -> bool {
        let first = self.entries.len();
        for BackendLook { backend, event, spent } in backends {
            let event = self.number(event);
            self.entries.push(Entry::new(backend, event, spent));
        }
        self.entries[first..].sort_unstable_by_key(|entry| entry.backend);
        let BackgroundActivity { checkpointer, autovacuum, steal, load_waited_ns } = background;
        let checkpointer = checkpointer.map(|event| self.number(event));
        let count = self.entries.len() - first;
        self.looks.push(ActivityLook {
            at,
            steal,
            load_waited_ns,
            autovacuum,
            checkpointer,
            follows_pause: std::mem::take(&mut self.is_paused),
            first,
            count,
        });
        let fits = self.entries.len() < ENTRIES_MAX;
        if !fits {
            self.thin_out();
        }
        fits
    }

    /// Notes that nobody looks from now on, until the next look: neither look stands for this time.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// The looks, in order of time.
    #[must_use]
    pub fn looks(&self) -> &[ActivityLook] {
        &self.looks
    }

    /// The server's work in the background at a look. A checkpointer with nothing to do waits for work.
    pub(crate) fn beside(&self, look: &ActivityLook) -> BackgroundWork {
        let event = look.checkpointer.map(|number| self.event(number));
        let checkpoint = match event.map(|event| event.split_once(':').unwrap_or((event, ""))) {
            None | Some(("Activity", _)) => Checkpoint::None,
            Some(("IO", name)) if name.contains("Sync") => Checkpoint::Flushes,
            Some(_) => Checkpoint::Writes,
        };
        BackgroundWork { checkpoint, autovacuum: look.autovacuum }
    }

    /// All backends of a look.
    pub fn backends(&self, look: &ActivityLook) -> impl Iterator<Item = BackendLook<'_>> {
        self.places(look).map(|place| self.at_place(place))
    }

    /// A backend at a look; none if it was not there.
    #[must_use]
    pub fn backend(&self, look: &ActivityLook, backend: i32) -> Option<BackendLook<'_>> {
        Some(self.at_place(self.place(look, backend)?))
    }

    /// Backends of all looks together.
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// The places of a look's backends among those of all looks.
    pub(crate) fn places(&self, look: &ActivityLook) -> Range<usize> {
        look.first..look.first + look.count
    }

    pub(crate) fn place(&self, look: &ActivityLook, backend: i32) -> Option<usize> {
        let entries = &self.entries[self.places(look)];
        let index = entries.binary_search_by_key(&backend, |entry| entry.backend).ok()?;
        Some(look.first + index)
    }

    pub(crate) fn at_place(&self, place: usize) -> BackendLook<'_> {
        let entry = &self.entries[place];
        BackendLook { backend: entry.backend, event: self.event(entry.event), spent: entry.spent() }
    }

    /// Notes who held what `waiter` waited for: the process `backend`.
    pub fn hold(&mut self, at: u64, waiter: i32, backend: i32, holder: LockHolder) {
        let known = self.holders.iter().position(|one| *one == holder);
        let holder = known.unwrap_or_else(|| {
            self.holders.push(holder);
            self.holders.len() - 1
        });
        self.held.push(HeldLock { at, waiter, backend, holder });
    }

    /// The holder of what `waiter` waited for at about this moment with its process, and nobody if it was
    /// not asked for then.
    #[must_use]
    pub fn holder(&self, at: u64, waiter: i32, within_ns: u64) -> Option<(i32, &LockHolder)> {
        let from = self.held.partition_point(|held| held.at + within_ns < at);
        let near = self.held[from..].iter().take_while(|held| held.at <= at + within_ns);
        let nearest =
            near.filter(|held| held.waiter == waiter).min_by_key(|held| held.at.abs_diff(at));
        let nearest = nearest?;
        Some((nearest.backend, self.holders.get(nearest.holder)?))
    }

    /// Gives events other names, where another name is known.
    pub fn rename(&mut self, name: &dyn Fn(&str) -> Option<String>) {
        for event in &mut self.events {
            if let Some(own) = name(event) {
                *event = own;
            }
        }
        // Two numbers may have one name now: events are found by number only.
        self.numbers.clear();
    }

    fn event(&self, number: u16) -> &str {
        self.events.get(usize::from(number)).map_or("", String::as_str)
    }

    fn number(&mut self, event: &str) -> u16 {
        if let Some(number) = self.numbers.get(event) {
            return *number;
        }
        // PostgreSQL has some 300; what extensions add beyond all numbers shares the last one.
        let number = u16::try_from(self.events.len()).unwrap_or(u16::MAX);
        if number < u16::MAX {
            self.events.push(event.to_owned());
            self.numbers.insert(event.to_owned(), number);
        }
        number
    }

    fn thin_out(&mut self) {
        let mut entries = Vec::with_capacity(self.entries.len() / 2 + 1);
        let mut looks = Vec::with_capacity(self.looks.len() / 2 + 1);
        let mut drops_pause = false;
        for two in self.looks.chunks(2) {
            let (look, first) = (two[0], entries.len());
            entries.extend_from_slice(&self.entries[look.first..look.first + look.count]);
            // A pause before the one that is dropped is one before the next.
            let follows_pause = look.follows_pause || std::mem::take(&mut drops_pause);
            drops_pause = two.get(1).is_some_and(|dropped| dropped.follows_pause);
            looks.push(ActivityLook { first, follows_pause, ..look });
        }
        (self.entries, self.looks) = (entries, looks);
    }
}

impl Entry {
    fn new(backend: i32, event: u16, spent: Option<ProcessTimes>) -> Entry {
        // Without the kernel's account, both stay 0, and the state is not told from their course.
        let us = |of: fn(ProcessTimes) -> u64| spent.map_or(0, |spent| (of(spent) / 1_000) as u32);
        let (cpu_us, run_delay_us) = (us(|spent| spent.cpu_ns), us(|spent| spent.run_delay_ns));
        Entry { backend, event, has_account: spent.is_some(), cpu_us, run_delay_us }
    }

    fn spent(&self) -> Option<ProcessTimes> {
        let ns = |us: u32| u64::from(us) * 1_000;
        let spent = ProcessTimes { cpu_ns: ns(self.cpu_us), run_delay_ns: ns(self.run_delay_us) };
        self.has_account.then_some(spent)
    }
}

impl LockHolder {
    /// A holder, with the text of its statement made comparable.
    #[must_use]
    pub fn new(backend_type: &str, application: &str, state: &str, statement: &str) -> LockHolder {
        LockHolder {
            backend_type: backend_type.to_owned(),
            application: application.to_owned(),
            state: state.to_owned(),
            statement: normalised(statement),
        }
    }

    /// The holder in a line: `UPDATE t SET … (idle in transaction, psql)`.
    #[must_use]
    pub fn words(&self) -> String {
        let who = match self.backend_type.as_str() {
            "client backend" | "" => "",
            other => other,
        };
        let mut about: Vec<&str> = Vec::new();
        let parts = [who, if self.state == "active" { "" } else { &self.state }, &self.application];
        about.extend(parts.into_iter().filter(|part| !part.is_empty()));
        match (self.statement.is_empty(), about.is_empty()) {
            (true, true) => "a session".to_owned(),
            (true, false) => about.join(", "),
            (false, true) => self.statement.clone(),
            (false, false) => format!("{} ({})", self.statement, about.join(", ")),
        }
    }
}

/// Characters of a statement that are kept.
const STATEMENT_MAX: usize = 60;

/// A statement with `?` for numbers and strings, in one line.
fn normalised(statement: &str) -> String {
    let mut text = String::new();
    let mut characters = statement.chars().peekable();
    while let Some(character) = characters.next() {
        if text.chars().count() >= STATEMENT_MAX {
            text.push('…');
            break;
        }
        let in_word =
            text.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '$');
        match character {
            '\'' => {
                while characters.next().is_some_and(|next| next != '\'') {}
                text.push('?');
            }
            digit if digit.is_ascii_digit() && !in_word => {
                while characters.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
                if text.ends_with(" -") || text.ends_with("=-") {
                    text.pop();
                }
                text.push('?');
            }
            space if space.is_whitespace() => {
                if !text.ends_with(' ') && !text.is_empty() {
                    text.push(' ');
                }
            }
            control if control.is_control() => {}
            other => text.push(other),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_in_values_are_one() {
        let check = |given: &str, expected: &str| assert_eq!(normalised(given), expected);
        check("UPDATE t1  SET a =\n a + -17 WHERE id = 4", "UPDATE t1 SET a = a + ? WHERE id = ?");
        check("SELECT 'it''s', $1, 1.5", "SELECT ??, $1, ?");
        check("LOCK TABLE x;", "LOCK TABLE x;");
        let long = normalised(&"abc ".repeat(40));
        assert!(long.ends_with('…') && long.chars().count() <= STATEMENT_MAX + 1, "{long}");
    }

    #[test]
    fn looks_that_do_not_fit_are_thinned_out_evenly() {
        let mut activity = ActivitySamples::from(SamplingMethod::View);
        let mut was_full = 0;
        for at in 0..30_000_u64 {
            let backends = (0..100).map(|backend| BackendLook {
                backend,
                event: if at % 2 == 0 { "IO:WALSync" } else { "" },
                spent: None,
            });
            was_full += u32::from(!activity.add(at, BackgroundActivity::default(), backends));
        }
        assert!(was_full >= 1 && activity.looks().len() > 10_000);
        assert!(activity.looks().is_sorted_by_key(|look| look.at));
        let last = *activity.looks().last().unwrap();
        assert_eq!(activity.backend(&last, 42).unwrap().event, "");
        assert_eq!(activity.backend(&last, 100), None);
    }
}
