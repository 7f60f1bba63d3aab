//! Reads what the logging collector appends to its files.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use os::{regular_file, user::SystemUser};

use super::{Entry, csv, json};

/// At most this much is read of one file at one time, so that a chatty server (a log of every
/// statement) does not hold up the sampler; the rest follows a second later.
const BYTES_AT_ONCE: u64 = 4 << 20;

/// A record longer than this is not one; reading goes on behind its first line.
const RECORD_MAX: usize = 1 << 20;

/// Follows all jsonlog and csvlog files of one directory, or one such file, from where they ended
/// when the following began. Rotation gives new files, which are read from their beginning.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    /// The server's user, with whose rights the files are read: what lies there is that user's.
    owner: SystemUser,
    files: BTreeMap<PathBuf, Tail>,
}

#[derive(Debug)]
struct Tail {
    format: Format,
    offset: u64,
    /// Bytes after the last complete record.
    rest: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
}

impl Follower {
    /// Begins at the present end of the files at `path`.
    ///
    /// # Errors
    /// When `path` is not there or may not be read.
    pub(crate) fn from_now_on(path: &Path) -> io::Result<Follower> {
        let owned = fs::symlink_metadata(path)?;
        let owner = SystemUser { uid: owned.uid(), gid: owned.gid() };
        // Only root can read with the rights of another user, and only root needs to.
        let owner = if SystemUser::current().is_root() { owner } else { SystemUser::current() };
        let mut follower = Follower { path: path.to_owned(), owner, files: BTreeMap::new() };
        owner.access(|| {
            for (file, format) in follower.present()? {
                let offset = fs::metadata(&file)?.len();
                follower.files.insert(file, Tail { format, offset, rest: Vec::new() });
            }
            Ok(())
        })?;
        Ok(follower)
    }

    /// The entries that were appended since the reading before, file by file.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Entry>> {
        self.owner.access(|| self.read_files())
    }

    fn read_files(&mut self) -> io::Result<Vec<Entry>> {
        let mut present = self.present()?;
        // A server that logs both ways says everything twice.
        if present.iter().any(|(_, format)| *format == Format::Json) {
            present.retain(|(_, format)| *format == Format::Json);
        }
        let mut entries = Vec::new();
        for (file, format) in present {
            let new = || Tail { format, offset: 0, rest: Vec::new() };
            let tail = self.files.entry(file.clone()).or_insert_with(new);
            // A file that went away between the listing and now was rotated out.
            if tail.read_appended(&file).is_ok() {
                tail.take_entries(&mut entries);
            }
        }
        Ok(entries)
    }

    fn present(&self) -> io::Result<Vec<(PathBuf, Format)>> {
        if !self.path.is_dir() {
            fs::metadata(&self.path)?;
            let format = Format::of(&self.path).unwrap_or(Format::Json);
            return Ok(vec![(self.path.clone(), format)]);
        }
        let entries = fs::read_dir(&self.path)?.filter_map(|entry| {
            let path = entry.ok()?.path();
            let format = Format::of(&path)?;
            Some((path, format))
        });
        let mut files: Vec<_> = entries.collect();
        files.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(files)
    }
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        match path.extension().and_then(OsStr::to_str)? {
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            _ => None,
        }
    }

    fn record_end(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Format::Json => line_end(bytes),
            Format::Csv => csv::record_end(bytes),
        }
    }

    fn parse(self, record: &str) -> Option<Entry> {
        match self {
            Format::Json => json::parse(record),
            Format::Csv => csv::parse(record),
        }
    }
}

impl Tail {
    fn read_appended(&mut self, path: &Path) -> io::Result<()> {
        let mut file = regular_file::open(OpenOptions::new().read(true), path)?;
        if file.metadata()?.len() < self.offset {
            // Truncated: the collector began it anew.
            self.offset = 0;
            self.rest.clear();
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let read = file.take(BYTES_AT_ONCE).read_to_end(&mut self.rest)?;
        self.offset += read as u64;
        Ok(())
    }

    /// Moves complete records out of the rest. What can not be parsed is passed over.
    fn take_entries(&mut self, entries: &mut Vec<Entry>) {
        let mut begin = 0;
        loop {
            let bytes = &self.rest[begin..];
            let end = match self.format.record_end(bytes) {
                Some(end) if end <= RECORD_MAX => end,
                None if bytes.len() <= RECORD_MAX => break,
                // An unpaired quote swallows everything behind it.
                _ => line_end(bytes).unwrap_or(bytes.len()),
            };
            let record = String::from_utf8_lossy(&bytes[..end]);
            entries.extend(self.format.parse(record.trim_end_matches(['\r', '\n'])));
            begin += end;
        }
        self.rest.drain(..begin);
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    Some(bytes.iter().position(|byte| *byte == b'\n')? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn json_line(message: &str) -> String {
        let time = "2026-11-21 23:11:33.123 UTC";
        format!(r#"{{"timestamp":"{time}","error_severity":"LOG","message":"{message}"}}"#) + "\n"
    }

    fn csv_record(message: &str) -> String {
        format!(
            "2026-11-21 23:11:33.123 UTC,,,1,,s,1,,t,,0,LOG,00000,\"{message}\",,,,,,,,,\"\",\
             \"checkpointer\",,0\n"
        )
    }

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn messages(follower: &mut Follower) -> Vec<String> {
        follower.read().unwrap().into_iter().map(|entry| entry.message).collect()
    }

    #[test]
    fn only_what_comes_later_is_read_and_only_when_complete() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        append(&file, &json_line("old"));
        let mut follower = Follower::from_now_on(directory.path()).unwrap();
        assert_eq!(messages(&mut follower), Vec::<String>::new());
        let line = json_line("one");
        append(&file, &line[..30]);
        assert_eq!(messages(&mut follower), Vec::<String>::new());
        append(&file, &line[30..]);
        append(&file, "garbage\n\n{\"truncated\":\n");
        append(&file, &json_line("two"));
        assert_eq!(messages(&mut follower), ["one", "two"]);
    }

    #[test]
    fn rotation_and_truncation() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a.json", "b.json"].map(|name| directory.path().join(name));
        append(&a, &json_line("old"));
        let mut follower = Follower::from_now_on(directory.path()).unwrap();
        append(&a, &json_line("one"));
        append(&b, &json_line("two"));
        assert_eq!(messages(&mut follower), ["one", "two"]);
        fs::write(&a, "").unwrap();
        append(&a, &json_line("3"));
        fs::remove_file(&b).unwrap();
        assert_eq!(messages(&mut follower), ["3"]);
    }

    /// The server's user owns the directory, and may put anything there.
    #[test]
    fn a_link_is_not_followed_and_a_fifo_is_not_waited_at() {
        let directory = tempfile::tempdir().unwrap();
        let secret = tempfile::NamedTempFile::new().unwrap();
        append(secret.path(), &json_line("secret"));
        let mut follower = Follower::from_now_on(directory.path()).unwrap();
        std::os::unix::fs::symlink(secret.path(), directory.path().join("a.json")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        let place = directory.path().join("b.json");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &place, fifo, mode, 0).unwrap();
        append(&directory.path().join("c.json"), &json_line("said"));
        assert_eq!(messages(&mut follower), ["said"]);
    }

    #[test]
    fn csv_records_over_several_lines_and_an_unpaired_quote() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.csv");
        append(&file, "");
        let mut follower = Follower::from_now_on(&file).unwrap();
        append(&file, &csv_record("two\nlines"));
        assert_eq!(messages(&mut follower), ["two\nlines"]);
        append(&file, &format!("torn \" off\n{}\n", "x".repeat(RECORD_MAX)));
        append(&file, &csv_record("after"));
        assert_eq!(messages(&mut follower), ["after"]);
    }

    #[test]
    fn a_server_that_logs_both_ways_is_heard_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut follower = Follower::from_now_on(directory.path()).unwrap();
        append(&directory.path().join("a.csv"), &csv_record("said"));
        append(&directory.path().join("a.json"), &json_line("said"));
        append(&directory.path().join("a.log"), "said\n");
        assert_eq!(messages(&mut follower), ["said"]);
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Follower::from_now_on(&directory.path().join("log")).is_err());
    }
}
