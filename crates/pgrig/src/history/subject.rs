//! What a result of a history is about, and the results that `pgrig history add` reads.

use std::path::Path;

use record::comparison::ComparisonSide;
use record::{Comparison, PastMark, RecordHeader, ResultSubject, RunState};
use report::{ExportedResults, MeasuredFigure};
use serde_json::{Value, json};

use crate::complaint::Complaint;

/// What a record is about. Two results with one key on one machine can be compared.
pub(crate) fn of_record(header: &RecordHeader) -> ResultSubject {
    match &header.comparison {
        Some(comparison) => of_comparison(comparison),
        // Another profile has other data and times.
        None => ResultSubject {
            key: json!(["run", header.study, header.profile]).to_string(),
            words: format!("profile {}", header.profile),
        },
    }
}

fn of_comparison(comparison: &Comparison) -> ResultSubject {
    // What was built from is what changes over time; where it lies then changes as well. So do minor versions.
    let side = |side: &ComparisonSide| {
        let major = side.version.split(['.', ' ']).next();
        let major = major.expect("even an empty version is one piece");
        let bin = side.bin.as_ref().filter(|_| side.source.is_none());
        let ComparisonSide { variant, server, settings, initdb, sql, .. } = side;
        json!([variant, major, bin, server, settings, initdb, sql])
    };
    let Comparison { a, b, workload, point, data_file, is_self, .. } = comparison;
    let point = point.as_ref().map(record::comparison::ComparedPoint::words);
    let key = json!(["compare", workload, point, data_file, is_self, side(a), side(b)]);
    let data = data_file.iter().map(|path| format!("data {path}."));
    let words = comparison.own_words().into_iter().chain(data).collect::<Vec<_>>().join(" ");
    ResultSubject { key: key.to_string(), words }
}

/// What a reader of a record has to know besides its figures; none for one that ran to its end.
pub(crate) fn mark(header: &RecordHeader, is_held: bool) -> Option<PastMark> {
    match header.state {
        RunState::Interrupted => Some(PastMark::Interrupted),
        RunState::Running if !is_held => Some(PastMark::Killed),
        RunState::Broken(_) => Some(PastMark::Broken),
        _ if header.comparison.is_none() && header.profile == "smoke" => Some(PastMark::Smoke),
        RunState::Running | RunState::Done => None,
    }
}

/// A result of `pgrig bench --json`.
pub(crate) struct BenchResult {
    pub(crate) results: ExportedResults,
    pub(crate) subject: ResultSubject,
    pub(crate) mark: Option<PastMark>,
    /// The machines of its hosts; none where the load ran on one machine, which the file does not name.
    pub(crate) machine: Option<String>,
}

/// Reads what `pgrig bench --json` has written, also where a batch system has put other lines before or after it.
pub(crate) fn of_bench(path: &Path) -> Result<BenchResult, Complaint> {
    let bad = |why: String| {
        Complaint::new(format!("reading {}: {why}", path.display()))
            .hinted(Some("give it a record, or what pgrig bench --json has written"))
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let Some(document) = documents(&text).find(|one| one["format"] == "pgrig bench") else {
        return Err(bad("it has no result of pgrig bench".to_owned()));
    };
    bench_result(&document).map_err(bad)
}

/// What a document of `pgrig bench --json` says, or why it is none.
fn bench_result(document: &Value) -> Result<BenchResult, String> {
    if document["version"] != 1 {
        return Err(format!("it has version {}, and this pgrig reads 1", document["version"]));
    }
    let began = document["began_unix_us"].as_i64();
    let began = began.and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let began = began.ok_or("began_unix_us is no time")?;
    let scripts = document["scripts"].as_array().filter(|scripts| !scripts.is_empty());
    let scripts =
        scripts.ok_or("scripts is no list of scripts, so that nothing says what was run")?;
    let named = |(at, script): (usize, &Value)| {
        let name = script["name"].as_str().map(str::to_owned);
        name.ok_or_else(|| format!("scripts[{at}] has no name"))
    };
    let names: Vec<String> = scripts.iter().enumerate().map(named).collect::<Result<_, _>>()?;
    let load = names.join(", ");
    let weighted = |script: &Value| json!([script["name"], script["weight"]]);
    let scripts: Vec<Value> = scripts.iter().map(weighted).collect();
    let options = &document["options"];
    let key = json!(["bench", scripts, document["scale"], document["partitions"], options]);
    let clients = &options["clients"];
    let words = format!("{clients} clients, scale {}", document["scale"]);
    let throughput = document["window"]["transactions_per_second"]
        .as_f64()
        .or_else(|| document["pgbench_way"]["tps"].as_f64());
    let p99_ms = document["latency"]["p99_ns"].as_f64().map(|ns| ns / 1e6);
    let measure = |name: &str, unit: &str, value: Option<f64>, more_is_better| {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        let benchmark = load.clone();
        Some(MeasuredFigure { benchmark, name, unit, value: value?, bounds: None, more_is_better })
    };
    let figures =
        [measure("tps", "1/s", throughput, true), measure("latency_p99_ms", "ms", p99_ms, false)];
    let figures: Vec<MeasuredFigure> = figures.into_iter().flatten().collect();
    let answer = throughput.map_or("Nothing was measured.".to_owned(), |tps| {
        format!("{} transactions a second.", terms::figure(tps))
    });
    let mark = match document["end"].as_str() {
        Some("completed") => None,
        Some("interrupted") => Some(PastMark::Interrupted),
        _ => Some(PastMark::Broken),
    };
    let hosts = document["hosts"].as_array().into_iter().flatten();
    let hosts: Vec<String> = hosts.map(|host| host["machine"].to_string()).collect();
    let results = ExportedResults {
        name: "bench".to_owned(),
        started_at: began.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        sides: Vec::new(),
        harm: Vec::new(),
        answer,
        cases: Vec::new(),
        figures,
        doubts: Vec::new(),
    };
    let machine = (!hosts.is_empty()).then(|| hosts.join("; "));
    Ok(BenchResult {
        results,
        subject: ResultSubject { key: key.to_string(), words },
        mark,
        machine,
    })
}

/// The JSON objects that begin a line of a text.
fn documents(text: &str) -> impl Iterator<Item = Value> {
    let begins = text.match_indices('{').map(|(at, _)| at);
    let begins = begins.filter(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'));
    begins.filter_map(|at| {
        serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<Value>().next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_among_other_lines_is_found() {
        let check = |text: &str, expected: usize| {
            let found = documents(text).filter(|one| one["format"] == "pgrig bench").count();
            assert_eq!(found, expected, "{text}");
        };
        check("{\"format\": \"pgrig bench\"}\n", 1);
        check("srun: job 7 queued\n{\n \"format\": \"pgrig bench\"\n}\nsrun: done {\n", 1);
        check("{\n broken\n{\"format\": \"pgrig bench\"}", 1);
        check("nothing", 0);
    }

    #[test]
    fn a_result_says_what_was_run() {
        let check = |scripts: Value, expected: Result<&str, &str>| {
            let document = json!({
                "format": "pgrig bench", "version": 1, "began_unix_us": 0, "scripts": scripts,
                "pgbench_way": { "tps": 5.0 },
            });
            let found = bench_result(&document);
            let found = found.map(|found| found.results.figures[0].benchmark.clone());
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{scripts}");
        };
        check(json!([{ "name": "select only", "weight": 1 }]), Ok("select only"));
        check(json!([{ "name": "a" }, { "name": "b" }]), Ok("a, b"));
        check(json!([{ "name": "a" }, { "weight": 1 }]), Err("scripts[1] has no name"));
        let nothing = "scripts is no list of scripts, so that nothing says what was run";
        check(json!([]), Err(nothing));
        check(Value::Null, Err(nothing));
    }

    #[test]
    fn a_subject_is_what_was_compared() {
        let side = |version: &str, source: Option<&str>, setting: &str| ComparisonSide {
            version: version.to_owned(),
            bin: Some(format!("/builds/{version}")),
            source: source.map(str::to_owned),
            settings: vec![("jit".to_owned(), setting.to_owned())],
            ..ComparisonSide::default()
        };
        let of = |a: ComparisonSide, workload: &str, data: Option<&str>| {
            let workload = workload.to_owned();
            let data_file = data.map(str::to_owned);
            of_comparison(&Comparison { a, workload, data_file, ..Comparison::default() }).key
        };
        let base = || of(side("15.1", Some("commit 1"), "on"), "-S", None);
        // Another commit, and another minor version, go on with the same.
        assert_eq!(base(), of(side("15.2", Some("commit 2"), "on"), "-S", None));
        for other in [
            of(side("18.1", Some("commit 1"), "on"), "-S", None),
            of(side("15.1", Some("commit 1"), "off"), "-S", None),
            of(side("15.1", Some("commit 1"), "on"), "-N", None),
            of(side("15.1", Some("commit 1"), "on"), "-S", Some("shop.dump")),
            of(side("15.1", None, "on"), "-S", None),
        ] {
            assert_ne!(base(), other);
        }
    }
}
