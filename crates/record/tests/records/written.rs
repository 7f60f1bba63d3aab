//! A record survives what happens to runs: it is resumed, interrupted, read by other versions,
//! damaged, and written onto full disks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::planned;
use record::comparison::{
    ComparedMetric, Comparison, CpuProfile, InterimLook, PairResults, SideBackgroundWork,
};
use record::{
    AttemptEnding, ConnectionPhase, FaultyParty, FinishedTrial, LoadInterval, MachineFact,
    MarkKind, MeasuredWindow, Moment, Note, NoteKind, PairingAttempt, PublishedWay, RatioSeries,
    RecordHeader, RecordReader, RecordWriter, RunState, Sample, TimelineMark, TransactionCounts,
    Trial, VoidKind, WorkloadResult,
};
use spec::StudyFolder;
use stats::LatencyHistogram;

fn header() -> RecordHeader {
    let fact = |group: &str, name: &str, value: &str| MachineFact {
        group: group.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let facts = vec![fact("machine", "cores", "2"), fact("PostgreSQL", "version", "15.14")];
    RecordHeader { facts, ..crate::common::header() }
}

fn folder() -> StudyFolder {
    crate::common::folder(false)
}

fn latency(values: &[u64]) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    values.iter().for_each(|value| latency.record_ns(*value));
    latency
}

fn phase() -> ConnectionPhase {
    ConnectionPhase {
        count: 8,
        failures: BTreeMap::from([("53300".to_owned(), 1)]),
        length_ns: 5_000_000,
        latency: latency(&[500_000, 700_000]),
        generator_cpu_ns: 1_000_000,
    }
}

fn finished(number: usize, ending: AttemptEnding) -> FinishedTrial {
    let counts = TransactionCounts { transactions: 3, ..TransactionCounts::default() };
    let workload = WorkloadResult {
        name: "read".to_owned(),
        clients: 8,
        counts: counts.clone(),
        counts_total: counts.clone(),
        unknown: 0,
        latency: latency(&[1_000_000, 2_000_000, 4_000_000]),
        service: latency(&[1_000_000, 2_000_000, 4_000_000]),
        lag: latency(&[]),
        statements: Vec::new(),
        per_client: vec![1, 2],
        per_client_good: Vec::new(),
        served: LatencyHistogram::new(),
        unserved: LatencyHistogram::new(),
        longest_wait_ns: 4_000_000,
        longest_wait_is_open: false,
        open: latency(&[]),
        never_started: 0,
        published_way: PublishedWay { transactions: 3, seconds: 1.5 },
    };
    let planned = planned(number);
    let trial = Trial {
        ending,
        started_at: "2026-11-21T10:00:01Z".to_owned(),
        began: Moment(1),
        ended: Moment(9_000_000_000),
        window: Some(MeasuredWindow { load_began: Moment(2), open: Moment(3), close: Moment(4) }),
        connecting: phase(),
        disconnecting: phase(),
        workloads: vec![workload],
        metrics: BTreeMap::from([(
            "tps".to_owned(),
            BTreeMap::from([(String::new(), 0.1 + 0.2), ("read".to_owned(), 1e-300)]),
        )]),
        notes: vec![Note::new(NoteKind::Check, "one, two \"three\"")],
        ..planned.attempt(1)
    };
    let interval = LoadInterval {
        start: Moment(3),
        length_ns: 1_000_000_000,
        workload: 0,
        counts,
        latency: latency(&[1_000_000]),
        service: latency(&[1_000_000]),
        lag: latency(&[]),
        backlog: 0,
        cycles: record::BlockCycles::default(),
    };
    let sample = |label: &str, value: f64| Sample {
        at: Moment(u64::MAX),
        node: "primary".to_owned(),
        metric: "waiting_sessions".to_owned(),
        label: label.to_owned(),
        value,
    };
    let mark = TimelineMark {
        at: Moment(5),
        length_ns: 0,
        kind: MarkKind::ServerError,
        node: "primary".to_owned(),
        text: "FATAL: sorry,\n\"too many\" clients".to_owned(),
    };
    FinishedTrial {
        trial,
        intervals: vec![interval],
        samples: vec![sample("LWLock:WALWrite", 2.0), sample("", 0.1), sample("a,\"b\"\nc", -1e9)],
        marks: vec![mark],
        logs: BTreeMap::from([("primary".to_owned(), "PANIC\n".to_owned())]),
    }
}

#[test]
fn what_is_written_is_what_is_read() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let writer = RecordWriter::create_below(&runs, header(), &folder()).unwrap();
    assert!(writer.directory().ends_with("2026-11-21-mine-1"));
    let other = RecordWriter::create_below(&runs, header(), &folder()).unwrap();
    assert!(other.directory().ends_with("2026-11-21-mine-2"));

    let written = finished(1, AttemptEnding::void(VoidKind::NotSteady, "not steady"));
    writer.add(&written).unwrap();
    let reader = RecordReader::open(writer.directory()).unwrap();
    assert_eq!(reader.header(), &header());
    assert_eq!(reader.folder(), &folder());
    let trial = &reader.trials()[0];
    assert_eq!(trial.metrics, written.trial.metrics);
    assert_eq!(trial.ending, written.trial.ending);
    assert_eq!(trial.workloads[0].latency.count(), 3);
    // Three significant digits are what a histogram keeps.
    let max_ns = trial.workloads[0].latency.quantile_ns(1.0).unwrap();
    assert!(max_ns.abs_diff(4_000_000) <= 4_000, "{max_ns}");
    let FinishedTrial { intervals, samples, marks, logs, .. } = reader.whole(trial).unwrap();
    assert_eq!((samples, marks, logs), (written.samples, written.marks, written.logs));
    assert_eq!(intervals[0].counts, written.intervals[0].counts);
    assert_eq!(intervals[0].latency.count(), 1);

    let empty = FinishedTrial {
        intervals: vec![],
        samples: vec![],
        marks: vec![],
        ..finished(2, AttemptEnding::Done)
    };
    writer.add(&empty).unwrap();
    let reader = RecordReader::open(writer.directory()).unwrap();
    assert!(reader.whole(&reader.trials()[1]).unwrap().samples.is_empty());
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    let mut writer = RecordWriter::create(&directory, header(), &folder()).unwrap();
    writer.add(&finished(1, AttemptEnding::Done)).unwrap();
    writer.add(&finished(2, AttemptEnding::failed(FaultyParty::Server, "server gone"))).unwrap();
    writer.change_header(|header| header.state = RunState::Interrupted).unwrap();
    drop(writer);
    // What a crash in the middle of a trial leaves behind.
    let half = directory.join("trials/0003-plain-read.tmp");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("trial.json"), "{\"number\": 3,").unwrap();

    let reader = RecordReader::open(&directory).unwrap();
    assert_eq!(reader.trials().len(), 2);
    let writer = RecordWriter::resume(&directory).unwrap();
    assert!(!half.exists());
    assert_eq!(writer.header().state, RunState::Running);
    // A further attempt stands beside the one that broke, and no attempt is written twice.
    let error = writer.add(&finished(2, AttemptEnding::Done)).unwrap_err().to_string();
    assert!(error.ends_with("an attempt is never replaced"), "{error}");
    let mut again = finished(2, AttemptEnding::Done);
    again.trial.attempt = 2;
    writer.add(&again).unwrap();
    let reader = RecordReader::open(&directory).unwrap();
    let attempts = reader.trials().iter().map(|trial| (trial.number, trial.attempt));
    assert_eq!(attempts.collect::<Vec<_>>(), [(1, 1), (2, 1), (2, 2)]);
    assert_eq!(
        reader.trials()[1].ending,
        AttemptEnding::failed(FaultyParty::Server, "server gone")
    );
    assert_eq!(reader.trials()[2].ending, AttemptEnding::Done);
}

#[test]
fn a_directory_that_holds_something_is_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("precious"), "").unwrap();
    let error = RecordWriter::create(place.path(), header(), &folder()).unwrap_err();
    assert!(error.to_string().ends_with("the directory is not empty"), "{error}");
}

/// One message with its hint, the place replaced by DIR.
fn opening(directory: &Path) -> String {
    let error = RecordReader::open(directory).unwrap_err();
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{error}{hint}").replace(&directory.display().to_string(), "DIR")
}

#[test]
fn every_pair_of_versions_reads_or_says_why_not() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    RecordWriter::create(&directory, header(), &folder()).unwrap();
    let path = directory.join("record.json");
    let ours = fs::read_to_string(&path).unwrap();
    let check = |text: String, expected: &str| {
        fs::write(&path, text).unwrap();
        assert_eq!(opening(&directory), expected);
    };
    // New reader, old data.
    check(
        ours.replace("\"format\": 5", "\"format\": 0").replace("\"seed\"", "\"random_seed\""),
        "reading DIR/record.json: pgrig 0.1.0 wrote this record in format 0, this pgrig reads 5; \
         read it with the pgrig that wrote it, or run the study again",
    );
    // Old reader, new data, whatever else changed.
    check(
        r#"{ "format": 6, "pgrig": "9.0.0", "all": { "new": [] } }"#.to_owned(),
        "reading DIR/record.json: pgrig 9.0.0 wrote this record in format 6, this pgrig reads 5; \
         read it with the pgrig that wrote it, or a newer one",
    );
    // The same format with a field that it does not have: refused, not dropped.
    check(
        ours.replace("\"seed\"", "\"sed\": 1,\n  \"seed\""),
        "reading DIR/record.json line 6: unknown field `sed`, expected one of `format`, `pgrig`, \
         `study`, `profile`, `seed`, `rounds`, `only`, `again`, `started_at`, `ended_at`, \
         `state`, `plan`, `facts`, `notes`, `unprepared`, `comparison`, `search` at line 6 column 7; the file was changed \
         after it was written; run the study again",
    );
    check(
        ours[..ours.len() / 2].to_owned(),
        &format!(
            "reading DIR/record.json line {}: EOF while parsing {}; the file was changed after \
             it was written; run the study again",
            ours[..ours.len() / 2].lines().count(),
            "an object at line 18 column 16"
        ),
    );
    fs::write(&path, ours).unwrap();
    assert!(RecordReader::open(&directory).is_ok());
}

#[test]
fn what_is_no_record_is_called_so() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(
        opening(place.path()),
        "reading DIR: not a record: it has no record.json; name a directory that `pgrig run` has \
         written, runs/DATE-STUDY-N"
    );
    let missing = place.path().join("nowhere");
    assert!(opening(&missing).contains("No such file"), "{}", opening(&missing));
}

#[test]
fn a_damaged_file_is_named_with_its_line() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    let writer = RecordWriter::create(&directory, header(), &folder()).unwrap();
    writer.add(&finished(1, AttemptEnding::Done)).unwrap();
    let samples = directory.join("trials/0001-plain-read/samples.csv");
    let text = fs::read_to_string(&samples).unwrap();
    fs::write(&samples, text.replace("-1000000000", "much")).unwrap();
    let reader = RecordReader::open(&directory).unwrap();
    let error = reader.samples(&reader.trials()[0], |_| 0).unwrap_err().to_string();
    assert!(error.contains("samples.csv line 4: "), "{error}");
}

#[test]
fn a_page_that_cannot_be_written_leaves_the_one_before() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    let mut writer = RecordWriter::create(&directory, header(), &folder()).unwrap();
    writer.add(&finished(1, AttemptEnding::Done)).unwrap();
    // What stands in its place cannot be replaced.
    fs::create_dir(directory.join("record.json.tmp")).unwrap();
    let error = writer.change_header(|header| header.state = RunState::Done).unwrap_err();
    assert!(error.to_string().contains("record.json.tmp"), "{error}");
    assert_eq!(writer.header().state, RunState::Running);
    let reader = RecordReader::open(&directory).unwrap();
    assert_eq!(reader.header().state, RunState::Running);
    assert_eq!(reader.trials().len(), 1);
}

#[test]
fn a_studys_folder_is_its_texts_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let study = place.path().join("mine");
    fs::create_dir_all(study.join("sql")).unwrap();
    fs::write(study.join("orders.sql"), "SELECT 1;").unwrap();
    assert_eq!(record::read_folder(&study).unwrap().files.len(), 0, "no study.toml, no study");

    fs::write(study.join("study.toml"), "question = \"?\"").unwrap();
    fs::write(study.join("sql/init.sql"), "SELECT 2;").unwrap();
    fs::write(study.join("photo.jpg"), [0xff, 0xd8]).unwrap();
    fs::write(study.join(".study.toml.swp"), "").unwrap();
    RecordWriter::create_below(&study.join("runs"), header(), &folder()).unwrap();
    let read = record::read_folder(&study.join("sql/..")).unwrap();
    assert_eq!(read.name, "mine");
    let names: Vec<&str> = read.files.keys().map(String::as_str).collect();
    assert_eq!(names, ["orders.sql", "sql/init.sql", "study.toml"]);

    let error = record::read_folder(&study.join("orders.sql")).unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
}

#[test]
fn a_count_that_no_sum_holds_is_damage() {
    let check = |file: &str, count: &str| {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("mine");
        let writer = RecordWriter::create(&directory, header(), &folder()).unwrap();
        writer.add(&finished(1, AttemptEnding::Done)).unwrap();
        let path = directory.join("trials/0001-plain-read").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(count), "{text}");
        fs::write(&path, text.replace(count, &format!("{count}{}", "0".repeat(18)))).unwrap();
        let read = RecordReader::open(&directory);
        let read = read.and_then(|reader| reader.intervals(&reader.trials()[0], |_| 0));
        let error = read.unwrap_err().to_string();
        assert!(error.contains("a count is larger than any load can make it"), "{error}");
        assert!(error.contains(file), "{error}");
    };
    check("trial.json", "\"transactions\": 3");
    check("intervals.jsonl", "\"transactions\":3");
}

#[test]
fn a_value_that_is_none_does_not_spoil_the_record() {
    let place = tempfile::tempdir().unwrap();
    let writer = RecordWriter::create(&place.path().join("mine"), header(), &folder()).unwrap();
    let mut finished = finished(1, AttemptEnding::Done);
    let scopes = BTreeMap::from([(String::new(), f64::NAN), ("read".to_owned(), f64::INFINITY)]);
    finished.trial.metrics.insert("jain".to_owned(), scopes);
    finished.trial.generator.busy_share_max = f64::NAN;
    finished.trial.workloads[0].published_way.seconds = f64::INFINITY;
    finished.samples[0].value = f64::NAN;
    writer.add(&finished).unwrap();
    let reader = RecordReader::open(writer.directory()).unwrap();
    let trial = &reader.trials()[0];
    assert!(!trial.metrics.contains_key("jain"));
    assert!(trial.metrics.contains_key("tps"));
    assert_eq!(reader.whole(trial).unwrap().samples.len(), 3);
}

/// A histogram with something in every counter, in a few hundred bytes.
fn dense() -> String {
    let mut latency = LatencyHistogram::new();
    let mut value: u64 = 1;
    while value < LatencyHistogram::LIMIT_NS {
        latency.record_ns(value);
        value += 1 << (value.ilog2() + 1).saturating_sub(11);
    }
    latency.to_base64()
}

#[test]
fn what_takes_more_memory_than_any_run_is_refused_with_its_place() {
    let check = |file: &str, make: &dyn Fn(&str) -> String, what: &str| {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("mine");
        let writer = RecordWriter::create(&directory, header(), &folder()).unwrap();
        writer.add(&finished(1, AttemptEnding::Done)).unwrap();
        let path = directory.join("trials/0001-plain-read").join(file);
        fs::write(&path, make(&fs::read_to_string(&path).unwrap())).unwrap();
        let read = RecordReader::open(&directory).and_then(|reader| {
            let trial = &reader.trials()[0];
            reader.intervals(trial, |_| 1_000)?;
            reader.samples(trial, |_| 100)?;
            reader.marks(trial, |_| 200)
        });
        let error = read.unwrap_err();
        let expected = format!("reading {}, which has ", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("trials/")));
    };
    let repeated = |text: &str, times: usize| text.repeat(times);
    let thicken = |text: &str| {
        let plain: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let mut thick = plain;
        for name in ["latency", "service", "lag"] {
            thick[name] = dense().into();
        }
        format!("{thick}\n").repeat(1_200)
    };
    assert!(dense().len() < 2_000, "{}", dense().len());
    check("intervals.jsonl", &thicken, "bytes of histograms, unpacked");
    check("intervals.jsonl", &|text| repeated(text, 70_000), "bytes of memory");
    let (head, sample) = ("at,node,metric,label,value\n", "5,machine,cpu_user_pct,,1.5\n");
    check("samples.csv", &|_| format!("{head}{}", sample.repeat(700_000)), "bytes of memory");
    check("marks.jsonl", &|text| repeated(text, 400_000), "bytes of memory");
    let crowd = |text: &str| {
        let mut trial: serde_json::Value = serde_json::from_str(text).unwrap();
        let statement = serde_json::json!({
            "script": "", "line": 1, "text": "", "failures": 0, "retries": 0, "latency": dense(),
        });
        trial["workloads"][0]["statements"] = vec![statement; 1_600].into();
        trial.to_string()
    };
    check("trial.json", &crowd, "bytes of histograms, unpacked");
    let names = |text: &str| {
        let mut trial: serde_json::Value = serde_json::from_str(text).unwrap();
        for name in 0..120_000 {
            trial["metrics"][name.to_string()] = serde_json::json!({"": 1});
        }
        trial.to_string()
    };
    check("trial.json", &names, "bytes of memory");
}

#[test]
fn a_comparison_is_a_record_of_pairs() {
    let runs = tempfile::tempdir().unwrap();
    let comparison = Comparison { name: Some("selects".to_owned()), ..Comparison::default() };
    let header = RecordHeader { comparison: Some(comparison), ..header() };
    let folded = ["postgres;main 70\n", "postgres;main 80\n"].map(str::to_owned);
    let ratios = BTreeMap::from([(ComparedMetric::Throughput, [0.9, 0.8, 1.0])]);
    let look = InterimLook {
        pairs: 4,
        seconds: 1.0,
        segment: Some(0.9),
        is_exchanged: true,
        ratios,
        background: [SideBackgroundWork { checkpoints: 1, ..SideBackgroundWork::default() }; 2],
    };
    let paired = PairingAttempt {
        number: 1,
        attempt: 1,
        above: "B".to_owned(),
        below: "A".to_owned(),
        scenario: "read".to_owned(),
        below_scenario: None,
        axes: BTreeMap::new(),
        below_axes: None,
        ending: AttemptEnding::Done,
        started_at: "2026-11-21T10:00:01Z".to_owned(),
        began: Moment(1),
        ended: Moment(2),
        precision: 0.01,
        series: vec![RatioSeries::new(ComparedMetric::Throughput, vec![9.0], vec![10.0])],
        shown: PairResults {
            profile: Some(CpuProfile { seconds: 60.0, folded }),
            looks: vec![look],
            ..PairResults::default()
        },
    };
    let writer = RecordWriter::create_below(runs.path(), header.clone(), &folder()).unwrap();
    writer.add_pairs(&paired).unwrap();
    let directory = runs.path().join("2026-11-21-compare-1");
    assert_eq!(writer.directory(), directory);
    let reader = RecordReader::open(&directory).unwrap();
    assert_eq!((reader.header(), reader.pairs()), (&header, &[paired][..]));
    assert_eq!(RecordHeader::read(&directory).unwrap(), header);
}
