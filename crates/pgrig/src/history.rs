//! A history: one line of JSON for each result, in a file to which lines are only added.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use record::{Fact, PastFigure, PastResult};
use report::{Measure, Point, Results, Series};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::complaint::Complaint;

/// Facts that make up a machine's fingerprint: results of machines that differ in one of them are
/// never joined.
const FINGERPRINT: [&str; 4] = ["processor", "memory", "distribution", "kernel"];

/// A history that was read.
pub(crate) struct History {
    path: PathBuf,
    lines: Vec<PastResult>,
}

/// The machine that a record comes from.
pub(crate) fn machine(facts: &[Fact]) -> String {
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
    results: &Results,
    commit: Option<&str>,
    machine: &str,
) -> Result<(), Complaint> {
    let record = std::path::absolute(record).unwrap_or_else(|_| record.to_owned());
    let record = record.display().to_string();
    if path.symlink_metadata().is_ok() {
        let known = History::open(path)?;
        let is_there = |line: &PastResult| line.record == record && line.time == results.started_at;
        if known.lines.iter().any(is_there) {
            let what = format!("{record} is in {} already", path.display());
            return Err(Complaint::new(what).hinted(Some("a history holds each result once")));
        }
    }
    let (study, answer) = (&results.name, &results.answer);
    let mut line = PastResult::new(&results.started_at, machine, study, answer, &record);
    line.commit = commit.map(str::to_owned);
    line.figures = results.figures.iter().map(past_figure).collect();
    let line = line.line();
    let file = open(path, OpenOptions::new().create(true).append(true));
    let written =
        file.and_then(|mut file| file.write_all(terms::escaped(&format!("{line}\n")).as_bytes()));
    written.map_err(|error| failed("writing", path, &error))
}

impl History {
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
        lines.sort_by(|one: &PastResult, other| one.time.cmp(&other.time));
        Ok(History { path: path.to_owned(), lines })
    }

    /// Its results, in the order of time.
    pub(crate) fn lines(&self) -> &[PastResult] {
        &self.lines
    }

    /// Every figure over time, those whose title contains `only`.
    pub(crate) fn series(&self, only: Option<&str>) -> Result<Vec<Series>, Complaint> {
        let mut all: Vec<Series> = Vec::new();
        for line in &self.lines {
            for figure in &line.figures {
                let point = Point {
                    time: line.time.clone(),
                    commit: line.commit.clone().unwrap_or_default(),
                    machine: line.machine.clone(),
                    value: figure.value,
                    bounds: figure.low.zip(figure.high).map(<[f64; 2]>::from),
                };
                let is_same = |series: &&mut Series| {
                    (&series.study, &series.benchmark, &series.name)
                        == (&line.study, &figure.benchmark, &figure.name)
                };
                match all.iter_mut().find(is_same) {
                    Some(series) => series.points.push(point),
                    None => all.push(Series {
                        study: line.study.clone(),
                        benchmark: figure.benchmark.clone(),
                        name: figure.name.clone(),
                        unit: figure.unit.clone(),
                        more_is_better: figure.more_is_better,
                        points: vec![point],
                    }),
                }
            }
        }
        let titles: Vec<String> = all.iter().map(Series::title).collect();
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

fn past_figure(figure: &Measure) -> PastFigure {
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
        let fact = |name: &str, value: &str| Fact {
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
        let figure = Measure {
            benchmark: "B ÷ A".to_owned(),
            name: "throughput".to_owned(),
            unit: String::new(),
            value: 0.9,
            bounds: Some([0.8, 1.0]),
            more_is_better: true,
        };
        let results = |started_at: &str| Results {
            name: "compare".to_owned(),
            started_at: started_at.to_owned(),
            answer: "B is slower.".to_owned(),
            cases: Vec::new(),
            figures: vec![figure.clone()],
            doubts: Vec::new(),
        };
        let record = Path::new("/records/one");
        // A later result may be added first.
        add(&path, record, &results("2026-11-23T05:00:00Z"), Some("c2"), "m").expect("added");
        add(&path, record, &results("2026-11-23T04:00:00Z"), None, "m").expect("added");
        assert!(add(&path, record, &results("2026-11-23T04:00:00Z"), None, "m").is_err());
        let series = History::open(&path).expect("read").series(None).expect("figures");
        let times: Vec<&str> = series[0].points.iter().map(|point| point.time.as_str()).collect();
        assert_eq!(times, ["2026-11-23T04:00:00Z", "2026-11-23T05:00:00Z"]);
        assert_eq!(series[0].points[1].commit, "c2");
        assert_eq!(series[0].points[1].bounds, Some([0.8, 1.0]));
        assert!(History::open(&path).expect("read").series(Some("p99")).is_err());
    }
}
