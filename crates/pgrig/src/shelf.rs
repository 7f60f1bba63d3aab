//! All records below a folder, as `pgrig view` shows them.
//!
//! Reading order: `walk` finds the folders of records; [`RecordShelf`] knows what each says: the first page of each is
//! read at once, all else one record after the other while the page is shown; [`ShelfPages`] answers a browser.
//!
//! Limits: records may be somebody else's. They are read by `record` alone, whose limits they have; a page names a
//! record by a number and never by a path.

mod pages;
mod walk;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use record::{PastResult, RecordHeader, RunState};
use report::{ListedAnswer, ListedRecord, ListedState};

use crate::complaint::Complaint;
use crate::history;
use crate::records;

pub(crate) use pages::ShelfPages;

/// The records below a folder.
pub(crate) struct RecordShelf {
    root: PathBuf,
    state: Mutex<ShelfState>,
}

#[derive(Default)]
struct ShelfState {
    /// Every record that was ever seen, by its number.
    records: Vec<ShelvedRecord>,
    numbers: HashMap<PathBuf, usize>,
    left_out: String,
    /// Counts the changes that a page does not have yet.
    version: u64,
    /// True if something has changed since the last count.
    is_changed: bool,
    looked: Option<Instant>,
}

/// A record, as far as it was read.
struct ShelvedRecord {
    directory: PathBuf,
    folder: String,
    /// The time and the size of its first page when it was read.
    stamp: Option<(SystemTime, u64)>,
    /// True once it is no longer there.
    is_gone: bool,
    first_page: FirstPage,
    read: Option<ReadRecord>,
}

/// What the first page of a record says.
struct FirstPage {
    started_at: String,
    name: String,
    profile: String,
    state: ListedState,
    /// Why it cannot be read; empty if it can.
    trouble: String,
}

/// What all of a record says.
struct ReadRecord {
    answer: ListedAnswer,
    /// The line of a history; none of a record without figures.
    past: Option<PastResult>,
}

/// Time between two looks for new records.
const LOOK_EACH: Duration = Duration::from_secs(2);

/// Characters of a text in a list. Texts of a stranger's record may be long.
const TEXT_MAX: usize = 300;

impl RecordShelf {
    /// Finds the records, and reads the first page of each.
    pub(crate) fn of(root: &Path) -> RecordShelf {
        let shelf = RecordShelf { root: root.to_owned(), state: Mutex::default() };
        shelf.look();
        shelf
    }

    fn state(&self) -> MutexGuard<'_, ShelfState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is due: looks for changes, or reads a record. False if nothing was.
    pub(crate) fn work(&self) -> bool {
        let is_due = self.state().looked.is_none_or(|looked| looked.elapsed() >= LOOK_EACH);
        if is_due {
            self.look();
        }
        self.read_one() || is_due
    }

    /// Looks for new records, and for those whose first page is another one.
    fn look(&self) {
        let found = walk::records_below(&self.root);
        let mut state = self.state();
        let mut is_changed = state.is_changed || state.left_out != found.left_out;
        state.left_out = found.left_out;
        let mut is_there = vec![false; state.records.len()];
        for directory in found.records {
            let number = match state.numbers.get(&directory) {
                Some(number) => *number,
                None => {
                    let number = state.records.len();
                    state.records.push(ShelvedRecord::new(&directory, &self.root));
                    state.numbers.insert(directory, number);
                    is_there.push(true);
                    is_changed = true;
                    continue;
                }
            };
            is_there[number] = true;
            is_changed |= state.records[number].look();
        }
        for (record, is_there) in state.records.iter_mut().zip(is_there) {
            is_changed |= record.is_gone == is_there;
            record.is_gone = !is_there;
        }
        if is_changed {
            state.version += 1;
        }
        state.is_changed = false;
        state.looked = Some(Instant::now());
    }

    /// Reads the newest record that was not read yet. False if all were.
    fn read_one(&self) -> bool {
        let next = {
            let state = self.state();
            let unread = state.records.iter().enumerate().filter(|(_, record)| record.is_unread());
            let newest = unread.max_by(|(_, one), (_, other)| {
                one.first_page.started_at.cmp(&other.first_page.started_at)
            });
            newest.map(|(number, record)| (number, record.directory.clone(), record.stamp))
        };
        let Some((number, directory, stamp)) = next else { return false };
        let read = read(&directory);
        let mut state = self.state();
        if let Some(record) = state.records.get_mut(number).filter(|one| one.stamp == stamp) {
            record.read = Some(read);
        }
        state.is_changed = true;
        true
    }

    fn version(&self) -> u64 {
        self.state().version
    }

    /// The records as they are listed, the newest first, and what is left out.
    fn list(&self) -> (Vec<ListedRecord>, String) {
        let state = self.state();
        let mut alike: HashMap<&str, usize> = HashMap::new();
        let keys = state.shown().filter_map(|(_, record)| record.key());
        keys.for_each(|key| *alike.entry(key).or_default() += 1);
        let listed = state.shown().map(|(number, record)| {
            // A record without figures has nothing to draw.
            let alike = record.key().and_then(|key| alike.get(key)).copied().unwrap_or(0);
            record.listed(number, alike)
        });
        let mut listed: Vec<ListedRecord> = listed.collect();
        listed.sort_by(|one, other| {
            (&other.started_at, &other.folder).cmp(&(&one.started_at, &one.folder))
        });
        (listed, state.left_out.clone())
    }

    /// The folder of a record, and its name for a reader.
    fn place(&self, number: usize) -> Option<(PathBuf, String)> {
        let state = self.state();
        let record = state.records.get(number).filter(|record| !record.is_gone)?;
        Some((record.directory.clone(), record.folder.clone()))
    }

    /// The results whose subject is that of a record.
    fn past_of(&self, number: usize) -> Vec<PastResult> {
        let state = self.state();
        // A number that stands for no record has no results.
        let Some(key) = state.records.get(number).and_then(ShelvedRecord::key) else {
            return Vec::new();
        };
        let same = state.shown().filter(|(_, record)| record.key() == Some(key));
        same.filter_map(|(_, record)| record.read.as_ref()?.past.clone()).collect()
    }
}

impl ShelfState {
    fn shown(&self) -> impl Iterator<Item = (usize, &ShelvedRecord)> {
        self.records.iter().enumerate().filter(|(_, record)| !record.is_gone)
    }
}

impl ShelvedRecord {
    fn new(directory: &Path, root: &Path) -> ShelvedRecord {
        let below = directory.strip_prefix(root).unwrap_or(directory);
        let folder = match below.as_os_str().is_empty() {
            true => directory.display().to_string(),
            false => below.display().to_string(),
        };
        ShelvedRecord {
            directory: directory.to_owned(),
            folder,
            stamp: walk::stamp(directory),
            is_gone: false,
            first_page: FirstPage::read(directory),
            read: None,
        }
    }

    /// Reads the first page again where it may have changed. True if it has.
    fn look(&mut self) -> bool {
        let stamp = walk::stamp(&self.directory);
        let is_same = self.stamp.is_some() && self.stamp == stamp;
        // Whether a run goes on is no part of its first page.
        let may_go_on = match self.first_page.state {
            ListedState::Running { .. } | ListedState::Killed => true,
            ListedState::Done | ListedState::Interrupted | ListedState::Broken => false,
            ListedState::Unreadable => false,
        };
        if is_same && !may_go_on {
            return false;
        }
        let first_page = FirstPage::read(&self.directory);
        let is_changed = !is_same || first_page.state != self.first_page.state;
        self.first_page = first_page;
        self.stamp = stamp;
        if is_changed {
            self.read = None;
        }
        is_changed
    }

    fn is_unread(&self) -> bool {
        let state = &self.first_page.state;
        let is_readable = !state.is_running() && *state != ListedState::Unreadable;
        !self.is_gone && self.read.is_none() && is_readable
    }

    /// The subject of its results.
    fn key(&self) -> Option<&str> {
        let past = self.read.as_ref()?.past.as_ref()?;
        past.subject.as_ref().map(|subject| subject.key.as_str())
    }

    fn listed(&self, number: usize, alike: usize) -> ListedRecord {
        let FirstPage { started_at, name, profile, state, trouble } = &self.first_page;
        let told =
            |sentence: &str| Some(ListedAnswer { sentence: sentence.to_owned(), claims: [0; 3] });
        ListedRecord {
            number,
            started_at: started_at.clone(),
            name: name.clone(),
            profile: profile.clone(),
            folder: self.folder.clone(),
            state: state.clone(),
            read: match state {
                ListedState::Running { .. } => {
                    told("It has not ended: open it to see what was measured so far.")
                }
                ListedState::Unreadable => told(trouble),
                _ => self.read.as_ref().map(|read| read.answer.clone()),
            },
            alike,
        }
    }
}

impl FirstPage {
    fn read(directory: &Path) -> FirstPage {
        let header = match RecordHeader::read(directory) {
            Ok(header) => header,
            Err(error) => {
                return FirstPage {
                    started_at: String::new(),
                    name: "a record".to_owned(),
                    profile: String::new(),
                    state: ListedState::Unreadable,
                    trouble: short(&error.to_string()),
                };
            }
        };
        let state = match header.state {
            RunState::Running if record::is_held(directory) => ListedState::Running {
                // It may be moved away just now.
                ended: record::ended_trials(directory).unwrap_or(0),
                planned: header.plan.len(),
            },
            RunState::Running => ListedState::Killed,
            RunState::Done => ListedState::Done,
            RunState::Interrupted => ListedState::Interrupted,
            RunState::Broken(_) => ListedState::Broken,
        };
        let name = header.comparison.as_ref().map(record::Comparison::title);
        FirstPage {
            started_at: short(&header.started_at),
            profile: match name {
                Some(_) => String::new(),
                None => short(&header.profile),
            },
            name: short(&name.unwrap_or(header.study)),
            state,
            trouble: String::new(),
        }
    }
}

/// Reads all of a record.
fn read(directory: &Path) -> ReadRecord {
    let results = || -> Result<ReadRecord, Complaint> {
        let opened = records::open(directory)?;
        let results = records::results(&opened)?;
        let mut answer = ListedAnswer::of(&results);
        answer.sentence = short(&answer.sentence);
        let header = opened.reader.header();
        let known = header.comparison.as_ref().and_then(|one| one.commit.as_deref());
        let about = (history::of_record(header), history::mark(header, false));
        let machine = history::machine(&header.facts);
        let past = history::line(directory, &results, known, &machine, about);
        let has_figures = !past.figures.is_empty();
        Ok(ReadRecord { answer, past: has_figures.then_some(past) })
    };
    results().unwrap_or_else(|complaint| ReadRecord {
        answer: ListedAnswer { sentence: short(&complaint.words()), claims: [0; 3] },
        past: None,
    })
}

/// A text of a record as a list shows it.
fn short(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
