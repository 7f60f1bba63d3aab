//! The record of exposure: an append-only file of JSON lines. An entry is on the disk before what it
//! tells of takes effect, so that a window is never recorded too short.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::error::{Error, file};

/// The file's name in the state directory.
pub const EXPOSURE: &str = "exposure.jsonl";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BooksEntry {
    /// The window's number, from 1.
    pub window: u64,
    /// Event of the window.
    pub event: WindowEvent,
    /// Time of the event, RFC 3339.
    pub at: String,
    /// The setting that the operator asks for.
    pub asked: String,
    /// The setting that is in force from now on.
    pub in_force: String,
    /// Number of standbys that confirm a commit from now on; 0: it is on the primary alone.
    pub confirmations: usize,
    /// Up to where commits are confirmed as asked. What is exposed lies behind the position of the
    /// first entry; whatever lies before that of the last one is exposed no longer. None where that
    /// is not known.
    pub confirmed_lsn: Option<String>,
    /// Position up to which the primary has flushed.
    pub wal_lsn: Option<String>,
    /// The primary's timeline.
    pub timeline: u32,
    /// The reason.
    pub why: String,
}

/// Event of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowEvent {
    /// It is about to begin.
    Opened,
    /// The setting is about to change again inside it.
    Changed,
    /// It is over.
    Closed,
}

/// From when to when commits were exposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExposureWindow {
    /// The beginning.
    pub opened: BooksEntry,
    /// Changes inside it.
    pub changes: Vec<BooksEntry>,
    /// The end; none while it is open.
    pub closed: Option<BooksEntry>,
}

impl ExposureWindow {
    /// The fewest standbys that confirmed a commit in it.
    pub fn confirmations(&self) -> usize {
        let all = self.begun().map(|entry| entry.confirmations);
        all.min().expect("a window has its opening")
    }

    /// Since when no standby had to confirm a commit; none if it never came to that.
    pub fn alone_since(&self) -> Option<&BooksEntry> {
        self.begun().find(|entry| entry.confirmations == 0)
    }

    fn begun(&self) -> impl Iterator<Item = &BooksEntry> {
        std::iter::once(&self.opened).chain(&self.changes)
    }
}

/// The windows of a file's text, in order.
///
/// # Errors
/// A line that the guard did not write. A last line without an end was being written when the machine or
/// the guard died: nothing that it tells of has happened.
pub fn windows(text: &str) -> Result<Vec<ExposureWindow>, String> {
    let mut windows: Vec<ExposureWindow> = Vec::new();
    // Without a newline, no line is whole.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    for (line, number) in whole.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let entry: BooksEntry = match serde_json::from_str(line) {
            Ok(entry) => entry,
            // Torn, and ended by an older guard.
            Err(_) if !line.trim_end().ends_with('}') => continue,
            Err(why) => return Err(format!("line {number}: {why}")),
        };
        let last = windows.last_mut().filter(|last| last.opened.window == entry.window);
        match (entry.event, last) {
            (WindowEvent::Opened, _) => {
                windows.push(ExposureWindow { opened: entry, changes: Vec::new(), closed: None });
            }
            (WindowEvent::Changed, Some(window)) => window.changes.push(entry),
            (WindowEvent::Closed, Some(window)) => window.closed = Some(entry),
            (_, None) => {
                return Err(format!("line {number}: window {} was not opened", entry.window));
            }
        }
    }
    Ok(windows)
}

/// Reads the windows of a state directory; there need not be any.
///
/// # Errors
/// The file system's; a file that is not one of these.
pub fn read(directory: &Path) -> Result<Vec<ExposureWindow>, Error> {
    Directory::there(directory)?.map_or(Ok(Vec::new()), |directory| of(&directory))
}

fn of(directory: &Directory) -> Result<Vec<ExposureWindow>, Error> {
    // A guard that never lowered anything has no such file.
    let text = directory.read(EXPOSURE)?.unwrap_or_default();
    windows(&text).map_err(|why| Error::Content { path: directory.path.join(EXPOSURE), why })
}

/// The file, open to be appended to.
#[derive(Debug)]
pub(crate) struct ExposureLog {
    path: PathBuf,
    file: File,
    windows: Vec<ExposureWindow>,
}

impl ExposureLog {
    pub(crate) fn open(directory: &Directory) -> Result<ExposureLog, Error> {
        let windows = of(directory)?;
        let path = directory.path.join(EXPOSURE);
        let open = || {
            let mut file = directory.append(EXPOSURE)?;
            cut_torn_line(&mut file)?;
            file.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(file("opening", &path))?;
        Ok(ExposureLog { path, file, windows })
    }

    pub(crate) fn windows(&self) -> &[ExposureWindow] {
        &self.windows
    }

    pub(crate) fn open_window(&self) -> Option<&ExposureWindow> {
        self.windows.last().filter(|window| window.closed.is_none())
    }

    /// The number of the open window, or of the one that would be next.
    pub(crate) fn number(&self) -> u64 {
        match self.windows.last() {
            None => 1,
            Some(last) if last.closed.is_some() => last.opened.window + 1,
            Some(last) => last.opened.window,
        }
    }

    /// Appends an entry, and returns when it is on the disk. One that fails leaves nothing behind, or
    /// a torn line that the next one cuts off.
    pub(crate) fn append(&mut self, entry: BooksEntry) -> Result<(), Error> {
        let mut write = || {
            let line = serde_json::to_string(&entry)?;
            cut_torn_line(&mut self.file)?;
            let length = self.file.metadata()?.len();
            let written = self.file.write_all(format!("{line}\n").as_bytes());
            let synced = written.and_then(|()| self.file.sync_data());
            if synced.is_err() {
                let _ = self.file.set_len(length);
            }
            synced
        };
        write().map_err(file("writing", &self.path))?;
        match (entry.event, self.windows.last_mut()) {
            (WindowEvent::Changed, Some(window)) => window.changes.push(entry),
            (WindowEvent::Closed, Some(window)) => window.closed = Some(entry),
            _ => self.windows.push(ExposureWindow {
                opened: entry,
                changes: Vec::new(),
                closed: None,
            }),
        }
        Ok(())
    }
}

/// Cuts off a last line without an end: nothing that it tells of has happened. Needs no space.
fn cut_torn_line(file: &mut File) -> std::io::Result<()> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    // Without a newline, no line is whole.
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    match whole == text.len() {
        true => Ok(()),
        false => file.set_len(whole as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(window: u64, event: WindowEvent, confirmations: usize) -> BooksEntry {
        BooksEntry {
            window,
            event,
            at: "2026-11-22T06:00:00Z".to_owned(),
            asked: "ANY 2 (a, b)".to_owned(),
            in_force: String::new(),
            confirmations,
            confirmed_lsn: Some("0/3000060".to_owned()),
            wal_lsn: None,
            timeline: 1,
            why: "because".to_owned(),
        }
    }

    #[test]
    fn what_is_appended_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::look(place.path()).unwrap();
        let mut books = ExposureLog::open(&directory).unwrap();
        assert_eq!((books.number(), books.open_window()), (1, None));
        books.append(entry(1, WindowEvent::Opened, 1)).unwrap();
        books.append(entry(1, WindowEvent::Changed, 0)).unwrap();
        let books = ExposureLog::open(&directory).unwrap();
        assert_eq!(books.number(), 1);
        let window = books.open_window().unwrap();
        assert_eq!((window.confirmations(), window.alone_since()), (0, window.changes.first()));
        let mut books = books;
        books.append(entry(1, WindowEvent::Closed, 2)).unwrap();
        assert_eq!((books.number(), books.open_window()), (2, None));
        books.append(entry(2, WindowEvent::Opened, 0)).unwrap();
        assert_eq!(read(place.path()).unwrap().len(), 2);
    }

    /// Torn by a cut of the power, or by a full disk while the guard goes on; all of a line may be
    /// there but its end.
    #[test]
    fn a_torn_line_has_not_happened() {
        let named = |event| BooksEntry { asked: "é".to_owned(), ..entry(1, event, 0) };
        let line = |event| serde_json::to_string(&named(event)).unwrap();
        let closed = line(WindowEvent::Closed);
        let inside_a_character = closed.find('é').unwrap() + 1;
        for length in [1, 60, inside_a_character, closed.len()] {
            let place = tempfile::tempdir().unwrap();
            let directory = Directory::look(place.path()).unwrap();
            let tear = || {
                let mut file = directory.append(EXPOSURE).unwrap();
                file.write_all(&closed.as_bytes()[..length]).unwrap();
            };
            std::fs::write(place.path().join(EXPOSURE), line(WindowEvent::Opened) + "\n").unwrap();
            tear();
            let mut books = ExposureLog::open(&directory).unwrap();
            let is_open = || read(place.path()).unwrap()[0].closed.is_none();
            assert!(books.open_window().is_some() && is_open(), "{length}");
            tear();
            books.append(named(WindowEvent::Changed)).unwrap();
            assert!(is_open(), "{length}");
            books.append(named(WindowEvent::Closed)).unwrap();
            assert_eq!(read(place.path()).unwrap(), books.windows(), "{length}");
        }
    }

    #[test]
    fn a_line_that_an_older_guard_has_ended_does_not_count() {
        let opened = serde_json::to_string(&entry(1, WindowEvent::Opened, 0)).unwrap();
        let found = windows(&format!("{}\n{opened}\n", &opened[..60])).unwrap();
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn what_is_no_record_is_not_taken_for_one() {
        assert!(windows("{\"a\": 1}\n").unwrap_err().starts_with("line 1: "));
        let closed = serde_json::to_string(&entry(3, WindowEvent::Closed, 0)).unwrap();
        assert_eq!(windows(&format!("{closed}\n")).unwrap_err(), "line 1: window 3 was not opened");
    }
}
