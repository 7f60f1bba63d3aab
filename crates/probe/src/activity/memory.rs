//! Wait events out of a server's shared memory.
//!
//! Every version of PostgreSQL keeps the state of a backend in an array of `PGPROC`, to which the
//! exported variable `ProcGlobal` leads; where in a `PGPROC` the process id and the wait event stand
//! differs. The places are therefore searched for: the stride at which the process ids of
//! `pg_stat_activity` stand, and the word whose upper byte is the type of the wait event that the view
//! tells of each of them. The array ends with the slots of the checkpointer and its like, which the view
//! knows: what lies beyond is no backend, whatever its words look like. In a PID namespace of their own,
//! processes have small numbers, and small numbers stand everywhere. What was found is held against the
//! view before it is trusted, and as long as it is used. The numbers of events are learned from the
//! view as well.

use std::collections::{BTreeMap, HashMap};
use std::io;

use os::process_memory::ProcessMemory;

/// The array of backends in a server's memory.
#[derive(Debug)]
pub(crate) struct Backends {
    memory: ProcessMemory,
    postmaster: u32,
    layout: Layout,
    bytes: Vec<u8>,
}

/// The slots of clients and of one more process. The array has many others, and each look at all of them
/// costs more than everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// So many from the beginning on: those of clients come first.
    first: usize,
    watched: Option<usize>,
}

impl Slots {
    /// Those up to the last client's and some more, since the next session takes the next slot; and that
    /// of the watched process.
    pub(crate) fn of(all: &[Seen], is_client: impl Fn(i32) -> bool, watched: i32) -> Slots {
        let last = all.iter().filter(|seen| is_client(seen.pid)).map(|seen| seen.slot).max();
        let watched = all.iter().find(|seen| seen.pid == watched).map(|seen| seen.slot);
        Slots { first: last.map_or(SPARE, |last| last + SPARE), watched }
    }
}

/// The places of what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    first: u64,
    stride: usize,
    pid: usize,
    wait: usize,
    /// Slots up to the last one of a known process.
    slots: usize,
}

/// A backend in shared memory: its process id, and its wait event as a number, 0 if it does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    slot: usize,
    pub(crate) pid: i32,
    pub(crate) wait: u32,
}

/// Memory that is searched, step by step: reading makes the server's memory that nobody has touched yet
/// exist. The first step holds some 250 backends.
const SEARCHED_BYTES: [usize; 3] = [256 << 10, 1 << 20, 8 << 20];

/// Sizes that a `PGPROC` may have. The upper bound is below twice the lower one, so that no stride is
/// a multiple of another.
const STRIDES: std::ops::Range<usize> = 600..1_200;

/// Processes that must be known for the places to be certain.
const KNOWN_MIN: usize = 4;

/// A search for the array in the memory of a postmaster.
#[derive(Debug)]
pub(crate) struct Search {
    memory: ProcessMemory,
    postmaster: u32,
    first: u64,
}

impl Search {
    /// Opens the memory, and reads where the array begins.
    ///
    /// # Errors
    /// That the memory may not be read, or is no PostgreSQL server's.
    pub(crate) fn open(postmaster: u32) -> io::Result<Search> {
        let memory = ProcessMemory::open(postmaster).map_err(|error| {
            let kind = error.kind();
            let why = match kind {
                io::ErrorKind::PermissionDenied => "that takes root or CAP_SYS_PTRACE".to_owned(),
                _ => error.to_string(),
            };
            io::Error::new(
                kind,
                format!("the memory of process {postmaster} cannot be opened: {why}"),
            )
        })?;
        let header = memory.pointer(memory.symbol("ProcGlobal")?)?;
        // `allProcs` is the first member in every version.
        let first = memory.pointer(header)?;
        Ok(Search { memory, postmaster, first })
    }

    /// The array, if its places are certain. `known` are processes of the server with their wait events as the
    /// view tells them now; empty for none.
    ///
    /// # Errors
    /// That the memory may not be read any more.
    pub(crate) fn find(&self, known: &BTreeMap<i32, String>) -> io::Result<Option<Backends>> {
        for size in SEARCHED_BYTES {
            let mut bytes = vec![0; size];
            let count = self.memory.read(self.first, &mut bytes)?;
            bytes.truncate(count);
            if let Some(layout) = layout(self.first, &bytes, known) {
                let memory = ProcessMemory::open(self.postmaster)?;
                let postmaster = self.postmaster;
                return Ok(Some(Backends { memory, postmaster, layout, bytes: Vec::new() }));
            }
            if count < size {
                break;
            }
        }
        Ok(None)
    }
}

impl Backends {
    /// The same places, for another thread.
    ///
    /// # Errors
    /// That the memory may not be read any more.
    pub(crate) fn again(&self) -> io::Result<Backends> {
        let memory = ProcessMemory::open(self.postmaster)?;
        let Backends { postmaster, layout, .. } = *self;
        Ok(Backends { memory, postmaster, layout, bytes: Vec::new() })
    }

    /// Reads all backends now.
    pub(crate) fn read_all(&mut self) -> io::Result<Vec<Seen>> {
        self.slots(0, self.layout.slots)
    }

    /// Reads some of them.
    pub(crate) fn read(&mut self, slots: Slots) -> io::Result<Vec<Seen>> {
        let first = slots.first.min(self.layout.slots);
        let mut seen = self.slots(0, first)?;
        if let Some(slot) = slots.watched.filter(|slot| *slot >= first) {
            seen.extend(self.slots(slot, 1)?);
        }
        Ok(seen)
    }

    fn slots(&mut self, from: usize, count: usize) -> io::Result<Vec<Seen>> {
        let Layout { first, stride, pid, wait, .. } = self.layout;
        let wanted = count * stride;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        let read = self.memory.read(first + (from * stride) as u64, &mut self.bytes[..wanted])?;
        let slots = self.bytes[..read].chunks_exact(stride).zip(from..);
        let seen = slots.map(|(bytes, slot)| Seen {
            slot,
            pid: word(bytes, pid) as i32,
            wait: word(bytes, wait),
        });
        Ok(seen.filter(|seen| seen.pid != 0).collect())
    }
}

/// Free slots that are read as well.
const SPARE: usize = 4;

fn word(slot: &[u8], at: usize) -> u32 {
    // What lies behind the memory that was read is as an unused slot.
    slot.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The upper byte of the number of a wait event of this type; none for types that only extensions or
/// later versions have.
pub(crate) fn class(event: &str) -> Option<u32> {
    let class = match event.split(':').next()? {
        "" => 0,
        "LWLock" => 1,
        "Lock" => 3,
        "BufferPin" | "Buffer" => 4,
        "Activity" => 5,
        "Client" => 6,
        "Extension" => 7,
        "IPC" => 8,
        "Timeout" => 9,
        "IO" => 10,
        _ => return None,
    };
    Some(class)
}

/// Names of heavyweight locks in the order of `LockTagType` since PostgreSQL 13.
const LOCKS: [&str; 12] = [
    "relation",
    "extend",
    "frozenid",
    "page",
    "tuple",
    "transactionid",
    "virtualxid",
    "spectoken",
    "object",
    "userlock",
    "advisory",
    "applytransaction",
];

/// The name of an event whose number tells it in every version: none, or a heavyweight lock.
pub(crate) fn own_name_of(wait: u32) -> Option<String> {
    match wait {
        0 => Some(String::new()),
        wait if wait >> 24 == 3 => {
            Some(format!("Lock:{}", LOCKS.get((wait & 0x00ff_ffff) as usize)?))
        }
        _ => None,
    }
}

/// A name for the number of an event, until the view has told its own.
pub(crate) fn placeholder(wait: u32) -> String {
    if let Some(own) = own_name_of(wait) {
        return own;
    }
    let class = match wait >> 24 {
        1 => "LWLock",
        3 => "Lock",
        4 => "BufferPin",
        5 => "Activity",
        6 => "Client",
        7 => "Extension",
        8 => "IPC",
        9 => "Timeout",
        10 => "IO",
        _ => "Other",
    };
    format!("{class}:{wait:#010x}")
}

/// Searches memory for the places.
fn layout(first: u64, bytes: &[u8], known: &BTreeMap<i32, String>) -> Option<Layout> {
    if known.len() < KNOWN_MIN {
        return None;
    }
    let mut places: HashMap<i32, Vec<usize>> = HashMap::new();
    for (index, word) in bytes.chunks_exact(4).enumerate() {
        let value = i32::from_ne_bytes(word.try_into().ok()?);
        if value > 0 && known.contains_key(&value) {
            places.entry(value).or_default().push(index * 4);
        }
    }
    if places.len() < known.len() {
        return None;
    }
    for stride in STRIDES.step_by(8) {
        for pid in (0..stride).step_by(4) {
            // Free slots have no process: the first place that fits is the process's own.
            let slot = |process: &i32| {
                let at = places[process].iter().find(|at| *at % stride == pid)?;
                Some(at / stride)
            };
            let numbers: Option<Vec<usize>> = known.keys().map(slot).collect();
            let Some(numbers) = numbers else { continue };
            let of = |slot: usize| bytes.get(slot * stride..(slot + 1) * stride);
            let slots: Option<Vec<(&[u8], &str)>> = numbers
                .iter()
                .zip(known.values())
                .map(|(number, event)| Some((of(*number)?, event.as_str())))
                .collect();
            let Some(slots) = slots else { continue };
            let waits: Vec<usize> =
                (0..stride).step_by(4).filter(|at| tells(*at, &slots)).collect();
            if let [wait] = waits[..] {
                // Without a slot none is read.
                let slots = numbers.into_iter().max().map_or(0, |last| last + 1);
                return Some(Layout { first, stride, pid, wait, slots });
            }
        }
    }
    None
}

/// The event of a process that may do something else already: it tells where the process is, and nothing
/// about its wait event.
pub(crate) const ANY_EVENT: &str = "?";

/// True if the word at this place has the type of each process's wait event. Processes that wait for
/// different events of one type have different numbers.
fn tells(at: usize, slots: &[(&[u8], &str)]) -> bool {
    let mut numbers: HashMap<u32, &str> = HashMap::new();
    let told = || slots.iter().filter(|(_, event)| *event != ANY_EVENT);
    let fits = told().all(|(slot, event)| {
        let number = word(slot, at);
        class(event).is_none_or(|class| number >> 24 == class)
            && *numbers.entry(number).or_insert(event) == *event
    });
    fits && numbers.len() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory with processes in slots of 864 bytes, and the events of some of them.
    fn memory(processes: &[(usize, i32, u32)]) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..864 * 120_usize).map(|at| (at * 31 % 251) as u8).collect();
        for (slot, pid, wait) in processes {
            bytes[slot * 864 + 72..][..4].copy_from_slice(&pid.to_ne_bytes());
            bytes[slot * 864 + 620..][..4].copy_from_slice(&wait.to_ne_bytes());
        }
        bytes
    }

    const PROCESSES: [(usize, i32, u32); 5] = [
        (3, 7_001, 0x0600_0000),
        (4, 7_002, 0x0a00_0018),
        (110, 6_001, 0x0500_0003),
        (111, 6_002, 0x0500_0004),
        (112, 6_003, 0x0500_000b),
    ];
    const EVENTS: [(i32, &str); 5] = [
        (7_001, "Client:ClientRead"),
        (7_002, "IO:WALSync"),
        (6_001, "Activity:BgWriterMain"),
        (6_002, "Activity:CheckpointerMain"),
        (6_003, "Activity:WalWriterMain"),
    ];

    fn known(events: &[(i32, &str)]) -> BTreeMap<i32, String> {
        events.iter().map(|(pid, event)| (*pid, (*event).to_owned())).collect()
    }

    #[test]
    fn places_are_found_where_they_fit_every_process() {
        let bytes = memory(&PROCESSES);
        let expected = Layout { first: 4_096, stride: 864, pid: 72, wait: 620, slots: 113 };
        assert_eq!(layout(4_096, &bytes, &known(&EVENTS)), Some(expected));
    }

    #[test]
    fn small_numbers_beyond_the_array_are_no_backends() {
        // Process ids of a namespace, and behind the array every small number again and again.
        let small = |pid: i32| pid % 1_000 + if pid > 7_000 { 40 } else { 20 };
        let processes = PROCESSES.map(|(slot, pid, wait)| (slot, small(pid), wait));
        let mut bytes = memory(&processes);
        bytes[..113 * 864].chunks_exact_mut(864).for_each(|slot| {
            let is_free = !processes.iter().any(|one| slot[72..76] == one.1.to_ne_bytes());
            if is_free {
                slot.fill(0);
            }
        });
        bytes.extend((0..200_000_u32).flat_map(|number| (number % 997).to_ne_bytes()));
        let known = known(&EVENTS.map(|(pid, event)| (small(pid), event)));
        let expected = Layout { first: 0, stride: 864, pid: 72, wait: 620, slots: 113 };
        assert_eq!(layout(0, &bytes, &known), Some(expected));
    }

    #[test]
    fn uncertain_places_are_not_found() {
        let bytes = memory(&PROCESSES);
        assert_eq!(layout(0, &bytes, &known(&EVENTS[..3])), None, "few processes");
        let mut other = known(&EVENTS);
        other.insert(7_002, "Timeout:PgSleep".to_owned());
        assert_eq!(layout(0, &bytes, &other), None, "another event");
        other.insert(7_002, ANY_EVENT.to_owned());
        assert!(layout(0, &bytes, &other).is_some(), "any event");
        other.insert(9_999, String::new());
        assert_eq!(layout(0, &bytes, &other), None, "a process that is not there");
        let mut moved = PROCESSES;
        moved[4].0 = 119;
        let shifted = memory(&moved);
        assert!(layout(0, &shifted[8..], &known(&EVENTS)).is_none_or(|found| found.stride == 864));
    }
}
