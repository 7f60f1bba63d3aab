//! A history: one line of JSON for each result, in a file to which lines are only added.

mod subject;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use record::{MachineFact, PastFigure, PastMark, PastResult, ResultSubject};
use report::{ExportedResults, FigureSeries, MeasuredFigure, SeriesPoint};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::complaint::Complaint;
use crate::records;

pub(crate) use subject::{BenchResult, mark, of_bench, of_record};

/// Facts that make up a machine's fingerprint: results of machines that differ in one of them are
/// never joined.
const FINGERPRINT: [&str; 4] = ["processor", "memory", "distribution", "kernel"];

/// A history that was read.
pub(crate) struct History {
    path: PathBuf,
    lines: Vec<PastResult>,
}

/// The machine that a record comes from.
pub(crate) fn machine(facts: &[MachineFact]) -> String {
    let of = |name: &&str| facts.iter().find(|fact| fact.name == **name);
    let known = FINGERPRINT.iter().filter_map(|name| of(name).map(|fact| fact.value.as_str()));
    known.collect::<Vec<_>>().join("; ")
}

/// Opens a history, which is a regular file of at most 64 MiB. It may lie in a folder of somebody
/// else's: a link in its place would lead to a file that is not a history.
fn open(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => std::io::Error::other("it is a symbolic link, not a history"),
            // A FIFO that nobody reads.
            Some(Errno::NXIO) => std::io::Error::other("it is not a regular file"),
            _ => error,
        }
    })?;
    let metadata = file.metadata()?;
    match () {
        () if !metadata.is_file() => Err(std::io::Error::other("it is not a regular file")),
        () if metadata.len() > BYTES_MAX => {
            Err(std::io::Error::other(format!("it has more than {BYTES_MAX} bytes")))
        }
        () => Ok(file),
    }
}

/// Thousands of results.
const BYTES_MAX: u64 = 64 << 20;

/// Adds a result at the end of a file, in one write.
pub(crate) fn add(
    path: &Path,
    record: &Path,
    results: &ExportedResults,
    commit: Option<&str>,
    machine: &str,
    (subject, mark): (ResultSubject, Option<PastMark>),
) -> Result<(), Complaint> {
    let line = line(record, results, commit, machine, (subject, mark));
    if path.symlink_metadata().is_ok() {
        let known = History::open(path)?;
        let is_there = |one: &PastResult| one.record == line.record && one.time == line.time;
        if known.lines.iter().any(is_there) {
            let what = format!("{} is in {} already", line.record, path.display());
            return Err(Complaint::new(what).hinted(Some("a history holds each result once")));
        }
    }
    let line = line.line();
    let file = open(path, OpenOptions::new().create(true).append(true));
    let written =
        file.and_then(|mut file| file.write_all(terms::escaped(&format!("{line}\n")).as_bytes()));
    written.map_err(|error| failed("writing", path, &error))
}

/// The line of a result.
pub(crate) fn line(
    record: &Path,
    results: &ExportedResults,
    commit: Option<&str>,
    machine: &str,
    (subject, mark): (ResultSubject, Option<PastMark>),
) -> PastResult {
    let record = std::path::absolute(record).unwrap_or_else(|_| record.to_owned());
    let record = record.display().to_string();
    let (study, answer) = (&results.name, &results.answer);
    let mut line = PastResult::new(&results.started_at, machine, study, answer, &record);
    line.commit = commit.map(str::to_owned);
    (line.subject, line.mark) = (Some(subject), mark);
    line.figures = results.figures.iter().map(past_figure).collect();
    line
}

impl History {
    /// Results that no file has; `place` is where they come from.
    pub(crate) fn of(place: &Path, mut lines: Vec<PastResult>) -> History {
        lines.sort_by(|one, other| one.time.cmp(&other.time));
        History { path: place.to_owned(), lines }
    }

    pub(crate) fn open(path: &Path) -> Result<History, Complaint> {
        let file = open(path, OpenOptions::new().read(true)).map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::NotFound => "add a record to it first: pgrig history add DIR",
                _ => "name the history with --file",
            };
            failed("reading", path, &error).hinted(Some(hint))
        })?;
        let mut lines = Vec::new();
        for (text, number) in BufReader::new(file).lines().zip(1..) {
            let text = text.map_err(|error| failed("reading", path, &error))?;
            let bad = |why: String| {
                let place = path.display();
                Complaint::new(format!("reading {place}, line {number}: {why}"))
                    .hinted(Some("each line is a result that pgrig history add has written"))
            };
            lines.push(PastResult::read(&text).map_err(bad)?);
        }
        Ok(History::of(path, lines))
    }

    /// The results, in the order of time.
    pub(crate) fn lines(&self) -> &[PastResult] {
        &self.lines
    }

    /// Every figure over time, those whose title contains `only`.
    pub(crate) fn series(&self, only: Option<&str>) -> Result<Vec<FigureSeries>, Complaint> {
        let mut all: Vec<(Option<ResultSubject>, FigureSeries)> = Vec::new();
        for line in &self.lines {
            let subject = line.subject.clone().or_else(|| of_earlier(line));
            for figure in &line.figures {
                let point = SeriesPoint {
                    time: line.time.clone(),
                    // A result that was added without --commit names none.
                    commit: line.commit.clone().unwrap_or_default(),
                    machine: line.machine.clone(),
                    value: figure.value,
                    bounds: figure.low.zip(figure.high).map(<[f64; 2]>::from),
                    mark: line.mark,
                };
                let key =
                    |subject: &Option<ResultSubject>| subject.as_ref().map(|it| it.key.clone());
                let is_same = |(of, series): &&mut (Option<ResultSubject>, FigureSeries)| {
                    (key(of), &series.study, &series.benchmark, &series.name)
                        == (key(&subject), &line.study, &figure.benchmark, &figure.name)
                };
                match all.iter_mut().find(is_same) {
                    Some((_, series)) => series.points.push(point),
                    None => {
                        let words = subject.as_ref().map(|subject| subject.words.clone());
                        let mut series = FigureSeries {
                            study: line.study.clone(),
                            // A result of an earlier version whose record is gone does not tell its subject.
                            subject: words.unwrap_or_default(),
                            benchmark: figure.benchmark.clone(),
                            name: figure.name.clone(),
                            unit: figure.unit.clone(),
                            more_is_better: figure.more_is_better,
                            points: vec![point],
                        };
                        // Of two that differ in what words do not say, the later has a number.
                        let base = series.subject.clone();
                        let is_taken =
                            |title: String| all.iter().any(|(_, one)| one.title() == title);
                        let mut number = 2;
                        while is_taken(series.title()) {
                            series.subject = format!("{base} {number}").trim().to_owned();
                            number += 1;
                        }
                        all.push((subject.clone(), series));
                    }
                }
            }
        }
        let mut all: Vec<FigureSeries> = all.into_iter().map(|(_, series)| series).collect();
        let titles: Vec<String> = all.iter().map(FigureSeries::title).collect();
        all.retain(|series| only.is_none_or(|only| series.title().contains(only)));
        if all.is_empty() {
            let what = format!("no figure of {} fits", self.path.display());
            return Err(
                Complaint::new(what).hinted(Some(format!("there is {}", titles.join(", "))))
            );
        }
        Ok(all)
    }
}

/// What a line of an earlier version is about, as far as its record is still there.
fn of_earlier(line: &PastResult) -> Option<ResultSubject> {
    let opened = records::open(Path::new(&line.record)).ok()?;
    let header = opened.reader.header();
    (header.started_at == line.time).then(|| of_record(header))
}

fn past_figure(figure: &MeasuredFigure) -> PastFigure {
    PastFigure {
        benchmark: figure.benchmark.clone(),
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        value: figure.value,
        low: figure.bounds.map(|bounds| bounds[0]),
        high: figure.bounds.map(|bounds| bounds[1]),
        more_is_better: figure.more_is_better,
    }
}

fn failed(doing: &str, path: &Path, error: &std::io::Error) -> Complaint {
    Complaint::new(format!("{doing} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_what_changes_its_speed() {
        let fact = |name: &str, value: &str| MachineFact {
            group: String::new(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let facts = [
            fact("kernel", "Linux 6.8"),
            fact("load average before", "1"),
            fact("memory", "8 GiB"),
        ];
        assert_eq!(machine(&facts), "8 GiB; Linux 6.8");
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("history.jsonl");
        let figure = MeasuredFigure {
            benchmark: "B ÷ A".to_owned(),
            name: "throughput".to_owned(),
            unit: String::new(),
            value: 0.9,
            bounds: Some([0.8, 1.0]),
            more_is_better: true,
        };
        let results = |started_at: &str| ExportedResults {
            name: "compare".to_owned(),
            started_at: started_at.to_owned(),
            sides: Vec::new(),
            harm: Vec::new(),
            answer: "B is slower.".to_owned(),
            cases: Vec::new(),
            figures: vec![figure.clone()],
            doubts: Vec::new(),
        };
        let record = Path::new("/records/one");
        // A later result may be added first.
        let add = |time: &str, commit, key: &str| {
            let subject = ResultSubject { key: key.to_owned(), words: "A: as it is.".to_owned() };
            add(&path, record, &results(time), commit, "m", (subject, None))
        };
        add("2026-11-23T05:00:00Z", Some("c2"), "one").expect("added");
        add("2026-11-23T04:00:00Z", None, "one").expect("added");
        assert!(add("2026-11-23T04:00:00Z", None, "one").is_err());
        // What another comparison has measured is another series, and so is a line of an earlier version.
        add("2026-11-23T06:00:00Z", None, "other").expect("added");
        let mut earlier =
            PastResult::new("2026-11-22T04:00:00Z", "m", "compare", "B is slower.", "/gone");
        earlier.figures.push(past_figure(&figure));
        let known = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, known + &earlier.line() + "\n").expect("written");
        let all = History::open(&path).expect("read").series(None).expect("figures");
        let titles: Vec<String> = all.iter().map(FigureSeries::title).collect();
        assert_eq!(
            titles,
            [
                "compare, B ÷ A: throughput",
                "compare (A: as it is.), B ÷ A: throughput",
                "compare (A: as it is. 2), B ÷ A: throughput"
            ]
        );
        let series = &all[1..];
        let times: Vec<&str> = series[0].points.iter().map(|point| point.time.as_str()).collect();
        assert_eq!(times, ["2026-11-23T04:00:00Z", "2026-11-23T05:00:00Z"]);
        assert_eq!(series[0].points[1].commit, "c2");
        assert_eq!(series[0].points[1].bounds, Some([0.8, 1.0]));
        assert!(History::open(&path).expect("read").series(Some("p99")).is_err());
    }
}
