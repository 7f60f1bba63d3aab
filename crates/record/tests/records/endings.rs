//! Endings of attempts: of those that never ended, and of those that older records have.

use std::collections::BTreeMap;
use std::fs;

use record::{AttemptEnding, FaultyParty, FinishedTrial, RecordReader, RecordWriter};

/// An attempt that is done and in which nothing was measured.
fn finished(number: usize) -> FinishedTrial {
    let trial = crate::common::planned(number).attempt(1);
    let (intervals, samples, marks, logs) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
    FinishedTrial { trial, intervals, samples, marks, logs }
}

/// A run that was killed in the middle of a load has measured something unknown.
#[test]
fn an_attempt_that_never_ended_is_filed_when_the_run_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    let writer =
        RecordWriter::create(&directory, crate::common::header(), &crate::common::folder(false))
            .unwrap();
    let trial = finished(1).trial;
    let ledger = writer.begin(&trial).unwrap();
    fs::write(ledger.join("0.ledger"), "ledger 2 seed 1\ni 0 1 5\n").unwrap();
    let names = || {
        let entries = fs::read_dir(directory.join("trials")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    assert_eq!(RecordReader::open(&directory).unwrap().trials().len(), 0, "it has not ended");
    drop(writer);

    let writer = RecordWriter::resume(&directory).unwrap();
    assert_eq!(names(), ["0001-plain-read"]);
    let reader = RecordReader::open(&directory).unwrap();
    let ending = &reader.trials()[0].ending;
    assert!(ending.stays_open() && ending.is_open(), "{ending:?}");
    assert!(directory.join("trials/0001-plain-read/ledger/0.ledger").is_file());

    // One that ended keeps its ledger where that is asked for, and leaves nothing else.
    for (attempt, keeps) in [(2, true), (3, false)] {
        let mut whole = finished(1);
        whole.trial.attempt = attempt;
        let ledger = writer.begin(&whole.trial).unwrap();
        fs::write(ledger.join("0.ledger"), "ledger 2 seed 1\n").unwrap();
        writer.add(&whole).unwrap();
        writer.end(&whole.trial, keeps).unwrap();
        let kept = format!("trials/0001-plain-read-attempt-{attempt}/ledger/0.ledger");
        assert_eq!(directory.join(kept).is_file(), keeps);
    }
    assert_eq!(names().len(), 3, "{:?}", names());
}

#[test]
fn an_ending_reads_as_it_was_written() {
    for fault in [
        FaultyParty::Server,
        FaultyParty::Unknown,
        FaultyParty::Study,
        FaultyParty::Machine,
        FaultyParty::Rig,
    ] {
        let ending = AttemptEnding::failed(fault, "x");
        let text = serde_json::to_string(&ending).unwrap();
        assert_eq!(serde_json::from_str::<AttemptEnding>(&text).unwrap(), ending, "{text}");
    }
}
