//! Records that are small as files and large in memory are refused within the limits of memory and CPU time of the
//! mutants, and a record of many hours is still read within them.

use std::fs;
use std::io::Write;
use std::path::Path;

use stats::LatencyHistogram;

use crate::Desk;
use crate::mutants::limited;

/// A record of one trial, and the directory of this trial.
fn desk() -> (Desk, std::path::PathBuf) {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.pgrig(&["run", "mine", "--profile", "smoke", "--rounds", "1", "--out", "record"]).ended(0);
    let trials = desk.path("record/trials");
    let trial = trials.join(&crate::names(&trials)[0]);
    (desk, trial)
}

/// Writes a line again and again.
fn repeat(path: &Path, head: &str, lines: usize, line: &dyn Fn(usize) -> String) {
    let mut out = std::io::BufWriter::new(fs::File::create(path).unwrap());
    out.write_all(head.as_bytes()).unwrap();
    (0..lines).for_each(|number| writeln!(out, "{}", line(number)).unwrap());
    out.flush().unwrap();
}

fn latency(values: impl Iterator<Item = u64>) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    values.for_each(|value| latency.record_ns(value));
    latency
}

/// Something in every counter, in a few hundred bytes.
fn dense() -> LatencyHistogram {
    let next = |value: &u64| Some(value + (1 << (value.ilog2() + 1).saturating_sub(11)));
    let counters = std::iter::successors(Some(1), next);
    latency(counters.take_while(|value| *value < LatencyHistogram::LIMIT_NS))
}

fn interval(path: &Path) -> serde_json::Value {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

const SAMPLES: &str = "at,node,metric,label,value\n";

#[test]
fn a_record_that_unfolds_to_gigabytes_is_refused_in_little_memory() {
    let (desk, trial) = desk();
    let check =
        |file: &str, what: &str, lines: usize, head: &str, line: &dyn Fn(usize) -> String| {
            let path = trial.join(file);
            let before = fs::read(&path).unwrap();
            repeat(&path, head, lines, line);
            let size = path.metadata().unwrap().len();
            let (code, said, took) =
                limited(&["report", &desk.path("record").display().to_string()]);
            println!("{file}: {size} bytes, {took:?}: {said}");
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains(&format!("{file}, which has {size} bytes")), "{said}");
            assert!(said.contains(what) && said.contains("do not trust it"), "{said}");
            fs::write(&path, before).unwrap();
        };
    let mut dense_one = interval(&trial.join("intervals.jsonl"));
    for name in ["latency", "service", "lag"] {
        dense_one[name] = dense().to_base64().into();
    }
    dense_one["length_ns"] = 100_000_000.into();
    let dense_one = dense_one.to_string();
    check("intervals.jsonl", "unpacked", 1_200, "", &|_| dense_one.clone());
    let drawn = |number: usize| format!("{number},machine,cpu_user_pct,,1.5");
    check("samples.csv", "bytes of memory", 4_000_000, SAMPLES, &drawn);
    let mark = r#"{"at":1,"length_ns":0,"kind":"server_error","node":"primary","text":"x"}"#;
    check("marks.jsonl", "bytes of memory", 1_500_000, "", &|_| mark.to_owned());
}

#[test]
fn a_record_of_eight_hours_is_read() {
    let (desk, trial) = desk();
    let mut one = interval(&trial.join("intervals.jsonl"));
    let values = (0..1_500_u64).map(|n| 200_000 + n * n % 7_919 * 131);
    one["latency"] = latency(values).to_base64().into();
    one["length_ns"] = 1_000_000_000.into();
    let second = 1_000_000_000;
    let hours = 8 * 3_600;
    let began = one["start"].as_u64().unwrap();
    repeat(&trial.join("intervals.jsonl"), "", hours, &|number| {
        let mut one = one.clone();
        one["start"] = (began + number as u64 * second).into();
        one.to_string()
    });
    let metrics = ["cpu_user_pct", "cpu_system_pct", "processes_running", "wal_bytes", "backends"];
    repeat(&trial.join("samples.csv"), SAMPLES, hours * 40, &|number| {
        let at = began + number as u64 / 40 * second;
        format!("{at},machine,{},,{}.5", metrics[number % 5], number % 100)
    });
    let (code, said, took) = limited(&["report", &desk.path("record").display().to_string()]);
    println!("8 hours: {took:?}");
    assert_eq!(code, Some(0), "{said}");
    let page = fs::read_to_string(desk.path("record/report.html")).unwrap();
    assert!(page.contains("CPU of the machine"), "its seconds are drawn");
}
