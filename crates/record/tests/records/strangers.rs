//! Folders that somebody else has made: what leads out of them, or keeps a reader waiting, is refused.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::common::{folder, header, planned};
use record::{AttemptEnding, FinishedTrial, RecordReader, RecordWriter};

fn finished() -> FinishedTrial {
    let mut trial = planned(1).attempt(1);
    trial.ending = AttemptEnding::Done;
    let logs = BTreeMap::from([("primary".to_owned(), "PANIC".to_owned())]);
    FinishedTrial { trial, intervals: Vec::new(), samples: Vec::new(), marks: Vec::new(), logs }
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

/// A link in the place of what is there, to where it was moved.
fn link(directory: &Path, name: &str) {
    let outside = directory.with_file_name("outside");
    fs::rename(directory.join(name), &outside).unwrap();
    symlink(outside, directory.join(name)).unwrap();
}

#[test]
fn a_study_is_regular_files_inside_its_folder() {
    let check = |name: &str, make: fn(&Path), expected: &str| {
        let place = tempfile::tempdir().unwrap();
        let study = place.path().join("mine");
        fs::create_dir_all(study.join("sql")).unwrap();
        fs::write(study.join("study.toml"), "question = \"?\"").unwrap();
        let path = study.join(name);
        if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        make(&path);
        let error = record::read_folder(&study).unwrap_err();
        let expected = format!("reading {}: it is {expected}, not a regular file", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(error.hint().is_some());
    };
    check("leak.sql", |path| symlink("/etc/passwd", path).unwrap(), "a symbolic link");
    check("study.toml", |path| symlink("/etc/passwd", path).unwrap(), "a symbolic link");
    check("sql/up", |path| symlink("..", path).unwrap(), "a symbolic link");
    check("pipe.sql", make_fifo, "a FIFO");
    check("s", |path| drop(UnixListener::bind(path).unwrap()), "a socket");
}

#[test]
fn what_leads_out_of_a_record_is_refused() {
    let check = |change: &dyn Fn(&Path), expected: &str| {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("mine");
        let writer = RecordWriter::create(&directory, header(), &folder(false)).unwrap();
        writer.add(&finished()).unwrap();
        change(&directory);
        let read = RecordReader::open(&directory).and_then(|reader| {
            let trial = &reader.trials()[0];
            reader.intervals(trial, |_| 0)?;
            reader.samples(trial, |_| 0)?;
            reader.marks(trial, |_| 0)?;
            reader.logs(trial, |_, _| 0)
        });
        let error = read.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    for name in ["../../x", "/etc", "..", ".", ""] {
        let edit = |directory: &Path| {
            let path = directory.join("record.json");
            let text = fs::read_to_string(&path).unwrap();
            let named = |name| format!("\"study\": \"{name}\"");
            assert!(text.contains(&named("mine")));
            fs::write(path, text.replace(&named("mine"), &named(name))).unwrap();
        };
        check(&edit, "the name leads out of its folder");
    }
    for name in ["trials", "study", "study/mine", "pairs"] {
        let make = |directory: &Path| {
            fs::create_dir_all(directory.join(name)).unwrap();
            link(directory, name);
        };
        check(&make, &format!("{name}: it is a symbolic link, not a directory"));
    }
    let files = ["trial.json", "intervals.jsonl", "samples.csv", "marks.jsonl", "primary.log"];
    let files = files.map(|name| format!("trials/0001-plain-read/{name}"));
    for name in files.iter().map(String::as_str).chain(["record.json"]) {
        let refused = |what: &str| format!("{name}: it is {what}, not a regular file");
        check(&|directory| link(directory, name), &refused("a symbolic link"));
        let pipe = |directory: &Path| {
            fs::remove_file(directory.join(name)).unwrap();
            make_fifo(&directory.join(name));
        };
        check(&pipe, &refused("a FIFO"));
        let hole = |directory: &Path| {
            let file = fs::File::create(directory.join(name)).unwrap();
            file.set_len(1 << 40).unwrap();
        };
        check(&hole, &format!("{name}: it has more than "));
    }
    for name in &files[1..4] {
        let line = |directory: &Path| {
            let path = directory.join(name);
            let before = fs::read(&path).unwrap();
            fs::write(path, [before, vec![b' '; 5 << 20]].concat()).unwrap();
        };
        check(&line, "a line has more than 4194304 bytes");
    }
    let other = |directory: &Path| {
        let trials = directory.join("trials");
        fs::rename(trials.join("0001-plain-read"), trials.join("0002-plain-read")).unwrap();
    };
    check(&other, "it is the trial of another directory, 0001-plain-read");
}

#[test]
fn what_is_written_into_a_record_follows_no_link() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    let mut writer = RecordWriter::create(&directory, header(), &folder(false)).unwrap();
    let precious = place.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    for name in ["report.html", "report.html.tmp", "record.json.tmp"] {
        symlink(&precious, directory.join(name)).unwrap();
    }
    record::attach(&directory, "report.html", "page").unwrap();
    writer.change_header(|header| header.notes.push("one".to_owned())).unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert!(directory.join("report.html").symlink_metadata().unwrap().is_file());
    assert_eq!(RecordReader::open(&directory).unwrap().header().notes, ["one"]);
}

#[test]
fn a_copy_of_a_study_is_for_no_more_people_than_the_study() {
    let check = |file_mode: u32, folder_mode: u32, is_private: bool| {
        let place = tempfile::tempdir().unwrap();
        let study = place.path().join("mine");
        fs::create_dir(&study).unwrap();
        fs::write(study.join("study.toml"), "question = \"?\"").unwrap();
        fs::write(study.join("w.sql"), "SELECT 1;").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&study.join("study.toml"), 0o644);
        set(&study.join("w.sql"), file_mode);
        set(&study, folder_mode);
        let folder = record::read_folder(&study).unwrap();
        let writer =
            RecordWriter::create_below(&place.path().join("runs"), header(), &folder).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let record = writer.directory();
        for path in [record.to_owned(), record.join("study/mine")] {
            assert_eq!(mode(&path) == 0o700, is_private, "{path:?} of {file_mode:o}");
        }
        // So is the copy's copy.
        let again = record::read_folder(&record.join("study/mine")).unwrap();
        assert_eq!(again.is_private, is_private);
    };
    check(0o644, 0o755, false);
    check(0o600, 0o755, true);
    check(0o640, 0o755, true);
    check(0o644, 0o700, true);
    check(0o644, 0o750, true);
}
