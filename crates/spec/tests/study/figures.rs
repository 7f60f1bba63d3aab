//! Published figures, twice: `figures.csv` is the list of what the source prints, `published.csv`
//! what pgrig compares with. The two were typed apart, so that a wrong digit in either shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A row by the names of its file's columns.
type Row = BTreeMap<String, String>;

/// The folders below `studies/` that hold published figures, and the name of each.
fn folders() -> Vec<(String, PathBuf)> {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let paths = fs::read_dir(studies).unwrap().map(|entry| entry.unwrap().path());
    let folders = paths.filter(|path| path.join("published.csv").is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut folders: Vec<_> = folders.map(|path| (name(&path), path)).collect();
    folders.sort();
    assert!(!folders.is_empty());
    folders
}

fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// Where a figure stands: source, table, row and column.
fn place(figure: &Row) -> String {
    ["source", "table", "row", "column"].map(|column| figure[column].as_str()).join(", ")
}

/// What is printed, in the unit of the catalogue: `95.4%` is 0.954 where that has none.
fn value(printed: &str, unit: &str) -> f64 {
    let digits = printed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(printed.len());
    let number: f64 = printed[..digits].parse().unwrap_or_else(|_| panic!("{printed}: no number"));
    match (printed[digits..].trim(), unit) {
        (printed, unit) if printed == unit => number,
        ("", "1/s") => number,
        ("%", "") => number / 100.0,
        ("ms", "µs") | ("s", "ms") => number * 1e3,
        (printed, unit) => panic!("no way from \"{printed}\" to \"{unit}\""),
    }
}

#[test]
fn every_figure_that_is_compared_with_is_printed_in_its_source() {
    for (study, path) in folders() {
        let mut printed: BTreeMap<String, Row> = BTreeMap::new();
        for figure in rows(&path.join("figures.csv")) {
            let twice = printed.insert(place(&figure), figure);
            assert!(twice.is_none(), "{study}: {} stands twice", place(&twice.unwrap()));
        }
        let published = rows(&path.join("published.csv"));
        for filed in &published {
            let source = &filed["source"];
            let figure = printed.get(source).unwrap_or_else(|| panic!("{study}: no \"{source}\""));
            let (here, there): (f64, f64) =
                (filed["value"].parse().unwrap(), value(&figure["printed"], &filed["unit"]));
            let off = (here - there).abs() / there.abs().max(1.0);
            assert!(off < 1e-12, "{study}: {source}: filed {here}, printed {there}");
            let why = &figure["not_filed"];
            assert!(why.is_empty(), "{study}: {source} is filed, and \"{why}\"");
        }
        let filed: BTreeSet<&str> = published.iter().map(|row| row["source"].as_str()).collect();
        for (place, figure) in &printed {
            let is_filed = filed.contains(place.as_str());
            let why = &figure["not_filed"];
            assert!(is_filed || !why.is_empty(), "{study}: {place} is not filed, without a reason");
        }
    }
}

/// pgbench prints both; they differ where connecting takes long.
#[test]
fn throughput_that_pgbench_printed_says_what_it_does_with_connections() {
    for (study, path) in folders() {
        for filed in rows(&path.join("published.csv")) {
            if filed["metric"] == "tps_published" {
                let note = &filed["note"];
                let says =
                    ["including connections", "excluding connections", "connections are included"];
                let is_said = says.iter().any(|words| note.contains(words));
                assert!(is_said, "{study}: {}: \"{note}\"", filed["source"]);
            }
        }
    }
}

/// A mean over progress lines is no printed figure: it must be that of the lines.
#[test]
fn a_mean_of_progress_lines_is_that_of_the_lines() {
    let mut checked = 0;
    for (study, path) in folders() {
        let figures = rows(&path.join("figures.csv"));
        let means = figures.iter().filter(|figure| figure["row"].starts_with("mean of "));
        for mean in means {
            let words: Vec<&str> = mean["row"].split(' ').collect();
            let (first, last): (usize, usize) =
                (words[2].parse().unwrap(), words[4].parse().unwrap());
            let line = |number: usize, column: &str| {
                let line = figures.iter().find(|figure| {
                    figure["table"] == mean["table"]
                        && figure["column"] == column
                        && figure["row"].starts_with(&format!("{number}: "))
                });
                let line = line.unwrap_or_else(|| panic!("{study}: no line {number}"));
                let ends: Vec<f64> =
                    line["row"].split(' ').filter_map(|word| word.parse().ok()).collect();
                (ends[1] - ends[0], value(&line["printed"].replace(" ms", ""), ""))
            };
            let (mut seconds, mut transactions, mut waited) = (0.0, 0.0, 0.0);
            for number in first..=last {
                let (length, tps) = line(number, "TPS");
                seconds += length;
                transactions += length * tps;
                waited += length * tps * line(number, "latency").1;
            }
            let computed = match &*mean["column"] {
                "TPS" => transactions / seconds,
                "latency" => waited / transactions,
                other => panic!("{study}: no mean of {other}"),
            };
            let said = value(&mean["printed"].replace(" ms", ""), "");
            assert!((computed - said).abs() <= 0.05 + 1e-9, "{}: {computed}", place(mean));
            checked += 1;
        }
    }
    assert!(checked > 0, "no mean of progress lines");
}
